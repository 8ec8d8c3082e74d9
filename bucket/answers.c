#include "bucket/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bucket/xml.h"
#include "http/url.h"

/* The limits of texts in an entry: keys with every byte percent-encoded, and ids of uploads. */
#define TEXT_MAX ((size_t)4096)

/* ---- listings -------------------------------------------------------------------------------- */

/* One pass over a list. */
struct reading {
    bool (*fn)(void *arg, const struct bucket_listed *entry);
    void *arg;
    struct bucket_page *page;
    struct buf key; /* of the current entry, as are the next ones */
    struct buf etag;
    struct buf upload;
    struct bucket_listed entry;
    bool has_key;
    bool url_encoded;
    bool stopped;
    const char *fault; /* NULL: none */
};

static void reading_init(struct reading *r)
{
    buf_init(&r->key, TEXT_MAX);
    buf_init(&r->etag, TEXT_MAX);
    buf_init(&r->upload, TEXT_MAX);
}

static void reading_done(struct reading *r)
{
    buf_done(&r->key);
    buf_done(&r->etag);
    buf_done(&r->upload);
}

static void start_entry(struct reading *r)
{
    r->entry = (struct bucket_listed){.is_prefix = false};
    r->has_key = false;
    buf_clear(&r->key);
    buf_clear(&r->etag);
    buf_clear(&r->upload);
}

static void take_text(struct reading *r, struct sv text, struct buf *out)
{
    buf_clear(out);
    if (!xml_unescape(text, out)) {
        r->fault = buf_too_big(out) ? "a text that is too long" : "an unknown entity";
    }
}

/* Replaces %XX and, as AWS encodes a space, "+". */
static bool decode(struct buf *text)
{
    struct buf out;
    buf_init(&out, TEXT_MAX);
    bool ok = true;
    for (struct sv v = {text->data, text->len}; ok && v.n > 0;) {
        int byte = v.p[0] == '%' ? url_decode_byte(v) : -1;
        ok = v.p[0] != '%' || byte >= 0;
        buf_putc(&out, byte >= 0 ? (char)byte : v.p[0] == '+' ? ' ' : v.p[0]);
        v = sv_skip(v, byte >= 0 ? 3 : 1);
    }
    buf_clear(text);
    ok = ok && buf_ok(&out) && buf_append(text, out.data, out.len);
    buf_done(&out);
    return ok;
}

/* The encoding is only known at the end of some servers' lists, so a first pass finds it. */
static void take_key(struct reading *r, struct sv text)
{
    take_text(r, text, &r->key);
    if (r->fault == NULL && r->url_encoded && !decode(&r->key)) {
        r->fault = "a key that is not percent-encoded";
    }
    r->has_key = true;
}

static void take_size(struct reading *r, struct sv text)
{
    if (!parse_u64(text, INT64_MAX, &r->entry.size)) {
        r->fault = "a size that is no number";
    }
}

static void take_time(struct reading *r, struct sv text)
{
    if (!clock_take_rfc3339(&text, 9, &r->entry.modified_ns) || text.n > 0) {
        r->entry.modified_ns = 0;
    }
}

static void end_entry(struct reading *r)
{
    if (!r->has_key) {
        r->fault = "an entry without a key";
        return;
    }
    r->page->entries++;
    r->entry.key = (struct sv){r->key.data, r->key.len};
    r->entry.etag = (struct sv){r->etag.data, r->etag.len};
    r->entry.upload = (struct sv){r->upload.data, r->upload.len};
    if (r->fn != NULL && !r->fn(r->arg, &r->entry)) {
        r->stopped = true;
    }
    start_entry(r);
}

static void take_next(struct reading *r, struct sv text, bool encoded, char **ret)
{
    struct buf next;
    buf_init(&next, TEXT_MAX);
    take_text(r, text, &next);
    if (r->fault == NULL && encoded && !decode(&next)) {
        r->fault = "a key that is not percent-encoded";
    }
    free(*ret);
    *ret = next.len > 0 ? buf_take(&next, NULL) : NULL;
    buf_done(&next);
}

/* ---- one pass -------------------------------------------------------------------------------- */

struct list_kind {
    const char *root;
    const char *entry;
    const char *next;
    bool next_is_key;
};
static const struct list_kind objects = {"ListBucketResult", "Contents", "NextContinuationToken",
                                         false};
static const struct list_kind uploads = {"ListMultipartUploadsResult", "Upload", "NextKeyMarker",
                                         true};

/* Takes an element of the list itself. */
static void take_of_list(struct reading *r, const struct list_kind *k, const struct xml_element *e)
{
    if (sv_eq_str(e->name, k->entry)) {
        end_entry(r);
    } else if (sv_eq_str(e->name, "CommonPrefixes")) {
        r->entry.is_prefix = true;
        end_entry(r);
    } else if (sv_eq_str(e->name, "IsTruncated")) {
        r->page->truncated = sv_eq_nocase(sv_trim(e->text), "true");
    } else if (sv_eq_str(e->name, k->next)) {
        take_next(r, e->text, k->next_is_key && r->url_encoded, &r->page->next);
    } else if (sv_eq_str(e->name, "NextUploadIdMarker")) {
        take_next(r, e->text, false, &r->page->next_upload);
    }
}

/* Takes an element of an entry. */
static void take_of_entry(struct reading *r, const struct xml_element *e)
{
    if (sv_eq_str(e->name, "Key") || sv_eq_str(e->name, "Prefix")) {
        take_key(r, e->text);
    } else if (sv_eq_str(e->name, "Size")) {
        take_size(r, e->text);
    } else if (sv_eq_str(e->name, "ETag")) {
        take_text(r, e->text, &r->etag);
    } else if (sv_eq_str(e->name, "UploadId")) {
        take_text(r, e->text, &r->upload);
    } else if (sv_eq_str(e->name, "LastModified") || sv_eq_str(e->name, "Initiated")) {
        take_time(r, e->text);
    }
}

static bool run(struct reading *r, struct sv body, const struct list_kind *k, struct err *err)
{
    struct xml x;
    struct xml_element e;
    bool root = false;
    xml_init(&x, body);
    start_entry(r);
    while (r->fault == NULL && !r->stopped && xml_next(&x, &e)) {
        if (e.depth == 1) {
            root = sv_eq_str(e.name, k->root);
        } else if (e.depth == 2) {
            take_of_list(r, k, &e);
        } else if (e.depth == 3 &&
                   (sv_eq_str(e.parent, k->entry) || sv_eq_str(e.parent, "CommonPrefixes"))) {
            take_of_entry(r, &e);
        }
    }
    if (r->stopped) {
        return true;
    }
    if (r->fault == NULL && !xml_ok(&x)) {
        r->fault = "text that is no XML of an object store";
    } else if (r->fault == NULL && !root) {
        r->fault = "another document";
    }
    return r->fault == NULL || err_set(err, ERR_INPUT, "expected a %s, got %s", k->root, r->fault);
}

/* Finds the encoding of keys, and checks the list before an entry is given away. */
static void find_encoding(struct sv body, bool *ret)
{
    struct xml x;
    struct xml_element e;
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
        if (e.depth == 2 && sv_eq_str(e.name, "EncodingType")) {
            *ret = sv_eq_nocase(sv_trim(e.text), "url");
        }
    }
}

void bucket_page_done(struct bucket_page *p)
{
    free(p->next);
    free(p->next_upload);
    p->next = NULL;
    p->next_upload = NULL;
}

static bool read_list(struct sv body, const struct list_kind *k,
                      bool (*fn)(void *arg, const struct bucket_listed *entry), void *arg,
                      struct bucket_page *ret, struct err *err)
{
    bool url_encoded = false;
    *ret = (struct bucket_page){.truncated = false};
    find_encoding(body, &url_encoded);
    struct reading check = {.page = ret, .url_encoded = url_encoded};
    reading_init(&check);
    bool ok = run(&check, body, k, err);
    reading_done(&check);
    if (!ok || fn == NULL) {
        return ok;
    }
    struct bucket_page again = {.truncated = false};
    struct reading r = {.fn = fn, .arg = arg, .page = &again, .url_encoded = url_encoded};
    reading_init(&r);
    ok = run(&r, body, k, err);
    reading_done(&r);
    bucket_page_done(&again);
    return ok;
}

bool bucket_read_list(struct sv body, bool (*fn)(void *arg, const struct bucket_listed *entry),
                      void *arg, struct bucket_page *ret, struct err *err)
{
    return read_list(body, &objects, fn, arg, ret, err);
}

bool bucket_read_uploads(struct sv body, bool (*fn)(void *arg, const struct bucket_listed *entry),
                         void *arg, struct bucket_page *ret, struct err *err)
{
    return read_list(body, &uploads, fn, arg, ret, err);
}

/* ---- uploads --------------------------------------------------------------------------------- */

bool bucket_read_upload_id(struct sv body, struct buf *out, struct err *err)
{
    struct xml x;
    struct xml_element e;
    bool root = false;
    bool id = false;
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
        root = e.depth == 1 && sv_eq_str(e.name, "InitiateMultipartUploadResult");
        if (e.depth == 2 && sv_eq_str(e.name, "UploadId")) {
            buf_clear(out);
            id = xml_unescape(e.text, out) && out->len > 0;
        }
    }
    return (xml_ok(&x) && root && id) ||
           err_set(
               err, ERR_INPUT,
               "expected an InitiateMultipartUploadResult with an UploadId, got another answer");
}

bool bucket_is_complete(struct sv body)
{
    struct xml x;
    struct xml_element e = {.depth = 0};
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
    }
    return xml_ok(&x) && e.depth == 1 && sv_eq_str(e.name, "CompleteMultipartUploadResult");
}
