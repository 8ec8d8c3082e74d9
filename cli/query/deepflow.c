/* DeepFlow's API ProfileTracing, whose responses are trees. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "cli/query/deepflow_answer.h"
#include "cli/query/source.h"
#include "cli/query/top.h"

#define QUESTION_MAX ((size_t)256 * 1024)

/* ---- the question ---------------------------------------------------------------------------- */

/* Appends a text as a literal of SQL. */
static void put_literal(struct sv text, struct buf *out)
{
    buf_putc(out, '\'');
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'' || text.p[i] == '\\') {
            buf_putc(out, text.p[i]);
        }
        buf_putc(out, text.p[i]);
    }
    buf_putc(out, '\'');
}

static void put_filter(const struct flag_pairs *labels, struct buf *out)
{
    for (size_t i = 0; i < labels->n; i++) {
        buf_printf(out, "%s`%.*s` = ", i > 0 ? " AND " : "", SV_ARG(labels->at[i].name));
        put_literal(sv_from(labels->at[i].value), out);
    }
}

/* Returns DeepFlow's name of the type. */
static const char *event_of(const struct query_ask *ask)
{
    const struct config_type_name *row = config_type_name_find(sv_from(ask->type));
    return row == NULL ? ask->type : row->event;
}

static bool put_question(const struct query_ask *ask, struct buf *out, struct err *err)
{
    struct buf filter;
    buf_init(&filter, QUESTION_MAX);
    put_filter(ask->labels, &filter);
    buf_putc(out, '{');
    json_member("app_service", sv_from(ask->service), out);
    json_member("profile_language_type", sv_from(ask->language), out);
    json_member("profile_event_type", sv_from(event_of(ask)), out);
    json_member("tag_filter", (struct sv){filter.data, filter.len}, out);
    buf_printf(out, ",\"time_start\":%" PRId64 ",\"time_end\":%" PRId64 "}",
               ask->from_ns / NS_PER_S, ask->until_ns / NS_PER_S);
    bool ok = buf_ok(&filter) && buf_ok(out);
    buf_done(&filter);
    return ok || err_memory(err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Returns the unit in which DeepFlow counts an event. */
static const char *unit_of(const char *event)
{
    static const char *const endings[][2] = {
        {"_space", "bytes"},         {"_duration", "nanoseconds"}, {"on-cpu", "microseconds"},
        {"off-cpu", "microseconds"}, {"mem-alloc", "bytes"},       {"mem-inuse", "bytes"},
    };
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (sv_ends_with(sv_from(event), sv_from(endings[i][0]))) {
            return endings[i][1];
        }
    }
    return strcmp(event, "cpu") == 0 ? "samples" : "";
}

static struct tree *deepflow_tree(struct query_peer *p, const struct query_ask *ask,
                                  char unit[TOP_UNIT_MAX], struct err *err)
{
    struct buf body;
    struct tree *t = NULL;
    if (ask->service == NULL) {
        err_set(err, ERR_INPUT, "deepflow needs a --service");
        return NULL;
    }
    buf_init(&body, QUESTION_MAX);
    if (put_question(ask, &body, err)) {
        struct remote_request q = {.path = "/v1/profile/ProfileTracing",
                                   .content_type = "application/json",
                                   .body = {body.data, body.len}};
        json_t *root = remote_fetch_json(p->remote, &q, err);
        if (root != NULL) {
            t = deepflow_answer_read(json_object_get(root, "result"), err);
        } else if (err->kind == ERR_NONE) {
            err_set(err, ERR_REFUSED, "%s%s: an empty answer", p->name, q.path);
        }
        json_decref(root);
    }
    (void)snprintf(unit, TOP_UNIT_MAX, "%s", unit_of(event_of(ask)));
    buf_done(&body);
    return t;
}

const struct query_source query_deepflow = {
    .name = "deepflow",
    .tree = deepflow_tree,
};
