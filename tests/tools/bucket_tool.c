/* The bucket client against a real server, step by step.
 *
 *   bucket-tool URL ENDPOINT REGION KEY_ID SECRET
 *
 * URL is "s3://bucket/prefix". Prints a line for each step, and removes what it has stored. Exit
 * status 1 at the first step that does not end as expected.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bucket/bucket.h"

#define MIB ((size_t)1024 * 1024)
#define FILE_BYTES (12 * MIB + 345)
#define BLOCK ((size_t)256 * 1024)
#define THREADS 8
#define MANY 25

struct tool {
    struct bucket *bucket;
    struct err err;
    char text[4096];
    unsigned listed;
};

static void expect(const struct tool *t, const char *step, enum bucket_result got,
                   enum bucket_result want)
{
    printf("%-44s %s%s%s\n", step, bucket_result_name(got), t->err.msg[0] != '\0' ? ": " : "",
           t->err.msg);
    if (got != want) {
        printf("FAIL %s: expected %s\n", step, bucket_result_name(want));
        exit(1);
    }
}

static void require(bool ok, const char *what)
{
    if (!ok) {
        printf("FAIL %s\n", what);
        exit(1);
    }
}

static enum bucket_result put(struct tool *t, const char *key, const char *text)
{
    err_clear(&t->err);
    return bucket_put(t->bucket, key, text, strlen(text), 0, &t->err);
}

static enum bucket_result get(struct tool *t, const char *key, uint64_t offset, size_t len,
                              const char *etag, struct bucket_read *read)
{
    struct bucket_range r = {.offset = offset, .len = len, .into = t->text, .etag = etag};
    err_clear(&t->err);
    enum bucket_result result = bucket_get(t->bucket, key, &r, 0, read, &t->err);
    t->text[result == BUCKET_OK ? read->len : 0] = '\0';
    return result;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void try_objects(struct tool *t)
{
    struct bucket_read read;
    struct bucket_object o;
    expect(t, "put", put(t, "dir/a.txt", "0123456789"), BUCKET_OK);
    expect(t, "head", bucket_head(t->bucket, "dir/a.txt", 0, &o, &t->err), BUCKET_OK);
    require(o.size == 10 && o.etag[0] == '"' && o.modified_ns > 0, "size, ETag and time");
    expect(t, "get a range", get(t, "dir/a.txt", 2, 5, o.etag, &read), BUCKET_OK);
    require(strcmp(t->text, "23456") == 0 && read.total == 10, "bytes of the range");
    expect(t, "get a range over the end", get(t, "dir/a.txt", 8, 50, NULL, &read), BUCKET_OK);
    require(strcmp(t->text, "89") == 0, "bytes to the end");
    expect(t, "get a range after the end", get(t, "dir/a.txt", 10, 5, NULL, &read), BUCKET_REFUSED);
    expect(t, "replace", put(t, "dir/a.txt", "other"), BUCKET_OK);
    expect(t, "get with the old ETag", get(t, "dir/a.txt", 0, 5, o.etag, &read), BUCKET_CHANGED);
    expect(t, "put an empty object", put(t, "empty", ""), BUCKET_OK);
    err_clear(&t->err);
    expect(t, "head of it", bucket_head(t->bucket, "empty", 0, &o, &t->err), BUCKET_OK);
    require(o.size == 0, "no bytes");
    expect(t, "get what is not there", get(t, "none", 0, 5, NULL, &read), BUCKET_NOT_FOUND);
}

static bool count_object(void *arg, const struct bucket_object *o)
{
    struct tool *t = arg;
    size_t len = strlen(t->text);
    (void)snprintf(t->text + len, sizeof(t->text) - len, "%s%s\n", o->key, o->is_prefix ? "*" : "");
    t->listed++;
    return true;
}

static enum bucket_result list(struct tool *t, const struct bucket_list *l)
{
    t->text[0] = '\0';
    t->listed = 0;
    err_clear(&t->err);
    return bucket_list(t->bucket, l, count_object, t, 0, &t->err);
}

static void try_lists(struct tool *t)
{
    char key[64];
    for (unsigned i = 0; i < 7; i++) {
        (void)snprintf(key, sizeof(key), "list/%u/x", i);
        require(put(t, key, "x") == BUCKET_OK, t->err.msg);
    }
    expect(t, "list a prefix in pages of 3",
           list(t, &(struct bucket_list){.prefix = "list/", .page = 3}), BUCKET_OK);
    require(t->listed == 7, "7 objects");
    expect(t, "list after a key",
           list(t, &(struct bucket_list){.prefix = "list/", .start_after = "list/4/x"}), BUCKET_OK);
    require(strcmp(t->text, "list/5/x\nlist/6/x\n") == 0, t->text);
    expect(t, "list one level in pages of 2",
           list(t, &(struct bucket_list){.delimiter = '/', .page = 2}), BUCKET_OK);
    /* The objects of a page come before its directories. */
    require(t->listed == 3 && strstr(t->text, "dir/*\n") != NULL &&
                strstr(t->text, "list/*\n") != NULL && strstr(t->text, "empty\n") != NULL,
            t->text);
}

static void try_odd_keys(struct tool *t)
{
    static const char *const keys[] = {"odd/a b+c=d&e",   "odd/\xc3\xa4\xf0\x9f\x98\x80",
                                       "odd/100%41",      "odd/x?y#z",
                                       "odd/~'()*!:@,;$", "odd/\"<&>\""};
    char line[128];
    struct bucket_read read;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        expect(t, keys[i], put(t, keys[i], keys[i]), BUCKET_OK);
        expect(t, "  get", get(t, keys[i], 0, 99, NULL, &read), BUCKET_OK);
        require(strcmp(t->text, keys[i]) == 0, "its bytes");
        expect(t, "  list", list(t, &(struct bucket_list){.prefix = keys[i]}), BUCKET_OK);
        (void)snprintf(line, sizeof(line), "%s\n", keys[i]);
        require(strcmp(t->text, line) == 0, t->text);
    }
}

static char byte_at(size_t i)
{
    return (char)(i * 7 + i / 4096);
}

static int make_file(void)
{
    char path[] = "/tmp/bucket-tool-XXXXXX";
    int fd = mkstemp(path);
    char *bytes = malloc(FILE_BYTES);
    require(fd >= 0 && bytes != NULL, "a file");
    (void)unlink(path);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        bytes[i] = byte_at(i);
    }
    require(write(fd, bytes, FILE_BYTES) == (ssize_t)FILE_BYTES, "writing the file");
    free(bytes);
    return fd;
}

static void try_files(struct tool *t)
{
    char *block = malloc(BLOCK);
    int fd = make_file();
    size_t n = 99;
    require(block != NULL, "memory");
    err_clear(&t->err);
    expect(t, "put a file of 12 MiB in parts of 5 MiB",
           bucket_put_file(t->bucket, "file", fd, 0, FILE_BYTES, 0, &t->err), BUCKET_OK);
    for (uint64_t at = 0; at < FILE_BYTES; at += BLOCK) {
        struct bucket_range r = {.offset = at, .len = BLOCK, .into = block};
        struct bucket_read read;
        require(bucket_get(t->bucket, "file", &r, 0, &read, &t->err) == BUCKET_OK, t->err.msg);
        for (size_t i = 0; i < read.len; i++) {
            require(block[i] == byte_at((size_t)at + i), "the bytes of the file");
        }
    }
    require(ftruncate(fd, (off_t)(7 * MIB)) == 0, "truncating");
    expect(t, "put a file that becomes shorter",
           bucket_put_file(t->bucket, "shorter", fd, 0, FILE_BYTES, 0, &t->err), BUCKET_FILE);
    err_clear(&t->err);
    expect(t, "uploads that are left",
           bucket_abort_uploads(t->bucket, NULL, clock_wall_ns() + 60 * NS_PER_S, 0, &n, &t->err),
           BUCKET_OK);
    require(n == 0, "the failed upload was aborted");
    (void)close(fd);
    free(block);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    struct tool tool;
    unsigned number;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    char key[64];
    struct bucket_read read;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof(key), "many/%u-%u", w->number, i);
        require(put(&w->tool, key, key) == BUCKET_OK, w->tool.err.msg);
        require(get(&w->tool, key, 0, 99, NULL, &read) == BUCKET_OK, w->tool.err.msg);
        require(strcmp(w->tool.text, key) == 0, "bytes of another object");
    }
    return NULL;
}

static void try_threads(struct tool *t)
{
    static struct worker workers[THREADS];
    int64_t start = clock_mono_ms();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.tool.bucket = t->bucket, .number = i};
        require(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    printf("%d threads put and get %d objects each in %" PRId64 " ms\n", THREADS, MANY,
           clock_mono_ms() - start);
}

/* ---- refusals and the end -------------------------------------------------------------------- */

static void try_wrong(struct tool *t, const struct bucket_settings *s, const char *step,
                      enum bucket_result want)
{
    struct tool other = {.bucket = bucket_new(&(struct bucket_options){.settings = s}, &t->err)};
    require(other.bucket != NULL, t->err.msg);
    expect(&other, step, put(&other, "x", "x"), want);
    require(strstr(other.err.msg, "wrong-secret") == NULL, "no secret in an error");
    bucket_free(other.bucket);
}

static bool remove_object(void *arg, const struct bucket_object *o)
{
    struct tool *t = arg;
    require(bucket_delete(t->bucket, o->key, 0, &t->err) == BUCKET_OK, t->err.msg);
    return true;
}

static void clean(struct tool *t)
{
    struct bucket_list all = {.prefix = NULL};
    err_clear(&t->err);
    expect(t, "remove all", bucket_list(t->bucket, &all, remove_object, t, 0, &t->err), BUCKET_OK);
    expect(t, "list what is left", list(t, &all), BUCKET_OK);
    require(t->listed == 0, t->text);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bucket-tool URL ENDPOINT REGION KEY_ID SECRET\n");
        return 2;
    }
    struct bucket_settings s = {
        .url = argv[1],
        .endpoint = argv[2],
        .path_style = true,
        .http = {.region = argv[3], .username = argv[4], .password = argv[5]}};
    struct tool t = {.err = ERR_INIT};
    t.bucket = bucket_new(
        &(struct bucket_options){.settings = &s, .part_bytes = BUCKET_PART_MIN, .tries = 3},
        &t.err);
    require(t.bucket != NULL, t.err.msg);
    try_objects(&t);
    try_lists(&t);
    try_odd_keys(&t);
    try_files(&t);
    try_threads(&t);
    struct bucket_settings wrong = s;
    wrong.http.password = "wrong-secret";
    try_wrong(&t, &wrong, "put with a wrong secret", BUCKET_DENIED);
    wrong = s;
    wrong.http.username = "AKWRONG";
    try_wrong(&t, &wrong, "put with a wrong key", BUCKET_DENIED);
    wrong = s;
    wrong.url = "s3://no-such-bucket/x";
    try_wrong(&t, &wrong, "put into a bucket that is not there", BUCKET_NO_BUCKET);
    clean(&t);
    bucket_free(t.bucket);
    return 0;
}
