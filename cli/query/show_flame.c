/* The subject flame: a flame graph in the terminal. */
#include <signal.h>
#include <stdio.h>

#include "cli/flame/browse.h"
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
    return question_print(q, ok, &text, &err);
}

/* Shows the graph until the user quits. A signal that ended it ends the process, too. */
static int browse(const struct question *q, struct tree *t, const char *unit)
{
    struct err err = ERR_INIT;
    struct buf title;
    int signal_number = 0;
    buf_init(&title, TITLE_MAX);
    question_title(&q->peer, &q->ask, &title);
    const struct flame_options options = {
        .title = title.data, .unit = unit, .search = q->args->search};
    struct browse *b = browse_new(t, &options, &q->terminal, &err);
    bool ok = b != NULL && browse_run(b, &signal_number, &err);
    browse_free(b);
    buf_done(&title);
    if (signal_number != 0) {
        (void)raise(signal_number);
    }
    return ok ? EXIT_DONE : cmd_fail(EXIT_INPUT, &err);
}

int show_flame(struct question *q)
{
    char unit[TOP_UNIT_MAX] = "";
    int code;
    struct tree *t;
    if (!question_own_tree(q, &t, unit, &code)) {
        return code;
    }
    code = (q->args->interactive ? browse : print_tree)(q, t, unit);
    tree_free(t);
    return code;
}
