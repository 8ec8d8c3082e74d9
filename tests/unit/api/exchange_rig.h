/* Requests to the APIs without a server: the text of one is parsed, finds its route and is worked
 * on, and the answer can be looked at.
 */
#ifndef PROFPULL_TESTS_EXCHANGE_RIG_H
#define PROFPULL_TESTS_EXCHANGE_RIG_H

#include <stdatomic.h>
#include <stdlib.h>

#include "api/served.h"
#include "api/tables.h"
#include "pages/pages.h"
#include "server/exchange.h"
#include "server/routes.h"
#include "tests/unit/lib/testing.h"

#define RIG_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* The process that the APIs and pages are asked about. */
struct rig_process {
    unsigned sets; /* of routes */
    struct metrics *metrics;
    struct log *log;
    struct served served;
};

struct rig_answer {
    int status; /* 0: there is no route */
    char *type; /* "" if there is none */
    char *headers;
    char *body;
    size_t n;
    char *trailers;
};

static inline void rig_answer_done(struct rig_answer *a)
{
    free(a->type);
    free(a->headers);
    free(a->body);
    free(a->trailers);
}
SCOPED_VALUE(rig_answer, rig_answer_done)

/* head: all lines, "\r\n" at the end of each, without the empty one. */
static inline struct rig_answer rig_ask_within(const struct rig_process *process, const char *head,
                                               struct sv body, size_t bytes_max, bool cancelled)
{
    char text[REQUEST_HEAD_MAX];
    char decoded[REQUEST_HEAD_MAX];
    struct request r;
    const atomic_bool gone = cancelled;
    int n = snprintf(text, sizeof(text), "%s\r\n", head);
    assert_int_equal(request_parse((struct sv){text, (size_t)n}, decoded, &r), 0);
    static const struct route *const routes[] = {page_routes, API_TABLES, NULL};
    static const char *const prefixes[] = {API_PREFIXES, NULL};
    const struct server_options options = {.sets = process->sets,
                                           .routes = routes,
                                           .api_prefixes = prefixes,
                                           .metrics = process->metrics,
                                           .log = process->log,
                                           .served = &process->served};
    struct route_match match = routes_find(&options, &r);
    struct rig_answer answer = {.status = 0};
    if (match.route != NULL && match.route->work != NULL) {
        struct exchange x = {.request = &r,
                             .options = &options,
                             .body = body,
                             .cancelled = &gone,
                             .bytes_max = bytes_max,
                             .status = 200};
        buf_init(&x.headers, 4096);
        buf_init(&x.reply, bytes_max);
        buf_init(&x.trailers, 4096);
        match.route->work(&x);
        answer.status = x.status;
        answer.type = strdup(x.content_type == NULL ? "" : x.content_type);
        answer.headers = strdup(x.headers.data);
        answer.n = x.reply.len;
        answer.body = buf_take(&x.reply, NULL);
        answer.trailers = strdup(x.trailers.data);
        buf_done(&x.headers);
        buf_done(&x.trailers);
    } else if (match.other != NULL) {
        answer.status = STATUS_METHOD;
    }
    if (answer.body == NULL) {
        answer.body = strdup("");
    }
    return answer;
}

static inline struct rig_answer rig_ask(const struct rig_process *process, const char *head,
                                        struct sv body)
{
    return rig_ask_within(process, head, body, RIG_BYTES_MAX, false);
}

/* A call with a message in JSON. */
static inline struct rig_answer rig_call(const struct rig_process *process, const char *path,
                                         const char *json)
{
    char head[512];
    snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nContent-Type: application/json\r\n", path);
    return rig_ask(process, head, sv_from(json));
}

#endif
