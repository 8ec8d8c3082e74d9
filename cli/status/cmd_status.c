/* `profpull status`: shows the state of a running process. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cluster/agents.h"
#include "cli/cmd.h"
#include "cli/query/args.h"
#include "cli/status/show.h"

#define PATH "/api/v1/status"
/* Columns, if there is no terminal whose width is known. */
#define WIDTH_DEFAULT 100
#define WIDTH_MIN 40
#define TEXT_MAX ((size_t)16 * 1024 * 1024)
/* Moves the cursor to the first column of the first line, and clears the screen. */
#define CLEAR "\033[H\033[2J\033[3J"

struct status_args {
    struct query_server server;
    struct agents_flags agents;
    const char *operand; /* the pods of profpull; NULL: those with its label */
    bool watch;
    bool json;
    int64_t interval_ms;
};

static struct show_style style_of_terminal(void)
{
    struct winsize size = {.ws_col = 0};
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool tty = isatty(STDOUT_FILENO) == 1;
    bool plain = term == NULL || strcmp(term, "dumb") == 0;
    struct show_style style = {
        .width = WIDTH_DEFAULT,
        .colours = tty && !plain && (no_color == NULL || no_color[0] == '\0'),
    };
    if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
    }
    return style;
}

static int print_status(const struct status_args *args, const json_t *status)
{
    struct show_style style = style_of_terminal();
    struct buf text;
    buf_init(&text, TEXT_MAX);
    if (args->watch && isatty(STDOUT_FILENO) == 1) {
        buf_puts(&text, CLEAR);
    }
    bool ok;
    if (args->json) {
        char *json = json_dumps(status, JSON_INDENT(2));
        ok = json != NULL && buf_printf(&text, "%s\n", json);
        free(json);
    } else {
        ok = status_show(status, &style, &text);
    }
    int code = cmd_print(ok, &text, stdout);
    code = code == EXIT_DONE ? cmd_flush(EXIT_DONE) : code;
    return code == EXIT_DONE && !status_is_well(status) ? EXIT_PEER : code;
}

/* The process that is asked: a server, or pods in a cluster. */
struct asked {
    const struct status_args *args;
    struct remote *remote; /* NULL: the pods */
    struct agents agents;
};

static int ask_server(const struct status_args *args, struct remote *remote)
{
    struct err err = ERR_INIT;
    struct remote_request q = {.path = PATH, .query = SV("")};
    json_t *status = remote_fetch_json(remote, &q, &err);
    if (status == NULL || !json_is_object(status)) {
        json_decref(status);
        if (err.kind == ERR_NONE) {
            (void)err_set(&err, ERR_REFUSED, "%s%s: expected an object of JSON", remote_url(remote),
                          PATH);
        }
        return query_fail(&err);
    }
    int code = print_status(args, status);
    json_decref(status);
    return code;
}

/* Asks one pod. */
static int ask_pod(const struct asked *asked, const json_t *pod)
{
    struct cluster_answer a;
    struct err err = ERR_INIT;
    if (!agents_get(asked->agents.cluster, pod, PATH, SV(""), &a, &err)) {
        return query_fail(&err);
    }
    json_t *status = a.status == 200 ? json_loadb(a.body.data, a.body.len, 0, NULL) : NULL;
    int code = EXIT_PEER;
    if (json_is_object(status)) {
        code = print_status(asked->args, status);
    } else {
        (void)err_set(&err, ERR_REFUSED,
                      "pod %s/%s: GET %s on port %u: HTTP %ld, which is not a status of profpull",
                      pods_meta(pod, "namespace"), pods_meta(pod, "name"), PATH, agents_port(pod),
                      a.status);
        code = query_fail(&err);
    }
    json_decref(status);
    cluster_answer_done(&a);
    return code;
}

/* Asks each pod. Returns the exit code of the first one that is not well. */
static int ask_pods(const struct asked *asked)
{
    int code = EXIT_DONE;
    size_t n = agents_count(&asked->agents);
    for (size_t i = 0; i < n; i++) {
        const json_t *pod = agents_at(&asked->agents, i);
        if (n > 1 && !asked->args->json) {
            printf("%spod %s/%s\n", i == 0 ? "" : "\n", pods_meta(pod, "namespace"),
                   pods_meta(pod, "name"));
        }
        int one = ask_pod(asked, pod);
        code = code == EXIT_DONE ? one : code;
    }
    return code;
}

static int ask(const struct asked *asked)
{
    return asked->remote == NULL ? ask_pods(asked) : ask_server(asked->args, asked->remote);
}

static int watch(const struct asked *asked)
{
    const struct status_args *args = asked->args;
    for (;;) {
        int code = ask(asked);
        if (code == EXIT_INPUT) {
            return code; /* nobody reads the output */
        }
        struct timespec pause = clock_timespec(args->interval_ms);
        (void)nanosleep(&pause, NULL);
        if (isatty(STDOUT_FILENO) != 1) {
            fputs(args->json ? "" : "\n", stdout);
        }
    }
}

static bool find(struct asked *asked, struct err *err)
{
    const struct status_args *args = asked->args;
    if (args->operand != NULL || args->agents.in_cluster) {
        return agents_find(&args->agents, args->operand, args->server.timeout_ms, &asked->agents,
                           err);
    }
    asked->remote = remote_new(&args->server.endpoint, args->server.timeout_ms, err);
    return asked->remote != NULL;
}

static int run_status(const void *arg, char *const *operands, size_t n)
{
    struct status_args args = *(const struct status_args *)arg;
    struct err err = ERR_INIT;
    struct asked asked = {.args = &args};
    args.operand = n == 1 ? operands[0] : NULL;
    bool in_cluster = args.agents.in_cluster || args.operand != NULL;
    if (!in_cluster && (args.agents.namespace != NULL || args.agents.cluster.context != NULL ||
                        args.agents.cluster.kubeconfig != NULL)) {
        return cmd_usage_error("status",
                               "--namespace, --kubeconfig and --context go with --cluster");
    }
    int code = find(&asked, &err) ? (args.watch ? watch : ask)(&asked) : query_fail(&err);
    remote_free(asked.remote);
    agents_done(&asked.agents);
    return code;
}

static const struct flag flags[] = {
    QUERY_URL_FLAG(status_args, server),
    FLAG(BOOL, "watch", 'w', status_args, watch, NULL, "repeat until Ctrl-C"),
    FLAG(DURATION, "interval", 0, status_args, interval_ms, "DUR",
         "time between two updates, with --watch", .min = 100),
    FLAG(BOOL, "json", 0, status_args, json, NULL, "print the response of " PATH),
    AGENTS_FLAGS(status_args, agents),
    QUERY_ACCESS_FLAGS(status_args, server),
};

const struct command cmd_status = {
    .name = "status",
    .summary = "show the state of a running profpull: targets, failures, destinations",
    .usage = "status [--url http://127.0.0.1:4041] [--watch [--interval 2s]] [--json] [OPTIONS]\n"
             "status --cluster [-n NAMESPACE] [OPTIONS]\n"
             "status deploy/NAMESPACE/NAME [OPTIONS]",
    .description =
        "Asks the admin server of a running profpull and prints its state: scrapes by job and "
        "state, those that fail with their reason and what to do about it, the slowest ones, "
        "sources of targets, and destinations with their queues. With --cluster, or with the name "
        "of "
        "a workload, it asks the pods of profpull in a cluster through the API server, which needs "
        "the permissions to list pods and to get pods/proxy.",
    .exit_codes = "Exit code: 0 all is well; 1 wrong options for the server, or the output cannot "
                  "be written; 2 usage; 3 something fails, or no answer.",
    COMMAND_FLAGS(flags, status_args),
    .defaults =
        &(const struct status_args){.server = QUERY_SERVER_DEFAULTS, .interval_ms = 2 * MS_PER_S},
    .operands_max = 1,
    .run = run_status,
};
