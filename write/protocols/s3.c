/* The protocol s3: sends each profile to a bucket of S3, or of a server with the same API, as one
 * object with the name that it would have as a file.
 *
 * A bucket has no way to see that a name is taken, so a checksum of content and labels follows the
 * name: so no profile replaces another one, and a profile that is sent again replaces itself. There
 * is no index either: the data of an index line is in the metadata of the object.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "bucket/answers.h"
#include "pprof/gzip.h"
#include "write/protocols/file_names.h"
#include "write/protocols/s3.h"
#include "write/protocols/table.h"

#define SHA256_SIZE 32
#define SHA256_HEX (2 * SHA256_SIZE)
/* Hexadecimal digits of the checksum in a name. */
#define MARK 8
#define NOTE_HEADER "x-amz-meta-profpull"
#define NOTE_BYTES_MAX ((size_t)1024 * 1024)

/* ---- metadata -------------------------------------------------------------------------------- */

static void put_escape(uint32_t unit, struct buf *out)
{
    buf_printf(out, "\\u%04x", (unsigned)unit);
}

/* Appends JSON without line breaks as a header carries it unchanged: in ASCII, and without spaces,
 * of which a signature counts several as one. */
static void put_ascii(struct sv json, struct buf *out)
{
    while (json.n > 0) {
        uint32_t rune;
        size_t n = utf8_decode(json, &rune);
        if (rune >= 0x10000) {
            put_escape(0xd800 + ((rune - 0x10000) >> 10), out);
            put_escape(0xdc00 + ((rune - 0x10000) & 0x3ff), out);
        } else if (rune <= 0x20 || rune >= 0x7f) {
            put_escape(rune, out);
        } else {
            buf_putc(out, (char)rune);
        }
        json = sv_skip(json, n > 0 ? n : 1);
    }
}

/* Appends the note of a profile. s is NULL for a note without labels. */
static bool put_note(const struct series *s, const struct profile *p, struct buf *out)
{
    struct buf json;
    buf_init(&json, NOTE_BYTES_MAX);
    buf_clear(out);
    buf_putc(&json, '{');
    file_put_times(p, &json);
    if (s != NULL) {
        file_put_labels(s, &json);
    }
    bool ok = buf_putc(&json, '}');
    put_ascii((struct sv){json.data, json.len}, out);
    buf_done(&json);
    return ok && buf_ok(out);
}

/* Appends the note. If there are too many labels for a bucket, those that are worth least are left
 * out. */
static bool fit_note(struct series *s, const struct profile *p, struct buf *out)
{
    bool ok = put_note(s, p, out);
    while (!ok && buf_too_big(out) && series_drop_least(s)) {
        ok = put_note(s, p, out);
    }
    return ok || (buf_too_big(out) && put_note(NULL, p, out));
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool sha256_hex(struct sv v, char out[SHA256_HEX + 1])
{
    unsigned char sum[SHA256_SIZE];
    bool ok = EVP_Digest(v.p, v.n, sum, NULL, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; ok && i < SHA256_SIZE; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", sum[i]);
    }
    return ok;
}

/* Makes the bytes of the object: those of the profile, compressed if it is a plain pprof. */
static bool make_body(struct request *r, const struct profile *p, struct sv *ret)
{
    struct sv own = {p->data, p->size};
    *ret = own;
    if (!file_is_plain(p)) {
        return true;
    }
    struct scratch *s = scratch_new();
    bool ok = s != NULL && gzip_pack(s, own, &r->packed, &r->packed_size);
    scratch_free(s);
    *ret = (struct sv){r->packed, r->packed_size};
    return ok;
}

/* Makes the URL. The note is a part of the checksum in the name, so that objects with other notes
 * have other names. */
static bool put_url(struct request *r, const struct request_input *in, const char *content,
                    const struct buf *note)
{
    char service[FILE_PART_MAX + 1];
    char type[FILE_PART_MAX + 1];
    char stem[FILE_STEM_SIZE];
    char mark[SHA256_HEX + 1];
    struct buf all;
    buf_init(&all, SHA256_HEX + S3_NOTE_MAX);
    buf_puts(&all, content);
    buf_append(&all, note->data, note->len);
    bool ok = buf_ok(&all) && sha256_hex((struct sv){all.data, all.len}, mark);
    buf_done(&all);
    file_path_part(in->series->service, service);
    file_path_part(in->series->type, type);
    file_stem(in->series, in->profile, stem);
    return ok && buf_printf(&r->url, "%s/%s/%s/%s_%.*s.%s", in->endpoint->s3_url, service, type,
                            stem, MARK, mark, file_extension(in->profile));
}

/* Sets everything but the body. */
static bool complete(struct request *r, const struct request_input *in, const char *content,
                     const struct buf *note)
{
    r->method = "PUT";
    (void)snprintf(r->content_type, sizeof(r->content_type), "application/octet-stream");
    /* Each text with its NUL. */
    buf_append(&r->values, content, SHA256_HEX + 1);
    bool ok = buf_append(&r->values, note->data, note->len) && put_url(r, in, content, note);
    request_add_own(r, "x-amz-content-sha256", r->values.data);
    request_add_own(r, NOTE_HEADER, r->values.data + (ok ? SHA256_HEX + 1 : 0));
    return ok;
}

static enum request_status s3_build(struct request *r, const struct request_input *in)
{
    struct sv body;
    char content[SHA256_HEX + 1];
    struct buf note;
    buf_init(&note, S3_NOTE_MAX);
    bool ok = fit_note(in->series, in->profile, &note) && make_body(r, in->profile, &body) &&
              sha256_hex(body, content) && complete(r, in, content, &note);
    buf_done(&note);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- answers --------------------------------------------------------------------------------- */

#define ADVICE_RIGHTS                                                                              \
    "this access key may not write here: it needs the permission s3:PutObject for the bucket and " \
    "the prefix of url"

/* The class of each meaning. Refusals that last until somebody changes something are retried from
 * time to time; others concern this profile alone, because something was lost on its way. */
static const struct {
    bool known;
    enum answer_scope scope;
} classes[BUCKET_RESULTS] = {
    [BUCKET_NO_BUCKET] = {true, ANSWER_OF_ENDPOINT}, [BUCKET_DENIED] = {true, ANSWER_OF_ENDPOINT},
    [BUCKET_CLOCK] = {true, ANSWER_OF_ENDPOINT},     [BUCKET_FULL] = {true, ANSWER_OF_ENDPOINT},
    [BUCKET_SLOW_DOWN] = {true, ANSWER_OF_ENDPOINT}, [BUCKET_TIMEOUT] = {true, ANSWER_OF_PROFILE},
    [BUCKET_NETWORK] = {true, ANSWER_OF_PROFILE},
};

static void s3_read_refusal(const struct answer_input *in, struct reply *r)
{
    struct bucket_refusal refusal;
    if (!bucket_read_refusal(in->body, &refusal)) {
        return;
    }
    (void)snprintf(r->own_code, sizeof(r->own_code), "%s", refusal.code);
    (void)snprintf(r->own_text, sizeof(r->own_text), "%s: %s%s%s%s", refusal.code, refusal.message,
                   refusal.place[0] != '\0' ? " (" : "", refusal.place,
                   refusal.place[0] != '\0' ? ")" : "");
    r->code = r->own_code;
    r->message = sv_from(r->own_text);
}

static bool is_one_of(const char *code, const char *one, const char *other)
{
    return strcmp(code, one) == 0 || strcmp(code, other) == 0;
}

static bool s3_knows(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    bool redirect = in->status >= 300 && in->status < 400;
    struct bucket_meaning m = bucket_meaning_of(r->code, redirect ? in->status : 0, false);
    /* An internal error may be the fault of this profile. */
    if (!classes[m.result].known || strcmp(r->code, "InternalError") == 0) {
        return false;
    }
    a->class = ANSWER_RETRY;
    a->scope = classes[m.result].scope;
    a->advice = strcmp(r->code, "AccessDenied") == 0 ? ADVICE_RIGHTS : m.advice;
    a->delay_ms = a->advice != NULL ? ANSWER_SLOW_MS : 0;
    /* Another request for the same object was in the way. */
    if (strcmp(r->code, "OperationAborted") == 0) {
        a->scope = ANSWER_OF_PROFILE;
    }
    if (is_one_of(r->code, "XAmzContentSHA256Mismatch", "BadDigest")) {
        answer_set_doubtful(a, ANSWER_TRIES);
    }
    return true;
}

/* Accepts a 2xx without a body: a page that another server sends with status 200 has one. */
static bool s3_accepts(const struct answer_input *in, const struct reply *r)
{
    (void)r;
    return in->body.n == 0;
}

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_s3 = {
    .config = {.name = "s3", .scheme = "s3", .takes_jfr = true, .is_s3 = true},
    .labels = {.names = SERIES_NAMES_ALL, .unlimited = true},
    .build = s3_build,
    .accepts = s3_accepts,
    .knows = s3_knows,
    .read_refusal = s3_read_refusal,
    .advice_not_found =
        "this server has no such bucket, or is not an S3 server: check url, s3.endpoint "
        "and s3.path_style",
};
