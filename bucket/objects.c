/* Objects of a bucket: list, head, get, put, delete. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bucket/private.h"

/* The most entries of one page (S3's limit), and the most pages without a single entry. */
#define PAGE_MAX 1000
#define EMPTY_PAGES_MAX 100

static enum bucket_result bad_answer(struct bucket *b, const char *key, struct err *err,
                                     const char *text)
{
    return bucket_fail(b, key, BUCKET_BAD_ANSWER, err, "%s", text);
}

static void copy_etag(const char *etag, char out[BUCKET_ETAG_SIZE])
{
    (void)snprintf(out, BUCKET_ETAG_SIZE, "%s", etag);
}

/* ---- list ------------------------------------------------------------------------------------ */

struct listing {
    struct bucket *b;
    const char *prefix; /* that was asked for; NULL: none */
    bool (*fn)(void *arg, const struct bucket_object *o);
    void *arg;
    uint64_t left;
    bool stopped;
    bool full;
};

/* Returns true for a key that this client can ask for; a prefix ends with the delimiter. */
static bool is_usable(const struct listing *l, const struct bucket_listed *e, struct sv *ret_key)
{
    if (!bucket_own_key(l->b, l->prefix, e->key, ret_key)) {
        return false;
    }
    struct sv name = *ret_key;
    if (e->is_prefix && name.n > 0) {
        name.n--;
    }
    return bucket_key_valid(l->b, name);
}

static bool on_listed(void *arg, const struct bucket_listed *e)
{
    struct listing *l = arg;
    struct sv name;
    char key[BUCKET_KEY_MAX + 1];
    if (!is_usable(l, e, &name)) {
        metric_inc(l->b->foreign);
        return true;
    }
    if (l->left == 0) {
        l->full = true;
        return false;
    }
    l->left--;
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    struct bucket_object o = {
        .key = key, .is_prefix = e->is_prefix, .size = e->size, .modified_ns = e->modified_ns};
    if (e->etag.n < sizeof(o.etag)) {
        memcpy(o.etag, e->etag.p, e->etag.n);
    }
    l->stopped = !l->fn(l->arg, &o);
    return !l->stopped;
}

static void put_prefixed(const struct bucket *b, struct bucket_call *c, const char *name,
                         const char *key)
{
    struct buf text;
    buf_init(&text, (size_t)2 * BUCKET_KEY_MAX);
    if (buf_printf(&text, "%s%s", b->prefix, key) && text.len > 0) {
        bucket_call_param(c, name, (struct sv){text.data, text.len});
    }
    buf_done(&text);
}

/* Fetches one page into the reply of the call. token: NULL for the first page. */
static enum bucket_result fetch_page(struct bucket_call *c, struct bucket *b,
                                     const struct bucket_list *l, const char *token,
                                     int64_t deadline_ms, struct err *err)
{
    char number[16];
    enum bucket_result result = bucket_call_init(c, b, BUCKET_LIST, NULL, err);
    if (result != BUCKET_OK) {
        return result;
    }
    unsigned page = l->page > 0 && l->page < PAGE_MAX ? l->page : PAGE_MAX;
    (void)snprintf(number, sizeof(number), "%u", page);
    if (token != NULL) {
        bucket_call_param(c, "continuation-token", sv_from(token));
    }
    if (l->delimiter != '\0') {
        bucket_call_param(c, "delimiter", (struct sv){&l->delimiter, 1});
    }
    bucket_call_param(c, "encoding-type", SV("url"));
    bucket_call_param(c, "list-type", SV("2"));
    bucket_call_param(c, "max-keys", sv_from(number));
    put_prefixed(b, c, "prefix", l->prefix != NULL ? l->prefix : "");
    if (token == NULL && l->start_after != NULL) {
        put_prefixed(b, c, "start-after", l->start_after);
    }
    return bucket_call_run(c, deadline_ms, err);
}

/* Gives the entries of a page away, and takes the token of the next one. */
static enum bucket_result take_page(struct listing *l, const struct bucket_call *c, char **token,
                                    unsigned *empty, struct err *err)
{
    struct bucket_page page;
    struct err why = ERR_INIT;
    enum bucket_result result = BUCKET_OK;
    struct sv body = {c->reply.body.data, c->reply.body.len};
    if (!bucket_read_list(body, on_listed, l, &page, &why)) {
        result = bad_answer(l->b, NULL, err, why.msg);
    } else if (l->full) {
        result = bucket_fail(l->b, NULL, BUCKET_LIMIT, err, "more than %" PRIu64 " objects",
                             l->b->options.list_max);
    } else if (page.truncated && !l->stopped) {
        bool same = str_same(page.next, *token);
        *empty = page.entries > 0 ? 0 : *empty + 1;
        if (page.next == NULL || same || *empty > EMPTY_PAGES_MAX) {
            result = bad_answer(l->b, NULL, err, "a list that does not say how it goes on");
        }
    }
    free(*token);
    *token = NULL;
    if (result == BUCKET_OK && page.truncated && !l->stopped) {
        *token = page.next;
        page.next = NULL;
    }
    bucket_page_done(&page);
    return result;
}

enum bucket_result bucket_list(struct bucket *b, const struct bucket_list *list,
                               bool (*fn)(void *arg, const struct bucket_object *o), void *arg,
                               int64_t deadline_ms, struct err *err)
{
    struct listing l = {
        .b = b, .prefix = list->prefix, .fn = fn, .arg = arg, .left = b->options.list_max};
    char *token = NULL;
    unsigned empty = 0;
    enum bucket_result result;
    do {
        struct bucket_call c;
        result = fetch_page(&c, b, list, token, deadline_ms, err);
        if (result == BUCKET_OK) {
            result = take_page(&l, &c, &token, &empty, err);
        }
        bucket_call_done(&c);
    } while (result == BUCKET_OK && token != NULL);
    free(token);
    return result;
}

/* ---- head ------------------------------------------------------------------------------------ */

enum bucket_result bucket_head(struct bucket *b, const char *key, int64_t deadline_ms,
                               struct bucket_object *ret, struct err *err)
{
    struct bucket_call c;
    enum bucket_result result = bucket_call_init(&c, b, BUCKET_HEAD, key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "HEAD";
    result = bucket_call_run(&c, deadline_ms, err);
    if (result == BUCKET_OK && c.reply.length == UINT64_MAX) {
        result = bad_answer(b, key, err, "an answer without the size of the object");
    }
    if (result == BUCKET_OK) {
        *ret = (struct bucket_object){
            .key = key, .size = c.reply.length, .modified_ns = c.reply.modified_ns};
        copy_etag(c.reply.etag, ret->etag);
    }
    bucket_call_done(&c);
    return result;
}

/* ---- get ------------------------------------------------------------------------------------- */

/* Checks that the answer is the range that was asked for, and of that object. */
static enum bucket_result check_range(const struct bucket_call *c, const struct bucket_range *r,
                                      struct err *err)
{
    const struct bucket_reply *a = &c->reply;
    struct bucket *b = c->bucket;
    if (!a->ranged || a->first != r->offset || a->last < a->first || a->last >= a->total ||
        a->last - a->first >= r->len) {
        return bad_answer(b, c->key, err, "an answer 206 with another range than was asked for");
    }
    if (a->got != a->last - a->first + 1) {
        return bucket_fail(b, c->key, BUCKET_NETWORK, err,
                           "the answer was cut: expected %" PRIu64 " bytes, got %zu",
                           a->last - a->first + 1, a->got);
    }
    if (a->got < r->len && a->last + 1 != a->total) {
        return bad_answer(b, c->key, err, "fewer bytes than were asked for");
    }
    if (r->etag != NULL && a->etag[0] != '\0' && strcmp(a->etag, r->etag) != 0) {
        return bucket_fail(b, c->key, BUCKET_CHANGED, err,
                           "expected the object with the ETag %s, got %s", r->etag, a->etag);
    }
    return BUCKET_OK;
}

enum bucket_result bucket_get(struct bucket *b, const char *key, const struct bucket_range *r,
                              int64_t deadline_ms, struct bucket_read *ret, struct err *err)
{
    struct bucket_call c;
    char range[64];
    enum bucket_result result = bucket_call_init(&c, b, BUCKET_GET, key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    (void)snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, r->offset,
                   r->offset + r->len - 1);
    bucket_call_header(&c, "Range", range);
    if (r->etag != NULL) {
        bucket_call_header(&c, "If-Match", r->etag);
    }
    c.into = r->into;
    c.into_len = r->len;
    result = bucket_call_run(&c, deadline_ms, err);
    if (result == BUCKET_OK) {
        result = check_range(&c, r, err);
    }
    if (result == BUCKET_OK) {
        *ret = (struct bucket_read){.len = c.reply.got, .total = c.reply.total};
        copy_etag(c.reply.etag, ret->etag);
    }
    bucket_call_done(&c);
    return result;
}

/* ---- put and delete -------------------------------------------------------------------------- */

enum bucket_result bucket_put(struct bucket *b, const char *key, const void *data, size_t len,
                              int64_t deadline_ms, struct err *err)
{
    struct bucket_call c;
    if (len > b->options.part_bytes) {
        return bucket_fail(b, key, BUCKET_LIMIT, err,
                           "expected at most %" PRIu64 " bytes for one request, got %zu",
                           b->options.part_bytes, len);
    }
    enum bucket_result result = bucket_call_init(&c, b, BUCKET_PUT, key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "PUT";
    c.data = data;
    c.len = len;
    bucket_call_header(&c, "Content-Type", "application/octet-stream");
    result = bucket_call_run(&c, deadline_ms, err);
    if (result == BUCKET_OK && c.reply.body.len > 0) {
        /* A page that another server sends with the status 200. */
        result = bad_answer(b, key, err, "an answer to PUT that is none of an object store");
    }
    bucket_call_done(&c);
    return result;
}

enum bucket_result bucket_delete(struct bucket *b, const char *key, int64_t deadline_ms,
                                 struct err *err)
{
    struct bucket_call c;
    struct err why = ERR_INIT;
    enum bucket_result result = bucket_call_init(&c, b, BUCKET_DELETE, key, err);
    if (result != BUCKET_OK) {
        return result;
    }
    c.method = "DELETE";
    result = bucket_call_run(&c, deadline_ms, &why);
    if (result == BUCKET_NOT_FOUND) {
        result = BUCKET_OK;
    } else if (result != BUCKET_OK && err != NULL) {
        *err = why;
    }
    bucket_call_done(&c);
    return result;
}
