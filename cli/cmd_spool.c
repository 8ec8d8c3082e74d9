/* `profpull spool`: lists the profiles in spools, and checks them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "model/masking.h"
#include "write/spool/show.h"

struct spool_args {
    bool json;
};

struct view {
    bool list;
    bool json;
    const char *endpoint; /* the name of the endpoint's directory; "." for DIR itself */
    unsigned spools;
    bool failed;
};

static void print_time(struct buf *out, const char *key, int64_t ns)
{
    char text[32];
    clock_format_rfc3339(ns, text, sizeof(text));
    json_member(key, sv_from(text), out);
}

static void print_record(struct buf *out, const struct spool_seen *s)
{
    buf_printf(out, ",\"bytes\":%u,\"format\":\"%s\",\"delta\":%s", s->head->data_size,
               s->head->format == 0 ? "pprof" : "jfr",
               (s->head->flags & SPOOL_FLAG_DELTA) != 0 ? "true" : "false");
    print_time(out, "scraped", s->head->scraped_ns);
    print_time(out, "from", s->head->from_ns);
    print_time(out, "until", s->head->until_ns);
    json_key("labels", out);
    if (s->labels == NULL) {
        buf_puts(out, "null");
    } else {
        /* files of older versions may have labels that must be hidden */
        mask_labels_json(s->labels, false, out);
    }
}

static void print_line(const struct view *v, const struct spool_seen *s)
{
    struct buf out;
    buf_init(&out, (size_t)16 << 20);
    buf_putc(&out, '{');
    json_member("spool", sv_from(v->endpoint), &out);
    json_member("file", sv_from(s->name), &out);
    json_member("state",
                sv_from(s->what == SPOOL_FINDING_RECORD ? "waiting" : spool_finding_name(s->what)),
                &out);
    buf_printf(&out, ",\"offset\":%llu,\"size\":%llu", (unsigned long long)s->offset,
               (unsigned long long)s->size);
    if (s->what == SPOOL_FINDING_RECORD) {
        print_record(&out, s);
    }
    buf_puts(&out, "}\n");
    fputs(buf_ok(&out) ? out.data : "", stdout);
    buf_done(&out);
}

static void print_problem(const struct view *v, const struct spool_seen *s)
{
    printf("%s/%s: %s", v->endpoint, s->name, spool_finding_name(s->what));
    if (s->what == SPOOL_FINDING_DAMAGE || s->what == SPOOL_FINDING_BODY) {
        printf(": %llu bytes at %llu", (unsigned long long)s->size, (unsigned long long)s->offset);
    } else if (s->what == SPOOL_FINDING_ACKS) {
        printf(": %llu", (unsigned long long)s->size);
    } else if (s->what == SPOOL_FINDING_FAILED) {
        printf(": %s", s->error);
    }
    printf("\n");
}

static void spool_on_seen(void *arg, const struct spool_seen *s)
{
    struct view *v = arg;
    if ((v->list && !s->done) || (!v->list && v->json && s->what != SPOOL_FINDING_RECORD)) {
        print_line(v, s);
    } else if (!v->list && s->what != SPOOL_FINDING_RECORD) {
        print_problem(v, s);
    }
}

static void print_summary_json(const struct view *v, const struct spool_shown *s)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    buf_putc(&out, '{');
    json_member("spool", sv_from(v->endpoint), &out);
    buf_printf(&out,
               ",\"segments\":%llu,\"bytes\":%llu,\"waiting\":%llu,\"waiting_bytes\":%llu,"
               "\"done\":%llu,\"damaged\":%llu,\"skipped_files\":%llu,\"in_use\":%s}\n",
               (unsigned long long)s->segments, (unsigned long long)s->bytes,
               (unsigned long long)(s->records - s->done), (unsigned long long)s->waiting_bytes,
               (unsigned long long)s->done, (unsigned long long)s->bad,
               (unsigned long long)s->skipped, s->live ? "true" : "false");
    fputs(buf_ok(&out) ? out.data : "", stdout);
    buf_done(&out);
}

static void print_summary(const struct view *v, const struct spool_shown *s)
{
    printf("%s: %llu segments, %llu bytes; %llu profiles wait (%llu bytes), %llu are done; "
           "%llu damaged, %llu files skipped%s\n",
           v->endpoint, (unsigned long long)s->segments, (unsigned long long)s->bytes,
           (unsigned long long)(s->records - s->done), (unsigned long long)s->waiting_bytes,
           (unsigned long long)s->done, (unsigned long long)s->bad, (unsigned long long)s->skipped,
           s->live ? "; in use" : "");
}

/* Shows one spool. Returns false if the directory is no spool, or if it cannot be read; then
 * `failed` is set. */
static bool show(struct view *v, struct intern *intern, const char *directory, const char *name)
{
    struct err err = ERR_INIT;
    struct spool_shown shown;
    bool is_spool;
    struct spool_show how = {.intern = intern, .bodies = true, .on_seen = spool_on_seen, .arg = v};
    v->endpoint = name;
    if (!spool_show(directory, &how, &shown, &is_spool, &err)) {
        cmd_fail(EXIT_INPUT, &err);
        v->failed = true;
        return false;
    }
    if (!is_spool) {
        return false;
    }
    v->spools++;
    v->failed = v->failed || shown.bad > 0 || shown.skipped_segments > 0;
    if (!v->list) {
        (v->json ? print_summary_json : print_summary)(v, &shown);
    }
    return true;
}

static int is_subdirectory(const struct dirent *e)
{
    return e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN);
}

/* Shows the spools of all endpoints in a directory. */
static void show_all(struct view *v, struct intern *intern, const char *directory)
{
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, is_subdirectory, alphasort);
    for (int i = 0; i < n; i++) {
        struct buf path;
        buf_init(&path, 4096);
        buf_printf(&path, "%s/%s", directory, entries[i]->d_name);
        if (buf_ok(&path)) {
            (void)show(v, intern, path.data, entries[i]->d_name);
        }
        buf_done(&path);
        free(entries[i]);
    }
    free((void *)entries);
}

static const char *spool_subject(size_t i)
{
    static const char *const subjects[] = {"list", "verify"};
    return i < sizeof(subjects) / sizeof(subjects[0]) ? subjects[i] : NULL;
}

static int run_spool(const void *arg, char *const *operands, size_t n)
{
    const struct spool_args *args = arg;
    if (n != 2) {
        return cmd_usage_error("spool", "\"list\" or \"verify\" and a directory are needed");
    }
    const char *what = operands[0];
    const char *directory = operands[1];
    struct view v = {.list = strcmp(what, "list") == 0, .json = args->json};
    if (!v.list && strcmp(what, "verify") != 0) {
        return cmd_usage_error("spool", "expected \"list\" or \"verify\", got \"%s\"", what);
    }
    struct intern *intern = intern_new();
    if (intern == NULL) {
        return EXIT_INPUT;
    }
    if (!show(&v, intern, directory, ".") && !v.failed) {
        show_all(&v, intern, directory);
    }
    if (v.spools == 0 && !v.failed) {
        fprintf(stderr, "profpull: %s: expected a spool or a directory of spools\n", directory);
        v.failed = true;
    }
    intern_free(intern);
    return v.failed ? EXIT_INPUT : EXIT_DONE;
}

static const struct flag flags[] = {
    FLAG(BOOL, "json", 0, spool_args, json, NULL,
         "verify prints a line of JSON for each problem, then one for each spool"),
};

const struct command cmd_spool = {
    .name = "spool",
    .summary = "list the profiles that wait on disk, or check them for damage",
    .usage = "spool list DIR\n"
             "spool verify DIR [--json]",
    .description =
        "Shows what a spool holds (queue.spool_directory). DIR is that directory or the one of an "
        "endpoint in it. Nothing is changed, and it may be in use.\n"
        "\n"
        "  list     one JSON line for each profile that waits, and for each damaged place\n"
        "  verify   reads all that waits, compares the check sums, and says what is wrong",
    .exit_codes =
        "Exit code: 0 all in order, 1 damage, or a segment that is unreadable or skipped, 2 usage.",
    COMMAND_FLAGS(flags, spool_args),
    .operands_max = SIZE_MAX,
    .subject = spool_subject,
    .run = run_spool,
};
