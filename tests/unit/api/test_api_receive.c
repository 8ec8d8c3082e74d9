/* The APIs that take profiles, over HTTP: recorded exchanges of the real servers are replayed, and
 * what they do not show is asked for.
 */
#include <stdlib.h>

#include "api/served.h"
#include "api/tables.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "server/routes.h"
#include "tests/unit/lib/receive_rig.h"
#include "tests/unit/lib/recording.h"
#include "tests/unit/lib/server_client.h"

#define EXCHANGES "tests/unit/data/receive_exchanges.txt"
#define BODY_MAX ((uint64_t)4 << 20)
#define PIECES_MAX 16

struct fixture {
    struct receive_rig rig;
    struct server *server;
    struct served served;
    struct server_options options;
};

static void start_with(struct fixture *f, const char *receive, const char *write)
{
    struct err err = ERR_INIT;
    receive_rig_start(&f->rig, receive, write);
    static const struct route *const routes[] = {API_TABLES, NULL};
    static const char *const prefixes[] = {API_PREFIXES, NULL};
    f->served = (struct served){.receiver = f->rig.receive, .version = "1"};
    f->options = (struct server_options){
        .name = "receive",
        .listen = "127.0.0.1:0",
        .sets = ROUTE_RECEIVE,
        .max_connections = 64,
        .max_connections_per_address = 64,
        .request_timeout_ms = 60000,
        .answer_timeout_ms = 60000,
        .idle_timeout_ms = 60000,
        .bodies_max_bytes = 64 << 20,
        .receive = {.threads = 2,
                    .waiting_max = 8,
                    .timeout_ms = 60000,
                    .bytes_max = 8 * BODY_MAX,
                    .body_max = BODY_MAX},
        .metrics = f->rig.metrics,
        .log = testing_log(f->rig.log),
        .routes = routes,
        .api_prefixes = prefixes,
        .served = &f->served,
    };
    f->server = server_start(&f->options, &err);
    CHECK_STR(err.msg, "", "server_start");
    assert_non_null(f->server);
}

static void start(struct fixture *f)
{
    start_with(f, "{max_age: 0s}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
}

static void stop(struct fixture *f)
{
    server_stop(f->server);
    receive_rig_done(&f->rig);
}
SCOPED_VALUE(fixture, stop)

struct got {
    int status;
    char *text; /* all of it */
    const char *body;
};

static void got_done(struct got *a)
{
    free(a->text);
}
SCOPED_VALUE(got, got_done)

/* headers: lines that end in \r\n. */
static struct got ask(const struct fixture *f, const char *method, const char *target,
                      const char *headers, struct sv body)
{
    struct got a;
    int fd = client_dial(f->server);
    SCOPED(buf) in = testing_buf(2 * BODY_MAX);
    struct buf out = testing_buf(REPLY_MAX);
    buf_printf(&in,
               "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
               method, target, headers, body.n);
    buf_append(&in, body.p, body.n);
    assert_true(buf_ok(&in));
    size_t sent = 0;
    while (sent < in.len) {
        ssize_t n = send(fd, in.data + sent, in.len - sent, MSG_NOSIGNAL);
        if (n <= 0) {
            break; /* refused before the end */
        }
        sent += (size_t)n;
    }
    client_read_all(fd, &out);
    close(fd);
    a.text = buf_take(&out, NULL);
    assert_non_null(a.text);
    assert_true(strncmp(a.text, "HTTP/1.1 ", 9) == 0);
    a.status = atoi(a.text + 9);
    a.body = strstr(a.text, "\r\n\r\n");
    a.body = a.body == NULL ? "" : a.body + 4;
    return a;
}

static uint64_t count(const struct fixture *f, const char *protocol, const char *result)
{
    char text[128];
    (void)snprintf(text, sizeof(text),
                   "profpull_receive_profiles_total{protocol=\"%s\",result=\"%s\"}", protocol,
                   result);
    return testing_metric(f->rig.metrics, text);
}

/* ---- recorded exchanges ---------------------------------------------------------------------- */

struct piece {
    struct sv name;
    struct sv hex;
};

static struct piece pieces[PIECES_MAX];
static size_t n_pieces;

static void put_hex(struct sv hex, struct buf *out)
{
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        char digits[3] = {hex.p[i], hex.p[i + 1], '\0'};
        buf_putc(out, (char)strtoul(digits, NULL, 16));
    }
}

static struct sv piece_of(struct sv name)
{
    for (size_t i = 0; i < n_pieces; i++) {
        if (sv_eq(pieces[i].name, name)) {
            return pieces[i].hex;
        }
    }
    fail_msg("no piece %.*s", SV_ARG(name));
    return SV("");
}

/* Hexadecimal digits with <names> of pieces. */
static void put_template(struct sv v, struct buf *out)
{
    struct sv head;
    struct sv name;
    while (sv_cut(v, '<', &head, &v)) {
        put_hex(head, out);
        assert_true(sv_cut(v, '>', &name, &v));
        put_hex(piece_of(name), out);
    }
    put_hex(v, out);
}

enum {
    COL_NAME,
    COL_METHOD,
    COL_TARGET,
    COL_HEADERS,
    COL_BODY,
    COL_STATUS,
    COL_ANSWER,
    COL_OUR_STATUS,
    COL_OUR_ANSWER,
    COL_WHY,
    COLUMNS
};

struct totals {
    size_t same;
    size_t other;
};

static void replay(const struct fixture *f, const struct sv col[COLUMNS], struct totals *totals)
{
    char row[128];
    char method[16];
    char target[512];
    uint64_t status;
    bool differs = col[COL_WHY].n > 0;
    (void)snprintf(row, sizeof(row), "%.*s", SV_ARG(col[COL_NAME]));
    (void)snprintf(method, sizeof(method), "%.*s", SV_ARG(col[COL_METHOD]));
    (void)snprintf(target, sizeof(target), "%.*s", SV_ARG(col[COL_TARGET]));
    SCOPED(buf) headers = testing_buf(4096);
    SCOPED(buf) body = testing_buf(BODY_MAX);
    SCOPED(buf) want = testing_buf(65536);
    struct sv rest = col[COL_HEADERS];
    struct sv line;
    while (pprof_word(&rest, '|', &line)) {
        buf_printf(&headers, "%.*s\r\n", SV_ARG(line));
    }
    buf_puts(&headers, "");
    put_template(col[COL_BODY], &body);
    SCOPED(got)
    a = ask(f, method, target, headers.len > 0 ? headers.data : "",
            (struct sv){body.data, body.len});
    assert_true(parse_u64(col[differs ? COL_OUR_STATUS : COL_STATUS], 999, &status));
    CHECK_INT(a.status, status, row);
    struct sv text = col[differs ? COL_OUR_ANSWER : COL_ANSWER];
    buf_append(&want, text.p, text.n);
    CHECK_CONTAINS(a.body, want.len > 0 ? want.data : "", row);
    totals->same += !differs;
    totals->other += differs;
}

static char *read_exchanges(void)
{
    struct buf text = testing_read_file(EXCHANGES);
    return buf_take(&text, NULL);
}

FIXTURE(fixture, start, fixture_leave)

/* Each request gets the status and the body that were recorded; where a line of the file says so,
 * what it says instead, and for its reason. */
TEST_ON(struct fixture *f, recorded_exchanges)
{
    struct totals totals = {0, 0};
    SCOPED_MEMORY char *text = read_exchanges();
    struct sv rest = sv_from(text);
    struct sv line;
    testing_log_expect(f->rig.log, "pushed profile refused");
    n_pieces = 0;
    while (pprof_word(&rest, '\n', &line)) {
        struct sv col[COLUMNS] = {{"", 0}};
        struct sv columns = line;
        if (line.n == 0 || line.p[0] == '#') {
            continue;
        }
        for (size_t i = 0; i < COLUMNS; i++) {
            col[i] = columns;
            if (!sv_cut(columns, '\t', &col[i], &columns)) {
                columns = SV("");
            }
        }
        if (line.p[0] == '@') {
            assert_true(n_pieces < PIECES_MAX);
            pieces[n_pieces++] = (struct piece){sv_skip(col[0], 1), col[1]};
        } else {
            replay(f, col, &totals);
        }
    }
    CHECK_INT(totals.same, 50, "equal answers");
    CHECK_INT(totals.other, 35, "deliberate differences");
}

/* ---- push ------------------------------------------------------------------------------------ */

#define PUSH "/push.v1.PusherService/Push"
#define PROTO "Content-Type: application/proto\r\n"

/* Appends a series with one sample. labels: "a=b c=d". */
static void put_series(struct buf *out, const char *labels, const struct buf *profile)
{
    struct sv rest = sv_from(labels);
    struct sv word;
    struct sv name;
    struct sv value;
    SCOPED(buf) series = testing_buf(BODY_MAX);
    SCOPED(buf) part = testing_buf(BODY_MAX);
    while (pprof_word(&rest, ' ', &word)) {
        assert_true(sv_cut(word, '=', &name, &value));
        put_msg(&part, 1, name.p, name.n);
        put_msg(&part, 2, value.p, value.n);
        put_sub(&series, 1, &part);
    }
    put_msg(&part, 1, profile->data, profile->len);
    put_sub(&series, 2, &part);
    put_sub(out, 1, &series);
}

TEST(push_keeps_the_good_ones)
{
    SCOPED(fixture) f;
    SCOPED(buf) good = receive_rig_profile(clock_wall_ns());
    SCOPED(buf) old = receive_rig_profile(clock_wall_ns() - 3 * 3600 * NS_PER_S);
    start_with(&f, "{max_age: 1h}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(f.rig.log, "pushed profile refused");
    SCOPED(buf) request = testing_buf(BODY_MAX);
    put_series(&request, "__name__=process_cpu service_name=a", &old);
    put_series(&request, "__name__=process_cpu service_name=b", &good);
    put_series(&request, "service_name=c", &good);
    SCOPED(got) a = ask(&f, "POST", PUSH, PROTO, (struct sv){request.data, request.len});
    CHECK_INT(a.status, 400, "");
    /* The first error. */
    CHECK_CONTAINS(a.body,
                   "{\"code\":\"invalid_argument\",\"message\":\"profile with labels "
                   "'{__name__=\\\"process_cpu\\\", service_name=\\\"a\\\"}' is outside of "
                   "ingestion window (profile timestamp: ",
                   "");
    CHECK_INT(count(&f, "push", "accepted"), 1, "");
    CHECK_INT(count(&f, "push", "bad_time"), 1, "");
    CHECK_INT(count(&f, "push", "bad_labels"), 1, "");
    CHECK_INT(writer_ledger(f.rig.writer, 0).accepted, 1, "");
}

TEST(a_full_queue_is_503)
{
    SCOPED(fixture) f;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    struct sv raw = {profile.data, profile.len};
    start_with(&f, "{}", "[{name: a, url: \"http://127.0.0.1:1\", queue: {max_bytes: 1KiB}}]");
    testing_log_expect(f.rig.log, "pushed profile refused");
    SCOPED(buf) request = testing_buf(BODY_MAX);
    put_series(&request, "__name__=memory service_name=a", &profile);
    struct got a = ask(&f, "POST", PUSH, PROTO, (struct sv){request.data, request.len});
    CHECK_INT(a.status, 503, "push");
    CHECK_CONTAINS(a.body, "{\"code\":\"unavailable\",\"message\":\"the queues of all", "push");
    got_done(&a);
    a = ask(&f, "POST", "/ingest?name=a", "", raw);
    CHECK_INT(a.status, 503, "ingest");
    CHECK_CONTAINS(a.body, "{\"code\":\"unavailable\",\"message\":\"the queues of all", "ingest");
    got_done(&a);
    a = ask(&f, "POST", "/api/0/profiles?service=a&type=heap", "", raw);
    CHECK_INT(a.status, 503, "profefe");
    CHECK_CONTAINS(a.body, "{\"code\":503,\"error\":\"the queues of all", "profefe");
    got_done(&a);
}

/* Mistakes in the query of profefe's POST are shown as profefe quotes them. */
TEST(profefe_queries_that_are_refused)
{
    static const struct text_case rows[] = {
        {"/api/0/profiles?service=a&type=heap&labels=a%3D1,b%3D%25zz",
         "bad request: bad \\\"labels\\\" \\\"a=1,b=%zz\\\": invalid URL escape \\\"%zz\\\""},
        {"/api/0/profiles?service=a&type=heap&labels=%22%3D%25",
         "bad request: bad \\\"labels\\\" \\\"\\\\\\\"=%\\\": invalid URL escape \\\"%\\\""},
        {"/api/0/profiles?service=a&type=heap&created_at=2026-11-22T00:30:00Z",
         "bad request: bad \\\"created_at\\\" \\\"2026-11-22T00:30:00Z\\\": time in unsupported "
         "format \\\"2026-11-22T00:30:00Z\\\""},
        {"/api/0/profiles?type=heap", "bad request: missing \\\"service\\\""},
        {"/api/0/profiles?service=a", "bad request: unknown profile type"},
    };
    SCOPED(fixture) f;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    start_with(&f, "{}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(f.rig.log, "pushed profile refused");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[512];
        (void)snprintf(want, sizeof(want), "{\"code\":400,\"error\":\"%s\"}\n", rows[i].want);
        SCOPED(got) a = ask(&f, "POST", rows[i].text, "", (struct sv){profile.data, profile.len});
        CHECK_INT(a.status, 400, rows[i].text);
        CHECK_STR(a.body, want, rows[i].text);
    }
    SCOPED(buf) many = testing_buf(BODY_MAX);
    buf_puts(&many, "/api/0/profiles?service=a&type=heap&labels=");
    for (int i = 0; i < 257; i++) {
        buf_printf(&many, "a%d,", i);
    }
    SCOPED(got) a = ask(&f, "POST", many.data, "", (struct sv){profile.data, profile.len});
    CHECK_INT(a.status, 400, "labels");
    CHECK_CONTAINS(a.body, "bad request: more than 256 labels", "labels");
}

TEST_ON(struct fixture *f, push_speaks_connect)
{
    static const struct {
        const char *headers;
        int status;
        const char *part;
    } rows[] = {
        {PROTO "Connect-Protocol-Version: 2\r\n", 400, "invalid_argument"},
        {PROTO "Connect-Timeout-Ms: x\r\n", 400, "invalid_argument"},
        {PROTO "Connect-Timeout-Ms: 0\r\n", 504, "deadline_exceeded"},
        {PROTO "Content-Encoding: br\r\n", 501, "unimplemented"},
        {PROTO "Content-Encoding: gzip\r\n", 400, "invalid_argument"},
        {"Content-Type: application/json\r\n", 400, "unmarshal message"},
        {"", 415, "Accept-Post: "},
        {"Content-Type: application/proto; charset=utf-8\r\n", 200, ""},
    };
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    SCOPED(buf) request = testing_buf(BODY_MAX);
    put_series(&request, "__name__=process_cpu service_name=a", &profile);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct got a =
            ask(f, "POST", PUSH, rows[i].headers, (struct sv){request.data, request.len});
        CHECK_INT(a.status, rows[i].status, rows[i].headers);
        CHECK_CONTAINS(a.text, rows[i].part, rows[i].headers);
        got_done(&a);
    }
    struct got a = ask(f, "GET", PUSH, PROTO, SV(""));
    CHECK_INT(a.status, 405, "GET");
    CHECK_CONTAINS(a.text, "Allow: POST", "GET");
    got_done(&a);
    CHECK_INT(count(f, "push", "accepted"), 1, "");
}

/* ---- ingest ---------------------------------------------------------------------------------- */

#define FORM "Content-Type: multipart/form-data; boundary=b\r\n"
#define PART(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"

TEST_ON(struct fixture *f, ingest_forms)
{
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    static const struct {
        const char *target, *before, *after;
        int status;
        const char *part;
    } rows[] = {
        /* Without a filename; lines that end in LF. */
        {"/ingest?name=a", "--b\r\n" PART("profile"), "\r\n--b--\r\n", 200, ""},
        {"/ingest?name=a", "--b\n" PART("profile"), "\n--b--\n", 200, ""},
        {"/profile/ingest?name=a", "--b\n" PART("profile"), "\n--b--\n", 200, ""},
        {"/api/v1/profile/ingest?name=a+b%20c", "--b\n" PART("profile"), "\n--b--\n", 200, ""},
        {"/ingest?name=a", "--b\r\n" PART("prev_profile") "x\r\n--b\r\n" PART("profile"),
         "\r\n--b--\r\n", 422, "prev_profile"},
        {"/ingest?name=a", "--b\r\n" PART("prev_profile") "\r\n--b\r\n" PART("profile"),
         "\r\n--b--\r\n", 200, ""},
        {"/ingest?name=a", "--b\r\n" PART("sample_type_config") "[]\r\n--b\r\n" PART("profile"),
         "\r\n--b--\r\n", 422, "sample_type_config"},
        {"/ingest?name=a", "--b\r\n" PART("other"), "\r\n--b--\r\n", 200, ""}, /* nothing to keep */
        {"/ingest?name=a", "--b\r\n" PART("profile"), "", 422, "is cut"},
        {"/ingest?name=a", "--b\r\n" PART("profile") "x", "\r\n--b--\r\n", 422,
         "parsing IngestInput-pprof failed invalid_argument: "},
        {"/ingest?name=a&format=jfr", "--b\r\n" PART("jfr"), "\r\n--b--\r\n", 422, "unknown"},
        {"/ingest?name=a&format=speedscope", "--b\r\n" PART("profile"), "\r\n--b--\r\n", 422,
         "expected near"},
    };
    testing_log_expect(f->rig.log, "pushed profile refused");
    SCOPED(buf) body = testing_buf(BODY_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char row[32];
        (void)snprintf(row, sizeof(row), "row %zu", i);
        buf_clear(&body);
        buf_puts(&body, rows[i].before);
        buf_append(&body, profile.data, profile.len);
        buf_puts(&body, rows[i].after);
        SCOPED(got) a = ask(f, "POST", rows[i].target, FORM, (struct sv){body.data, body.len});
        CHECK_INT(a.status, rows[i].status, row);
        CHECK_CONTAINS(a.body, rows[i].part, row);
    }
    CHECK_INT(count(f, "ingest", "accepted"), 4, "");
    CHECK_INT(count(f, "deepflow", "accepted"), 1, "");
}

/* A recording of one sample, of 10 ms if a hundred are taken in a second, with the context 10. */
static struct recording make_recording(void)
{
    struct recording r;
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "a/B", "run");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10}, 1);
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 10, 0, 0);
    recording_end_chunk(&r);
    return r;
}

TEST_ON(struct fixture *f, ingest_trees_and_speedscope)
{
#define FRAMES                                                                                     \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{"             \
    "\"frames\":[{\"name\":\"a\"}]},\"profiles\":["
#define SAMPLED(name, unit)                                                                        \
    "{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"" unit                                 \
    "\",\"samples\":[[0]],\"weights\":[1]}"
    const struct {
        const char *target, *headers;
        struct sv body;
        int status;
        uint64_t accepted; /* so far */
    } rows[] = {
        {"/ingest?name=a.cpu&format=trie", "", SV("\0\0\1\4main\3\0"), 200, 1},
        {"/ingest?name=a.cpu", "Content-Type: binary/octet-stream+tree\r\n", SV("\0\0\1\4main\3\0"),
         200, 2},
        {"/ingest?name=a.cpu&format=tree", "", SV("\0\0\0"), 200, 2}, /* no stack: ignored */
        {"/ingest?name=a.strange&format=tree", "", SV("\0\0\1\4main\3\0"), 400, 2},
        {"/ingest?name=a%7Bprofile_name=x%7D&format=speedscope", "",
         SV(FRAMES SAMPLED("one", "seconds") "]}"), 200, 3},
        /* Two profiles of one request, each with a label of its own. */
        {"/ingest?name=a.b&format=speedscope", "",
         SV(FRAMES SAMPLED("one", "seconds") "," SAMPLED("two", "bytes") "]}"), 400, 3},
        {"/ingest?name=a&format=speedscope", "",
         SV(FRAMES SAMPLED("one", "seconds") "," SAMPLED("two", "bytes") "]}"), 200, 5},
        {"/ingest?name=a&format=speedscope", "", SV("{}"), 422, 5},
    };
#undef FRAMES
#undef SAMPLED
    testing_log_expect(f->rig.log, "pushed profile refused");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(got) a = ask(f, "POST", rows[i].target, rows[i].headers, rows[i].body);
        CHECK_INT(a.status, rows[i].status, rows[i].target);
        CHECK_INT(count(f, "ingest", "accepted"), rows[i].accepted, rows[i].target);
    }
}

TEST_ON(struct fixture *f, ingest_jfr_and_text)
{
    struct recording r = make_recording();
    struct sv chunk = recording_bytes(&r);
    testing_log_expect(f->rig.log, "pushed profile refused");
    testing_log_expect(f->rig.log, "recording cannot be read completely");
    SCOPED(buf) body = testing_buf(BODY_MAX);
    buf_puts(&body, "--b\r\n" PART("jfr"));
    buf_append(&body, chunk.p, chunk.n);
    buf_puts(&body, "\r\n--b\r\n" PART("labels") "\x12\x03\x08\x01\x12\r\n--b--\r\n");
    struct got a =
        ask(f, "POST", "/ingest?name=a&format=jfr", FORM, (struct sv){body.data, body.len});
    CHECK_INT(a.status, 422, "damaged labels");
    CHECK_CONTAINS(a.body, "labels: ", "damaged labels");
    got_done(&a);
    buf_clear(&body);
    buf_puts(&body, "--b\r\n" PART("jfr"));
    buf_append(&body, chunk.p, chunk.n);
    buf_puts(&body, "\r\n--b\r\n" PART("labels") "\x12\x05\x08\x01\x12\x01x\r\n--b--\r\n");
    a = ask(f, "POST", "/ingest?name=a&format=jfr", FORM, (struct sv){body.data, body.len});
    CHECK_INT(a.status, 200, "form");
    got_done(&a);
    a = ask(f, "POST", "/ingest?name=a&format=jfr", "", chunk);
    CHECK_INT(a.status, 200, "raw");
    got_done(&a);
    a = ask(f, "POST", "/ingest?name=a&format=jfr", "", (struct sv){chunk.p, chunk.n - 1});
    CHECK_INT(a.status, 422, "cut");
    CHECK_CONTAINS(a.body, "chunk 1 at byte 0: ", "cut");
    got_done(&a);
    CHECK_INT(testing_metric(f->rig.metrics, "profpull_receive_extras_total{kind=\"jfr_labels\"}"),
              0, "the destination gets what they say");
    CHECK_INT(testing_metric(f->rig.metrics, "profpull_recordings_profiles_total"), 2, "");
    recording_done(&r);
    a = ask(f, "POST", "/ingest?name=a.strange", "", SV("main 1\n"));
    CHECK_INT(a.status, 400, "type");
    CHECK_CONTAINS(a.body, "unknown type of profile", "type");
    got_done(&a);
    a = ask(f, "POST", "/ingest?name=a.cpu", "", SV("main\n"));
    CHECK_INT(a.status, 422, "count");
    got_done(&a);
    a = ask(f, "POST", "/ingest?name=a.cpu", "", SV("main 2\n"));
    CHECK_INT(a.status, 200, "text");
    got_done(&a);
    CHECK_INT(count(f, "ingest", "accepted"), 3, "");
}

TEST(plain_pprof)
{
    SCOPED(fixture) f;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    struct sv raw = {profile.data, profile.len};
    static const struct {
        const char *target;
        int status;
    } rows[] = {
        {"/v1/pprof?service_name=a&label.pod=b&other=c", 204},
        {"/v1/pprof", 204},
        {"/v1/pprof?label.__name__=x", 204}, /* not the sender's */
        {"/v1/pprof?label.pod=a&label.pod=b", 400},
        {"/v1/pprof?label.=a", 400},
        {"/v1/pprof?label.pod=c", 204}, /* dropped by a rule */
    };
    start_with(&f,
               "{profile_relabel_configs: [{source_labels: [pod], regex: c, action: drop}, "
               "{source_labels: [__name__], regex: process_cpu, action: keep}]}",
               "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(f.rig.log, "pushed profile refused");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(got) a = ask(&f, "POST", rows[i].target, "", raw);
        CHECK_INT(a.status, rows[i].status, rows[i].target);
    }
    struct got a = ask(&f, "POST", "/v1/pprof", "", SV("hello"));
    CHECK_INT(a.status, 400, "");
    got_done(&a);
    CHECK_INT(count(&f, "pprof", "accepted"), 3, "");
    CHECK_INT(count(&f, "pprof", "dropped"), 1, "");
}

/* An inflated body has the memory of the request as its limit. */
TEST_ON(struct fixture *f, bombs)
{
    SCOPED(scratch) *scratch = scratch_new();
    struct sv packed;
    size_t size = (size_t)64 << 20;
    SCOPED_MEMORY char *zeros = testing_memory(size);
    assert_true(gzip_deflate(scratch, (struct sv){zeros, size}, &packed));
    testing_log_expect(f->rig.log, "pushed profile refused");
    struct got a = ask(f, "POST", "/ingest?name=a", "Content-Encoding: gzip\r\n", packed);
    CHECK_INT(a.status, 413, "ingest envelope");
    got_done(&a);
    a = ask(f, "POST", "/ingest?name=a&format=pprof", "", packed);
    CHECK_INT(a.status, 422, "ingest profile");
    CHECK_CONTAINS(a.body, "uncompressed profile payload size exceeds limit of 32MiB", "");
    got_done(&a);
    a = ask(f, "POST", PUSH, PROTO "Content-Encoding: gzip\r\n", packed);
    CHECK_INT(a.status, 429, "push envelope");
    CHECK_CONTAINS(a.body, "resource_exhausted", "");
    got_done(&a);
    a = ask(f, "POST", "/api/0/profiles?service=a&type=cpu", "", packed);
    CHECK_INT(a.status, 413, "profefe");
    got_done(&a);
    /* A million empty lists take far more memory than their text. */
    SCOPED(buf) lists = testing_buf(BODY_MAX);
    buf_puts(&lists, "{\"x\":[");
    for (int i = 0; i < 1000000; i++) {
        buf_puts(&lists, "[],");
    }
    buf_puts(&lists, "[]]}");
    a = ask(f, "POST", PUSH, "Content-Type: application/json\r\n",
            (struct sv){lists.data, lists.len});
    CHECK_INT(a.status, 429, "JSON");
    CHECK_CONTAINS(a.body, "more than 500000 values", "JSON");
    got_done(&a);
}
