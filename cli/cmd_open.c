/* `profpull open`: the pages of a running process in the browser. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cluster/relay.h"
#include "cli/cmd.h"
#include "cli/query/args.h"
#include "http/url.h"

#define URL_MAX ((size_t)64 * 1024)
#define ASK_MS (30 * MS_PER_S)

struct open_args {
    const char *url;
    struct agents_flags agents;
    const char *pod;
    bool print;
};

/* Starts the program that opens URLs. A failure is no error, since the URL is printed as well. */
static void start_browser(const char *url)
{
    const char *browser = getenv("BROWSER");
    const char *program = browser != NULL && browser[0] != '\0' ? browser : "xdg-open";
    char *copy = strdup(url);
    char *name = strdup(program);
    pid_t pid;
    if (copy != NULL && name != NULL) {
        char *const argv[] = {name, copy, NULL};
        (void)posix_spawnp(&pid, program, NULL, NULL, argv, environ);
    }
    free(copy);
    free(name);
}

/* Returns true if a browser can show something to the person who has started us. */
static bool has_screen(void)
{
    static const char *const variables[] = {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && value[0] != '\0') {
            return isatty(STDOUT_FILENO) == 1;
        }
    }
    return false;
}

/* Prints the URL of a service's page, and opens it. */
static int show(const struct open_args *args, const char *base, const char *service)
{
    struct buf url;
    buf_init(&url, URL_MAX);
    struct sv trimmed = sv_from(base);
    while (trimmed.n > 0 && trimmed.p[trimmed.n - 1] == '/') {
        trimmed.n--;
    }
    bool bare = strstr(base, "://") == NULL;
    buf_printf(&url, "%s%.*s/", bare ? "http://" : "", SV_ARG(trimmed));
    if (service != NULL) {
        buf_putc(&url, '?');
        url_encode_pair(SV("service"), sv_from(service), &url);
    }
    int code = EXIT_INPUT;
    if (buf_ok(&url)) {
        printf("%s\n", url.data);
        code = cmd_flush(EXIT_DONE);
        if (code == EXIT_DONE && !args->print && has_screen()) {
            start_browser(url.data);
        }
    } else {
        fputs("profpull: out of memory\n", stderr);
    }
    buf_done(&url);
    return code;
}

/* Blocks the signals that end the command, in this thread and those that it starts. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Shows the pages of a pod until a signal ends it. */
static int relay(const struct open_args *args, struct agents *agents, const char *service)
{
    struct err err = ERR_INIT;
    char base[64];
    sigset_t set;
    int got;
    const json_t *pod = agents_at(agents, 0);
    block_signals(&set);
    struct relay *r = relay_start(agents, pod, &err);
    if (r == NULL) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    snprintf(base, sizeof(base), "http://127.0.0.1:%u", relay_port(r));
    fprintf(stderr, "profpull: pod %s/%s%s, until Ctrl-C\n", pods_meta(pod, "namespace"),
            pods_meta(pod, "name"),
            agents_count(agents) > 1 ? ", the first of several (--pod names another)" : "");
    int code = show(args, base, service);
    if (code == EXIT_DONE) {
        (void)sigwait(&set, &got);
    }
    relay_stop(r);
    return code;
}

static int open_in_cluster(const struct open_args *args, const char *service)
{
    struct agents agents;
    struct err err = ERR_INIT;
    int code = agents_find(&args->agents, args->pod, ASK_MS, &agents, &err)
                   ? relay(args, &agents, service)
                   : query_fail(&err);
    agents_done(&agents);
    return code;
}

static int run_open(const void *arg, char *const *operands, size_t n)
{
    const struct open_args *args = arg;
    const char *service = n == 1 ? operands[0] : NULL;
    if (args->agents.in_cluster || args->pod != NULL) {
        return open_in_cluster(args, service);
    }
    if (args->agents.namespace != NULL || args->agents.cluster.context != NULL ||
        args->agents.cluster.kubeconfig != NULL) {
        return cmd_usage_error("open", "--namespace, --kubeconfig and --context go with --cluster");
    }
    return show(args, args->url, service);
}

static const struct flag flags[] = {
    FLAG(TEXT, "url", 0, open_args, url, "URL",
         "the server (default " QUERY_URL ", a profpull on this machine)", .env = "PROFPULL_URL"),
    FLAG(BOOL, "print", 0, open_args, print, NULL, "print the URL without starting a browser"),
    FLAG(TEXT, "pod", 0, open_args, pod, "KIND/NAME",
         "the pod of profpull in the cluster, such as deploy/profiling/profpull"),
    AGENTS_FLAGS(open_args, agents),
};

const struct command cmd_open = {
    .name = "open",
    .summary = "open the pages of a running profpull in the browser",
    .usage = "open [SERVICE] [--url URL] [--print]\n"
             "open [SERVICE] --cluster [-n NAMESPACE] [--context NAME] [OPTIONS]",
    .description =
        "Prints the URL of the pages, of one service if it is named, and opens it with BROWSER or "
        "xdg-open if there is a display. With --cluster or --pod, it fetches the pages of a pod "
        "through the API server, shows them on a free port of 127.0.0.1, and runs until Ctrl-C. "
        "It needs the permissions to list pods and to get pods/proxy.",
    .exit_codes =
        "Exit code: 0 done; 1 there is no such pod, or the output cannot be written; 2 usage; "
        "3 the cluster refuses, or does not answer.",
    COMMAND_FLAGS(flags, open_args),
    .defaults = &(const struct open_args){.url = QUERY_URL},
    .operands_max = 1,
    .run = run_open,
};
