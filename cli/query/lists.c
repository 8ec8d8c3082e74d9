/* The subjects services, types and merge. */
#include <jansson.h>
#include <stdlib.h>

#include "cli/query/question.h"
#include "cli/terminal/text.h"

/* Names in a list may be long; no terminal has as many columns. */
#define COLUMNS_MAX ((size_t)64 * 1024)

/* Prints a list, one entry a line or as JSON. Frees the list. */
static int print_list(const struct question *q, json_t *list)
{
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, REMOTE_BODY_MAX);
    if (q->args->json) {
        char *json = json_dumps(list, JSON_INDENT(2));
        buf_printf(&text, "%s\n", json == NULL ? "" : json);
        free(json);
    }
    for (size_t i = 0; i < json_array_size(list) && !q->args->json; i++) {
        const char *item = json_string_value(json_array_get(list, i));
        if (item != NULL) {
            (void)terminal_put(sv_from(item), COLUMNS_MAX, true, &text);
            buf_putc(&text, '\n');
        }
    }
    json_decref(list);
    return question_print(q, buf_ok(&text) || err_memory(&err), &text, &err);
}

int show_services(struct question *q)
{
    struct err err = ERR_INIT;
    if (q->source->services == NULL) {
        return question_missing(q, "services");
    }
    json_t *list = q->source->services(&q->peer, &q->ask, &err);
    return list == NULL ? query_fail(&err) : print_list(q, list);
}

int show_types(struct question *q)
{
    struct err err = ERR_INIT;
    if (q->source->types == NULL) {
        return question_missing(q, "types");
    }
    json_t *list = q->source->types(&q->peer, &q->ask, &err);
    return list == NULL ? query_fail(&err) : print_list(q, list);
}

int show_merge(struct question *q)
{
    struct err err = ERR_INIT;
    struct buf body;
    if (q->args->output == NULL) {
        return cmd_usage_error("query", "merge needs --output");
    }
    if (q->source->merge == NULL) {
        return question_missing(q, "merged profiles");
    }
    if (!q->source->merge(&q->peer, &q->ask, &body, &err)) {
        return query_fail(&err);
    }
    int code = body.len == 0 ? question_nothing(q, &q->peer, &q->ask)
                             : query_write_profile(q->args->output,
                                                   (struct sv){body.data, body.len}, q->args->json);
    buf_done(&body);
    return code;
}
