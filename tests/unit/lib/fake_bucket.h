/* An object store in memory, for tests: one bucket "bbb" with path style, over the server of
 * http_server.h. It does not check signatures, which end-to-end tests do.
 *
 *     SCOPED(fake_bucket) *f = fake_bucket_new();
 *     fake_bucket_fault(f, my_fault, arg);      answers some requests itself
 *     ... "s3://bbb/prefix" with the endpoint fake_bucket_url(f, text) ...
 *     fake_bucket_text(f, "prefix/key", out, size);
 *
 * Handlers run on threads of their own: a fault must not use CHECK_*.
 */
#ifndef PROFPULL_TESTS_FAKE_BUCKET_H
#define PROFPULL_TESTS_FAKE_BUCKET_H

#include "tests/unit/lib/http_server.h"

#include <assert.h>

#include "bucket/xml.h"
#include "http/url.h"

#define FAKE_OBJECTS_MAX 2048
#define FAKE_PARTS_MAX 64
#define FAKE_UPLOADS_MAX 64
#define FAKE_BODY_MAX ((size_t)64 * 1024 * 1024)

struct fake_bytes {
    char *data;
    size_t len;
};

struct fake_object {
    char *key;
    struct fake_bytes bytes;
    char mark[64];
    unsigned version; /* its ETag is "v<version>" in quotes */
};

struct fake_upload {
    unsigned id; /* 0: unused */
    char *key;
    char mark[64];
    struct fake_bytes parts[FAKE_PARTS_MAX];
};

/* A request; texts are decoded. */
struct fake_request {
    char method[8];
    char key[2048]; /* "" for the bucket */
    char query[8192];
    struct fake_bytes body;
    unsigned number; /* from 1, of all requests */
};

struct fake_bucket {
    struct server *server;
    /* Answers a request and returns true, or returns false. Called without the lock. */
    bool (*fault)(struct fake_bucket *f, struct server_conn *c, const struct fake_request *r);
    void *fault_arg;
    unsigned page; /* entries of a list; 0: as many as were asked for */
    pthread_mutex_t lock;
    struct fake_object objects[FAKE_OBJECTS_MAX];
    size_t n_objects;
    struct fake_upload uploads[FAKE_UPLOADS_MAX];
    unsigned versions;
    unsigned requests;
    unsigned counts[5]; /* of GET, HEAD, PUT, POST, DELETE */
};

/* ---- texts ----------------------------------------------------------------------------------- */

static inline void fake_decode(const char *from, size_t n, char *out, size_t size)
{
    size_t len = 0;
    for (struct sv v = {from, n}; v.n > 0 && len + 1 < size;) {
        int byte = url_decode_byte(v);
        out[len++] = byte >= 0 ? (char)byte : v.p[0];
        v = sv_skip(v, byte >= 0 ? 3 : 1);
    }
    out[len] = '\0';
}

/* The decoded value of a parameter; false if it is not there. */
static inline bool fake_param(const struct fake_request *r, const char *name, char *out,
                              size_t size)
{
    struct sv pair;
    struct sv rest = sv_from(r->query);
    out[0] = '\0';
    while (rest.n > 0) {
        struct sv key;
        struct sv value;
        if (!sv_cut(rest, '&', &pair, &rest)) {
            pair = rest;
            rest = SV("");
        }
        if (!sv_cut(pair, '=', &key, &value)) {
            key = pair;
            value = SV("");
        }
        if (sv_eq_str(key, name)) {
            fake_decode(value.p, value.n, out, size);
            return true;
        }
    }
    return false;
}

static inline void fake_answer(struct server_conn *c, const char *status, const char *headers,
                               const void *body, size_t len)
{
    char head[1024];
    int n = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status,
                     headers, len);
    server_send_bytes(c, head, (size_t)n);
    server_send_bytes(c, body, len);
}

/* A refusal, as S3 writes it. */
static inline void fake_refuse(struct server_conn *c, const struct fake_request *r,
                               const char *status, const char *code)
{
    char body[512];
    int n = snprintf(body, sizeof(body),
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code>"
                     "<Message>message of %s</Message><RequestId>1</RequestId></Error>",
                     code, code);
    bool head = strcmp(r->method, "HEAD") == 0;
    fake_answer(c, status, "Content-Type: application/xml\r\n", body, head ? 0 : (size_t)n);
}

/* ---- objects --------------------------------------------------------------------------------- */

static inline struct fake_object *fake_find(struct fake_bucket *f, const char *key)
{
    for (size_t i = 0; i < f->n_objects; i++) {
        if (strcmp(f->objects[i].key, key) == 0) {
            return &f->objects[i];
        }
    }
    return NULL;
}

/* Stores an object; takes the bytes over. The lock is held. */
static inline struct fake_object *fake_store(struct fake_bucket *f, const char *key,
                                             struct fake_bytes bytes, const char *mark)
{
    struct fake_object *o = fake_find(f, key);
    if (o == NULL) {
        size_t at = f->n_objects++;
        assert(at < FAKE_OBJECTS_MAX);
        while (at > 0 && strcmp(f->objects[at - 1].key, key) > 0) {
            f->objects[at] = f->objects[at - 1];
            at--;
        }
        o = &f->objects[at];
        *o = (struct fake_object){.key = strdup(key)};
    }
    free(o->bytes.data);
    o->bytes = bytes;
    o->version = ++f->versions;
    (void)snprintf(o->mark, sizeof(o->mark), "%s", mark);
    return o;
}

static inline void fake_remove(struct fake_bucket *f, const char *key)
{
    struct fake_object *o = fake_find(f, key);
    if (o != NULL) {
        size_t at = (size_t)(o - f->objects);
        free(o->key);
        free(o->bytes.data);
        memmove(o, o + 1, (--f->n_objects - at) * sizeof(*o));
    }
}

static inline struct fake_bytes fake_copy(const void *data, size_t len)
{
    struct fake_bytes b = {malloc(len + 1), len};
    memcpy(b.data, data, len);
    return b;
}

/* ---- answers --------------------------------------------------------------------------------- */

static inline void fake_get(struct fake_bucket *f, struct server_conn *c,
                            const struct fake_request *r)
{
    char text[128];
    char headers[512];
    struct fake_object *o = fake_find(f, r->key);
    bool head = strcmp(r->method, "HEAD") == 0;
    unsigned long first = 0;
    unsigned long last = 0;
    char etag[32];
    if (o == NULL) {
        fake_refuse(c, r, "404 Not Found", "NoSuchKey");
        return;
    }
    (void)snprintf(etag, sizeof(etag), "\"v%u\"", o->version);
    if (server_header(c->head, "If-Match", text, sizeof(text)) && strcmp(text, etag) != 0) {
        fake_refuse(c, r, "412 Precondition Failed", "PreconditionFailed");
        return;
    }
    int n = snprintf(headers, sizeof(headers),
                     "ETag: %s\r\nLast-Modified: Sat, 21 Nov 2026 03:23:34 GMT\r\n", etag);
    if (o->mark[0] != '\0') {
        n += snprintf(headers + n, sizeof(headers) - (size_t)n,
                      "x-amz-meta-profpull-upload: %s\r\n", o->mark);
    }
    if (head) {
        (void)snprintf(headers + n, sizeof(headers) - (size_t)n, "Content-Length: %zu\r\n\r\n",
                       o->bytes.len);
        server_send(c, "HTTP/1.1 200 OK\r\n");
        server_send(c, headers);
        return;
    }
    if (!server_header(c->head, "Range", text, sizeof(text)) ||
        sscanf(text, "bytes=%lu-%lu", &first, &last) != 2) {
        fake_answer(c, "200 OK", headers, o->bytes.data, o->bytes.len);
        return;
    }
    if (first >= o->bytes.len) {
        fake_refuse(c, r, "416 Range Not Satisfiable", "InvalidRange");
        return;
    }
    last = last < o->bytes.len ? last : o->bytes.len - 1;
    (void)snprintf(headers + n, sizeof(headers) - (size_t)n, "Content-Range: bytes %lu-%lu/%zu\r\n",
                   first, last, o->bytes.len);
    fake_answer(c, "206 Partial Content", headers, o->bytes.data + first, last - first + 1);
}

static inline void fake_put_entry(struct buf *out, struct sv key, const struct fake_object *o)
{
    SCOPED(buf) name = testing_buf(8192);
    url_encode(key, &name);
    if (o == NULL) {
        buf_printf(out, "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>", name.data);
    } else {
        buf_printf(out,
                   "<Contents><Key>%s</Key><LastModified>2026-11-21T03:23:34.123Z</LastModified>"
                   "<ETag>&quot;v%u&quot;</ETag><Size>%zu</Size>"
                   "<Owner><ID>x</ID></Owner></Contents>",
                   name.data, o->version, o->bytes.len);
    }
}

static inline void fake_list(struct fake_bucket *f, struct server_conn *c,
                             const struct fake_request *r)
{
    char prefix[2048], after[2048], token[2048], delimiter[8], number[16];
    char last[2048 + 8] = "";
    char group[2048] = "";
    SCOPED(buf) out = testing_buf(FAKE_BODY_MAX);
    fake_param(r, "prefix", prefix, sizeof(prefix));
    fake_param(r, "start-after", after, sizeof(after));
    fake_param(r, "delimiter", delimiter, sizeof(delimiter));
    fake_param(r, "max-keys", number, sizeof(number));
    if (fake_param(r, "continuation-token", token, sizeof(token))) {
        (void)snprintf(after, sizeof(after), "%s", token);
    }
    size_t max = f->page > 0 ? f->page : strtoul(number, NULL, 10);
    size_t n = 0;
    bool more = false;
    buf_puts(&out, "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.example/\">"
                   "<EncodingType>url</EncodingType>");
    for (size_t i = 0; i < f->n_objects && !more; i++) {
        struct fake_object *o = &f->objects[i];
        struct sv key = sv_from(o->key);
        struct sv rest;
        if (!sv_starts_with(key, sv_from(prefix)) || strcmp(o->key, after) <= 0 ||
            (group[0] != '\0' && sv_starts_with(key, sv_from(group)))) {
            continue;
        }
        rest = sv_skip(key, strlen(prefix));
        const char *slash = delimiter[0] != '\0' ? memchr(rest.p, delimiter[0], rest.n) : NULL;
        if (n == max) {
            more = true;
            continue;
        }
        n++;
        if (slash != NULL) {
            struct sv common = {key.p, (size_t)(slash - key.p) + 1};
            (void)snprintf(group, sizeof(group), "%.*s", SV_ARG(common));
            /* After every key of the group. */
            (void)snprintf(last, sizeof(last), "%s\xf4\x8f\xbf\xbf", group);
            fake_put_entry(&out, common, NULL);
        } else {
            (void)snprintf(last, sizeof(last), "%s", o->key);
            fake_put_entry(&out, key, o);
        }
    }
    buf_printf(&out, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
    if (more) {
        buf_puts(&out, "<NextContinuationToken>");
        xml_escape(sv_from(last), &out);
        buf_puts(&out, "</NextContinuationToken>");
    }
    buf_puts(&out, "</ListBucketResult>");
    fake_answer(c, "200 OK", "Content-Type: application/xml\r\n", out.data, out.len);
}

static inline struct fake_upload *fake_upload_of(struct fake_bucket *f,
                                                 const struct fake_request *r)
{
    char id[32];
    fake_param(r, "uploadId", id, sizeof(id));
    unsigned long number = strtoul(id, NULL, 10);
    for (size_t i = 0; i < FAKE_UPLOADS_MAX; i++) {
        if (f->uploads[i].id != 0 && f->uploads[i].id == number &&
            strcmp(f->uploads[i].key, r->key) == 0) {
            return &f->uploads[i];
        }
    }
    return NULL;
}

static inline void fake_upload_end(struct fake_upload *u)
{
    for (size_t i = 0; i < FAKE_PARTS_MAX; i++) {
        free(u->parts[i].data);
    }
    free(u->key);
    *u = (struct fake_upload){.id = 0};
}

static inline void fake_upload_begin(struct fake_bucket *f, struct server_conn *c,
                                     const struct fake_request *r)
{
    char body[256];
    size_t i = 0;
    while (i < FAKE_UPLOADS_MAX && f->uploads[i].id != 0) {
        i++;
    }
    assert(i < FAKE_UPLOADS_MAX);
    struct fake_upload *u = &f->uploads[i];
    u->id = ++f->versions;
    u->key = strdup(r->key);
    if (!server_header(c->head, "x-amz-meta-profpull-upload", u->mark, sizeof(u->mark))) {
        u->mark[0] = '\0';
    }
    int n = snprintf(body, sizeof(body),
                     "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                     "<UploadId>%u</UploadId></InitiateMultipartUploadResult>",
                     u->id);
    fake_answer(c, "200 OK", "", body, (size_t)n);
}

/* Puts the parts that the body names together; NULL data if one is missing. */
static inline struct fake_bytes fake_join(const struct fake_upload *u, struct sv body)
{
    struct fake_bytes all = {malloc(FAKE_BODY_MAX), 0};
    struct xml x;
    struct xml_element e;
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
        uint64_t number = 0;
        if (!sv_eq_str(e.name, "PartNumber")) {
            continue;
        }
        if (!parse_u64(e.text, FAKE_PARTS_MAX - 1, &number) || u->parts[number].data == NULL) {
            free(all.data);
            return (struct fake_bytes){NULL, 0};
        }
        memcpy(all.data + all.len, u->parts[number].data, u->parts[number].len);
        all.len += u->parts[number].len;
    }
    return all;
}

static inline void fake_upload_complete(struct fake_bucket *f, struct server_conn *c,
                                        const struct fake_request *r)
{
    static const char done[] = "<CompleteMultipartUploadResult><Location>l</Location>"
                               "<ETag>\"x-1\"</ETag></CompleteMultipartUploadResult>";
    struct fake_upload *u = fake_upload_of(f, r);
    if (u == NULL) {
        fake_refuse(c, r, "404 Not Found", "NoSuchUpload");
        return;
    }
    struct fake_bytes all = fake_join(u, (struct sv){r->body.data, r->body.len});
    if (all.data == NULL) {
        fake_refuse(c, r, "400 Bad Request", "InvalidPart");
        return;
    }
    fake_store(f, r->key, all, u->mark);
    fake_upload_end(u);
    fake_answer(c, "200 OK", "", done, strlen(done));
}

static inline void fake_put_part(struct fake_bucket *f, struct server_conn *c,
                                 const struct fake_request *r)
{
    char number[16];
    char headers[64];
    struct fake_upload *u = fake_upload_of(f, r);
    fake_param(r, "partNumber", number, sizeof(number));
    unsigned long n = strtoul(number, NULL, 10);
    if (u == NULL || n == 0 || n >= FAKE_PARTS_MAX) {
        fake_refuse(c, r, "404 Not Found", "NoSuchUpload");
        return;
    }
    free(u->parts[n].data);
    u->parts[n] = fake_copy(r->body.data, r->body.len);
    (void)snprintf(headers, sizeof(headers), "ETag: \"part-%lu\"\r\n", n);
    fake_answer(c, "200 OK", headers, "", 0);
}

static inline void fake_list_uploads(struct fake_bucket *f, struct server_conn *c)
{
    SCOPED(buf) out = testing_buf(FAKE_BODY_MAX);
    buf_puts(&out, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>");
    for (size_t i = 0; i < FAKE_UPLOADS_MAX; i++) {
        if (f->uploads[i].id != 0) {
            buf_printf(&out,
                       "<Upload><Key>%s</Key><UploadId>%u</UploadId>"
                       "<Initiated>2026-11-21T03:23:34.123Z</Initiated></Upload>",
                       f->uploads[i].key, f->uploads[i].id);
        }
    }
    buf_puts(&out, "</ListMultipartUploadsResult>");
    fake_answer(c, "200 OK", "", out.data, out.len);
}

static inline void fake_serve(struct fake_bucket *f, struct server_conn *c,
                              const struct fake_request *r)
{
    char value[2048];
    bool is_upload = fake_param(r, "uploadId", value, sizeof(value));
    bool uploads = fake_param(r, "uploads", value, sizeof(value));
    if (strcmp(r->method, "PUT") == 0 && is_upload) {
        fake_put_part(f, c, r);
    } else if (strcmp(r->method, "PUT") == 0) {
        fake_store(f, r->key, fake_copy(r->body.data, r->body.len), "");
        fake_answer(c, "200 OK", "ETag: \"v\"\r\n", "", 0);
    } else if (strcmp(r->method, "POST") == 0 && uploads) {
        fake_upload_begin(f, c, r);
    } else if (strcmp(r->method, "POST") == 0) {
        fake_upload_complete(f, c, r);
    } else if (strcmp(r->method, "DELETE") == 0) {
        struct fake_upload *u = fake_upload_of(f, r);
        if (u != NULL) {
            fake_upload_end(u);
        } else if (!is_upload) {
            fake_remove(f, r->key);
        }
        server_send(c, "HTTP/1.1 204 No Content\r\n\r\n");
    } else if (uploads) {
        fake_list_uploads(f, c);
    } else if (r->key[0] == '\0') {
        fake_list(f, c, r);
    } else {
        fake_get(f, c, r);
    }
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Splits "PUT /bbb/prefix/key?query HTTP/1.1" and reads the body. */
static inline bool fake_read(struct server_conn *c, struct fake_request *r)
{
    char length[32] = "0";
    struct sv rest = sv_from(c->head);
    struct sv method;
    struct sv target;
    struct sv query = SV("");
    if (!sv_cut(rest, ' ', &method, &rest) || !sv_cut(rest, ' ', &target, &rest)) {
        return false;
    }
    (void)snprintf(r->method, sizeof(r->method), "%.*s", SV_ARG(method));
    (void)sv_cut(target, '?', &target, &query);
    (void)snprintf(r->query, sizeof(r->query), "%.*s", SV_ARG(query));
    target = target.n > 5 ? sv_skip(target, 5) : SV(""); /* "/bbb/" */
    fake_decode(target.p, target.n, r->key, sizeof(r->key));
    (void)server_header(c->head, "Content-Length", length, sizeof(length));
    r->body.len = strtoul(length, NULL, 10);
    r->body.data = malloc(r->body.len + 1);
    return server_read_body(c, r->body.data, r->body.len);
}

static inline void fake_bucket_handle(struct server_conn *c)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    struct fake_bucket *f = server_arg(c);
    while (server_read_request(c)) {
        struct fake_request *r = calloc(1, sizeof(*r));
        bool ok = fake_read(c, r);
        pthread_mutex_lock(&f->lock);
        bool (*fault)(struct fake_bucket *, struct server_conn *, const struct fake_request *) =
            f->fault;
        r->number = ++f->requests;
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
            f->counts[i] += strcmp(r->method, methods[i]) == 0;
        }
        pthread_mutex_unlock(&f->lock);
        if (ok && (fault == NULL || !fault(f, c, r))) {
            pthread_mutex_lock(&f->lock);
            fake_serve(f, c, r);
            pthread_mutex_unlock(&f->lock);
        }
        free(r->body.data);
        free(r);
        if (!ok) {
            return;
        }
    }
}

static inline struct fake_bucket *fake_bucket_new(void)
{
    struct fake_bucket *f = testing_memory(sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    f->server = server_new(fake_bucket_handle, f);
    return f;
}

static inline void fake_bucket_free(struct fake_bucket *f)
{
    server_free(f->server);
    while (f->n_objects > 0) {
        fake_remove(f, f->objects[0].key);
    }
    for (size_t i = 0; i < FAKE_UPLOADS_MAX; i++) {
        fake_upload_end(&f->uploads[i]);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}
SCOPED_POINTER(fake_bucket, fake_bucket_free)

static inline const char *fake_bucket_url(const struct fake_bucket *f, char out[URL_SIZE])
{
    return server_url(f->server, "", out);
}

/* Sets or changes the fault, also between requests. A fault reads its argument under the lock. */
static inline void fake_bucket_fault(struct fake_bucket *f,
                                     bool (*fault)(struct fake_bucket *f, struct server_conn *c,
                                                   const struct fake_request *r),
                                     const void *arg)
{
    pthread_mutex_lock(&f->lock);
    f->fault = fault;
    f->fault_arg = (void *)(uintptr_t)arg;
    pthread_mutex_unlock(&f->lock);
}

/* Stores an object from outside. */
static inline void fake_bucket_add(struct fake_bucket *f, const char *key, const char *text)
{
    pthread_mutex_lock(&f->lock);
    fake_store(f, key, fake_copy(text, strlen(text)), "");
    pthread_mutex_unlock(&f->lock);
}

/* Copies the bytes of an object, with a NUL. Returns its size, or SIZE_MAX if there is none. */
static inline size_t fake_bucket_text(struct fake_bucket *f, const char *key, char *out,
                                      size_t size)
{
    size_t len = SIZE_MAX;
    pthread_mutex_lock(&f->lock);
    const struct fake_object *o = fake_find(f, key);
    if (o != NULL) {
        len = o->bytes.len;
        size_t n = len < size ? len : size - 1;
        memcpy(out, o->bytes.data, n);
        out[n] = '\0';
    }
    pthread_mutex_unlock(&f->lock);
    return len;
}

static inline unsigned fake_bucket_requests(struct fake_bucket *f)
{
    pthread_mutex_lock(&f->lock);
    unsigned n = f->requests;
    pthread_mutex_unlock(&f->lock);
    return n;
}

static inline size_t fake_bucket_open_uploads(struct fake_bucket *f)
{
    size_t n = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < FAKE_UPLOADS_MAX; i++) {
        n += f->uploads[i].id != 0;
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

#endif
