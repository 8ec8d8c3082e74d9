/* Files as objects: one request for a small one, a multipart upload for a large one.
 *
 *   begin -> part 1, part 2, ... -> complete        any failure -> abort
 *
 * The answer to "complete" may be lost, and the upload is then unknown to the server. So an upload
 * carries a random mark in its metadata: if the object under the key has it, the upload was
 * completed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bucket/private.h"
#include "bucket/xml.h"

#define UPLOAD_ID_MAX ((size_t)2048)
/* One part in the body of "complete": tags, number and ETag. */
#define PART_TEXT_MAX ((size_t)256 + 2 * BUCKET_ETAG_SIZE)
/* The time for aborting an upload after a failure. */
#define ABORT_MS 10000
/* A server that has lost an upload or a part gets the file once more. */
#define UPLOADS_MAX 2
#define PAGES_MAX 1000

struct upload {
    struct bucket *b;
    const char *key;
    int fd;
    uint64_t offset;
    uint64_t len;
    uint64_t part_bytes;
    int64_t deadline_ms;
    char mark[BUCKET_MARK_SIZE];
    struct buf id;
    struct buf parts; /* the body of "complete" */
    char *memory;     /* of one part */
    bool lost;        /* the server does not know the upload or a part any more */
};

/* Reads len bytes of the file into the memory of a part. */
static enum bucket_result read_part(const struct upload *u, uint64_t from, size_t len,
                                    struct err *err)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(u->fd, u->memory + got, len - got, (off_t)(u->offset + from + got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int code = n < 0 ? errno : 0;
            struct err why = ERR_INIT;
            errno = code;
            err_sys(&why, "reading the file");
            return bucket_fail(u->b, u->key, BUCKET_FILE, err, "%s",
                               n < 0 ? why.msg : "the file has become shorter while it was sent");
        }
        got += (size_t)n;
    }
    return BUCKET_OK;
}

static const char *mark_header(const struct bucket *b)
{
    return b->google ? BUCKET_MARK_GOOGLE : BUCKET_MARK_AMAZON;
}

static enum bucket_result bad_answer(const struct upload *u, struct err *err, const char *text)
{
    return bucket_fail(u->b, u->key, BUCKET_BAD_ANSWER, err, "%s", text);
}

/* Notes that the server has lost the upload or a part of it, if that is the reason. */
static void note_loss(struct upload *u, const struct bucket_call *c)
{
    u->lost = strcmp(c->reply.code, "NoSuchUpload") == 0 ||
              strcmp(c->reply.code, "InvalidPart") == 0 ||
              strcmp(c->reply.code, "InvalidPartOrder") == 0;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static enum bucket_result begin(struct upload *u, struct err *err)
{
    struct bucket_call c;
    struct err why = ERR_INIT;
    enum bucket_result result = bucket_call_init(&c, u->b, BUCKET_UPLOAD_BEGIN, u->key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "POST";
    bucket_call_param(&c, "uploads", SV(""));
    bucket_call_header(&c, "Content-Type", "application/octet-stream");
    bucket_call_header(&c, mark_header(u->b), u->mark);
    result = bucket_call_run(&c, u->deadline_ms, err);
    struct sv body = {c.reply.body.data, c.reply.body.len};
    if (result == BUCKET_OK && !bucket_read_upload_id(body, &u->id, &why)) {
        result = bad_answer(u, err, why.msg);
    }
    bucket_call_done(&c);
    return result;
}

static void put_part(struct upload *u, unsigned number, const char *etag)
{
    buf_printf(&u->parts, "<Part><PartNumber>%u</PartNumber><ETag>", number);
    xml_escape(sv_from(etag), &u->parts);
    buf_puts(&u->parts, "</ETag></Part>");
}

static enum bucket_result send_part(struct upload *u, unsigned number, size_t len, struct err *err)
{
    struct bucket_call c;
    char text[16];
    enum bucket_result result = bucket_call_init(&c, u->b, BUCKET_UPLOAD_PART, u->key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    (void)snprintf(text, sizeof(text), "%u", number);
    c.method = "PUT";
    bucket_call_param(&c, "partNumber", sv_from(text));
    bucket_call_param(&c, "uploadId", (struct sv){u->id.data, u->id.len});
    bucket_call_header(&c, "Content-Type", "application/octet-stream");
    c.data = u->memory;
    c.len = len;
    result = bucket_call_run(&c, u->deadline_ms, err);
    note_loss(u, &c);
    if (result == BUCKET_OK && c.reply.etag[0] == '\0') {
        result = bad_answer(u, err, "the server took a part and gave no ETag for it");
    }
    if (result == BUCKET_OK) {
        put_part(u, number, c.reply.etag);
    }
    bucket_call_done(&c);
    return result;
}

static enum bucket_result send_parts(struct upload *u, struct err *err)
{
    enum bucket_result result = BUCKET_OK;
    unsigned number = 1;
    for (uint64_t from = 0; result == BUCKET_OK && from < u->len; from += u->part_bytes) {
        uint64_t left = u->len - from;
        size_t len = (size_t)(left < u->part_bytes ? left : u->part_bytes);
        result = read_part(u, from, len, err);
        if (result == BUCKET_OK) {
            result = send_part(u, number++, len, err);
        }
    }
    return result;
}

/* Returns true if the object under the key is the one of this upload. */
static bool is_done(const struct upload *u)
{
    struct bucket_call c;
    if (bucket_call_init(&c, u->b, BUCKET_HEAD, u->key, NULL) != BUCKET_OK) {
        return false;
    }
    c.method = "HEAD";
    bool done = bucket_call_run(&c, u->deadline_ms, NULL) == BUCKET_OK &&
                c.reply.length == u->len && strcmp(c.reply.mark, u->mark) == 0;
    bucket_call_done(&c);
    return done;
}

/* Judges the body of an answer 200, which a server may begin before it has put the parts
 * together. */
static enum bucket_result judge_end(struct upload *u, struct bucket_call *c, struct err *err)
{
    struct sv body = {c->reply.body.data, c->reply.body.len};
    struct bucket_refusal refusal;
    if (bucket_is_complete(body)) {
        return BUCKET_OK;
    }
    if (!bucket_read_refusal(body, &refusal)) {
        return bad_answer(u, err, "an answer that does not say whether the upload is complete");
    }
    struct bucket_meaning m = bucket_meaning_of(refusal.code, 0, u->b->google);
    memcpy(c->reply.code, refusal.code, sizeof(refusal.code));
    note_loss(u, c);
    return bucket_fail(u->b, u->key, m.result, err,
                       "POST answered HTTP 200 with the error %s: %s%s%s", refusal.code,
                       refusal.message, m.advice != NULL ? ": " : "",
                       m.advice != NULL ? m.advice : "");
}

static enum bucket_result complete_once(struct upload *u, struct err *err)
{
    struct bucket_call c;
    enum bucket_result result = bucket_call_init(&c, u->b, BUCKET_UPLOAD_COMPLETE, u->key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "POST";
    bucket_call_param(&c, "uploadId", (struct sv){u->id.data, u->id.len});
    bucket_call_header(&c, "Content-Type", "application/xml");
    c.data = u->parts.data;
    c.len = u->parts.len;
    result = bucket_call_run(&c, u->deadline_ms, err);
    note_loss(u, &c);
    if (result == BUCKET_OK) {
        result = judge_end(u, &c, err);
    }
    bucket_call_done(&c);
    return result;
}

/* Completes the upload. An error in an answer 200 is tried again like one with its own status. */
static enum bucket_result complete(struct upload *u, struct err *err)
{
    enum bucket_result result;
    unsigned tries = 0;
    do {
        u->lost = false;
        err_clear(err);
        result = complete_once(u, err);
        tries++;
    } while ((result == BUCKET_SLOW_DOWN || result == BUCKET_BAD_ANSWER) &&
             tries < u->b->options.tries &&
             bucket_pause(u->b, u->b->options.pause_min_ms << tries, u->deadline_ms));
    if (result != BUCKET_OK && result != BUCKET_STOPPED && is_done(u)) {
        u->lost = false;
        err_clear(err);
        result = BUCKET_OK;
    }
    return result;
}

static enum bucket_result abort_upload(struct bucket *b, const char *key, struct sv id,
                                       int64_t deadline_ms, struct err *err)
{
    struct bucket_call c;
    enum bucket_result result = bucket_call_init(&c, b, BUCKET_UPLOAD_ABORT, key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "DELETE";
    bucket_call_param(&c, "uploadId", id);
    result = bucket_call_run(&c, deadline_ms, err);
    bucket_call_done(&c);
    return result == BUCKET_NOT_FOUND ? BUCKET_OK : result;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static enum bucket_result upload_once(struct upload *u, struct err *err)
{
    u->lost = false;
    buf_clear(&u->id);
    buf_clear(&u->parts);
    buf_puts(&u->parts, "<CompleteMultipartUpload>");
    enum bucket_result result = begin(u, err);
    if (result != BUCKET_OK) {
        return result;
    }
    result = send_parts(u, err);
    if (result == BUCKET_OK && !buf_puts(&u->parts, "</CompleteMultipartUpload>")) {
        result = bucket_fail(u->b, u->key, BUCKET_MEMORY, err, "out of memory");
    }
    if (result == BUCKET_OK) {
        result = complete(u, err);
    }
    if (result != BUCKET_OK) {
        (void)abort_upload(u->b, u->key, (struct sv){u->id.data, u->id.len},
                           clock_mono_ms() + ABORT_MS, NULL);
    }
    return result;
}

static enum bucket_result upload(struct upload *u, struct err *err)
{
    enum bucket_result result;
    unsigned uploads = 0;
    struct rng rng;
    rng_seed_random(&rng);
    (void)snprintf(u->mark, sizeof(u->mark), "%016" PRIx64 "%016" PRIx64, rng_next(&rng),
                   rng_next(&rng));
    buf_init(&u->id, UPLOAD_ID_MAX);
    buf_init(&u->parts, PART_TEXT_MAX * (BUCKET_PARTS_MAX + 1));
    struct err why = ERR_INIT;
    do {
        err_clear(&why);
        result = upload_once(u, &why);
        uploads++;
    } while (result != BUCKET_OK && u->lost && uploads < UPLOADS_MAX);
    if (result != BUCKET_OK && err != NULL) {
        *err = why;
    }
    if (result == BUCKET_NOT_FOUND || (result == BUCKET_REFUSED && u->lost)) {
        /* The upload is missing, not the object: another try may help. */
        result = BUCKET_BAD_ANSWER;
    }
    buf_done(&u->id);
    buf_done(&u->parts);
    return result;
}

/* Returns the size of parts: that of the options, or more for a file with too many of them. */
static uint64_t part_size(const struct bucket *b, uint64_t len)
{
    uint64_t least = (len + BUCKET_PARTS_MAX - 1) / BUCKET_PARTS_MAX;
    return least > b->options.part_bytes ? least : b->options.part_bytes;
}

enum bucket_result bucket_put_file(struct bucket *b, const char *key, int fd, uint64_t offset,
                                   uint64_t len, int64_t deadline_ms, struct err *err)
{
    struct upload u = {.b = b,
                       .key = key,
                       .fd = fd,
                       .offset = offset,
                       .len = len,
                       .part_bytes = part_size(b, len),
                       .deadline_ms = deadline_ms};
    bool small = len <= b->options.part_bytes;
    size_t size = (size_t)(small ? len : u.part_bytes);
    u.memory = malloc(size > 0 ? size : 1);
    if (u.memory == NULL) {
        return bucket_fail(b, key, BUCKET_MEMORY, err, "out of memory");
    }
    enum bucket_result result = BUCKET_OK;
    if (small) {
        result = read_part(&u, 0, size, err);
        if (result == BUCKET_OK) {
            result = bucket_put(b, key, u.memory, size, deadline_ms, err);
        }
    } else {
        result = upload(&u, err);
    }
    free(u.memory);
    return result;
}

/* ---- uploads that nobody ends ---------------------------------------------------------------- */

struct sweep {
    struct bucket *b;
    const char *prefix; /* that was asked for; NULL: none */
    int64_t before_ns;
    int64_t deadline_ms;
    size_t aborted;
    enum bucket_result result;
    struct err err;
};

static bool on_upload(void *arg, const struct bucket_listed *e)
{
    struct sweep *s = arg;
    struct sv name;
    char key[BUCKET_KEY_MAX + 1];
    bool old = e->modified_ns > 0 && e->modified_ns < s->before_ns;
    if (e->is_prefix || !old || e->upload.n == 0 ||
        !bucket_own_key(s->b, s->prefix, e->key, &name)) {
        return true;
    }
    if (!bucket_key_valid(s->b, name)) {
        metric_inc(s->b->foreign);
        return true;
    }
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    s->result = abort_upload(s->b, key, e->upload, s->deadline_ms, &s->err);
    s->aborted += s->result == BUCKET_OK;
    return s->result == BUCKET_OK;
}

static enum bucket_result fetch_uploads(struct bucket_call *c, struct sweep *s,
                                        const struct bucket_page *from)
{
    char text[2 * BUCKET_KEY_MAX];
    enum bucket_result result = bucket_call_init(c, s->b, BUCKET_UPLOAD_LIST, NULL, &s->err);
    if (result != BUCKET_OK) {
        return result;
    }
    int n = snprintf(text, sizeof(text), "%s%s", s->b->prefix, s->prefix != NULL ? s->prefix : "");
    bucket_call_param(c, "encoding-type", SV("url"));
    if (from->next != NULL) {
        bucket_call_param(c, "key-marker", sv_from(from->next));
    }
    if (n > 0) {
        bucket_call_param(c, "prefix", sv_from(text));
    }
    if (from->next != NULL && from->next_upload != NULL) {
        bucket_call_param(c, "upload-id-marker", sv_from(from->next_upload));
    }
    bucket_call_param(c, "uploads", SV(""));
    return bucket_call_run(c, s->deadline_ms, &s->err);
}

/* Aborts the uploads of one page, and replaces the page by the next one's beginning. */
static void sweep_page(struct sweep *s, struct bucket_page *page)
{
    struct bucket_call c;
    struct bucket_page next = {.truncated = false};
    struct err why = ERR_INIT;
    s->result = fetch_uploads(&c, s, page);
    if (s->result == BUCKET_OK) {
        struct sv body = {c.reply.body.data, c.reply.body.len};
        if (!bucket_read_uploads(body, on_upload, s, &next, &why)) {
            s->result = bucket_fail(s->b, NULL, BUCKET_BAD_ANSWER, &s->err, "%s", why.msg);
        } else if (s->result == BUCKET_OK && next.truncated &&
                   (next.next == NULL || (str_same(next.next, page->next) &&
                                          str_same(next.next_upload, page->next_upload)))) {
            s->result = bucket_fail(s->b, NULL, BUCKET_BAD_ANSWER, &s->err,
                                    "a list that does not say how it goes on");
        }
    }
    bucket_call_done(&c);
    bucket_page_done(page);
    *page = next;
}

enum bucket_result bucket_abort_uploads(struct bucket *b, const char *prefix, int64_t before_ns,
                                        int64_t deadline_ms, size_t *ret_n, struct err *err)
{
    struct sweep s = {.b = b, .prefix = prefix, .before_ns = before_ns, .deadline_ms = deadline_ms};
    struct bucket_page page = {.truncated = true};
    for (unsigned i = 0; i < PAGES_MAX && page.truncated && s.result == BUCKET_OK; i++) {
        sweep_page(&s, &page);
    }
    bucket_page_done(&page);
    if (s.result != BUCKET_OK && err != NULL) {
        *err = s.err;
    }
    if (s.result == BUCKET_OK && ret_n != NULL) {
        *ret_n = s.aborted;
    }
    return s.result;
}
