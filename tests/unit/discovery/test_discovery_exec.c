/* Exec credential plugins: their output, how they run, and when. The plugins are scripts. */
#include "tests/unit/discovery/patience.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "discovery/kubernetes/child.h"
#include "discovery/kubernetes/credentials.h"
#include "discovery/kubernetes/exec_plugin.h"

SCOPED_POINTER(exec_login, exec_login_unref)

#define V1 "client.authentication.k8s.io/v1"
#define OUTPUT(status)                                                                             \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"
#define CERT "-----BEGIN CERTIFICATE-----\\nMAMCAQE=\\n-----END CERTIFICATE-----\\n"
#define KEY "-----BEGIN PRIVATE KEY-----\\nx\\n-----END PRIVATE KEY-----\\n"

/* ---- output ---------------------------------------------------------------------------------- */

TEST(test_credentials)
{
    static const struct {
        const char *text;
        const char *want; /* token, certificate, expiry; or the error after "!" */
    } cases[] = {
        {OUTPUT("{\"token\":\"abc\"}"), "abc - -"},
        {" " OUTPUT("{\"token\":\"abc\",\"clientCertificateData\":null,\"x\":1}") "\n", "abc - -"},
        {OUTPUT("{\"token\":\"abc\",\"expirationTimestamp\":\"1970-01-01T00:00:07Z\"}"), "abc - 7"},
        {OUTPUT("{\"clientCertificateData\":\"" CERT "\",\"clientKeyData\":\"" KEY "\"}"),
         "- cert -"},
        {OUTPUT("{\"token\":\"t\",\"clientCertificateData\":\"" CERT "\",\"clientKeyData\":\"" KEY
                "\"}"),
         "t cert -"},
        {"", "!expected an ExecCredential in JSON"},
        {"s3cret", "!expected an ExecCredential in JSON"},
        {"[\"s3cret\"]", "!expected an ExecCredential in JSON"},
        {"{}", "!expected the kind ExecCredential"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         "!expected the apiVersion " V1},
        {OUTPUT("null"), "!expected a status"},
        {OUTPUT("{}"), "!expected a token or a client certificate"},
        {OUTPUT("{\"token\":\"\"}"), "!expected a token or a client certificate"},
        {OUTPUT("{\"token\":7}"), "!status.token: expected a string"},
        {OUTPUT("{\"token\":\"s3cret\\nX: y\"}"), "!status.token: white space"},
        {OUTPUT("{\"token\":\"a\\u0000b\"}"), "!expected an ExecCredential in JSON"},
        {OUTPUT("{\"token\":\"s3cret\",\"expirationTimestamp\":\"soon\"}"),
         "!status.expirationTimestamp: expected a time"},
        {OUTPUT("{\"token\":\"s3cret\",\"expirationTimestamp\":5}"),
         "!status.expirationTimestamp: expected a time"},
        {OUTPUT("{\"clientCertificateData\":\"" CERT "\"}"), "!or neither"},
        {OUTPUT("{\"clientKeyData\":\"" KEY "\",\"token\":\"s3cret\"}"), "!or neither"},
        {OUTPUT("{\"clientCertificateData\":\"s3cret\",\"clientKeyData\":\"" KEY "\"}"),
         "!the client certificate: expected certificates in PEM"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct exec_credential c = {0};
        struct err err = ERR_INIT;
        bool ok = exec_credential_parse(sv_from(cases[i].text), V1, &c, &err);
        CHECK_INT(ok, cases[i].want[0] != '!', cases[i].text);
        if (ok) {
            char got[128];
            char expiry[32] = "-";
            if (c.expires_ns != INT64_MAX) {
                snprintf(expiry, sizeof(expiry), "%lld", (long long)(c.expires_ns / NS_PER_S));
            }
            snprintf(got, sizeof(got), "%s %s %s", c.token == NULL ? "-" : c.token,
                     c.cert_pem == NULL ? "-" : "cert", expiry);
            CHECK_STR(got, cases[i].want, cases[i].text);
            CHECK_INT(c.cert_pem == NULL, c.key_pem == NULL, "");
        } else {
            CHECK_CONTAINS(err.msg, cases[i].want + 1, cases[i].text);
            assert_null(strstr(err.msg, "s3cret"));
        }
        exec_credential_done(&c);
    }
}

TEST(test_times)
{
    static const struct {
        const char *text;
        int64_t want; /* seconds; -1: refused */
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-21T03:23:34Z", 1795231414},
        {"2026-11-21T04:23:34.999+01:00", 1795231414},
        {"2026-11-20t22:53:34-04:30", 1795231414},
        {"9999-12-31T23:59:59Z", 9223372036},
        {"2026-11-21", -1},
        {"2026-11-21T03:23:34", -1},
        {"2026-11-21T03:23:34.Z", -1},
        {"2026-13-21T03:23:34Z", -1},
        {"2026-11-32T03:23:34Z", -1},
        {"2026-11-21T24:23:34Z", -1},
        {"2026-11-21T03:23:34Zx", -1},
        {"2026-11-21T03:23:34+1:00", -1},
        {"2026-11-21T03:23:34+01", -1},
        {"+026-11-21T03:23:34Z", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ns = 0;
        bool ok = exec_parse_time(sv_from(cases[i].text), &ns);
        CHECK_INT(ok, cases[i].want >= 0, cases[i].text);
        if (ok) {
            CHECK_INT(ns / NS_PER_S, cases[i].want, cases[i].text);
        }
    }
}

TEST(test_quotes)
{
    static const char *const secrets[] = {"hunter2", NULL};
    static const struct text_case cases[] = {
        {"", ""},
        {"\n error:\tno  profile \x1b[1m\"prod\"\r\n\n", "error: no profile [1m\"prod\""},
        {"password hunter2 refused, xhunter2y", "password <hidden> refused, x<hidden>y"},
        {"token=eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJhdWQiOiJodHRwczovL2t1.c2lnbmF0dXJlMDEyMzQ1Njc4OTA",
         "<hidden>.<hidden>.<hidden>"},
        {"see https://docs.example.com/long-page-without-any-digit",
         "see https://docs.example.com/long-page-without-any-digit"},
        {"bad \xff byte", "bad \xef\xbf\xbd byte"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[EXEC_QUOTE_MAX + 1];
        exec_quote(sv_from(cases[i].text), secrets, out);
        CHECK_STR(out, cases[i].want, cases[i].text);
    }
    char text[1000];
    char out[EXEC_QUOTE_MAX + 1];
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        text[i] = i % 3 == 0 ? ' ' : 'a';
    }
    memcpy(text + sizeof(text) - 8, "the end", 8);
    exec_quote(sv_from(text), secrets, out);
    CHECK_INT(strlen(out), EXEC_QUOTE_MAX, "cut");
    CHECK_CONTAINS(out, "the end", "the last words are mostly the reason");
}

/* ---- running a process ----------------------------------------------------------------------- */

struct world {
    struct loop *loop;
    struct patience patience;
    struct child *process;
    enum child_end end;
    int value;
    char out[256];
    char errors[256];
    char *dir;
};

static void world_init(struct world *w)
{
    struct err err = ERR_INIT;
    *w = (struct world){.loop = loop_new(&err), .dir = testing_mkdtemp()};
    patience_init(&w->patience, w->loop);
}

static void world_done(struct world *w)
{
    patience_done(&w->patience);
    loop_free(w->loop);
    testing_directory_leave(&w->dir);
}
SCOPED_VALUE(world, world_done)

SETUP_OF(world)

static void run_loop(struct world *w)
{
    CHECK_INT(patience_run(&w->patience, PATIENCE_MS), true, "it has not come to its end");
}

static void on_done(void *arg, enum child_end end, int value, struct sv out, struct sv errors)
{
    struct world *w = arg;
    w->end = end;
    w->value = value;
    snprintf(w->out, sizeof(w->out), "%.*s", SV_ARG(out));
    snprintf(w->errors, sizeof(w->errors), "%.*s", SV_ARG(errors));
    w->process = child_free(w->process);
    loop_stop(w->loop);
}

static void start(struct world *w, const char *script, int64_t timeout_ms)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const char *envp[] = {"PATH=/usr/bin:/bin", "A=b c", NULL};
    int error = -1;
    w->process = child_start(&(struct child_options){.argv = argv,
                                                     .envp = envp,
                                                     .loop = w->loop,
                                                     .stdout_max = 200,
                                                     .timeout_ms = timeout_ms,
                                                     .on_done = on_done,
                                                     .arg = w},
                             &error);
    assert_non_null(w->process);
    CHECK_INT(error, 0, "");
}

TEST_ON(struct world *w, test_process)
{
    static const struct {
        const char *script;
        int64_t timeout_ms;
        enum child_end end;
        int value;
        const char *out, *errors;
    } cases[] = {
        {"echo \"$A\"; echo no >&2; exit 3", PATIENCE_MS, CHILD_EXITED, 3, "b c\n", "no\n"},
        {"exit 0", PATIENCE_MS, CHILD_EXITED, 0, "", ""},
        {"cat; ls -l /proc/self/fd | grep -c pipe", PATIENCE_MS, CHILD_EXITED, 0, "2\n", ""},
        /* A child does not inherit blocked and ignored signals. */
        {"kill -TERM $$; exit 0", PATIENCE_MS, CHILD_SIGNALED, SIGTERM, "", ""},
        {"kill -PIPE $$; exit 0", PATIENCE_MS, CHILD_SIGNALED, SIGPIPE, "", ""},
        {"kill -9 $$", PATIENCE_MS, CHILD_SIGNALED, SIGKILL, "", ""},
        {"exec >&- 2>&-; sleep 0.2; exit 4", PATIENCE_MS, CHILD_EXITED, 4, "", ""},
        {"sleep 1000", 50, CHILD_TIMEOUT, 0, "", ""},
        {"exec >&- 2>&-; sleep 1000", 50, CHILD_TIMEOUT, 0, "", ""},
        {"trap '' TERM INT HUP; echo x; sleep 1000 & sleep 1000", 50, CHILD_TIMEOUT, 0, NULL, ""},
        {"setsid sleep 3 & exit 0", 50, CHILD_TIMEOUT, 0, "", ""},
        {"while :; do echo 0123456789; done", PATIENCE_MS, CHILD_TOO_MUCH, 0, NULL, ""},
        {"i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo ok",
         PATIENCE_MS, CHILD_EXITED, 0, "ok\n", NULL},
    };
    sigset_t term;
    sigset_t before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &term, &before), 0);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(w, cases[i].script, cases[i].timeout_ms);
        run_loop(w);
        CHECK_INT(w->end, cases[i].end, cases[i].script);
        CHECK_INT(w->value, cases[i].value, cases[i].script);
        if (cases[i].out != NULL) {
            CHECK_STR(w->out, cases[i].out, cases[i].script);
        }
        if (cases[i].errors != NULL) {
            CHECK_STR(w->errors, cases[i].errors, cases[i].script);
        }
    }
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    (void)signal(SIGPIPE, old);
}

TEST_ON(struct world *w, test_process_cannot_start)
{
    if (getenv("PROFPULL_VALGRIND") != NULL) {
        skip(); /* scripts/valgrind.sh: its posix_spawn() does not say that the program is missing
                 */
    }
    const char *argv[] = {"/nonexistent/plugin", NULL};
    const char *envp[] = {NULL};
    int error = 0;
    struct child_options options = {.argv = argv, .envp = envp, .loop = w->loop};
    assert_null(child_start(&options, &error));
    CHECK_INT(error, ENOENT, "");
    argv[0] = w->dir;
    assert_null(child_start(&options, &error));
    CHECK_INT(error, EACCES, "");
}

TEST_ON(struct world *w, test_process_is_freed)
{
    start(w, "echo started; sleep 1000", PATIENCE_MS);
    assert_null(child_free(w->process));
    assert_null(child_free(NULL));
}

/* ---- plugins --------------------------------------------------------------------------------- */

struct plugin_world {
    struct world base;
    struct metrics *metrics;
    struct discovery_counters counters;
    struct kubeconfig_exec config;
    struct http_settings settings;
    const char *argv[4];
    const char *env[3];
    const char *secrets[2];
    struct exec_plugin *plugin;
    struct exec_waiter waiter;
    unsigned woken;
};

static void on_wake(void *arg)
{
    struct plugin_world *w = arg;
    w->woken++;
    loop_stop(w->base.loop);
}

static void plugin_setup(struct plugin_world *w, const char *script)
{
    *w = (struct plugin_world){.settings = {.tls.ca_pem = "CA"}};
    world_init(&w->base);
    w->metrics = metrics_new();
    discovery_counters_init(&w->counters, w->metrics);
    w->argv[0] = "sh";
    w->argv[1] = "-c";
    w->argv[2] = script;
    char *dir = NULL;
    assert_true(asprintf(&dir, "DIR=%s", w->base.dir) > 0);
    w->env[0] = dir;
    w->env[1] = "PASSWORD=hunter2";
    w->secrets[0] = "hunter2";
    w->config = (struct kubeconfig_exec){.api_version = V1,
                                         .argv = w->argv,
                                         .env = w->env,
                                         .secrets = w->secrets,
                                         .info = "{\"spec\":1}",
                                         .install_hint = "install it with\n  brew install x"};
    w->plugin = exec_plugin_new(&(struct exec_plugin_options){.config = &w->config,
                                                              .settings = &w->settings,
                                                              .loop = w->base.loop,
                                                              .counters = &w->counters,
                                                              .timeout_ms = PATIENCE_MS});
    assert_non_null(w->plugin);
    w->waiter = (struct exec_waiter){.fn = on_wake, .arg = w};
}

static void plugin_teardown(struct plugin_world *w)
{
    exec_plugin_free(w->plugin);
    metrics_free(w->metrics);
    free((void *)(uintptr_t)w->env[0]);
    world_done(&w->base);
}
SCOPED_VALUE(plugin_world, plugin_teardown)

static void check_runs(struct plugin_world *w, long ok, long failed)
{
    CHECK_INT(metric_value(w->counters.exec_runs[EXEC_RUN_OK]), ok, "runs");
    CHECK_INT(metric_value(w->counters.exec_runs[EXEC_RUN_FAILED]), failed, "failed runs");
}

/* Asks until there is an answer; err has the error. */
static struct exec_login *ask(struct plugin_world *w, struct err *err)
{
    struct exec_login *login = NULL;
    enum exec_state state = exec_plugin_get(w->plugin, &login, err);
    if (state == EXEC_RUNNING) {
        exec_plugin_wait(w->plugin, &w->waiter);
        run_loop(&w->base);
        state = exec_plugin_get(w->plugin, &login, err);
    }
    CHECK_INT(state, login == NULL ? EXEC_FAILED : EXEC_READY, "");
    return login;
}

static void check_token(struct plugin_world *w, const char *want, const char *row)
{
    struct err err = ERR_INIT;
    SCOPED(exec_login) *login = ask(w, &err);
    CHECK_STR(err.msg, "", row);
    assert_non_null(login);
    const struct http_settings *s = exec_login_settings(login);
    CHECK_STR(s->credentials, want, row);
    CHECK_INT(s->auth, HTTP_AUTH_HEADER, row);
    CHECK_STR(s->tls.ca_pem, "CA", "what is not credentials stays");
}

/* Prints "run-N" as the token at run N, followed by $1 in the status. */
#define COUNTING(more)                                                                             \
    "echo x >>\"$DIR/runs\"; n=$(wc -l <\"$DIR/runs\"); echo '{\"kind\":\"ExecCredential\","       \
    "\"apiVersion\":\"" V1 "\",\"status\":{\"token\":\"run-'$n'\"" more "}}'"

/* Credentials are kept until they are refused; a refusal leads to one new run. */
TEST(test_refused)
{
    SCOPED(plugin_world) w;
    plugin_setup(&w, COUNTING(""));
    struct err err = ERR_INIT;
    struct exec_login *first = ask(&w, &err);
    assert_non_null(first);
    CHECK_STR(exec_login_settings(first)->credentials, "run-1", "");
    check_token(&w, "run-1", "kept");
    exec_plugin_refused(w.plugin, first);
    check_token(&w, "run-2", "a new one");
    exec_plugin_refused(w.plugin, first);
    check_token(&w, "run-2", "an old one that is refused late says nothing of the new one");
    CHECK_STR(exec_login_settings(first)->credentials, "run-1", "good for its request still");
    exec_login_unref(first);
    check_runs(&w, 2, 0);
}

TEST(test_expired)
{
    struct plugin_world w;
    plugin_setup(&w, COUNTING(",\"expirationTimestamp\":\"2999-01-01T00:00:00Z\""));
    check_token(&w, "run-1", "");
    check_token(&w, "run-1", "good for long");
    plugin_teardown(&w);
    plugin_setup(&w, COUNTING(",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\""));
    struct exec_login *login = NULL;
    struct err err = ERR_INIT;
    for (int i = 1; i <= 2; i++) {
        CHECK_INT(exec_plugin_get(w.plugin, &login, &err), EXEC_RUNNING, "expired when it came");
        exec_plugin_wait(w.plugin, &w.waiter);
        run_loop(&w.base);
        check_runs(&w, i, 0);
    }
    plugin_teardown(&w);
}

/* Several reflectors that need credentials at the same time wait for one run. */
TEST(test_one_run_for_all)
{
    SCOPED(plugin_world) w;
    plugin_setup(&w, COUNTING(""));
    struct exec_login *login = NULL;
    struct exec_waiter waiters[3];
    struct err err = ERR_INIT;
    for (int i = 0; i < 3; i++) {
        waiters[i] = w.waiter;
        CHECK_INT(exec_plugin_get(w.plugin, &login, &err), EXEC_RUNNING, "");
        exec_plugin_wait(w.plugin, &waiters[i]);
    }
    run_loop(&w.base);
    CHECK_INT(w.woken, 3, "");
    check_token(&w, "run-1", "");
}

TEST(test_client_certificate)
{
    SCOPED(plugin_world) w;
    plugin_setup(&w, "cat <<'X'\n" OUTPUT("{\"clientCertificateData\":\"" CERT
                                          "\",\"clientKeyData\":\"" KEY "\"}") "\nX\n");
    w.settings.tls.cert_file = "/old.crt";
    w.settings.tls.key_file = "/old.key";
    struct err err = ERR_INIT;
    SCOPED(exec_login) *login = ask(&w, &err);
    assert_non_null(login);
    const struct http_settings *s = exec_login_settings(login);
    CHECK_INT(s->auth, HTTP_AUTH_NONE, "");
    CHECK_CONTAINS(s->tls.cert_pem, "MAMCAQE=", "");
    CHECK_CONTAINS(s->tls.key_pem, "PRIVATE KEY", "");
    assert_null(s->tls.cert_file);
    assert_null(s->tls.key_file);
}

/* A plugin that fails is quoted, without secrets, and not run again at once. */
TEST(test_failures)
{
    static const struct text_case cases[] = {
        {"echo \"no login for $PASSWORD\" >&2; exit 7",
         "exec plugin sh: it ended with status 7: no login for <hidden>"},
        {"kill -9 $$", "exec plugin sh: it was ended by signal 9"},
        {"echo hunter2", "exec plugin sh: expected an ExecCredential in JSON on stdout"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(plugin_world) w;
        plugin_setup(&w, cases[i].text);
        struct err err = ERR_INIT;
        assert_null(ask(&w, &err));
        CHECK_STR(err.msg, cases[i].want, cases[i].text);
        err_clear(&err);
        struct exec_login *login = NULL;
        CHECK_INT(exec_plugin_get(w.plugin, &login, &err), EXEC_FAILED, "");
        CHECK_STR(err.msg, cases[i].want, "the same to everybody");
        check_runs(&w, 0, 1);
    }
}

TEST(test_not_installed)
{
    if (getenv("PROFPULL_VALGRIND") != NULL) {
        skip(); /* as above */
    }
    SCOPED(plugin_world) w;
    plugin_setup(&w, "");
    w.argv[0] = "/nonexistent/aws";
    struct err err = ERR_INIT;
    assert_null(ask(&w, &err));
    CHECK_CONTAINS(err.msg, "exec plugin /nonexistent/aws: cannot be run: No such file", "");
    CHECK_CONTAINS(err.msg, ": install it with brew install x", "the hint, in one line");
    check_runs(&w, 0, 1);
}

/* A plugin sees our environment, overridden by that of the kubeconfig, and the request. */
TEST(test_environment)
{
    SCOPED(plugin_world) w;
    plugin_setup(&w, "test -n \"$PATH\" || exit 1; test \"$HOME\" = changed || exit 2; "
                     "echo \"$KUBERNETES_EXEC_INFO\" >&2; exit 3");
    w.env[1] = "HOME=changed";
    struct err err = ERR_INIT;
    assert_null(ask(&w, &err));
    CHECK_STR(err.msg, "exec plugin sh: it ended with status 3: {\"spec\":1}", "");
}

TEST(test_freed_while_it_runs)
{
    struct plugin_world w;
    plugin_setup(&w, "sleep 1000");
    struct exec_login *login = NULL;
    struct err err = ERR_INIT;
    CHECK_INT(exec_plugin_get(w.plugin, &login, &err), EXEC_RUNNING, "");
    exec_plugin_wait(w.plugin, &w.waiter);
    plugin_teardown(&w);
    CHECK_INT(w.woken, 0, "no waiter is called");
}
