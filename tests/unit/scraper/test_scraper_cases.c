/* Known behaviour of Grafana Alloy's scrape loop. Where ours differs, the comment of the test says
 * how. */
#include "tests/unit/scraper/scraper_world.h"

/* gzip of PROFILE */
static const unsigned char GZIP[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0xe3, 0x62, 0xe1, 0x60, 0x14, 0x60, 0x32, 0x62, 0x00, 0x00,
                                     0xef, 0x9b, 0x73, 0x6f, 0x08, 0x00, 0x00, 0x00};

static struct target *try_target(struct world *w, const char *const *labels, struct err *err)
{
    err_clear(err);
    labels_builder_reset(w->b, NULL);
    for (size_t i = 0; labels[i] != NULL; i += 2) {
        labels_builder_set_str(w->b, labels[i], labels[i + 1]);
    }
    return target_make(NULL, 0, &w->jobs[0], w->b, NULL, err);
}
#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A value that is not UTF-8 refuses its target (in Alloy: the whole group); line breaks, tabs and
 * emoji are fine. */
TEST_ON(struct world *w, values_are_utf8)
{
    struct err err = ERR_INIT;
    static const char *const bad[] = {"\xff", "a\xc3(", "\xed\xa0\x80", "\xc0\x80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(try_target(w, LABELS("__address__", "h:1", "v", bad[i]), &err));
        CHECK_CONTAINS(err.msg, "label \"v\" is not valid UTF-8", "");
    }
    static const char *const good[] = {"a\nb", "a\tb", "\U0001f600", "\xc3\xa9", "\x7f"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct target *t = try_target(w, LABELS("__address__", "h:1", "v", good[i]), &err);
        assert_non_null(t);
        CHECK_STR(labels_get(target_labels(t), SV("v")).p, good[i], "as it was");
        target_unref(t);
    }
}

/* Without an address there is no target. */
TEST_ON(struct world *w, no_address)
{
    struct err err = ERR_INIT;
    assert_null(try_target(w, LABELS("v", "1"), &err));
    CHECK_STR(err.msg, "no address", "missing");
    assert_null(try_target(w, LABELS("__address__", "", "v", "1"), &err));
    CHECK_STR(err.msg, "no address", "empty");
}

/* With timeout 1s and interval 2s, types that sample (for one second) get two seconds. */
TEST_ON(struct world *w, timeouts)
{
    for (size_t i = 0; i < 4; i++) {
        w->types[i].interval_ms = 2000;
        w->types[i].timeout_ms = 1000;
        w->types[i].seconds = w->types[i].sampling ? 1 : 0;
        w->types[i].enabled = i != FGPROF;
    }
    set(w, 0, "s", "1", AT("h:1"));
    turn(w, 2000);
    CHECK_INT(w->n_transfers, 3, "types");
    for (size_t i = 0; i < 3; i++) {
        bool cpu = strstr(w->transfers[i].url, "seconds=1") != NULL;
        CHECK_INT(w->transfers[i].timeout_ms, cpu ? 2000 : 1000, w->transfers[i].url);
        succeed(w, &w->transfers[i]);
    }
}

/* Another interval is a new schedule; the same configuration again changes nothing. */
TEST_ON(struct world *w, reconfigured)
{
    set(w, 0, "s", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    succeed(w, t);
    set(w, 0, "s", "1", AT("h:1"));
    struct http_transfer *again = next_start(w);
    CHECK_INT(again->start_ns - t->start_ns, 15 * NS_PER_S, "unchanged");
    succeed(w, again);
    struct config_type types[4];
    memcpy(types, w->types, sizeof(types));
    types[MEMORY].interval_ms = 3000;
    w->jobs[1].types = types;
    struct target *other = make_target(w, 1, "h:1", "v", "1");
    assert_true(engine_set_group(w->e, 0, "s", &other, 1));
    for (int i = 0; i < 4; i++) {
        struct http_transfer *next = next_start(w);
        assert_true(next->start_ns - again->start_ns <= 3 * NS_PER_S);
        again = next;
        succeed(w, next);
    }
    assert_true(engine_set_group(w->e, 0, "s", NULL, 0));
}

/* [A, B] followed by [A] ends B alone; another reserved label keeps A as it is. So does a public
 * one (in Alloy it makes another scrape): only the request counts. */
TEST_ON(struct world *w, groups_are_compared)
{
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 2, "both");
    size_t a = strcmp(w->transfers[0].url, "http://a:1/mem") == 0 ? 0 : 1;
    set(w, 0, "s", "1", AT("a:1"));
    assert_true(w->transfers[1 - a].cancelled);
    assert_true(w->transfers[a].live);
    static const char *const names[] = {"__type__", "foo"};
    for (size_t i = 0; i < 2; i++) {
        struct target *t = make_target(w, 0, "a:1", names[i], "x");
        assert_true(engine_set_group(w->e, 0, "s", &t, 1));
        assert_true(w->transfers[a].live);
        CHECK_INT(w->e->table.n, 1, "the same scrape");
    }
    succeed(w, &w->transfers[a]);
    succeed(w, next_start(w));
    CHECK_STR(label(w->profiles[1], "foo"), "x", "its new label");
}

/* Unknown at first, up after a success, down with the error after a 500. */
TEST_ON(struct world *w, health)
{
    static const enum scrape_health want[] = {SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN};
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "s", "1", AT("h:1"));
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            succeed(w, next_start(w));
        } else if (i == 2) {
            answer(w, next_start(w), HTTP_DONE, 500, "oops", 4);
        }
        struct scrape_status st = status(w);
        CHECK_INT(st.health, want[i], "health");
        CHECK_STR(st.last_error, i == 2 ? "HTTP 500: oops" : "", "last error");
        CHECK_INT(st.last_start_ns != 0, i > 0, "started");
        scrape_status_done(&st);
    }
}

/* A hundred updates while a scrape hangs do not wait. */
TEST_ON(struct world *w, updates_while_one_hangs)
{
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    turn(w, 15000);
    for (int i = 0; i < 100; i++) {
        set(w, 0, "s", i % 2 == 0 ? "1" : "2", AT("a:1", "b:1"));
        set(w, 0, "t", "1", AT("c:1"));
        set(w, 0, "t", "1", NOTHING);
    }
    CHECK_INT(w->n_transfers, 2, "nothing was asked again");
    for (size_t i = 0; i < 2; i++) {
        assert_true(w->transfers[i].live);
        succeed(w, &w->transfers[i]);
    }
    CHECK_INT(w->n_profiles, 2, "both came");
}

/* Answers with this Content-Type. */
static void answer_as(struct world *w, struct http_transfer *t, const char *content_type,
                      const void *body, size_t n)
{
    SCOPED(buf) buf = testing_buf(4096);
    buf_append(&buf, body, n);
    const struct http_response r = {
        .result = HTTP_DONE,
        .status = 200,
        .error = "",
        .content_type = content_type,
        .location = "",
        .body = &buf,
        .start_ns = t->start_ns,
        .sent_ns = t->start_ns,
        .end_ns = w->now_ns,
    };
    t->live = false;
    t->on_done(t->arg, &r);
}

/* Accepted bodies. The bytes count, not the Content-Type, which may be any or missing (Alloy
 * accepts only application/octet-stream). */
TEST_ON(struct world *w, responses)
{
    static const struct {
        const void *body;
        size_t n;
        const char *reason;
    } rows[] = {
        {"", 0, "empty"},
        {"<!DOCTYPE html><html></html>", 28, "not_pprof_html"},
        {"<html><body>sign in</body></html>", 33, "not_pprof_html"},
        {"{\"error\": \"profiling is off\"}", 29, "not_pprof_json"},
        {"[{\"error\": \"profiling is off\"}]", 31, "not_pprof_json"},
        {"\x1e\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", 11, "bad_protobuf"},
        {"\x0a\x04test", 6, ""},
        {PROFILE, sizeof(PROFILE) - 1, ""},
        {GZIP, sizeof(GZIP), ""},
        {"\x0a", 1, "not_pprof_short"},
    };
    static const char *const types[] = {
        "application/octet-stream",
        "application/x-gzip",
        "application/vnd.google.protobuf",
        "",
        "text/html",
        "application/json",
    };
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    set(w, 0, "s", "1", AT("h:1"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
            size_t before = w->n_profiles;
            answer_as(w, next_start(w), types[k], rows[i].body, rows[i].n);
            struct scrape_status st = status(w);
            CHECK_STR(reason_name(st.reason), rows[i].reason, types[k]);
            scrape_status_done(&st);
            CHECK_INT(w->n_profiles - before, rows[i].reason[0] == '\0', types[k]);
        }
    }
}

/* We add no otel.scope labels (Alloy adds them, with the name of the component); a user's own are
 * kept, and no version is invented for them. */
TEST_ON(struct world *w, scope_labels)
{
    for (int i = 0; i < 2; i++) {
        struct target *t = make_target(w, 0, "h:1", i == 0 ? "v" : "otel.scope.name", "mine");
        assert_true(engine_set_group(w->e, 0, "s", &t, 1));
        succeed(w, next_start(w));
        const struct profile *p = w->profiles[w->n_profiles - 1];
        CHECK_STR(label(p, "otel.scope.name"), i == 0 ? "" : "mine", "name");
        CHECK_STR(label(p, "otel.scope.version"), "", "version");
    }
}

/* Parameters of a job with a type that samples: `seconds` is only in its URL, once, even after many
 * updates. */
TEST_ON(struct world *w, parameters_do_not_leak)
{
    static const struct config_pair debug[] = {{"debug", "1"}};
    w->jobs[0].params = (struct config_pairs){debug, 1};
    for (size_t i = 0; i < 4; i++) {
        w->types[i].params = w->jobs[0].params;
        w->types[i].enabled = i != DELTA;
    }
    for (int i = 0; i < 10; i++) {
        set(w, 0, "s", i % 2 == 0 ? "1" : "2", AT("h:1"));
        CHECK_INT(w->e->table.n, 3, "the same three");
    }
    turn(w, 15000);
    for (size_t i = 0; i < w->n_transfers; i++) {
        const char *url = w->transfers[i].url;
        bool mem = strcmp(url, "http://h:1/mem?debug=1") == 0;
        bool cpu = strcmp(url, "http://h:1/cpu?debug=1&seconds=4") == 0;
        bool fgprof = strcmp(url, "http://h:1/fg?debug=1&seconds=4") == 0;
        CHECK_INT(mem + cpu + fgprof, 1, url);
    }
    CHECK_INT(w->n_transfers, 2, "one that samples at a time");
    for (size_t i = 0; i < 3; i++) {
        succeed(w, &w->transfers[i]);
    }
}

/* forward_to changes while the program runs: the next profile goes there (in Alloy, running loops
 * keep the old value). */
TEST_ON(struct world *w, endpoints_change)
{
    set(w, 0, "s", "1", AT("h:1"));
    succeed(w, next_start(w));
    CHECK_INT(w->forward_to, 5, "as at first");
    struct config_job other = w->jobs[0]; /* of another configuration */
    other.forward_to = 2;
    labels_builder_reset(w->b, NULL);
    labels_builder_set_str(w->b, "__address__", "h:1");
    labels_builder_set_str(w->b, "v", "1");
    struct err err = ERR_INIT;
    struct target *t = target_make(NULL, 0, &other, w->b, NULL, &err);
    assert_true(engine_set_group(w->e, 0, "s", &t, 1));
    CHECK_INT(w->e->table.n, 1, "the same scrape");
    succeed(w, next_start(w));
    CHECK_INT(w->forward_to, 2, "to the new one");
    assert_true(engine_set_group(w->e, 0, "s", NULL, 0));
}
