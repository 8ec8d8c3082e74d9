/* The subject diff: two ranges, two selections, or two files. */
#include "base/clock.h"
#include "cli/query/changes.h"
#include "cli/query/question.h"

static bool is_base_given(const struct query_base *b)
{
    return b->file != NULL || b->service != NULL || b->labels.n > 0 ||
           b->from_ns != QUERY_NO_TIME || b->until_ns != QUERY_NO_TIME || b->before_ms > 0;
}

/* Sets the time range of the base: the given one, or that of the question moved into the past. */
static bool set_times(const struct question *q, struct query_ask *ask, struct err *err)
{
    const struct query_base *b = &q->args->base;
    int64_t length = ask->until_ns - ask->from_ns;
    int64_t back = b->before_ms * NS_PER_MS;
    ask->until_ns = b->until_ns != QUERY_NO_TIME ? b->until_ns : ask->until_ns - back;
    ask->from_ns = b->from_ns != QUERY_NO_TIME    ? b->from_ns
                   : b->until_ns != QUERY_NO_TIME ? b->until_ns - length
                                                  : ask->from_ns - back;
    if (ask->from_ns > ask->until_ns) {
        return err_set(err, ERR_INPUT, "--base-from is after the end of the base");
    }
    return ask->from_ns >= 0 || err_set(err, ERR_INPUT, "the base begins before 1970");
}

/* Adds the labels of the question that the base does not replace. */
static bool add_labels(const struct question *q, struct flag_pairs *labels, struct err *err)
{
    const struct flag_pairs *own = q->ask.labels;
    size_t given = labels->n;
    for (size_t i = 0; i < own->n; i++) {
        bool replaced = false;
        for (size_t k = 0; k < given; k++) {
            replaced = replaced || sv_eq(labels->at[k].name, own->at[i].name);
        }
        if (!replaced && labels->n == FLAG_PAIRS_MAX) {
            return err_set(err, ERR_INPUT, "at most %d labels", FLAG_PAIRS_MAX);
        }
        if (!replaced) {
            labels->at[labels->n++] = own->at[i];
        }
    }
    return true;
}

static int print_changes(const struct question *q, const struct tree *base, const struct tree *now,
                         const char *unit)
{
    struct err err = ERR_INIT;
    struct changes changes;
    struct buf text;
    struct arena *arena = arena_new(TOP_BYTES_MAX);
    buf_init(&text, REMOTE_BODY_MAX);
    bool ok = arena != NULL ? changes_make(base, now, q->args->normalize, arena, &changes, &err)
                            : err_memory(&err);
    if (ok) {
        (q->args->json ? changes_json : changes_print)(&changes, unit, (size_t)q->args->limit,
                                                       &text);
        ok = buf_ok(&text) || err_memory(&err);
    }
    arena_free(arena);
    return question_print(q, ok, &text, &err);
}

/* A side without profiles is empty: every function has grown, or shrunk. */
static struct tree *side(struct question *q, struct query_peer *peer, const struct query_ask *ask,
                         char unit[TOP_UNIT_MAX], struct err *err)
{
    struct tree *t = question_tree(q, peer, ask, unit, err);
    return t == NULL && err->kind == ERR_NONE ? tree_new(TOP_BYTES_MAX, err) : t;
}

int show_diff(struct question *q)
{
    const struct query_base *b = &q->args->base;
    struct err err = ERR_INIT;
    char unit[TOP_UNIT_MAX] = "";
    char base_unit[TOP_UNIT_MAX] = "";
    struct flag_pairs labels = b->labels;
    struct query_ask ask = q->ask;
    struct query_peer file = {.name = b->file, .file = b->file};
    struct query_peer *peer = b->file != NULL ? &file : &q->peer;
    if (!is_base_given(b)) {
        return cmd_usage_error("query", "diff needs a base: --base-before, --base-from, "
                                        "--base-until, --base-label, --base-service or "
                                        "--base-file");
    }
    if (!set_times(q, &ask, &err) || !add_labels(q, &labels, &err)) {
        return cmd_usage_error("query", "%s", err.msg);
    }
    ask.labels = &labels;
    ask.service = b->service != NULL ? b->service : ask.service;
    struct tree *base = side(q, peer, &ask, base_unit, &err);
    struct tree *now = base == NULL ? NULL : side(q, &q->peer, &q->ask, unit, &err);
    int code;
    if (now == NULL) {
        code = query_fail(&err);
    } else if (tree_total(base) == 0 && tree_total(now) == 0) {
        code = question_nothing(q, &q->peer, &q->ask);
    } else if (tree_total(base) != 0 && tree_total(now) != 0 && !str_same(unit, base_unit)) {
        (void)err_set(&err, ERR_INPUT, "the base is in %s, the other profile in %s: use --value",
                      base_unit, unit);
        code = query_fail(&err);
    } else {
        code = print_changes(q, base, now, tree_total(now) == 0 ? base_unit : unit);
    }
    tree_free(base);
    tree_free(now);
    return code;
}
