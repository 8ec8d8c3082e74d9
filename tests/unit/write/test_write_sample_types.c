/* Profiles for servers that store only the sample types of a mapping: the mapping that is sent, the
 * language, and the profiles that are refused because nothing of them would be stored. */
#include "tests/unit/lib/testing.h"

#include "pprof/gzip.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/write/requests.h"
#include "write/protocols/sample_types.h"

#define DEEPFLOW "http://d/api/v1/profile"
#define PYROSCOPE "http://p:4040"

/* ---- the mapping ----------------------------------------------------------------------------- */

#define MEMORY                                                                                     \
    "{\"alloc_objects\":{\"units\":\"objects\"},\"alloc_space\":{\"units\":\"bytes\"},"            \
    "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"                       \
    "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}"
#define LOCKS(of)                                                                                  \
    "{\"contentions\":{\"display-name\":\"" of "_count\",\"units\":\"lock_samples\"},"             \
    "\"delay\":{\"display-name\":\"" of "_duration\",\"units\":\"lock_nanoseconds\"}}"
#define GOROUTINES                                                                                 \
    "{\"goroutine\":{\"display-name\":\"goroutines\",\"units\":\"goroutines\","                    \
    "\"aggregation\":\"average\"}}"
#define FGPROF                                                                                     \
    "{\"samples\":{\"display-name\":\"fgprof_samples\"},\"time\":{\"display-name\":\"fgprof\"}}"
#define SAMPLES "{\"display-name\":\"cpu\",\"units\":\"samples\",\"sampled\":true}"
#define ALLOC "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"

TEST(test_types_of_each_profile)
{
    static const struct {
        const char *name, *types, *want;
        size_t stored;
    } rows[] = {
        /* Go */
        {"memory", ALLOC, MEMORY, 4},
        {"mutex", "contentions/count delay/nanoseconds", LOCKS("mutex"), 2},
        {"block", "contentions/count delay/nanoseconds", LOCKS("block"), 2},
        {"goroutine", "goroutine/count", GOROUTINES, 1},
        {"fgprof", "samples/count time/nanoseconds", FGPROF, 2},
        {"threadcreate", "threadcreate/count", "{\"threadcreate\":{}}", 1},
        {"process_cpu", "samples/count cpu/nanoseconds", "", 2},
        /* Others */
        {"process_cpu", "samples/count", "", 1},
        {"process_cpu", "cpu/nanoseconds", "{\"cpu\":{}}", 1},
        {"process_cpu", "sample/count cpu/nanoseconds", "{\"sample\":" SAMPLES "}", 1},
        {"process_cpu", "samples/count cpu/nanoseconds wall/nanoseconds",
         "{\"samples\":" SAMPLES ",\"wall\":{}}", 2},
        {"wall", "sample/count wall/nanoseconds",
         "{\"sample\":{\"display-name\":\"wall_samples\"},\"wall\":{}}", 2},
        {"wall", "samples/count", "{\"samples\":{\"display-name\":\"wall\"}}", 1},
        {"memory", "objects/count space/bytes",
         "{\"objects\":{\"units\":\"objects\"},\"space\":{}}", 2},
        {"exceptions", "exception-samples/count", "{\"exception-samples\":{}}", 1},
        {"locks", "contentions/count",
         "{\"contentions\":{\"display-name\":\"mutex_count\","
         "\"units\":\"lock_samples\"}}",
         1},
        {"", "samples/count", "", 1},
        {"memory", "", "", 0},
        {"x", "a\"b/count", "{\"a\\\"b\":{}}", 1},
        {"x", "\xff/count ok/count", "{\"ok\":{}}", 1},
        {"x", "\xff/count", "", 0},
        {"x", "a/count a/bytes", "{\"a\":{}}", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pprof_value_type types[8];
        struct sv rest = sv_from(rows[i].types);
        struct sv word;
        size_t n = 0;
        SCOPED(buf) out = testing_buf(4096);
        while (pprof_word(&rest, ' ', &word)) {
            assert_true(sv_cut(word, '/', &types[n].type_text, &types[n].unit_text));
            n++;
        }
        CHECK_INT(sample_types_config(sv_from(rows[i].name), types, n, &out), rows[i].stored,
                  rows[i].types);
        CHECK_STR(out.data != NULL ? out.data : "", rows[i].want, rows[i].types);
    }
}

TEST(test_too_long_for_a_name)
{
    char text[SAMPLE_TYPE_MAX + 2];
    memset(text, 'a', sizeof(text));
    struct pprof_value_type type = {.type_text = {text, SAMPLE_TYPE_MAX}};
    SCOPED(buf) out = testing_buf(4096);
    CHECK_INT(sample_types_config(SV("x"), &type, 1, &out), 1, "as long as it may be");
    type.type_text.n++;
    CHECK_INT(sample_types_config(SV("x"), &type, 1, &out), 0, "longer");
    type.type_text = (struct sv){"a\0b", 3};
    CHECK_INT(sample_types_config(SV("x"), &type, 1, &out), 0, "with a NUL");
}

/* A profile that is not looked at is described as Go's of that name. */
TEST(test_types_by_name_alone)
{
    static const struct {
        const char *name;
        const char *want; /* NULL: no built-in type */
    } rows[] = {
        {"memory", MEMORY},
        {"mutex", LOCKS("mutex")},
        {"block", LOCKS("block")},
        {"goroutine", GOROUTINES},
        {"fgprof", FGPROF},
        {"process_cpu", ""},
        {"wall", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) out = testing_buf(4096);
        CHECK_INT(sample_types_builtin(sv_from(rows[i].name), &out), rows[i].want != NULL,
                  rows[i].name);
        CHECK_STR(out.data != NULL ? out.data : "", rows[i].want != NULL ? rows[i].want : "",
                  rows[i].name);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static const struct pprof_row one_row[] = {{"main", "", {1, 2, 3, 4}}};

static void send(struct sent *s, const char *url, const char *name, const char *data, size_t n)
{
    struct config_endpoint e = {.url = url, .protocol = &protocol_ingest.config};
    struct labels *l = testing_labels(table, "service_name", "a", "__name__", name, NULL);
    send_profile(s, &e, profile_of(l, data, n), NULL);
}

/* Node's own profiles: `wall` and `memory`, gzip or plain, for both servers. */
TEST(test_request_of_another_runtime)
{
    static const struct {
        const char *name, *types, *want;
    } rows[] = {
        {"wall", "sample/count wall/nanoseconds", "\"wall\":{}}\r\n"},
        {"memory", "objects/count space/bytes", "\"space\":{}}\r\n"},
        {"threadcreate", "threadcreate/count", "{\"threadcreate\":{}}\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pprof_spec spec = {.types = rows[i].types, .file = "/app/server.js"};
        SCOPED(buf) plain = pprof_make(&spec, one_row, 1);
        SCOPED(scratch) *scratch = scratch_new();
        struct sv packed;
        assert_true(gzip_deflate(scratch, (struct sv){plain.data, plain.len}, &packed));
        struct sent s;
        send(&s, DEEPFLOW, rows[i].name, plain.data, plain.len);
        CHECK_INT(s.status, REQUEST_OK, rows[i].name);
        CHECK_CONTAINS(s.request.tail.data, rows[i].want, "plain");
        CHECK_CONTAINS(s.request.url.data, "&spyName=nodespy&", rows[i].name);
        release(&s);
        send(&s, PYROSCOPE, rows[i].name, packed.p, packed.n);
        CHECK_CONTAINS(s.request.tail.data, rows[i].want, "gzip");
        CHECK_CONTAINS(s.request.url.data, "&spyName=nodespy&", rows[i].name);
        release(&s);
    }
}

/* A profile of which nothing would be stored is refused before it is sent to a DeepFlow; a
 * Pyroscope judges for itself. */
TEST(test_what_deepflow_would_not_store)
{
    static const struct {
        const char *id, *hex;
        enum request_status want;
    } rows[] = {
        {"no sample types", "3200", REQUEST_BAD_TYPES},
        {"no name",
         "0a0012021200"
         "3200",
         REQUEST_BAD_TYPES},
        {"not UTF-8",
         "0a020801"
         "12021200"
         "3200"
         "3201ff",
         REQUEST_BAD_TYPES},
        {"no samples",
         "0a020801"
         "3200"
         "320161",
         REQUEST_EMPTY},
        {"one of each",
         "0a020801"
         "12021200"
         "3200"
         "320161",
         REQUEST_OK},
        {"no profile", "68656170", REQUEST_BAD_TYPES},
        {"cut gzip", "1f8b0800000000000003", REQUEST_BAD_TYPES},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes data = from_hex(rows[i].hex);
        struct sent s;
        send(&s, DEEPFLOW, "mutex", data.data, data.n);
        CHECK_INT(s.status, rows[i].want, rows[i].id);
        release(&s);
        send(&s, PYROSCOPE, "mutex", data.data, data.n);
        CHECK_INT(s.status, REQUEST_OK, rows[i].id);
        release(&s);
    }
}

/* ---- languages ------------------------------------------------------------------------------- */

TEST(test_languages)
{
    static const struct {
        const char *file, *spy;
    } rows[] = {
        {"/usr/lib/go/src/net/http/server.go", "gospy"},
        {"App.java", "javaspy"},
        {"/app/views.py", "pyspy"},
        {"/app/models/user.rb", "rbspy"},
        {"/var/www/index.php", "phpspy"},
        {"Program.cs", "dotnetspy"},
        {"node:internal/timers", "nodespy"},
        {"file:///app/dist/main.mjs", "nodespy"},
        {"src/main.rs", "gospy"}, /* DeepFlow has no name for it */
        {"", "gospy"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[64];
        (void)snprintf(want, sizeof(want), "&spyName=%s&", rows[i].spy);
        struct pprof_spec spec = {.types = "samples/count", .file = rows[i].file};
        SCOPED(buf) plain = pprof_make(&spec, one_row, 1);
        struct sent s;
        send(&s, DEEPFLOW, "process_cpu", plain.data, plain.len);
        CHECK_CONTAINS(s.request.url.data, want, rows[i].file);
        release(&s);
    }
}

int main(void)
{
    return testing_run("tests", setup, teardown);
}
