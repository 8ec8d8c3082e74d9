/* Settings of one target, from its labels: good values, bad values and limits. */
#include "tests/unit/lib/testing.h"

#include "scraper/targets/address.h"
#include "scraper/targets/settings.h"
#include "tests/unit/scraper/target_rig.h"

SCOPED_POINTER(target, target_unref)

#define TIMES .interval_ms = 15000, .timeout_ms = 10000

enum { MEMORY, CPU, FGPROF, ODD, LONG, N_TYPES };

static const struct config_type TYPES[N_TYPES] = {
    [MEMORY] = {.key = "memory", .name = "memory", .path = "/allocs", .enabled = true, TIMES},
    [CPU] = {.key = "process_cpu",
             .name = "process_cpu",
             .path = "/profile",
             .enabled = true,
             .sampling = true,
             .seconds = 14,
             TIMES},
    [FGPROF] = {.key = "fgprof",
                .name = "fgprof",
                .path = "/fgprof",
                .sampling = true,
                .seconds = 14,
                TIMES},
    [ODD] = {.key = "jvm.heap-live", .name = "jvm.heap-live", .path = "/jvm", TIMES},
    [LONG] = {.key = "long",
              .name = "long",
              .path = "/long",
              .sampling = true,
              .seconds = 5,
              .seconds_given = true,
              TIMES},
};

static int setup(void **state)
{
    return setup_types(state, TYPES, N_TYPES);
}

static struct target *make(struct fixture *f, const char *const *labels, const char *pinned,
                           struct err *err)
{
    return make_at(f, "10.1.2.3:80", labels, pinned, err);
}

/* "url interval/timeout" of each scrape, one per line. */
static void describe(const struct target *t, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < target_scrape_count(t); i++) {
        SCOPED(buf) url = testing_buf(20000);
        assert_true(target_scrape_url(t, i, &url));
        int wrote =
            snprintf(out + n, size - n, "%s%s %lld/%lld", i == 0 ? "" : "\n", url.data,
                     (long long)target_interval_ms(t, i), (long long)target_timeout_ms(t, i));
        assert_true(wrote > 0 && (size_t)wrote < size - n);
        n += (size_t)wrote;
    }
}

static void check(struct fixture *f, const char *const *labels, const char *want)
{
    char got[4096] = "";
    struct err err = ERR_INIT;
    SCOPED(target) *t = make(f, labels, NULL, &err);
    CHECK_STR(err.msg, "", labels[0]);
    assert_non_null(t);
    describe(t, got, sizeof(got));
    CHECK_STR(got, want, labels[0]);
    CHECK_INT(target_problem_count(t), 0, labels[0]);
}

#define MEMORY_LINE "http://10.1.2.3:80/allocs 15000/10000"
#define CPU_LINE "http://10.1.2.3:80/profile?seconds=14 15000/24000"

/* A valid label affects its type and no other. */
TEST_WITH(good_labels, setup, teardown)
{
    static const struct {
        const char *labels[6], *want;
    } rows[] = {
        {{"x", "y"}, MEMORY_LINE "\n" CPU_LINE},
        {{"__profile_memory_enabled__", "true"}, MEMORY_LINE "\n" CPU_LINE},
        {{"__profile_memory_enabled__", "false"}, CPU_LINE},
        {{"__profile_process_cpu_enabled__", "false"}, MEMORY_LINE},
        {{"__profile_fgprof_enabled__", "true", "__profile_process_cpu_enabled__", "false"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/fgprof?seconds=14 15000/24000"},
        {{"__profile_memory_path__", "/own//x/", "__profile_process_cpu_enabled__", "false"},
         "http://10.1.2.3:80/own/x/ 15000/10000"},
        {{"__profile_memory_path__", "/own", "__profile_path__", "/all", "__profile_path_prefix__",
          "/pre"},
         "http://10.1.2.3:80/pre/own 15000/10000\n"
         "http://10.1.2.3:80/pre/all?seconds=14 15000/24000"},
        {{"__profile_memory_port__", "6060"}, "http://10.1.2.3:6060/allocs 15000/10000\n" CPU_LINE},
        {{"__profile_memory_port__", "1", "__profile_process_cpu_port__", "65535"},
         "http://10.1.2.3:1/allocs 15000/10000\n"
         "http://10.1.2.3:65535/profile?seconds=14 15000/24000"},
        {{"__profile_memory_scheme__", "HTTPS"},
         "https://10.1.2.3:80/allocs 15000/10000\n" CPU_LINE},
        {{"__profile_memory_scheme__", "http", "__scheme__", "https"},
         "http://10.1.2.3:80/allocs 15000/10000\n"
         "https://10.1.2.3:80/profile?seconds=14 15000/24000"},
        {{"__profile_memory_interval__", "1s"}, "http://10.1.2.3:80/allocs 1000/1000\n" CPU_LINE},
        {{"__profile_memory_interval__", "1d"},
         "http://10.1.2.3:80/allocs 86400000/10000\n" CPU_LINE},
        {{"__profile_process_cpu_interval__", "1m"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=59 60000/69000"},
        {{"__profile_process_cpu_interval__", "2s"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=1 2000/3000"},
        {{"__profile_process_cpu_interval__", "1m", "__profile_process_cpu_seconds__", "30s"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=30 60000/40000"},
        {{"__profile_process_cpu_seconds__", "1"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=1 15000/11000"},
        {{"__profile_process_cpu_seconds__", "5", "__param_seconds", "7"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=5 15000/15000"},
        {{"__profile_memory_timeout__", "15s"}, "http://10.1.2.3:80/allocs 15000/15000\n" CPU_LINE},
        {{"__profile_process_cpu_timeout__", "1ms"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=14 15000/14001"},
        {{"__scrape_interval__", "30s"},
         "http://10.1.2.3:80/allocs 30000/10000\n"
         "http://10.1.2.3:80/profile?seconds=29 30000/39000"},
        {{"__scrape_interval__", "30s", "__profile_memory_interval__", "20s", "__scrape_timeout__",
          "25s"},
         "http://10.1.2.3:80/allocs 20000/20000\n"
         "http://10.1.2.3:80/profile?seconds=29 30000/54000"},
        {{"__scrape_interval__", "5s"},
         "http://10.1.2.3:80/allocs 5000/5000\n"
         "http://10.1.2.3:80/profile?seconds=4 5000/9000"},
        {{"__scrape_timeout__", "15s"},
         "http://10.1.2.3:80/allocs 15000/15000\n"
         "http://10.1.2.3:80/profile?seconds=14 15000/29000"},
        {{"__profile_jvm_heap_live_enabled__", "true"},
         MEMORY_LINE "\n" CPU_LINE "\nhttp://10.1.2.3:80/jvm 15000/10000"},
        {{"__profile_long_enabled__", "true", "__scrape_interval__", "6s"},
         "http://10.1.2.3:80/allocs 6000/6000\n"
         "http://10.1.2.3:80/profile?seconds=5 6000/11000\n"
         "http://10.1.2.3:80/long?seconds=5 6000/11000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *labels[8] = {NULL};
        memcpy(labels, rows[i].labels, sizeof(rows[i].labels));
        check(*state, labels, rows[i].want);
    }
}

/* A continuous type fills its interval. */
TEST_ON(struct fixture *f, continuous_types)
{
    f->types[CPU].continuous = true;
    f->types[CPU].seconds = 15;
    static const struct {
        const char *labels[4], *want;
    } rows[] = {
        {{"x", "y"}, MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=15 15000/25000"},
        {{"__profile_process_cpu_interval__", "1s"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=1 1000/2000"},
        {{"__profile_process_cpu_interval__", "1m"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=60 60000/70000"},
        {{"__profile_process_cpu_seconds__", "15"},
         MEMORY_LINE "\nhttp://10.1.2.3:80/profile?seconds=15 15000/25000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *labels[5] = {NULL};
        memcpy(labels, rows[i].labels, sizeof(rows[i].labels));
        check(f, labels, rows[i].want);
    }
    struct err err = ERR_INIT;
    SCOPED(target) *t = make(f, LABELS("__profile_process_cpu_seconds__", "16"), NULL, &err);
    assert_non_null(t);
    const char *type;
    CHECK_CONTAINS(target_problem(t, 0, &type),
                   "expected whole seconds from 1 to 15 (the interval), got \"16\"", "");
}

/* A wrong label disables its type and is reported; the other type is scraped as usual. */
TEST_WITH(wrong_labels, setup, teardown)
{
    static const struct {
        const char *name, *value, *want;
    } rows[] = {
        {"__profile_memory_enabled__", "yes", "expected \"true\" or \"false\", got \"yes\""},
        {"__profile_memory_enabled__", "True", "expected \"true\" or \"false\", got \"True\""},
        {"__profile_memory_port__", "99999", "expected a port from 1 to 65535, got \"99999\""},
        {"__profile_memory_port__", "0", "expected a port from 1 to 65535, got \"0\""},
        {"__profile_memory_port__", "80:80", "expected a port"},
        {"__profile_memory_port__", "-1", "expected a port"},
        {"__profile_memory_port__", " 80", "expected a port"},
        {"__profile_memory_port__", "http", "expected a port"},
        {"__profile_memory_scheme__", "ftp", "expected \"http\" or \"https\", got \"ftp\""},
        {"__profile_memory_interval__", "soon", "expected a duration from 1s to 1d, got \"soon\""},
        {"__profile_memory_interval__", "999ms", "expected a duration from 1s to 1d"},
        {"__profile_memory_interval__", "0", "expected a duration from 1s to 1d"},
        {"__profile_memory_interval__", "25h", "expected a duration from 1s to 1d"},
        {"__profile_memory_interval__", "15", "expected a duration from 1s to 1d"},
        {"__profile_memory_timeout__", "16s", "expected a duration from 1ms to 15s, got \"16s\""},
        {"__profile_memory_timeout__", "0s", "expected a duration from 1ms to 15s"},
        {"__profile_memory_seconds__", "5", "expected no such label: the type does not sample"},
        {"__profile_memory_path__", "/a b", "invalid path: byte 0x20"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[4096] = "";
        struct err err = ERR_INIT;
        SCOPED(target) *t = make(*state, LABELS(rows[i].name, rows[i].value), NULL, &err);
        CHECK_STR(err.msg, "", rows[i].name);
        assert_non_null(t);
        describe(t, got, sizeof(got));
        CHECK_STR(got, CPU_LINE, rows[i].value);
        CHECK_INT(target_problem_count(t), 1, rows[i].value);
        const char *type;
        const char *sentence = target_problem(t, 0, &type);
        CHECK_CONTAINS(sentence, rows[i].want, rows[i].value);
        CHECK_CONTAINS(sentence, "profile type memory: ", rows[i].value);
        if (strcmp(rows[i].name, "__profile_memory_path__") != 0) {
            CHECK_CONTAINS(sentence, rows[i].name, rows[i].value);
        }
        CHECK_STR(type, "memory", rows[i].value);
    }
}

TEST_WITH(wrong_labels_of_sampling_types, setup, teardown)
{
    static const struct {
        const char *labels[4], *want;
    } rows[] = {
        {{"__profile_process_cpu_seconds__", "15"},
         "expected whole seconds from 1 to 14 (the interval minus 1), got \"15\""},
        {{"__profile_process_cpu_seconds__", "0"}, "expected whole seconds from 1 to 14"},
        {{"__profile_process_cpu_seconds__", "1500ms"}, "expected whole seconds from 1 to 14"},
        {{"__profile_process_cpu_seconds__", "99999999999999999999"}, "expected whole seconds"},
        {{"__profile_process_cpu_interval__", "1s"}, "expected a duration from 2s to 1d"},
        {{"__scrape_interval__", "1s"},
         "label __scrape_interval__: expected an interval of at least 2s, got \"1s\""},
        {{"__scrape_interval__", "10s", "__profile_process_cpu_seconds__", "10"},
         "expected whole seconds from 1 to 9"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *labels[6] = {NULL};
        memcpy(labels, rows[i].labels, sizeof(rows[i].labels));
        struct err err = ERR_INIT;
        SCOPED(target) *t = make(*state, labels, NULL, &err);
        assert_non_null(t);
        CHECK_INT(target_scrape_count(t), 1, rows[i].want);
        CHECK_STR(target_scrape_type(t, 0)->key, "memory", rows[i].want);
        const char *type;
        CHECK_INT(target_problem_count(t), 1, rows[i].want);
        CHECK_CONTAINS(target_problem(t, 0, &type), rows[i].want, rows[i].want);
        CHECK_STR(type, "process_cpu", rows[i].want);
    }
}

/* The configured seconds are not extended by a label, and need a long enough interval. */
TEST_ON(struct fixture *f, seconds_that_were_given)
{
    f->types[CPU].enabled = false;
    f->types[LONG].enabled = true;
    check(f, LABELS("__profile_long_interval__", "1m"),
          MEMORY_LINE "\nhttp://10.1.2.3:80/long?seconds=5 60000/15000");
    struct err err = ERR_INIT;
    SCOPED(target) *t = make(f, LABELS("__profile_long_interval__", "5s"), NULL, &err);
    const char *type;
    CHECK_INT(target_problem_count(t), 1, "too short");
    CHECK_CONTAINS(target_problem(t, 0, &type), "expected a duration from 6s to 1d, got \"5s\"",
                   "too short");
}

/* A type that the configuration disables may have no time to sample. */
TEST_ON(struct fixture *f, enabled_without_time)
{
    f->types[FGPROF].interval_ms = 1000;
    f->types[FGPROF].seconds = 0;
    struct err err = ERR_INIT;
    struct target *t = make(f, LABELS("__profile_fgprof_enabled__", "true"), NULL, &err);
    const char *type;
    CHECK_INT(target_problem_count(t), 1, "no time");
    CHECK_STR(target_problem(t, 0, &type),
              "profile type fgprof: label __profile_fgprof_enabled__: expected an interval of at "
              "least 2s, got \"1s\"",
              "no time");
    target_unref(t);
    check(f, LABELS("__profile_fgprof_enabled__", "true", "__profile_fgprof_interval__", "5s"),
          MEMORY_LINE "\n" CPU_LINE "\nhttp://10.1.2.3:80/fgprof?seconds=4 5000/9000");
}

/* A wrong setting for all types refuses the target. */
TEST_WITH(wrong_for_all, setup, teardown)
{
    static const struct {
        const char *labels[4], *want;
    } rows[] = {
        {{"__scrape_interval__", "x"},
         "label __scrape_interval__: expected a duration from 1s to 1d, got \"x\""},
        {{"__scrape_interval__", "500ms"}, "label __scrape_interval__: expected a duration"},
        {{"__scrape_timeout__", "16s"},
         "label __scrape_timeout__: expected a duration from 1ms to 15s, got \"16s\""},
        {{"__scrape_interval__", "20s", "__scrape_timeout__", "21s"},
         "label __scrape_timeout__: expected a duration from 1ms to 20s, got \"21s\""},
        {{"__scrape_timeout__", "-1s"}, "label __scrape_timeout__: expected a duration"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *labels[6] = {NULL};
        memcpy(labels, rows[i].labels, sizeof(rows[i].labels));
        struct err err = ERR_INIT;
        assert_null(make(*state, labels, NULL, &err));
        CHECK_CONTAINS(err.msg, rows[i].want, rows[i].want);
    }
}

/* Without any type left, the target is refused with the first reason. */
TEST_ON(struct fixture *f, nothing_left)
{
    f->types[CPU].enabled = false;
    struct err err = ERR_INIT;
    assert_null(make(f, LABELS("__profile_memory_port__", "99999"), NULL, &err));
    CHECK_STR(err.msg,
              "profile type memory: label __profile_memory_port__: expected a port from 1 to "
              "65535, got \"99999\"",
              "refused");
}

TEST_WITH(unknown_types, setup, teardown)
{
    struct err err = ERR_INIT;
    SCOPED(target) *t = make(*state,
                             LABELS("__profile_memroy_port__", "1", "__profile_x_enabled__", "true",
                                    "__profile_other__", "kept"),
                             NULL, &err);
    assert_non_null(t);
    const char *type;
    CHECK_INT(target_problem_count(t), 2, "problems");
    CHECK_STR(target_problem(t, 0, &type),
              "label __profile_memroy_port__: the job has no profile type \"memroy\"; did you mean "
              "\"memory\"?",
              "typing error");
    CHECK_STR(type, "unknown", "type");
    CHECK_STR(target_problem(t, 1, &type),
              "label __profile_x_enabled__: the job has no profile type \"x\"", "unknown");
    CHECK_INT(target_scrape_count(t), 2, "scrapes");
}

/* However many labels a pod has, the reported problems are bounded. */
TEST_ON(struct fixture *f, many_unknown_types)
{
    labels_builder_reset(f->b, NULL);
    labels_builder_set_str(f->b, "__address__", "10.1.2.3:80");
    for (int i = 0; i < 500; i++) {
        char name[64];
        snprintf(name, sizeof(name), "__profile_t%d_port__", i);
        labels_builder_set_str(f->b, name, "x");
    }
    struct err err = ERR_INIT;
    SCOPED(target) *t = target_make(NULL, 0, &f->job, f->b, NULL, &err);
    assert_non_null(t);
    CHECK_INT(target_problem_count(t), 8, "problems");
    CHECK_INT(target_scrape_count(t), 2, "scrapes");
}

/* The host of a pod is its own, whatever port and scheme its labels set. */
TEST_ON(struct fixture *f, host_stays)
{
    f->types[CPU].enabled = false;
    struct err err = ERR_INIT;
    struct target *t =
        make(f, LABELS("__profile_memory_port__", "6060", "__profile_memory_scheme__", "https"),
             "10.1.2.3", &err);
    assert_non_null(t);
    CHECK_STR(target_address(t, 0), "10.1.2.3:6060", "address");
    target_unref(t);
    static const char *const tricks[] = {"80@169.254.169.254", "80/x", "1:2", "[::1]:80", "6060."};
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        err_clear(&err);
        assert_null(make(f, LABELS("__profile_memory_port__", tricks[i]), "10.1.2.3", &err));
        CHECK_CONTAINS(err.msg, "expected a port", tricks[i]);
    }
    err_clear(&err);
    assert_null(make(f, LABELS("__address__", "10.9.9.9:1", "__profile_memory_port__", "80"),
                     "10.1.2.3", &err));
    CHECK_CONTAINS(err.msg, "is not the pod's own", "foreign");
}

TEST_ON(struct fixture *f, addresses)
{
    f->types[CPU].enabled = false;
    static const struct {
        const char *address, *port, *scheme, *want, *process;
    } rows[] = {
        {"[0::5]:80", "6060", "", "[0::5]:6060", "[::5]:6060"},
        {"::5", "", "https", "[::5]:443", "[::5]:443"},
        {"WEB", "", "https", "WEB:443", "web:443"},
        {"web", "7", "https", "web:7", "web:7"},
        {"web:81", "", "https", "web:81", "web:81"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(target) *t = make(f,
                                 LABELS("__address__", rows[i].address, "__profile_memory_port__",
                                        rows[i].port, "__profile_memory_scheme__", rows[i].scheme),
                                 NULL, &err);
        CHECK_STR(err.msg, "", rows[i].address);
        assert_non_null(t);
        CHECK_STR(target_address(t, 0), rows[i].want, rows[i].address);
        CHECK_STR(target_process(t, 0), rows[i].process, rows[i].address);
    }
    struct address longest;
    char host[256];
    memset(host, 'a', sizeof(host));
    host[255] = '\0';
    assert_true(address_parse(sv_from(host), 1, &longest, NULL));
    address_set_port(&longest, 65535);
    CHECK_INT(strlen(longest.text), 255 + 6, "longest");
}

/* Settings are not part of the series; the path used is. */
TEST_ON(struct fixture *f, series)
{
    struct err err = ERR_INIT;
    SCOPED(target) *t =
        make(f,
             LABELS("__profile_memory_path__", "/own", "__profile_memory_port__", "6060",
                    "__scrape_interval__", "30s", "__scrape_timeout__", "1s", "app", "x",
                    "__profile_process_cpu_enabled__", "false", "__profile_nope_port__", "1"),
             NULL, &err);
    assert_non_null(t);
    SCOPED(labels) *l = target_series(t, 0, f->b);
    SCOPED(buf) text = testing_buf(4096);
    testing_labels_format(l, &text);
    CHECK_STR(text.data,
              "{__address__=\"10.1.2.3:6060\", __name__=\"memory\", __profile_path__=\"/own\", "
              "__scheme__=\"http\", app=\"x\", instance=\"10.1.2.3:6060\", "
              "service_name=\"unspecified\"}",
              "series");
}

/* A target with the name of a type gets the settings of that type. */
TEST_ON(struct fixture *f, carried_name)
{
    check(f, LABELS("__name__", "memory", "__profile_memory_port__", "6060"),
          "http://10.1.2.3:6060/allocs 15000/10000");
    check(f, LABELS("__name__", "memory", "__profile_memory_enabled__", "false"), "");
    struct err err = ERR_INIT;
    assert_null(make(f, LABELS("__name__", "memory", "__profile_memory_port__", "x"), NULL, &err));
    CHECK_CONTAINS(err.msg, "profile type memory", "refused");
}
