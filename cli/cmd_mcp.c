/* `profpull mcp`: a server of the Model Context Protocol on standard input and output, for
 * assistants that start their servers themselves. Each line is a message, which is passed on to
 * POST /mcp of a running profpull; its response becomes a line. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/mcp/message.h"
#include "base/base64.h"
#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/query/args.h"
#include "cli/query/remote.h"
#include "http/http.h"

#define PATH "/mcp"

struct mcp_args {
    struct query_server server;
};

/* A message on its way. */
struct passing {
    json_t *root; /* NULL if the line is not JSON */
    struct buf name;
    struct http_header headers[REMOTE_HEADERS_MAX];
    size_t n_headers;
};

static void add_header(struct passing *p, const char *name, const char *value)
{
    if (value != NULL) {
        p->headers[p->n_headers++] = (struct http_header){name, value};
    }
}

/* Makes the value of Mcp-Name: the name, or its base64 if a header cannot carry it. */
static void make_name(struct passing *p, const char *name)
{
    bool plain = name[0] != '\0' && name[0] != ' ' && strncmp(name, "=?", 2) != 0;
    for (const char *c = name; *c != '\0'; c++) {
        plain = plain && *c >= ' ' && *c <= '~';
    }
    buf_puts(&p->name, plain ? name : "=?base64?");
    if (!plain) {
        base64_encode(sv_from(name), &p->name);
        buf_puts(&p->name, "?=");
    }
}

/* Sets the headers that repeat parts of the message. Clients of older revisions send none. */
static void set_headers(struct passing *p)
{
    const json_t *params = json_object_get(p->root, "params");
    const char *version = json_string_value(
        json_object_get(json_object_get(params, "_meta"), MCP_META "protocolVersion"));
    const char *name = json_string_value(json_object_get(params, "name"));
    if (version == NULL) {
        return;
    }
    add_header(p, "MCP-Protocol-Version", version);
    add_header(p, "Mcp-Method", json_string_value(json_object_get(p->root, "method")));
    if (name != NULL) {
        make_name(p, name);
        add_header(p, "Mcp-Name", buf_ok(&p->name) ? p->name.data : NULL);
    }
}

/* Writes a line. Returns false if nobody reads it. */
static bool write_line(const json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    bool ok = text != NULL && printf("%s\n", text) > 0 && fflush(stdout) == 0;
    free(text);
    return ok;
}

/* Writes an error as the response to a request; notifications have none. */
static bool write_error(const struct passing *p, enum mcp_code code, const char *text)
{
    const json_t *id = json_object_get(p->root, "id");
    fprintf(stderr, "profpull mcp: %s\n", text);
    if (p->root != NULL && id == NULL) {
        return true;
    }
    json_t *message = json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error",
                                "code", (int)code, "message", text);
    if (message != NULL && id == NULL) {
        json_object_set_new(message, "id", json_null());
    }
    bool ok = message != NULL && write_line(message);
    json_decref(message);
    return ok;
}

/* Writes the response of the server. */
static bool write_answer(const struct passing *p, const struct remote *remote, long status,
                         const struct buf *body)
{
    char text[MCP_MESSAGE_MAX];
    if (body->len == 0 && status < 300) {
        return true; /* a notification was accepted */
    }
    json_t *message = json_loadb(body->data, body->len, 0, NULL);
    bool ok = json_is_object(message) && json_object_get(message, "jsonrpc") != NULL;
    if (ok) {
        ok = write_line(message);
    } else {
        (void)snprintf(text, sizeof(text), "%s" PATH ": HTTP %ld, and no message of the protocol",
                       remote_url(remote), status);
        ok = write_error(p, MCP_INTERNAL, text);
    }
    json_decref(message);
    return ok;
}

/* Passes a line on. Returns false if nobody reads the output. */
static bool pass(struct remote *remote, struct sv line)
{
    struct passing p = {.root = json_loadb(line.p, line.n, 0, NULL)};
    struct err err = ERR_INIT;
    struct buf body;
    long status = 0;
    bool ok;
    buf_init(&p.name, MCP_BODY_MAX);
    if (line.n > MCP_BODY_MAX || !json_is_object(p.root)) {
        ok = write_error(&p, MCP_PARSE_ERROR, "a line is no message of the protocol");
    } else {
        set_headers(&p);
        const struct remote_request request = {.path = PATH,
                                               .query = SV(""),
                                               .content_type = "application/json",
                                               .body = line,
                                               .headers = p.headers,
                                               .n_headers = p.n_headers,
                                               .ret_status = &status};
        if (remote_fetch(remote, &request, &body, &err)) {
            ok = write_answer(&p, remote, status, &body);
            buf_done(&body);
        } else {
            ok = write_error(&p, MCP_INTERNAL, err.msg);
        }
    }
    buf_done(&p.name);
    json_decref(p.root);
    return ok;
}

static int run_mcp(const void *arg, char *const *operands, size_t n)
{
    const struct mcp_args *args = arg;
    struct err err = ERR_INIT;
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bool ok = true;
    (void)operands;
    if (n > 0) {
        return cmd_usage_error("mcp", "expected no operands, got %zu", n);
    }
    struct remote *remote = remote_new(&args->server.endpoint, args->server.timeout_ms, &err);
    if (remote == NULL) {
        return query_fail(&err);
    }
    while (ok && (length = getline(&line, &size, stdin)) >= 0) {
        struct sv text = sv_trim((struct sv){line, (size_t)length});
        ok = text.n == 0 || pass(remote, text);
    }
    free(line);
    remote_free(remote);
    return ok ? EXIT_DONE : EXIT_INPUT;
}

static const struct flag flags[] = {
    QUERY_URL_FLAG(mcp_args, server),
    QUERY_ACCESS_FLAGS(mcp_args, server),
};

const struct command cmd_mcp = {
    .name = "mcp",
    .summary = "let a coding assistant ask for profiles",
    .usage = "mcp [--url http://127.0.0.1:4041] [OPTIONS]",
    .description =
        "Serves the Model Context Protocol on standard input and output, one message a line, until "
        "the input ends: configure it as the command of a server in your assistant. The requests "
        "go to the query API of a running profpull, which reads its store and changes nothing. An "
        "assistant that can use HTTP asks URL/mcp itself.",
    .exit_codes = "Exit code: 0 the input has ended; 1 the output cannot be written, or wrong "
                  "options for the server; 2 usage; 3 the client cannot be made.",
    COMMAND_FLAGS(flags, mcp_args),
    .defaults = &(const struct mcp_args){.server = QUERY_SERVER_DEFAULTS},
    .run = run_mcp,
};
