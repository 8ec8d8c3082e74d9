/* The subject flame: a flame graph in the terminal. */
#include <stdio.h>

#include "cli/flame/flame.h"
#include "cli/query/question.h"

#define TITLE_MAX ((size_t)64 * 1024)

static int print_tree(const struct question *q, struct tree *t, const char *unit)
{
    struct err err = ERR_INIT;
    struct buf title;
    struct buf text;
    buf_init(&title, TITLE_MAX);
    buf_init(&text, REMOTE_BODY_MAX);
    question_title(&q->peer, &q->ask, &title);
    const struct flame_options options = {
        .title = title.data,
        .unit = unit,
        .search = q->args->search,
        .depth = (size_t)q->args->depth,
    };
    bool ok = q->args->json ? flame_json(t, unit, &text, &err)
                            : flame_print(t, &options, &q->terminal, &text, &err);
    buf_done(&title);
    return question_print(ok, &text, &err);
}

int show_flame(struct question *q)
{
    char unit[TOP_UNIT_MAX] = "";
    int code;
    struct tree *t;
    if (!question_own_tree(q, &t, unit, &code)) {
        return code;
    }
    code = print_tree(q, t, unit);
    tree_free(t);
    return code;
}
