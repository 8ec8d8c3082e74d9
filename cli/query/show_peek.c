/* The subject peek: the callers and callees of functions. */
#include "cli/query/peek.h"
#include "cli/query/question.h"

int show_peek(struct question *q)
{
    struct err err = ERR_INIT;
    struct peek peek;
    struct buf text;
    char unit[TOP_UNIT_MAX] = "";
    int code;
    struct tree *t;
    if (!question_own_tree(q, &t, unit, &code)) {
        return code;
    }
    struct arena *arena = arena_new(TOP_BYTES_MAX);
    buf_init(&text, REMOTE_BODY_MAX);
    bool ok = arena != NULL ? peek_make(t, q->operand, arena, &peek, &err) : err_memory(&err);
    if (ok) {
        (q->args->json ? peek_json : peek_print)(&peek, unit, &text);
        ok = buf_ok(&text) || err_memory(&err);
    }
    code = question_print(q, ok, &text, &err);
    arena_free(arena);
    tree_free(t);
    return code;
}
