/* Names of stored profiles: a query waits for them as long as it may, and no longer.
 *
 * The debug information is that of a library which is built here, with a build id of our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/held.h"
#include "agent/naming/naming.h"
#include "base/clock.h"
#include "symbols/helper.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/lib/valid_config.h"

#define BUILD_ID "00112233445566778899aabbccddeeff00112233"
/* Where the library is loaded. */
#define BASE UINT64_C(0x7f1200000000)
#define PATIENCE_MS (10 * 60 * MS_PER_S)

struct fixture {
    char *dir;
    struct symbols_helper *helper;
    struct config *config;
    struct loop *loop;
    struct loop_thread *thread;
    struct log *log;
    struct metrics *metrics;
    struct naming *naming;
    uint64_t address; /* in the function of the library */
};

/* Runs a command and returns its first line. The caller frees it. */
__attribute__((format(printf, 1, 2))) static char *run(const char *fmt, ...)
{
    char command[4096];
    char *line = NULL;
    size_t room = 0;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    (void)(getline(&line, &room, out) < 0); /* a command may print nothing */
    CHECK_INT(pclose(out), 0, command);
    return line;
}

/* Builds the library where gdb and profpull look for debug information. */
static void build(struct fixture *f)
{
    f->dir = testing_mkdtemp();
    free(run("cd %s && mkdir -p .build-id/00 && "
             "echo 'int shop_total(int n) { return n * 3; }' | "
             "gcc -x c -O2 -g -fPIC -shared -nostdlib -Wl,--build-id=0x" BUILD_ID
             " -o .build-id/00/%s.debug -",
             f->dir, &BUILD_ID[2]));
    SCOPED_MEMORY char *symbol =
        run("nm %s/.build-id/00/%s.debug | grep shop_total", f->dir, &BUILD_ID[2]);
    f->address = BASE + strtoull(symbol, NULL, 16);
}

static void start(struct fixture *f, const char *symbols)
{
    SCOPED(buf) text = testing_buf(4096);
    buf_printf(&text,
               "scrape_configs: [{job_name: a, static_configs: [{targets: [\"a:1\"]}]}]\n"
               "write: [{url: \"http://w\"}]\n%s",
               symbols);
    f->config = valid_config("test.yaml", text.data, NULL);
    struct err err = ERR_INIT;
    f->loop = loop_new(&err);
    f->log = log_new(STDERR_FILENO, LOG_ERROR, LOG_LOGFMT);
    f->metrics = metrics_new();
    const struct naming_options options = {.config = f->config,
                                           .loop = f->loop,
                                           .log = f->log,
                                           .metrics = f->metrics,
                                           .helper = f->helper};
    f->naming = naming_new(&options, &err);
    CHECK_STR(err.msg, "", "naming_new");
    f->thread = loop_thread_start(f->loop, "naming", &err);
    assert_non_null(f->thread);
}

/* Starts with the library's directory as the source of names. */
static void start_with_directory(struct fixture *f)
{
    char symbols[1024];
    (void)snprintf(symbols, sizeof(symbols), "symbols: {directories: [\"%s\"]}\n", f->dir);
    start(f, symbols);
}

static void fixture_begin(struct fixture *f)
{
    static const struct symbols_helper_options options = {
        .max_memory = SYMBOLS_MEMORY_DEFAULT, .timeout_ms = 10 * SYMBOLS_TIMEOUT_DEFAULT_MS};
    f->helper = symbols_helper_start(&options, NULL); /* before any thread */
    assert_non_null(f->helper);
    build(f);
}

static void fixture_end(struct fixture *f)
{
    loop_stop(f->loop);
    loop_thread_join(f->thread);
    naming_free(f->naming);
    symbols_helper_stop(f->helper);
    metrics_free(f->metrics);
    log_free(f->log);
    loop_free(f->loop);
    config_unref(f->config);
    testing_directory_leave(&f->dir);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* Appends a profile of one sample, whose location is in the library and has no line. */
static void put_profile(struct buf *out, uint64_t address)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds", "/usr/lib/libshop.so",
                                          BUILD_ID};
    SCOPED(buf) m = testing_buf(4096);
    put_num(&m, 1, 1);
    put_num(&m, 2, 2);
    put_sub(out, 1, &m); /* the sample type */
    put_num(&m, 1, 1);
    put_num(&m, 2, 30);
    put_sub(out, 2, &m); /* the sample */
    put_num(&m, 1, 1);
    put_num(&m, 2, BASE + 0x1000);
    put_num(&m, 3, BASE + 0x2000);
    put_num(&m, 4, 0x1000);
    put_num(&m, 5, 3);
    put_num(&m, 6, 4);
    put_sub(out, 3, &m); /* the mapping: the second page is that of the code */
    put_num(&m, 1, 1);
    put_num(&m, 2, 1);
    put_num(&m, 3, address);
    put_sub(out, 4, &m); /* the location */
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        put_msg(out, 6, strings[i], strlen(strings[i]));
    }
}

static bool has(const struct buf *b, const char *text)
{
    return memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static int stored(const struct fixture *f, const char *result)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "profpull_symbols_stored_total{result=\"%s\"}", result);
    return (int)testing_metric(f->metrics, name);
}

TEST_ON(struct fixture *f, a_query_waits_for_names)
{
    start_with_directory(f);
    SCOPED(buf) plain = testing_buf(4096);
    SCOPED(buf) out = testing_buf(1 << 20);
    put_profile(&plain, f->address);
    assert_true(naming_names_stored(f->naming, f->config));
    assert_true(naming_stored(f->naming, f->config, (struct sv){plain.data, plain.len},
                              clock_mono_ms() + PATIENCE_MS, &out));
    assert_true(has(&out, "shop_total"));
    assert_false(has(&out, "!0x"));
    assert_int_equal(stored(f, "named"), 1);
    /* A profile that has all names stays as it is. */
    SCOPED(buf) again = testing_buf(1 << 20);
    assert_false(naming_stored(f->naming, f->config, (struct sv){out.data, out.len},
                               clock_mono_ms() + PATIENCE_MS, &again));
}

/* The sender of a profile waits, and the profile is named twice: with its place in the file, and
 * with the name that has arrived. */
TEST_ON(struct fixture *f, a_profile_that_waits_for_names_counts_once)
{
    char symbols[1024];
    (void)snprintf(symbols, sizeof(symbols), "symbols: {wait: 1m, directories: [\"%s\"]}\n",
                   f->dir);
    start(f, symbols);
    SCOPED(buf) plain = testing_buf(4096);
    put_profile(&plain, f->address);
    const struct naming_source source = {.sources = &f->config->symbols.sources,
                                         .owner = f->config};
    char *named = NULL;
    size_t n = 0;
    assert_true(held_name(f->naming, &source, (struct sv){plain.data, plain.len}, &named, &n));
    free(named);
    struct naming_counts c;
    naming_count(f->naming, &c);
    assert_int_equal(c.named, 1);
    assert_int_equal(c.partly + c.unnamed, 0);
    assert_int_equal(
        testing_metric(f->metrics, "profpull_symbols_locations_total{result=\"named\"}"), 1);
    assert_int_equal(
        testing_metric(f->metrics, "profpull_symbols_locations_total{result=\"unknown\"}"), 0);
}

TEST_ON(struct fixture *f, a_query_without_time_takes_the_names_that_are_known)
{
    start_with_directory(f);
    SCOPED(buf) plain = testing_buf(4096);
    SCOPED(buf) out = testing_buf(1 << 20);
    put_profile(&plain, f->address);
    struct sv stored_plain = {plain.data, plain.len};
    assert_true(naming_stored(f->naming, f->config, stored_plain, 0, &out));
    assert_true(has(&out, "libshop.so!0x"));
    assert_int_equal(stored(f, "unnamed"), 1);
    /* The question goes on, and a later query finds its answer. */
    for (int i = 0; naming_is_asking(f->naming); i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
    buf_clear(&out);
    assert_true(naming_stored(f->naming, f->config, stored_plain, 0, &out));
    assert_true(has(&out, "shop_total"));
    assert_int_equal(stored(f, "named"), 1);
}

TEST_ON(struct fixture *f, an_address_without_a_name_is_not_waited_for_again)
{
    start_with_directory(f);
    SCOPED(buf) plain = testing_buf(4096);
    SCOPED(buf) out = testing_buf(1 << 20);
    put_profile(&plain, BASE + 0x1f00); /* after the end of the code */
    for (int i = 0; i < 2; i++) {
        buf_clear(&out);
        assert_true(naming_stored(f->naming, f->config, (struct sv){plain.data, plain.len},
                                  clock_mono_ms() + PATIENCE_MS, &out));
        assert_true(has(&out, "libshop.so!0x1f00"));
    }
    assert_int_equal(stored(f, "unnamed"), 2);
}

/* Names a profile of an address, and waits for the answer to its question. */
static void name_and_wait(struct fixture *f, const struct naming_source *source, uint64_t address,
                          struct buf *out)
{
    struct profile_names names;
    SCOPED(buf) plain = testing_buf(4096);
    SCOPED(scratch) *scratch = scratch_new();
    buf_clear(out);
    put_profile(&plain, address);
    assert_true(naming_rewrite(f->naming, source, scratch, (struct sv){plain.data, plain.len}, out,
                               &names));
    for (int i = 0; naming_is_asking(f->naming); i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

/* A program that has named none of its addresses is not asked for one that debug information names:
 * here because another job has asked for it. */
TEST_ON(struct fixture *f, programs_without_names_are_asked_for_unknown_addresses_only)
{
    start_with_directory(f);
    SCOPED(buf) out = testing_buf(1 << 20);
    struct profile_names names;
    struct naming_source first = {
        .process = 5, .job = 1, .sources = &f->config->symbols.sources, .owner = f->config};
    struct naming_source second = first;
    second.job = 2;
    name_and_wait(f, &first, BASE + 0x1f00, &out);
    assert_true(has(&out, "libshop.so!0x1f00"));
    name_and_wait(f, &second, f->address, &out);
    /* The loop stands still, so that a question would be seen. */
    loop_stop(f->loop);
    loop_thread_join(f->thread);
    SCOPED(buf) plain = testing_buf(4096);
    SCOPED(scratch) *scratch = scratch_new();
    buf_clear(&out);
    put_profile(&plain, f->address);
    bool changed = naming_rewrite(f->naming, &first, scratch, (struct sv){plain.data, plain.len},
                                  &out, &names);
    bool asks = naming_is_asking(f->naming);
    f->thread = loop_thread_start(f->loop, "naming", NULL);
    assert_non_null(f->thread);
    assert_true(changed && has(&out, "shop_total"));
    assert_int_equal(names.named, 1);
    assert_false(asks);
}

TEST_ON(struct fixture *f, a_damaged_profile_is_left_alone)
{
    start_with_directory(f);
    SCOPED(buf) out = testing_buf(4096);
    assert_false(naming_stored(f->naming, f->config, SV("\x22\x7f"), 0, &out));
    assert_int_equal(stored(f, "named") + stored(f, "partly") + stored(f, "unnamed"), 0);
}

TEST_ON(struct fixture *f, without_sources_stored_profiles_get_no_names)
{
    start(f, "");
    assert_false(naming_names_stored(f->naming, f->config));
}
