/* `profpull reload` and `profpull log-level`: change a running process through its admin server. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/query/args.h"
#include "cli/terminal/text.h"

#define STATUS_OK 200
/* Each line of an answer is printed whole. */
#define LINE_COLUMNS ((size_t)64 * 1024)

struct control_args {
    struct query_server server;
};

/* Prints the lines of an answer, without characters that a terminal takes for commands. */
static void print_answer(const struct buf *body, FILE *to)
{
    struct sv rest = {body->data, body->len};
    while (rest.n > 0) {
        struct buf out;
        struct sv line = rest;
        struct sv more = SV("");
        buf_init(&out, 4 * LINE_COLUMNS);
        (void)sv_cut(rest, '\n', &line, &more);
        (void)terminal_put(line, LINE_COLUMNS, true, &out);
        fprintf(to, "%s\n", buf_ok(&out) ? out.data : "");
        buf_done(&out);
        rest = more;
    }
}

/* Posts to a path. The process answers with lines, also if it refuses. */
static int post(const struct control_args *args, const char *path, struct sv query)
{
    struct err err = ERR_INIT;
    struct buf body;
    long status = 0;
    struct remote *r = remote_new(&args->server.endpoint, args->server.timeout_ms, &err);
    struct remote_request q = {
        .path = path, .query = query, .content_type = "text/plain", .ret_status = &status};
    if (r == NULL || !remote_fetch(r, &q, &body, &err)) {
        remote_free(r);
        return query_fail(&err);
    }
    locale_t locale = terminal_text_begin();
    bool ok = status == STATUS_OK;
    if (!ok) {
        fprintf(stderr, "profpull: %s: %s refuses, HTTP %ld:\n", remote_url(r), path, status);
    }
    print_answer(&body, ok ? stdout : stderr);
    terminal_text_end(locale);
    buf_done(&body);
    remote_free(r);
    return ok ? cmd_flush(EXIT_DONE) : EXIT_PEER;
}

static int run_reload(const void *arg, char *const *operands, size_t n)
{
    (void)operands;
    (void)n;
    return post(arg, "/-/reload", SV(""));
}

static const char *const levels[] = {"debug", "info", "warn", "error"};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

static const char *level_at(size_t i)
{
    return i < LEVELS ? levels[i] : NULL;
}

static int run_log_level(const void *arg, char *const *operands, size_t n)
{
    char query[32];
    if (n != 1 || !sv_in(sv_from(operands[0]), levels, LEVELS)) {
        return cmd_usage_error("log-level", "expected one of debug, info, warn, error%s%s",
                               n == 0 ? "" : ", got ", n == 0 ? "" : operands[n - 1]);
    }
    (void)snprintf(query, sizeof(query), "level=%s", operands[0]);
    return post(arg, "/-/log-level", sv_from(query));
}

static const struct flag flags[] = {
    QUERY_URL_FLAG(control_args, server),
    QUERY_ACCESS_FLAGS(control_args, server),
};

static const struct control_args defaults = {.server = QUERY_SERVER_DEFAULTS};

const struct command cmd_reload = {
    .name = "reload",
    .summary = "let a running profpull read its configuration again",
    .usage = "reload [--url http://127.0.0.1:4041] [OPTIONS]",
    .description =
        "Asks the admin server of a running profpull to read its configuration file again, as "
        "SIGHUP does, and waits for the result. A wrong configuration changes nothing: all "
        "mistakes are printed, and the old one stays in force.",
    .exit_codes = "Exit code: 0 the configuration is in force; 1 wrong options for the server; "
                  "2 usage; 3 the configuration is wrong, or no answer.",
    COMMAND_FLAGS(flags, control_args),
    .defaults = &defaults,
    .run = run_reload,
};

const struct command cmd_log_level = {
    .name = "log-level",
    .summary = "change the log level of a running profpull",
    .usage = "log-level debug|info|warn|error [--url http://127.0.0.1:4041] [OPTIONS]",
    .description = "Asks the admin server of a running profpull to change the level of its log "
                   "until it ends or reloads its configuration.",
    .exit_codes = "Exit code: 0 done; 1 wrong options for the server; 2 usage; 3 refused, or no "
                  "answer.",
    COMMAND_FLAGS(flags, control_args),
    .defaults = &defaults,
    .operands_max = SIZE_MAX,
    .subject = level_at,
    .run = run_log_level,
};
