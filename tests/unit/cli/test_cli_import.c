/* The command line of import, the walk over files, and advice about endpoints. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/file_walk.h"
#include "cli/import/args.h"
#include "cli/one_endpoint.h"
#include "cli/parse_time.h"
#include "write/advice.h"
#include "write/protocols/table.h"

#define S NS_PER_S
#define NONE IMPORT_NO_TIME

TEST(times_on_the_command_line)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } cases[] = {
        {"0", 0},
        {"1709204400", 1709204400 * S},
        {"2024-02-29T11:00:00Z", 1709204400 * S},
        {"2024-02-29T12:00:00+01:00", 1709204400 * S},
        {"2024-02-29T07:30:00-0330", 1709204400 * S},
        {"2024-02-29T11:00:00.5Z", 1709204400 * S + S / 2},
        {"2024-02-29T11:00:00.123456789Z", 1709204400 * S + 123456789},
        {"2024-02-29T11:00:00", -1},
        {"2024-02-29T11:00:00.Z", -1},
        {"2024-02-29T11:00:00.1234567891Z", -1},
        {"2024-02-29T11:00:00Zz", -1},
        {"2024-02-29T11:00:00+1:00", -1},
        {"2024-02-29T11:00:00+", -1},
        {"2024-02-29", -1},
        {"1969-12-31T23:59:59Z", -1},
        {"3024-02-29T11:00:00Z", -1},
        {"9999999999999", -1},
        {"-1", -1},
        {"now", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        int64_t ns = -1;
        bool ok = parse_time(cases[i].text, &ns, &err);
        CHECK_INT(ok, cases[i].want >= 0, cases[i].text);
        CHECK_INT(ns, ok ? cases[i].want : -1, cases[i].text);
        CHECK_INT(err.kind, ok ? ERR_NONE : ERR_INPUT, cases[i].text);
    }
}

TEST(time_that_a_profile_covers)
{
    static const struct {
        const char *row;
        int64_t given_from, given_until, time, duration, mtime, from, until;
        bool restamp;
        int64_t written_duration;
    } cases[] = {
        {"the profile's own", NONE, NONE, 100 * S, 10 * S, 5, 100 * S, 110 * S, false, -1},
        {"taken at one moment", NONE, NONE, 100 * S, 0, 5, 100 * S, 100 * S, false, -1},
        {"no time: the file's date is its end", NONE, NONE, 0, 10 * S, 500 * S, 490 * S, 500 * S,
         true, -1},
        {"no date either: now", NONE, NONE, 0, 10 * S, 0, 990 * S, 1000 * S, true, -1},
        {"longer than all time", NONE, NONE, 0, 2000 * S, 0, 1000 * S, 1000 * S, true, -1},
        {"from given", 300 * S, NONE, 100 * S, 10 * S, 5, 300 * S, 310 * S, true, -1},
        {"until given", NONE, 300 * S, 100 * S, 10 * S, 5, 290 * S, 300 * S, true, -1},
        {"both given", 300 * S, 330 * S, 100 * S, 10 * S, 5, 300 * S, 330 * S, true, 30 * S},
        {"both given, as it is", 100 * S, 110 * S, 100 * S, 10 * S, 5, 100 * S, 110 * S, false, -1},
        {"overflow", INT64_MAX - 5, NONE, 0, 10, 0, INT64_MAX - 5, INT64_MAX - 5, true, -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct import_args args = {.from_ns = cases[i].given_from,
                                   .until_ns = cases[i].given_until};
        struct import_summary summary = {.time_ns = cases[i].time,
                                         .duration_ns = cases[i].duration};
        struct import_window w = import_choose_window(&args, &summary, cases[i].mtime, 1000 * S);
        CHECK_INT(w.from_ns, cases[i].from, cases[i].row);
        CHECK_INT(w.until_ns, cases[i].until, cases[i].row);
        CHECK_INT(w.restamp, cases[i].restamp, cases[i].row);
        CHECK_INT(w.duration_ns, cases[i].written_duration, cases[i].row);
        /* A recording has times in its events: it cannot be moved. */
        summary.format = PROFILE_JFR;
        w = import_choose_window(&args, &summary, cases[i].mtime, 1000 * S);
        CHECK_INT(w.from_ns, cases[i].from, cases[i].row);
        CHECK_INT(w.restamp, false, cases[i].row);
    }
}

TEST(type_by_flag_content_or_name)
{
    struct import_args args = {.type = NULL};
    struct import_summary summary = {.types = "contentions/count delay/nanoseconds"};
    struct err err = ERR_INIT;
    assert_null(import_type(&args, &summary, "x.pb", &err));
    CHECK_CONTAINS(err.msg,
                   "(contentions/count delay/nanoseconds) do not show its type: set --type", "");
    CHECK_STR(import_type(&args, &summary, "mutex.pb", &err), "mutex", "name");
    summary.type = "block";
    CHECK_STR(import_type(&args, &summary, "mutex.pb", &err), "block", "content before name");
    args.type = "lock";
    CHECK_STR(import_type(&args, &summary, "mutex.pb", &err), "lock", "flag before all");
}

TEST(labels_that_the_protocol_carries)
{
    static const struct {
        const struct protocol *protocol;
        const char *name, *label, *value;
        const char *says; /* "": good */
    } cases[] = {
        {&protocol_push, "a/b c", "k8s.pod_1", "x,y}", ""},
        {&protocol_file, "a", "k", "v", ""},
        {&protocol_ingest, "shop.cart-1", "k_1", "v", ""},
        {&protocol_ingest, "shop/cart", "k", "v", "--name: \"shop/cart\" has characters"},
        {&protocol_ingest, "a", "k.1", "v", "has characters"},
        {&protocol_ingest, "a", "k", "x,y", "holds \",\""},
        {&protocol_push, "a", "1k", "v", "no digit first"},
        {&protocol_push, "a", "k", "", "has no value"},
        {&protocol_push, "a", "k", "\xff", "not UTF-8"},
        {&protocol_push, "\xff", "k", "v", "--name is not UTF-8"},
        {&protocol_push, "a", "__delta__", "true", "set by profpull itself"},
        {&protocol_push, "a", "service_name", "x", "set by --name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct import_args args = {
            .name = cases[i].name,
            .labels = {.at = {{sv_from(cases[i].label), cases[i].value}}, .n = 1}};
        bool ok = import_check_labels(&args, &cases[i].protocol->labels, &err);
        CHECK_INT(ok, cases[i].says[0] == '\0', cases[i].label);
        CHECK_CONTAINS(err.msg, cases[i].says, cases[i].label);
    }
    struct err err = ERR_INIT;
    struct import_args args = {.name = "a", .type = "process.cpu"};
    assert_false(import_check_labels(&args, &protocol_push.labels, &err));
    CHECK_CONTAINS(err.msg, "--type", "");
}

/* Flags are literal: they contain neither YAML nor variables. */
TEST(endpoint_from_flags)
{
    struct one_endpoint o;
    struct err err = ERR_INIT;
    struct config_endpoint_flags flags = {.name = "import",
                                          .url = "http://h:4040/base",
                                          .protocol = "ingest",
                                          .tenant = "team-a",
                                          .username = "a\"b: ${HOME} \\ #",
                                          .password_file = "/x/y",
                                          .ca_file = "/ca"};
    bool ok = one_endpoint_from_flags(&o, &flags, &err);
    CHECK_STR(err.msg, "", "");
    assert_true(ok);
    CHECK_STR(o.config.endpoints[0].url, flags.url, "url");
    CHECK_INT(o.config.n_endpoints, 1, "");
    assert_ptr_equal(o.endpoint.protocol, &protocol_ingest.config);
    CHECK_STR(o.endpoint.tenant_id, "team-a", "tenant");
    CHECK_STR(o.endpoint.http.username, flags.username, "username");
    CHECK_STR(o.endpoint.http.password_file, "/x/y", "password");
    CHECK_STR(o.endpoint.http.tls.ca_file, "/ca", "ca");
    assert_null(o.endpoint.spool_directory);
    one_endpoint_done(&o);
    static const struct {
        struct config_endpoint_flags flags;
        const char *says;
    } bad[] = {
        {{.name = "import", .url = "ftp://x"}, "url: expected a URL"},
        {{.name = "import", .url = "http://x", .protocol = "pusch"}, "protocol: expected"},
        {{.name = "import", .url = "http://x", .tenant = "a b"}, "tenant_id: expected"},
        {{.name = "import", .url = "http://x\n- name: b"}, "url: expected a URL"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err_clear(&err);
        assert_false(one_endpoint_from_flags(&o, &bad[i].flags, &err));
        CHECK_CONTAINS(err.msg, bad[i].says, bad[i].flags.url);
    }
}

TEST(walk_over_files_and_directories)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char sub[512];
    char pipe_name[512];
    char missing[512];
    char file[512];
    (void)snprintf(sub, sizeof(sub), "%s/b", dir);
    (void)snprintf(pipe_name, sizeof(pipe_name), "%s/d", dir);
    (void)snprintf(missing, sizeof(missing), "%s/none", dir);
    (void)snprintf(file, sizeof(file), "%s/c", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    testing_write_file(sub, "z", "z");
    testing_write_file(dir, "c", "cc");
    testing_write_file(dir, "a", "a");
    assert_int_equal(mkfifo(pipe_name, 0600), 0); /* opening it would hang */
    char *paths[] = {(char[]){"-"}, missing, dir, file};
    struct file_walk *w = file_walk_new(paths, 4);
    struct file_found f;
    struct err err = ERR_INIT;
    char seen[2048] = "";
    enum walk_result r;
    size_t prefix = strlen(dir) + 1;
    while ((r = file_walk_next(w, &f, &err)) != WALK_END) {
        const char *name = r == WALK_ERROR ? "error" : f.open != NULL ? f.path + prefix : f.path;
        (void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%s ", name,
                       r == WALK_FILE && f.named ? "!" : "");
    }
    CHECK_STR(seen, "standard input! error a b/z c c! ", "order");
    CHECK_CONTAINS(err.msg, "none: No such file", "");
    file_walk_free(w);
    int64_t mtime = 0;
    SCOPED(buf) data = testing_buf(1);
    f = (struct file_found){.path = file, .open = file};
    assert_false(file_walk_read(&f, &data, &mtime, &err));
    assert_true(buf_too_big(&data));
    buf_done(&data);
    buf_init(&data, 2);
    assert_true(file_walk_read(&f, &data, &mtime, &err));
    CHECK_STR(data.data, "cc", "");
    assert_true(mtime > 1000 * S);
}

TEST(advice_by_status_and_result)
{
    struct config_endpoint e = {.protocol = &protocol_push.config};
    CHECK_CONTAINS(advice_for(&e, HTTP_DONE, 401), "wants credentials", "");
    e.http.auth = HTTP_AUTH_BASIC;
    CHECK_CONTAINS(advice_for(&e, HTTP_DONE, 401), "does not accept these", "");
    CHECK_CONTAINS(advice_for(&e, HTTP_DONE, 404), "base URL", "");
    CHECK_CONTAINS(advice_for(&e, HTTP_ERR_RESOLVE, 0), "host name", "");
    CHECK_STR(advice_for(&e, HTTP_DONE, 500), "", "");
    assert_true(advice_is_final(HTTP_DONE, 401) && advice_is_final(HTTP_ERR_TLS, 0));
    assert_true(!advice_is_final(HTTP_DONE, 503) && !advice_is_final(HTTP_ERR_CONNECT, 0));
}
