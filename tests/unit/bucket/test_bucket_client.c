/* Objects of a bucket: what is stored, read, listed and removed. */
#include "tests/unit/bucket/bucket_rig.h"

#define NOW INT64_C(1795231414) /* 2026-11-21, in seconds */

static enum bucket_result put(struct rig *r, const char *key, const char *text)
{
    return bucket_put(r->bucket, key, text, strlen(text), 0, &r->err);
}

static enum bucket_result get(struct rig *r, const char *key, uint64_t offset, size_t len,
                              const char *etag, struct bucket_read *ret, char *out)
{
    struct bucket_range range = {.offset = offset, .len = len, .into = out, .etag = etag};
    err_clear(&r->err);
    enum bucket_result result = bucket_get(r->bucket, key, &range, 0, ret, &r->err);
    if (result == BUCKET_OK) {
        out[ret->len] = '\0';
    }
    return result;
}

SETUP_OF(rig)

TEST_ON(struct rig *r, test_object)
{
    char text[100];
    struct bucket_read read;
    struct bucket_object o;
    CHECK_INT(put(r, "a/b.db", "0123456789"), BUCKET_OK, r->err.msg);
    CHECK_INT(fake_bucket_text(r->fake, "pre/a/b.db", text, sizeof(text)), 10, "");
    CHECK_STR(text, "0123456789", "");
    CHECK_INT(bucket_head(r->bucket, "a/b.db", 0, &o, &r->err), BUCKET_OK, r->err.msg);
    CHECK_STR(o.key, "a/b.db", "");
    CHECK_INT(o.size, 10, "");
    CHECK_STR(o.etag, "\"v1\"", "");
    CHECK_INT(o.modified_ns / NS_PER_S, NOW, "");
    CHECK_INT(get(r, "a/b.db", 2, 5, o.etag, &read, text), BUCKET_OK, r->err.msg);
    CHECK_STR(text, "23456", "");
    CHECK_INT(read.total, 10, "");
    CHECK_STR(read.etag, o.etag, "");
    CHECK_INT(bucket_delete(r->bucket, "a/b.db", 0, &r->err), BUCKET_OK, r->err.msg);
    CHECK_INT(fake_bucket_text(r->fake, "pre/a/b.db", text, sizeof(text)), SIZE_MAX, "");
    CHECK_INT(bucket_delete(r->bucket, "a/b.db", 0, &r->err), BUCKET_OK, "none is no error");
    CHECK_INT(bucket_head(r->bucket, "a/b.db", 0, &o, &r->err), BUCKET_NOT_FOUND, "");
    CHECK_CONTAINS(r->err.msg, "s3://bbb/pre/a/b.db: HEAD answered HTTP 404", "");
}

TEST_ON(struct rig *r, test_object_without_bytes)
{
    char text[100] = "";
    struct bucket_read read;
    CHECK_INT(put(r, "empty", ""), BUCKET_OK, r->err.msg);
    CHECK_INT(fake_bucket_text(r->fake, "pre/empty", text, sizeof(text)), 0, "");
    CHECK_INT(get(r, "empty", 0, 1, NULL, &read, text), BUCKET_REFUSED, "");
    CHECK_CONTAINS(r->err.msg, "HTTP 416 InvalidRange", "");
}

/* Every key arrives as it was given, and comes back from a list. */
static const char *const odd_keys[] = {
    "a b+c=d&e", "\xc3\xa4/\xf0\x9f\x98\x80", "100%/%41", "x?y#z", "~'()*!:@,;$", "a/...",
    "\"<&>\""};
#define ODD_KEYS (sizeof(odd_keys) / sizeof(odd_keys[0]))

struct listed {
    char text[4096];
    size_t n;
    size_t stop_at;
};

static bool on_object(void *arg, const struct bucket_object *o)
{
    struct listed *l = arg;
    size_t len = strlen(l->text);
    (void)snprintf(l->text + len, sizeof(l->text) - len, "%s%s;", o->key, o->is_prefix ? "*" : "");
    l->n++;
    return l->n != l->stop_at;
}

TEST_ON(struct rig *r, test_odd_keys)
{
    char text[100];
    char key[200];
    for (size_t i = 0; i < ODD_KEYS; i++) {
        struct listed l = {.n = 0};
        struct bucket_read read;
        CHECK_INT(put(r, odd_keys[i], "text"), BUCKET_OK, odd_keys[i]);
        (void)snprintf(key, sizeof(key), "pre/%s", odd_keys[i]);
        CHECK_INT(fake_bucket_text(r->fake, key, text, sizeof(text)), 4, odd_keys[i]);
        CHECK_INT(get(r, odd_keys[i], 0, 4, NULL, &read, text), BUCKET_OK, odd_keys[i]);
        struct bucket_list list = {.prefix = odd_keys[i]};
        CHECK_INT(bucket_list(r->bucket, &list, on_object, &l, 0, &r->err), BUCKET_OK, r->err.msg);
        (void)snprintf(key, sizeof(key), "%s;", odd_keys[i]);
        CHECK_STR(l.text, key, "");
        CHECK_INT(bucket_delete(r->bucket, odd_keys[i], 0, &r->err), BUCKET_OK, r->err.msg);
    }
}

TEST_ON(struct rig *r, test_keys_that_are_refused)
{
    static const char *const keys[] = {"",       "/a",   "a/",   "a//b", ".",
                                       "a/../b", "a\nb", "\xff", "\x7f"};
    char longest[BUCKET_KEY_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        CHECK_INT(put(r, keys[i], "x"), BUCKET_LIMIT, keys[i]);
        CHECK_CONTAINS(r->err.msg, "expected a key of UTF-8", keys[i]);
    }
    longest[BUCKET_KEY_MAX - strlen("pre/") + 1] = '\0';
    CHECK_INT(put(r, longest, "x"), BUCKET_LIMIT, "one byte too long");
    longest[BUCKET_KEY_MAX - strlen("pre/")] = '\0';
    CHECK_INT(put(r, longest, "x"), BUCKET_OK, r->err.msg);
    CHECK_INT(fake_bucket_requests(r->fake), 1, "");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *const some_keys[] = {"pre/a/1", "pre/a/2", "pre/b",   "pre/c/d/3",
                                        "pre/c/e", "pred",    "other/x", "pre//odd"};

static void add_some(struct rig *r)
{
    for (size_t i = 0; i < sizeof(some_keys) / sizeof(some_keys[0]); i++) {
        fake_bucket_add(r->fake, some_keys[i], "x");
    }
}

TEST_ON(struct rig *r, test_list)
{
    static const struct {
        struct bucket_list list;
        const char *keys;
    } rows[] = {
        {{.prefix = NULL}, "a/1;a/2;b;c/d/3;c/e;"},
        {{.prefix = "a/"}, "a/1;a/2;"},
        {{.prefix = "c"}, "c/d/3;c/e;"},
        {{.prefix = "none"}, ""},
        {{.start_after = "a/2"}, "b;c/d/3;c/e;"},
        {{.prefix = "a/", .start_after = "a/1"}, "a/2;"},
        {{.delimiter = '/'}, "a/*;b;c/*;"},
        {{.prefix = "c/", .delimiter = '/'}, "c/d/*;c/e;"},
    };
    add_some(r);
    for (unsigned page = 0; page < 3; page++) {
        r->fake->page = page;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct listed l = {.n = 0};
            CHECK_INT(bucket_list(r->bucket, &rows[i].list, on_object, &l, 0, &r->err), BUCKET_OK,
                      r->err.msg);
            CHECK_STR(l.text, rows[i].keys, "");
        }
    }
    assert_true(testing_metric(r->metrics, "profpull_bucket_foreign_keys_total{bucket=\"test\"}") >
                0);
}

/* A bucket without a prefix lists everything that has a usable name. */
TEST(test_list_without_prefix)
{
    SCOPED(rig) r;
    struct listed l = {.stop_at = 2};
    rig_init_with(&r, "s3://bbb/", NULL);
    add_some(&r);
    struct bucket_list list = {.prefix = NULL};
    CHECK_INT(bucket_list(r.bucket, &list, on_object, &l, 0, &r.err), BUCKET_OK, r.err.msg);
    CHECK_STR(l.text, "other/x;pre/a/1;", "ended by the callback");
    CHECK_STR(bucket_url(r.bucket), "s3://bbb/", "");
}

static void two_entries(struct bucket_options *o)
{
    o->list_max = 2;
}

TEST(test_list_limit)
{
    SCOPED(rig) r;
    struct listed l = {.n = 0};
    rig_init_with(&r, "s3://bbb/pre", two_entries);
    add_some(&r);
    struct bucket_list list = {.prefix = NULL};
    CHECK_INT(bucket_list(r.bucket, &list, on_object, &l, 0, &r.err), BUCKET_LIMIT, "");
    CHECK_STR(r.err.msg, "s3://bbb/pre: more than 2 objects", "");
    CHECK_INT(l.n, 2, "");
}

static bool odd_list(struct fake_bucket *f, struct server_conn *c, const struct fake_request *r)
{
    (void)r;
    fake_answer(c, "200 OK", "", f->fault_arg, strlen(f->fault_arg));
    return true;
}

#define LIST(inside) "<ListBucketResult>" inside "</ListBucketResult>"

TEST_ON(struct rig *r, test_lists_that_are_none)
{
    static const struct text_case rows[] = {
        {"<html><body>welcome</body></html>", "got another document"},
        {"welcome", "got text that is no XML"},
        {"", "got text that is no XML"},
        {LIST("<Contents><Size>1</Size></Contents>"), "got an entry without a key"},
        {LIST("<Contents><Key>pre/a</Key><Size>-1</Size></Contents>"), "a size that is no number"},
        {LIST("<Contents><Key>&nbsp;</Key></Contents>"), "an unknown entity"},
        {LIST("<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>"),
         "a key that is not percent-encoded"},
        {LIST("<IsTruncated>true</IsTruncated>"), "a list that does not say how it goes on"},
        {LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"),
         "a list that does not say how it goes on"},
        {"<!DOCTYPE a [<!ENTITY x \"y\">]>" LIST(""), "got text that is no XML"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listed l = {.n = 0};
        struct bucket_list list = {.prefix = NULL};
        fake_bucket_fault(r->fake, odd_list, rows[i].text);
        CHECK_INT(bucket_list(r->bucket, &list, on_object, &l, 0, &r->err), BUCKET_BAD_ANSWER,
                  rows[i].text);
        CHECK_CONTAINS(r->err.msg, rows[i].want, rows[i].text);
        CHECK_INT(l.n, 0, "nothing of a bad page is given away");
    }
}

/* A server that ignores the prefix: nothing of other prefixes is given away, or aborted. */
TEST_ON(struct rig *r, test_prefix_that_is_ignored)
{
    struct listed l = {.n = 0};
    size_t n = 0;
    struct bucket_list list = {.prefix = "writer/"};
    fake_bucket_fault(r->fake, odd_list,
                      LIST("<Contents><Key>pre/w</Key></Contents>"
                           "<Contents><Key>pre/writer/a</Key></Contents>"
                           "<Contents><Key>pre/other/a</Key></Contents>"));
    CHECK_INT(bucket_list(r->bucket, &list, on_object, &l, 0, &r->err), BUCKET_OK, r->err.msg);
    CHECK_STR(l.text, "writer/a;", "");
    fake_bucket_fault(r->fake, odd_list,
                      "<ListMultipartUploadsResult><Upload><Key>pre/other/a</Key>"
                      "<UploadId>u</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated>"
                      "</Upload></ListMultipartUploadsResult>");
    CHECK_INT(bucket_abort_uploads(r->bucket, "writer/", INT64_MAX, 0, &n, &r->err), BUCKET_OK,
              r->err.msg);
    CHECK_INT(n, 0, "");
    CHECK_INT(bucket_abort_uploads(r->bucket, "other/", INT64_MAX, 0, &n, &r->err), BUCKET_OK,
              r->err.msg);
    CHECK_INT(n, 1, "");
}

/* ---- ranges ---------------------------------------------------------------------------------- */

TEST_ON(struct rig *r, test_ranges)
{
    static const struct {
        uint64_t offset;
        size_t len;
        const char *text; /* NULL: refused */
    } rows[] = {{0, 10, "0123456789"}, {0, 1, "0"},   {9, 1, "9"},  {9, 5, "9"},
                {3, 50, "3456789"},    {10, 1, NULL}, {99, 5, NULL}};
    char text[100];
    fake_bucket_add(r->fake, "pre/k", "0123456789");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bucket_read read;
        enum bucket_result want = rows[i].text != NULL ? BUCKET_OK : BUCKET_REFUSED;
        CHECK_INT(get(r, "k", rows[i].offset, rows[i].len, NULL, &read, text), want, r->err.msg);
        if (rows[i].text != NULL) {
            CHECK_STR(text, rows[i].text, "");
            CHECK_INT(read.total, 10, "");
        }
    }
}

TEST_ON(struct rig *r, test_changed_object)
{
    char text[100];
    struct bucket_read read;
    fake_bucket_add(r->fake, "pre/k", "one");
    CHECK_INT(get(r, "k", 0, 3, NULL, &read, text), BUCKET_OK, r->err.msg);
    fake_bucket_add(r->fake, "pre/k", "two");
    CHECK_INT(get(r, "k", 0, 3, read.etag, &read, text), BUCKET_CHANGED, "");
    CHECK_CONTAINS(r->err.msg, "s3://bbb/pre/k: GET answered HTTP 412", "");
}

/* ---- files ----------------------------------------------------------------------------------- */

static int make_file(size_t len)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(fputc((int)('a' + i % 23), file), (int)('a' + i % 23));
    }
    assert_int_equal(fclose(file), 0);
    return fd;
}

static void check_file(struct rig *r, const char *key, size_t offset, size_t len)
{
    static char text[100000];
    CHECK_INT(fake_bucket_text(r->fake, key, text, sizeof(text)), len, key);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(text[i], (int)('a' + (offset + i) % 23));
    }
}

TEST_ON(struct rig *r, test_files)
{
    static const struct {
        size_t offset, len;
        unsigned puts, posts;
    } rows[] = {{0, 0, 1, 0},    {0, 999, 1, 0},  {0, 1000, 1, 0},
                {0, 1001, 2, 2}, {7, 3000, 3, 2}, {0, 3001, 4, 2}};
    int fd = make_file(5000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned puts = r->fake->counts[2];
        unsigned posts = r->fake->counts[3];
        CHECK_INT(bucket_put_file(r->bucket, "f", fd, rows[i].offset, rows[i].len, 0, &r->err),
                  BUCKET_OK, r->err.msg);
        check_file(r, "pre/f", rows[i].offset, rows[i].len);
        CHECK_INT(r->fake->counts[2] - puts, rows[i].puts, "PUT");
        CHECK_INT(r->fake->counts[3] - posts, rows[i].posts, "POST");
        CHECK_INT(fake_bucket_open_uploads(r->fake), 0, "");
    }
    close(fd);
}

TEST_ON(struct rig *r, test_file_that_becomes_shorter)
{
    char text[10];
    int fd = make_file(2500);
    CHECK_INT(bucket_put_file(r->bucket, "f", fd, 0, 3000, 0, &r->err), BUCKET_FILE, "");
    CHECK_STR(r->err.msg, "s3://bbb/pre/f: the file has become shorter while it was sent", "");
    CHECK_INT(fake_bucket_text(r->fake, "pre/f", text, sizeof(text)), SIZE_MAX, "");
    CHECK_INT(fake_bucket_open_uploads(r->fake), 0, "aborted");
    close(fd);
    CHECK_INT(bucket_put_file(r->bucket, "f", fd, 0, 30, 0, &r->err), BUCKET_FILE, "");
    CHECK_CONTAINS(r->err.msg, "reading the file: ", "");
}

/* Uploads that nobody ends are aborted by their age and prefix. */
TEST_ON(struct rig *r, test_stale_uploads)
{
    size_t n = 99;
    r->fake->uploads[0] = (struct fake_upload){.id = 7, .key = strdup("pre/a")};
    r->fake->uploads[1] = (struct fake_upload){.id = 8, .key = strdup("other/a")};
    r->fake->uploads[2] = (struct fake_upload){.id = 9, .key = strdup("pre//a")};
    r->fake->uploads[3] = (struct fake_upload){.id = 10, .key = strdup("pre/b")};
    int64_t begun = NOW * NS_PER_S + 123 * NS_PER_MS;
    CHECK_INT(bucket_abort_uploads(r->bucket, NULL, begun, 0, &n, &r->err), BUCKET_OK, r->err.msg);
    CHECK_INT(n, 0, "none is older");
    CHECK_INT(bucket_abort_uploads(r->bucket, NULL, begun + 1, 0, &n, &r->err), BUCKET_OK,
              r->err.msg);
    CHECK_INT(n, 2, "");
    CHECK_INT(fake_bucket_open_uploads(r->fake), 2, "those of others stay");
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *const wanted_head[] = {
    "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", "/eu-test-1/s3/aws4_request",
    "x-amz-content-sha256: "
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b"
    "0f00a08",
    "Content-MD5: CY9rzUYh03PK3k6DJie09g=="};

TEST_ON(struct rig *r, test_signed_and_with_sums)
{
    CHECK_INT(put(r, "k", "test"), BUCKET_OK, r->err.msg);
    for (size_t i = 0; i < sizeof(wanted_head) / sizeof(wanted_head[0]); i++) {
        assert_true(server_saw_text(r->fake->server, wanted_head[i]));
    }
    assert_false(server_saw_text(r->fake->server, "hunter2"));
}

TEST_ON(struct rig *r, test_metrics)
{
    char text[100];
    struct bucket_read read;
    CHECK_INT(put(r, "k", "test"), BUCKET_OK, r->err.msg);
    CHECK_INT(get(r, "k", 0, 3, NULL, &read, text), BUCKET_OK, r->err.msg);
    CHECK_INT(get(r, "none", 0, 3, NULL, &read, text), BUCKET_NOT_FOUND, "");
#define REQUESTS(op, result)                                                                       \
    "profpull_bucket_requests_total{bucket=\"test\",operation=\"" op "\",result=\"" result "\"}"
    CHECK_INT(testing_metric(r->metrics, REQUESTS("put", "ok")), 1, "");
    CHECK_INT(testing_metric(r->metrics, REQUESTS("get", "ok")), 1, "");
    CHECK_INT(testing_metric(r->metrics, REQUESTS("get", "not_found")), 1, "");
    CHECK_INT(testing_metric(r->metrics,
                             "profpull_bucket_bytes_total{bucket=\"test\",direction=\"out\"}"),
              4, "");
    CHECK_INT(testing_metric(r->metrics, "profpull_bucket_request_seconds_count{bucket=\"test\","
                                         "operation=\"get\"}"),
              2, "");
}

TEST(test_urls_that_are_refused)
{
    static const char *const urls[] = {"s3://", "s3://ab", "http://bbb/x", "s3://bbb/../x",
                                       "gs:/b"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct err err = ERR_INIT;
        struct bucket_settings s = {.url = urls[i]};
        assert_null(bucket_new(&(struct bucket_options){.settings = &s}, &err));
        CHECK_CONTAINS(err.msg, "expected s3://bucket/prefix or gs://bucket/prefix", urls[i]);
    }
}
