/* Gets credentials from the exec plugin of a kubeconfig. The plugin runs when there are no
 * credentials, when they have expired, and when the API server has refused them (401).
 *
 * Nothing waits for the plugin: callers that need credentials while it runs are called back when it
 * has ended. All reflectors of one API server share one. After a failure it is not run again before
 * a pause that grows from 1 s to 30 s. Everything runs on the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_EXEC_PLUGIN_H
#define PROFPULL_DISCOVERY_KUBERNETES_EXEC_PLUGIN_H

#include "base/loop.h"
#include "config/kubeconfig.h"
#include "discovery/counters.h"
#include "http/http.h"

/* The longest time that a plugin may take, and the most bytes that it may print. */
#define EXEC_TIMEOUT_MS 60000
#define EXEC_OUTPUT_MAX ((size_t)1024 * 1024)
/* The pause after a failure: it is doubled from the first value up to the second. */
#define EXEC_PAUSE_MIN_MS 1000
#define EXEC_PAUSE_MAX_MS 30000

struct exec_plugin_options {
    const struct kubeconfig_exec *config; /* referenced, with everything that it points to */
    const struct http_settings *settings; /* settings without the credentials; referenced */
    struct loop *loop;
    const struct discovery_counters *counters; /* referenced */
    int64_t timeout_ms;
};

struct exec_plugin;
struct exec_plugin *exec_plugin_new(const struct exec_plugin_options *options);
/* Ends a run without calling back. Accepts NULL, returns NULL. */
struct exec_plugin *exec_plugin_free(struct exec_plugin *p);

/* HTTP settings with credentials. They are reference-counted, because requests in flight use
 * them. */
struct exec_login;
const struct http_settings *exec_login_settings(const struct exec_login *login);
struct exec_login *exec_login_unref(struct exec_login *login); /* accepts NULL, returns NULL */

enum exec_state { EXEC_READY, EXEC_RUNNING, EXEC_FAILED };

/* Returns the current credentials, or starts the plugin if there are none. EXEC_READY: *ret_login
 * is a reference that the caller owns. EXEC_RUNNING: the plugin runs; call exec_plugin_wait().
 * EXEC_FAILED: err says why the last run failed. */
enum exec_state exec_plugin_get(struct exec_plugin *p, struct exec_login **ret_login,
                                struct err *err);

struct exec_waiter {
    struct exec_waiter *next; /* private */
    void (*fn)(void *arg);
    void *arg;
};
/* Calls the waiter's fn once when the run ends, whether it succeeded or not. The waiter must live
 * until then. */
void exec_plugin_wait(struct exec_plugin *p, struct exec_waiter *waiter);
/* Removes a waiter, which is then not called any more; does nothing if it does not wait. */
void exec_plugin_forget(struct exec_plugin *p, struct exec_waiter *waiter);

/* Reports that a request with this login was answered with 401, so that the login is not used
 * again. */
void exec_plugin_refused(struct exec_plugin *p, const struct exec_login *login);

#endif
