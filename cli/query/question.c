#include "cli/query/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/query/stored.h"
#include "cli/terminal/text.h"

/* ---- the place ------------------------------------------------------------------------------- */

static const struct query_source *source_at(size_t i)
{
    static const struct query_source *const sources[] = {&query_pyroscope, &query_profefe,
                                                         &query_deepflow};
    return i < sizeof(sources) / sizeof(sources[0]) ? sources[i] : NULL;
}

const char *question_protocol(size_t i)
{
    const struct query_source *s = source_at(i);
    return s == NULL ? NULL : s->name;
}

static const struct query_source *find_source(const char *name)
{
    size_t i = 0;
    while (source_at(i) != NULL && strcmp(source_at(i)->name, name) != 0) {
        i++;
    }
    return source_at(i);
}

int question_missing(const struct question *q, const char *subject)
{
    return cmd_usage_error("query", "%s has no API for %s", q->source->name, subject);
}

int question_nothing(const struct question *q, const struct query_peer *peer,
                     const struct query_ask *ask)
{
    struct err err = ERR_INIT;
    bool one = ask->service != NULL;
    if (peer->file != NULL) {
        (void)err_set(&err, ERR_INPUT, "%s: the profile has no samples", peer->name);
    } else {
        (void)err_set(&err, ERR_REFUSED, "%s has no profile of the type \"%s\"%s%s%s in this time",
                      peer->name, ask->type, one ? " and the service \"" : "",
                      one ? ask->service : "", one ? "\"" : "");
    }
    (void)q;
    return query_fail(&err);
}

/* ---- trees ----------------------------------------------------------------------------------- */

struct tree *question_tree(const struct question *q, struct query_peer *peer,
                           const struct query_ask *ask, char unit[TOP_UNIT_MAX], struct err *err)
{
    struct buf body;
    struct tree *t = NULL;
    const struct query_source *source = peer->file != NULL ? &query_file : q->source;
    if (source->merge == NULL) {
        t = source->tree(peer, ask, unit, err);
    } else if (source->merge(peer, ask, &body, err)) {
        t = body.len == 0 ? NULL
                          : top_tree((struct sv){body.data, body.len}, ask->value, ask->as_recorded,
                                     unit, err);
        buf_done(&body);
    }
    if (t != NULL) {
        tree_sum(t);
    }
    return t;
}

bool question_own_tree(struct question *q, struct tree **ret, char unit[TOP_UNIT_MAX],
                       int *ret_code)
{
    struct err err = ERR_INIT;
    *ret = question_tree(q, &q->peer, &q->ask, unit, &err);
    if (*ret != NULL && tree_total(*ret) != 0) {
        return true;
    }
    *ret_code = err.kind == ERR_NONE ? question_nothing(q, &q->peer, &q->ask) : query_fail(&err);
    *ret = tree_free(*ret);
    return false;
}

void question_title(const struct query_peer *peer, const struct query_ask *ask, struct buf *out)
{
    if (peer->file != NULL) {
        const char *slash = strrchr(peer->name, '/');
        buf_puts(out, slash == NULL || slash[1] == '\0' ? peer->name : slash + 1);
    } else {
        buf_printf(out, "%s, %s", ask->service == NULL ? "all services" : ask->service, ask->type);
    }
    for (size_t i = 0; i < ask->labels->n && peer->file == NULL; i++) {
        const struct flag_pair *label = &ask->labels->at[i];
        buf_printf(out, ", %.*s=%s", SV_ARG(label->name), label->value);
    }
}

/* Moves the text of an object into *ret, with the member "partial" first. */
static bool add_partial(const char *partial, struct buf *text, struct buf *ret)
{
    char *why = NULL;
    unsigned long parts = strtoul(partial, &why, 10);
    buf_init(ret, REMOTE_BODY_MAX);
    buf_printf(ret, "{\"partial\":{\"parts\":%lu", parts);
    json_member("why", sv_from(strncmp(why, "; ", 2) == 0 ? why + 2 : why), ret);
    buf_putc(ret, '}');
    const char *rest = text->data + 1 + strspn(text->data + 1, " \n");
    buf_puts(ret, *rest == '}' ? "" : ",");
    bool ok = buf_puts(ret, text->data + 1);
    buf_done(text);
    return ok;
}

int question_print(const struct question *q, bool ok, struct buf *text, const struct err *err)
{
    const char *partial = remote_partial(q->peer.remote);
    struct buf marked;
    if (!ok) {
        buf_done(text);
        return query_fail(err);
    }
    /* The member of a server's own object stays. */
    if (partial != NULL && q->args->json && text->len > 0 && text->data[0] == '{' &&
        strstr(text->data, "\"partial\"") == NULL) {
        ok = add_partial(partial, text, &marked);
        *text = marked;
    }
    int code = cmd_print(ok, text, stdout);
    return code == EXIT_DONE ? cmd_flush(EXIT_DONE) : code;
}

/* ---- running --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    question_show *show;
    bool operand; /* needs one */
} subjects[] = {
    {"services", show_services, false}, {"types", show_types, false}, {"top", show_top, false},
    {"flame", show_flame, false},       {"diff", show_diff, false},   {"peek", show_peek, true},
    {"changes", show_changes, false},   {"merge", show_merge, false},
};

const char *question_subject(size_t i)
{
    return i < sizeof(subjects) / sizeof(subjects[0]) ? subjects[i].name : NULL;
}

static const char *variable(const char *name)
{
    return getenv(name);
}

static void set_terminal(struct question *q)
{
    const struct query_args *args = q->args;
    q->terminal = terminal_describe(variable);
    terminal_set_colours(&q->terminal, args->colour);
    q->terminal.utf8 = q->terminal.utf8 && !args->ascii;
    if (args->width > 0) {
        q->terminal.width = args->width < TERMINAL_WIDTH_MIN ? TERMINAL_WIDTH_MIN : args->width;
    }
}

/* Opens the place that the flags name. */
static bool open_peer(struct question *q, struct err *err)
{
    const struct query_args *args = q->args;
    if (args->file != NULL) {
        q->source = &query_file;
        q->peer.file = args->file;
        q->peer.name = args->title != NULL            ? args->title
                       : strcmp(args->file, "-") == 0 ? "standard input"
                                                      : args->file;
        return true;
    }
    if (args->store != NULL) {
        q->source = &query_stored;
        q->peer.name = args->store;
        q->peer.store = query_open_store(args->store, err);
        return q->peer.store != NULL;
    }
    q->peer.remote = remote_new(&args->common.server.endpoint, args->common.server.timeout_ms, err);
    q->peer.name = q->peer.remote == NULL ? "" : remote_url(q->peer.remote);
    return q->peer.remote != NULL;
}

/* Fills in the rest of the question. */
static bool fill_ask(struct question *q, struct err *err)
{
    const struct query_args *args = q->args;
    bool typed = args->type != NULL || args->file != NULL;
    q->ask.type = typed ? args->type : "cpu";
    q->ask.value = args->value;
    /* A profile of profefe has all sample types. */
    const struct config_type_name *row = config_type_name_find(sv_from(q->ask.type));
    if (q->source == &query_profefe && row != NULL && args->value == NULL) {
        struct sv sample = config_type_name_sample(row);
        (void)snprintf(q->value, sizeof(q->value), "%.*s", SV_ARG(sample));
        q->ask.value = q->value;
    }
    q->ask.as_recorded = args->as_recorded;
    q->ask.language = args->language;
    return query_ask_from(&args->common, clock_wall_ns(), &q->ask, err);
}

int question_run(const struct query_args *args, const char *subject, const char *operand)
{
    struct err err = ERR_INIT;
    struct query_args given = *args;
    struct question q = {.args = &given, .source = find_source(args->protocol), .operand = operand};
    size_t i = 0;
    while (question_subject(i) != NULL && strcmp(question_subject(i), subject) != 0) {
        i++;
    }
    if (question_subject(i) == NULL) {
        return cmd_usage_error(
            "query", "expected one of services, types, top, flame, diff, peek, changes, merge%s%s",
            subject[0] == '\0' ? "" : ", got ", subject);
    }
    if (subjects[i].operand != (operand != NULL)) {
        return cmd_usage_error(
            "query",
            subjects[i].operand
                ? "%s needs a FUNCTION"
                : "%s: unexpected argument: %s; --file FILE asks a file, --service NAME a service",
            subject, operand);
    }
    if (args->file != NULL && args->store != NULL) {
        return cmd_usage_error("query", "--file and --store exclude each other");
    }
    if (given.common.since_ms == 0) {
        given.common.since_ms = subjects[i].show == show_changes ? MS_PER_DAY : MS_PER_HOUR;
    }
    set_terminal(&q);
    if (!fill_ask(&q, &err)) {
        return cmd_usage_error("query", "%s", err.msg);
    }
    if (!open_peer(&q, &err)) {
        return query_fail(&err);
    }
    locale_t locale = terminal_text_begin();
    int code = subjects[i].show(&q);
    terminal_text_end(locale);
    remote_free(q.peer.remote);
    store_close(q.peer.store);
    return code;
}
