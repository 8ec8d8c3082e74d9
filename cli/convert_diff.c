#include "cli/convert_diff.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/pipeline.h"
#include "cli/cmd.h"
#include "config/target_file.h"
#include "discovery/lists/static.h"
#include "model/masking.h"

#define LINES_MAX_BYTES ((size_t)1024 * 1024 * 1024)

/* The scrapes that one of the two configurations makes of the list of targets, one a line. */
struct side {
    const struct config *config;
    struct buf lines;
    struct sv *sorted; /* views of the lines, sorted */
    size_t n;
};

static void put_scrape(struct side *s, const char *job, const struct target *t, size_t i)
{
    char interval[32];
    struct buf url;
    buf_init(&url, LINES_MAX_BYTES);
    target_shown_url(t, i, &url);
    format_duration_ms(target_interval_ms(t, i), interval, sizeof(interval));
    buf_putc(&s->lines, '{');
    json_member("job", sv_from(job), &s->lines);
    json_member("type", sv_from(target_scrape_type(t, i)->name), &s->lines);
    json_member("interval", sv_from(interval), &s->lines);
    json_member("url", (struct sv){url.data, url.len}, &s->lines);
    json_key("labels", &s->lines);
    mask_labels_json(target_labels(t), s->config->global.mask_all_params, &s->lines);
    buf_puts(&s->lines, "}\n");
    s->n++;
    if (!buf_ok(&url)) {
        buf_append(&s->lines, NULL, s->lines.max); /* makes the buffer fail */
    }
    buf_done(&url);
}

static void convert_diff_on_verdict(void *arg, const struct pipeline_verdict *v)
{
    struct side *s = arg;
    for (size_t i = 0; v->target != NULL && i < target_scrape_count(v->target); i++) {
        put_scrape(s, s->config->jobs[v->group->job].name, v->target, i);
    }
}

static bool run_pipeline(struct side *s, const struct static_group *list, struct intern *intern,
                         struct err *err)
{
    const struct pipeline_options options = {
        .config = s->config, .intern = intern, .on_verdict = convert_diff_on_verdict, .arg = s};
    struct pipeline *pipeline = pipeline_new(&options, err);
    for (size_t job = 0; pipeline != NULL && job < s->config->n_jobs; job++) {
        const struct target_group group = {.job = job,
                                           .source = "targets",
                                           .kind = GROUP_LISTED,
                                           .targets = list->at,
                                           .n_targets = list->n};
        pipeline_group(pipeline, &group);
    }
    bool ok = pipeline != NULL;
    pipeline_free(pipeline);
    return ok && (buf_ok(&s->lines) || err_memory(err));
}

static int compare(const void *a, const void *b)
{
    return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

static bool sort_lines(struct side *s, struct err *err)
{
    struct sv rest = {s->lines.data, s->lines.len};
    s->sorted = calloc(s->n + 1, sizeof(*s->sorted));
    if (s->sorted == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < s->n; i++) {
        (void)sv_cut(rest, '\n', &s->sorted[i], &rest);
    }
    qsort(s->sorted, s->n, sizeof(*s->sorted), compare);
    return true;
}

/* Prints the lines that only one side has. Returns their number. */
static size_t print_differences(const struct side *file, const struct side *converted)
{
    size_t i = 0;
    size_t k = 0;
    size_t n = 0;
    while (i < file->n || k < converted->n) {
        int order = i == file->n        ? 1
                    : k == converted->n ? -1
                                        : sv_cmp(file->sorted[i], converted->sorted[k]);
        if (order != 0) {
            struct sv line = order < 0 ? file->sorted[i] : converted->sorted[k];
            printf("%c %.*s\n", order < 0 ? '-' : '+', (int)line.n, line.p);
            n++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    return n;
}

static int conclude(const struct side *file, const struct side *converted)
{
    size_t n = print_differences(file, converted);
    if (n == 0) {
        printf("no difference: %zu scrape%s of the same targets, with the same labels\n", file->n,
               file->n == 1 ? "" : "s");
    } else {
        printf("%zu difference%s: the file has %zu scrapes, the converted YAML %zu\n", n,
               n == 1 ? "" : "s", file->n, converted->n);
    }
    return n == 0 ? EXIT_DONE : EXIT_INPUT;
}

static bool read_group(const char *path, struct arena *arena, struct intern *intern,
                       struct static_group *ret, struct err *err)
{
    struct buf text;
    struct target_file list;
    buf_init(&text, CONFIG_FILE_MAX + 1);
    bool ok = target_file_read(path, &text, err) &&
              target_file_parse((struct sv){text.data, text.len}, arena, &list, err);
    if (!ok) {
        (void)err_wrap(err, "%s", path);
    }
    buf_done(&text);
    return ok && static_group_make(list.groups, list.n, NULL, intern, ret, err);
}

int convert_diff(const struct config *config, const struct config *converted, const char *targets)
{
    struct side sides[2] = {{.config = config}, {.config = converted}};
    struct arena *arena = arena_new(TARGET_FILE_ARENA_MAX);
    struct intern *intern = intern_new();
    struct static_group list = {0};
    struct err err = ERR_INIT;
    buf_init(&sides[0].lines, LINES_MAX_BYTES);
    buf_init(&sides[1].lines, LINES_MAX_BYTES);
    bool ok = (arena != NULL && intern != NULL) || err_memory(&err);
    ok = ok && read_group(targets, arena, intern, &list, &err);
    for (size_t i = 0; ok && i < 2; i++) {
        ok = run_pipeline(&sides[i], &list, intern, &err) && sort_lines(&sides[i], &err);
    }
    int code = ok ? conclude(&sides[0], &sides[1]) : cmd_fail(EXIT_INPUT, &err);
    for (size_t i = 0; i < 2; i++) {
        free(sides[i].sorted);
        buf_done(&sides[i].lines);
    }
    static_group_done(&list);
    intern_free(intern);
    arena_free(arena);
    return code;
}
