#include "discovery/kubernetes/exec_plugin.h"

#include <argz.h>
#include <envz.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "discovery/kubernetes/child.h"
#include "discovery/kubernetes/credentials.h"

struct exec_login {
    unsigned refs;
    struct exec_credential credential;
    struct http_settings settings;
};

struct exec_plugin {
    struct exec_plugin_options options;
    struct child *child;      /* NULL if none runs */
    struct exec_login *login; /* NULL: none is valid */
    struct exec_waiter *waiters;
    struct err failure; /* the error of the last run */
    int64_t pause_ms;
    int64_t not_before_ms;
};

const struct http_settings *exec_login_settings(const struct exec_login *login)
{
    return &login->settings;
}

struct exec_login *exec_login_unref(struct exec_login *login)
{
    if (login != NULL && --login->refs == 0) {
        exec_credential_done(&login->credential);
        free(login);
    }
    return NULL;
}

/* ---- the end of a run ------------------------------------------------------------------------ */

/* Makes settings in which the credential replaces that of the kubeconfig. Takes over the
 * credential. */
static struct exec_login *make_login(const struct http_settings *base, struct exec_credential *c)
{
    struct exec_login *login = calloc(1, sizeof(*login));
    if (login == NULL) {
        exec_credential_done(c);
        return NULL;
    }
    *login = (struct exec_login){.refs = 1, .credential = *c, .settings = *base};
    if (c->token != NULL) {
        login->settings.auth = HTTP_AUTH_HEADER;
        login->settings.auth_type = "Bearer";
        login->settings.credentials = c->token;
    }
    if (c->cert_pem != NULL) {
        login->settings.tls.cert_pem = c->cert_pem;
        login->settings.tls.key_pem = c->key_pem;
        login->settings.tls.cert_file = NULL;
        login->settings.tls.key_file = NULL;
    }
    return login;
}

static void describe_end(const struct exec_plugin *p, enum child_end end, int value,
                         struct err *err)
{
    switch (end) {
    case CHILD_EXITED:
        err_set(err, ERR_REFUSED, "it ended with status %d", value);
        break;
    case CHILD_SIGNALED:
        err_set(err, ERR_REFUSED, "it was ended by signal %d", value);
        break;
    case CHILD_TIMEOUT:
        err_set(err, ERR_NETWORK, "it took longer than %lld s",
                (long long)(p->options.timeout_ms / MS_PER_S));
        break;
    case CHILD_TOO_MUCH:
        err_set(err, ERR_LIMIT, "it printed more than %zu bytes", EXEC_OUTPUT_MAX);
        break;
    case CHILD_LOST:
        err_set(err, ERR_SYSTEM, "it was lost");
        break;
    }
}

static bool read_output(struct exec_plugin *p, enum child_end end, int value, struct sv out,
                        struct err *err)
{
    struct exec_credential credential = {0};
    if (end != CHILD_EXITED || value != 0) {
        describe_end(p, end, value, err);
        return false;
    }
    if (!exec_credential_parse(out, p->options.config->api_version, &credential, err)) {
        return false;
    }
    p->login = make_login(p->options.settings, &credential);
    return p->login != NULL || err_memory(err);
}

/* Counts a run, and sets the pause before the next one. */
static void note_run(struct exec_plugin *p, enum discovery_exec_run result)
{
    metric_inc(p->options.counters->exec_runs[result]);
    if (result == EXEC_RUN_OK) {
        p->pause_ms = 0;
        return;
    }
    p->pause_ms = p->pause_ms == 0 ? EXEC_PAUSE_MIN_MS : 2 * p->pause_ms;
    if (p->pause_ms > EXEC_PAUSE_MAX_MS) {
        p->pause_ms = EXEC_PAUSE_MAX_MS;
    }
    p->not_before_ms = clock_mono_ms() + p->pause_ms;
}

/* Adds the name of the plugin and the end of its stderr to p->failure. */
static void explain(struct exec_plugin *p, struct sv errors)
{
    char quote[EXEC_QUOTE_MAX + 1];
    exec_quote(errors, p->options.config->secrets, quote);
    struct err reason = p->failure;
    err_set(&p->failure, reason.kind, "exec plugin %.100s: %s%s%s", p->options.config->argv[0],
            reason.msg, quote[0] == '\0' ? "" : ": ", quote);
}

static void call_waiters(struct exec_plugin *p)
{
    struct exec_waiter *w = p->waiters;
    p->waiters = NULL;
    while (w != NULL) {
        struct exec_waiter *next = w->next;
        w->fn(w->arg);
        w = next;
    }
}

static void exec_plugin_on_done(void *arg, enum child_end end, int value, struct sv out,
                                struct sv errors)
{
    struct exec_plugin *p = arg;
    err_clear(&p->failure);
    bool ok = read_output(p, end, value, out, &p->failure);
    if (!ok) {
        explain(p, errors);
    }
    note_run(p, ok ? EXEC_RUN_OK : end == CHILD_TIMEOUT ? EXEC_RUN_TIMEOUT : EXEC_RUN_FAILED);
    p->child = child_free(p->child);
    call_waiters(p);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Makes the environment of the plugin: ours, overridden by that of the kubeconfig and by the
 * information for the plugin. NULL if out of memory. The caller frees the array, and *ret_strings,
 * which holds the strings. */
static char **make_environment(const struct kubeconfig_exec *config, char **ret_strings)
{
    static char *const none[] = {NULL};
    /* The parameter of argz_create() lacks const; it changes nothing. */
    char *const *given = (char *const *)(uintptr_t)config->env;
    size_t len = 0;
    char *more = NULL;
    size_t more_len = 0;
    char **all = NULL;
    *ret_strings = NULL;
    if (argz_create(environ == NULL ? none : environ, ret_strings, &len) == 0 &&
        argz_create(given, &more, &more_len) == 0 &&
        envz_merge(ret_strings, &len, more, more_len, 1) == 0 &&
        envz_add(ret_strings, &len, "KUBERNETES_EXEC_INFO", config->info) == 0) {
        all = calloc(argz_count(*ret_strings, len) + 1, sizeof(*all));
    }
    if (all != NULL) {
        argz_extract(*ret_strings, len, all);
    }
    free(more);
    return all;
}

static struct child *start_child(struct exec_plugin *p, int *ret_errno)
{
    char *strings;
    char **envp = make_environment(p->options.config, &strings);
    struct child *child = NULL;
    *ret_errno = ENOMEM;
    if (envp != NULL) {
        child = child_start(&(struct child_options){.argv = p->options.config->argv,
                                                    .envp = (const char *const *)envp,
                                                    .loop = p->options.loop,
                                                    .stdout_max = EXEC_OUTPUT_MAX,
                                                    .timeout_ms = p->options.timeout_ms,
                                                    .on_done = exec_plugin_on_done,
                                                    .arg = p},
                            ret_errno);
    }
    free(envp);
    free(strings);
    return child;
}

static void start_run(struct exec_plugin *p)
{
    int error = 0;
    p->child = start_child(p, &error);
    if (p->child != NULL) {
        return;
    }
    const char *hint = p->options.config->install_hint;
    bool missing = error == ENOENT;
    errno = error;
    err_clear(&p->failure);
    err_sys(&p->failure, "cannot be run");
    explain(p, missing ? sv_from(hint) : SV(""));
    note_run(p, EXEC_RUN_FAILED);
}

enum exec_state exec_plugin_get(struct exec_plugin *p, struct exec_login **ret_login,
                                struct err *err)
{
    if (p->login != NULL && clock_wall_ns() < p->login->credential.expires_ns) {
        p->login->refs++;
        *ret_login = p->login;
        return EXEC_READY;
    }
    p->login = exec_login_unref(p->login);
    if (p->child == NULL && clock_mono_ms() >= p->not_before_ms) {
        start_run(p);
    }
    if (p->child != NULL) {
        return EXEC_RUNNING;
    }
    *err = p->failure;
    return EXEC_FAILED;
}

void exec_plugin_wait(struct exec_plugin *p, struct exec_waiter *waiter)
{
    waiter->next = p->waiters;
    p->waiters = waiter;
}

void exec_plugin_forget(struct exec_plugin *p, struct exec_waiter *waiter)
{
    struct exec_waiter **at = &p->waiters;
    while (*at != NULL && *at != waiter) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = waiter->next;
    }
}

void exec_plugin_refused(struct exec_plugin *p, const struct exec_login *login)
{
    if (login != NULL && p->login == login) {
        p->login = exec_login_unref(p->login);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct exec_plugin *exec_plugin_new(const struct exec_plugin_options *options)
{
    struct exec_plugin *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->options = *options;
    }
    return p;
}

struct exec_plugin *exec_plugin_free(struct exec_plugin *p)
{
    if (p != NULL) {
        child_free(p->child);
        exec_login_unref(p->login);
        free(p);
    }
    return NULL;
}
