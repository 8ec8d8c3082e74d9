/* The subject top: the functions that use the most, once or again and again. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/query/question.h"

/* Moves the cursor to the first column of the first line, and clears the screen. */
#define CLEAR "\033[H\033[2J\033[3J"

static int print_once(struct question *q)
{
    struct err err = ERR_INIT;
    char unit[TOP_UNIT_MAX] = "";
    struct buf text;
    int code;
    struct tree *t;
    if (!question_own_tree(q, &t, unit, &code)) {
        return code;
    }
    buf_init(&text, REMOTE_BODY_MAX);
    if (q->args->watch && q->terminal.tty && !q->args->json) {
        buf_puts(&text, CLEAR);
    }
    size_t limit = (size_t)q->args->limit;
    bool ok = q->args->json ? top_json(t, unit, limit, &text, &err)
                            : top_print(t, unit, limit, &text, &err);
    tree_free(t);
    return question_print(q, ok, &text, &err);
}

/* Asks again and again, until standard output cannot be written or a signal ends the process. The
 * time range moves with the clock. */
static int watch(struct question *q)
{
    struct err err = ERR_INIT;
    for (;;) {
        int code = print_once(q);
        if (code == EXIT_INPUT) {
            return code;
        }
        struct timespec pause = clock_timespec(q->args->interval_ms);
        (void)nanosleep(&pause, NULL);
        if (!q->terminal.tty && !q->args->json) {
            fputs("\n", stdout);
        }
        if (!query_ask_from(&q->args->common, clock_wall_ns(), &q->ask, &err)) {
            return query_fail(&err);
        }
    }
}

int show_top(struct question *q)
{
    return (q->args->watch ? watch : print_once)(q);
}
