/* A file endpoint: names, content, index, and what happens when the disk says no. */
#include "tests/unit/lib/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "write/protocols/file.h"
#include "write/protocols/file_names.h"
#include "write/protocols/file_retention.h"
#include "write/protocols/table.h"

static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;

/* 2026-11-21T03:23:34.123Z */
#define UNTIL_NS INT64_C(1795231414123000000)

static const struct config_pairs no_external = {.at = NULL, .n = 0};

struct fixture {
    char *dir;
    struct intern *in;
    struct sink *sink;
};

static int setup(void **state)
{
    static struct fixture f;
    char url[512];
    struct err err = ERR_INIT;
    f.dir = testing_mkdtemp();
    f.in = intern_new();
    (void)snprintf(url, sizeof(url), "file://%s/a/b", f.dir);
    struct config_endpoint endpoint = {.url = url};
    f.sink = file_open(&endpoint, &err);
    *state = &f;
    return f.dir == NULL || f.in == NULL || f.sink == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sink_unref(f->sink);
    intern_free(f->in);
    testing_directory_leave(&f->dir);
    return 0;
}

static struct profile *make(struct fixture *f, const char *service, const char *type,
                            const char *data, size_t size)
{
    struct labels *l = testing_labels(f->in, "service_name", service, "__name__", type, "instance",
                                      "10.1.2.3:6060", "quote", "a\"b", NULL);
    char *copy = testing_memory(size + 1);
    memcpy(copy, data, size);
    struct profile *p = profile_new(l, copy, size);
    assert_non_null(p);
    p->from_ns = UNTIL_NS - 10 * NS_PER_S;
    p->until_ns = UNTIL_NS;
    return p;
}

/* Takes over the profile. */
static void write_profile(struct fixture *f, struct profile *p, struct answer *a)
{
    struct series s;
    assert_true(series_build(&s, p->labels, &no_external, &limits, &protocol_file.labels));
    file_deliver(f->sink, &s, p, a);
    series_done(&s);
    profile_unref(p);
}

static size_t read_file(struct fixture *f, const char *name, char *out, size_t size)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/a/b/%s", f->dir, name);
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        print_error("no file %s\n", path);
    }
    assert_non_null(file);
    size_t n = fread(out, 1, size - 1, file);
    out[n] = '\0';
    assert_int_equal(fclose(file), 0);
    return n;
}

static size_t count_files(struct fixture *f, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/a/b/%s", f->dir, name);
    DIR *dir = opendir(path);
    size_t n = 0;
    if (dir == NULL) {
        return 0;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return n;
}

TEST_ON(struct fixture *f, test_gzip_byte_for_byte)
{
    static const char data[] = "\x1f\x8b\x08\x00 whatever follows\0\xff";
    struct answer a;
    char got[256];
    write_profile(f, make(f, "default/api", "memory", data, sizeof(data)), &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    size_t n = read_file(f, "default_api/memory/20261121T032334.123Z_10.1.2.3-6060.pb.gz", got,
                         sizeof(got));
    CHECK_INT(n, sizeof(data), "");
    assert_memory_equal(got, data, sizeof(data));
    CHECK_INT(count_files(f, "default_api/memory"), 1, "nothing temporary is left");
}

/* A recording is never compressed, and has a name that its tools know. */
TEST_ON(struct fixture *f, test_jfr)
{
    static const char plain[] = "FLR\0\0\2 whatever";
    static const char packed[] = "\x1f\x8b\x08\x00 whatever";
    struct answer a;
    char got[256];
    struct profile *p = make(f, "s", "jfr", plain, sizeof(plain));
    p->format = PROFILE_JFR;
    write_profile(f, p, &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    size_t n = read_file(f, "s/jfr/20261121T032334.123Z_10.1.2.3-6060.jfr", got, sizeof(got));
    CHECK_INT(n, sizeof(plain), "");
    assert_memory_equal(got, plain, sizeof(plain));
    p = make(f, "s", "jfr", packed, sizeof(packed));
    p->format = PROFILE_JFR;
    write_profile(f, p, &a);
    n = read_file(f, "s/jfr/20261121T032334.123Z_10.1.2.3-6060.jfr.gz", got, sizeof(got));
    CHECK_INT(n, sizeof(packed), "");
    assert_memory_equal(got, packed, sizeof(packed));
}

TEST_ON(struct fixture *f, test_plain_is_compressed)
{
    static char data[300000];
    static char back[300001];
    struct rng rng;
    struct answer a;
    char path[1024];
    rng_seed(&rng, 3);
    /* Random halves do not compress, so that the output takes many chunks. */
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char)(i == 0 ? 0x0a : rng_next(&rng));
    }
    write_profile(f, make(f, "s", "process_cpu", data, sizeof(data)), &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    (void)snprintf(path, sizeof(path),
                   "%s/a/b/s/process_cpu/20261121T032334.123Z_10.1.2.3-6060.pb.gz", f->dir);
    gzFile gz = gzopen(path, "rb");
    assert_non_null(gz);
    CHECK_INT(gzread(gz, back, sizeof(back)), sizeof(data), "");
    CHECK_INT(gzdirect(gz), 0, "is gzip");
    gzclose(gz);
    assert_memory_equal(back, data, sizeof(data));
}

TEST_ON(struct fixture *f, test_index)
{
    struct answer a;
    char text[4096];
    write_profile(f, make(f, "caf\xc3\xa9", "memory", "\x1f\x8b..", 4), &a);
    write_profile(f, make(f, "caf\xc3\xa9", "memory", "\x1f\x8b..", 4), &a);
    read_file(f, FILE_INDEX, text, sizeof(text));
    char *second = strchr(text, '\n');
    assert_non_null(second);
    *second++ = '\0';
    CHECK_STR(text,
              "{\"file\":\"caf_/memory/20261121T032334.123Z_10.1.2.3-6060.pb.gz\","
              "\"from\":\"2026-11-21T03:23:24.123Z\",\"until\":\"2026-11-21T03:23:34.123Z\","
              "\"size\":4,\"labels\":{\"__name__\":\"memory\",\"instance\":\"10.1.2.3:6060\","
              "\"quote\":\"a\\\"b\",\"service_name\":\"caf\xc3\xa9\"}}",
              "");
    CHECK_CONTAINS(second, "10.1.2.3-6060-2.pb.gz\"", "the same name gets a number");
    json_t *json = json_loads(second, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    CHECK_INT(count_files(f, "caf_/memory"), 2, "");
}

TEST_ON(struct fixture *f, test_tenant_in_index)
{
    struct labels *l = testing_labels(f->in, "service_name", "s", "__tenant_id__", "team-a", NULL);
    struct profile *p = profile_new(l, strdup("\x1f\x8b"), 2);
    struct answer a;
    char text[4096];
    write_profile(f, p, &a);
    read_file(f, FILE_INDEX, text, sizeof(text));
    CHECK_CONTAINS(text, "\"tenant\":\"team-a\"", "");
    CHECK_CONTAINS(text, "\"file\":\"s/unknown/19700101T000000.000Z_unknown.pb.gz\"", "");
}

TEST_WITH(test_parts, setup, teardown)
{
    static const struct text_case cases[] = {
        {"default/api", "default_api"},
        {"10.1.2.3:6060", "10.1.2.3-6060"},
        {"[::1]:6060", "_--1_-6060"},
        {"..", "_."},
        {".", "_"},
        {"../../etc/passwd", "_._.._etc_passwd"},
        {".hidden", "_hidden"},
        {"", "unknown"},
        {"a b\nc", "a_b_c"},
        {"\xe4\xb8\xad\xe6\x96\x87", "__"},
        {"\x80", "unknown"},
    };
    char out[FILE_PART_MAX + 1];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        file_path_part(sv_from(cases[i].text), out);
        CHECK_STR(out, cases[i].want, cases[i].text);
    }
    char longer[3 * FILE_PART_MAX];
    memset(longer, 'x', sizeof(longer));
    file_path_part((struct sv){.p = longer, .n = sizeof(longer)}, out);
    CHECK_INT(strlen(out), FILE_PART_MAX, "");
    file_path_part((struct sv){.p = "a\0b", .n = 3}, out);
    CHECK_STR(out, "a_b", "a NUL");
}

TEST_ON(struct fixture *f, test_bad_urls)
{
    struct err err = ERR_INIT;
    char url[512];
    struct config_endpoint endpoint = {.url = "file://host/x"};
    assert_null(file_open(&endpoint, &err));
    CHECK_CONTAINS(err.msg, "expected a URL", "");
    err_clear(&err);
    testing_write_file(f->dir, "plain", "x");
    (void)snprintf(url, sizeof(url), "file://%s/plain", f->dir);
    endpoint.url = url;
    assert_null(file_open(&endpoint, &err));
    CHECK_CONTAINS(err.msg, "/plain: Not a directory", "");
    err_clear(&err);
    (void)snprintf(url, sizeof(url), "file://%s/plain/below", f->dir);
    endpoint.url = url;
    assert_null(file_open(&endpoint, &err));
    CHECK_CONTAINS(err.msg, "Not a directory", "");
}

/* ---- retention ------------------------------------------------------------------------------- */

static char *read_index(const struct fixture *f)
{
    char path[600];
    static char text[100000];
    (void)snprintf(path, sizeof(path), "%s/a/b/index.jsonl", f->dir);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t n = fread(text, 1, sizeof(text) - 1, in);
    text[n] = '\0';
    fclose(in);
    return text;
}

static bool is_there(const struct fixture *f, const char *name)
{
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/a/b/%s", f->dir, name);
    return access(path, F_OK) == 0;
}

static struct file_retention_result retain(const struct fixture *f, int64_t oldest_ns,
                                           uint64_t max_bytes)
{
    char path[600];
    struct err err = ERR_INIT;
    struct file_retention_result result;
    (void)snprintf(path, sizeof(path), "%s/a/b", f->dir);
    struct file_retention r = {.root = open(path, O_RDONLY | O_DIRECTORY),
                               .index = FILE_INDEX,
                               .oldest_ns = oldest_ns,
                               .max_bytes = max_bytes};
    assert_true(r.root >= 0);
    bool ok = file_retention_run(&r, &result, &err);
    CHECK_STR(err.msg, "", "");
    assert_true(ok);
    close(r.root);
    return result;
}

TEST_ON(struct fixture *f, test_old_files_are_removed_with_their_lines)
{
    struct answer a;
    for (int64_t i = 0; i < 3; i++) {
        char type[] = {'t', (char)('0' + i), '\0'};
        struct profile *p = make(f, "cart", type, "\x1f\x8bxx", 4);
        p->until_ns += i * NS_PER_S;
        write_profile(f, p, &a);
        assert_int_equal(a.class, ANSWER_SENT);
    }
    struct file_retention_result r = retain(f, UNTIL_NS + NS_PER_S, 0);
    assert_true(r.removed == 1 && r.bytes == 8);
    assert_false(is_there(f, "cart/t0"));
    assert_true(is_there(f, "cart/t1"));
    CHECK_CONTAINS(read_index(f), "{\"file\":\"cart/t1/", "");
    assert_null(strstr(read_index(f), "cart/t0/"));
    /* A tenth more than what is too much goes, so that rounds are rare. */
    r = retain(f, INT64_MIN, 7);
    assert_true(r.removed == 1 && r.bytes == 4);
    assert_true(is_there(f, "cart/t2") && !is_there(f, "cart/t1"));
    r = retain(f, INT64_MAX, 0);
    assert_true(r.removed == 1 && r.bytes == 0 && !is_there(f, "cart"));
    CHECK_STR(read_index(f), "", "");
}

TEST_ON(struct fixture *f, test_lines_that_name_other_files_touch_nothing)
{
    static const char *const files[] = {
        "../../plain", "/etc/passwd", "a/../plain", "a/b/../../../plain", "plain", "a/b/c/../plain",
        "a//plain",    ".a/b/c",      "",
    };
    char text[2000] = "no json\n";
    size_t n = strlen(text);
    testing_write_file(f->dir, "plain", "x");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "{\"file\":\"%s\",\"until\":\"2020-01-01T00:00:00Z\",\"size\":1}\n",
                              files[i]);
    }
    char directory[600];
    (void)snprintf(directory, sizeof(directory), "%s/a/b", f->dir);
    testing_write_file(directory, "index.jsonl", text);
    struct file_retention_result r = retain(f, INT64_MAX, 0);
    assert_true(r.removed == 0 && r.bytes == 0);
    CHECK_STR(read_index(f), text, "");
    assert_true(is_there(f, "../../plain"));
}

TEST_ON(struct fixture *f, test_the_sink_keeps_to_its_bytes)
{
    struct answer a;
    char url[512];
    struct err err = ERR_INIT;
    (void)snprintf(url, sizeof(url), "file://%s/a/b", f->dir);
    struct config_endpoint endpoint = {.url = url, .retention_max_bytes = 400};
    sink_unref(f->sink);
    f->sink = file_open(&endpoint, &err);
    assert_non_null(f->sink);
    for (int64_t i = 0; i < 300; i++) {
        struct profile *p = make(f, "cart", "t", "\x1f\x8bxx", 4);
        p->until_ns += i * NS_PER_S;
        write_profile(f, p, &a);
        assert_int_equal(a.class, ANSWER_SENT);
    }
    struct file_retention_result r = retain(f, INT64_MIN, 0);
    assert_true(r.bytes <= 400 && r.bytes >= 340);
}

TEST_ON(struct fixture *f, test_directory_that_vanishes)
{
    struct answer a;
    char path[512];
    write_profile(f, make(f, "s", "memory", "\x1f\x8b", 2), &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    (void)snprintf(path, sizeof(path), "%s/a/b", f->dir);
    char moved[600];
    (void)snprintf(moved, sizeof(moved), "%s/moved", f->dir);
    assert_int_equal(rename(path, moved), 0);
    write_profile(f, make(f, "s", "memory", "\x1f\x8b", 2), &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    CHECK_INT(count_files(f, "s/memory"), 1, "");
}

TEST_ON(struct fixture *f, test_file_in_the_way)
{
    struct answer a;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/a/b", f->dir);
    testing_write_file(path, "s", "in the way");
    write_profile(f, make(f, "s", "memory", "\x1f\x8b", 2), &a);
    CHECK_INT(a.class, ANSWER_RETRY, "");
    CHECK_INT(a.answered, false, "");
    CHECK_CONTAINS(a.text, "/a/b/s/memory: Not a directory", "");
}

/* A file size limit stands in for a full disk: the write breaks off in the middle. */
TEST_ON(struct fixture *f, test_short_write_leaves_nothing)
{
    static char data[65536] = "\x1f\x8b";
    struct rlimit before;
    struct answer a;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    write_profile(f, make(f, "s", "memory", data, sizeof(data)), &a);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_INT(a.class, ANSWER_RETRY, "");
    CHECK_CONTAINS(a.text, "File too large", "");
    CHECK_INT(count_files(f, "s/memory"), 0, "");
    CHECK_INT(count_files(f, "."), 1, "no index yet");
}

/* The index is full: the profile is not kept either, and no half line stays. */
TEST_ON(struct fixture *f, test_index_and_file_or_neither)
{
    struct rlimit before;
    struct answer a;
    char path[512];
    char text[8192];
    char filler[4000];
    memset(filler, 'x', sizeof(filler));
    filler[sizeof(filler) - 2] = '\n';
    filler[sizeof(filler) - 1] = '\0';
    (void)snprintf(path, sizeof(path), "%s/a/b", f->dir);
    testing_write_file(path, FILE_INDEX, filler);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    write_profile(f, make(f, "s", "memory", "\x1f\x8b", 2), &a);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_INT(a.class, ANSWER_RETRY, "");
    CHECK_CONTAINS(a.text, "index.jsonl", "");
    CHECK_INT(count_files(f, "s/memory"), 0, "");
    CHECK_INT(read_file(f, FILE_INDEX, text, sizeof(text)), strlen(filler), "");
    write_profile(f, make(f, "s", "memory", "\x1f\x8b", 2), &a);
    CHECK_INT(a.class, ANSWER_SENT, a.text);
    CHECK_INT(count_files(f, "s/memory"), 1, "");
}

#define PER_THREAD 50

static void *write_many(void *arg)
{
    struct fixture *f = arg;
    for (int i = 0; i < PER_THREAD; i++) {
        struct answer a;
        struct profile *p = make(f, "s", "memory", "\x0a plain", 7);
        p->until_ns += i * NS_PER_S;
        write_profile(f, p, &a);
        if (a.class != ANSWER_SENT) {
            return f;
        }
    }
    return NULL;
}

/* All workers at once, with the same names. */
TEST_ON(struct fixture *f, test_threads)
{
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, f), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    CHECK_INT(count_files(f, "s/memory"), 4 * PER_THREAD, "");
    static char text[1 << 17];
    size_t n = read_file(f, FILE_INDEX, text, sizeof(text));
    size_t lines = 0;
    for (char *line = text; line < text + n; lines++) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        json_t *json = json_loads(line, 0, NULL);
        assert_non_null(json);
        json_decref(json);
        line = end + 1;
    }
    CHECK_INT(lines, 4 * PER_THREAD, "");
}
