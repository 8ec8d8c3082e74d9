#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/labels.h"
#include "cli/cmd.h"
#include "relabel/relabel.h"

/* Limit of a JSON object on stdin. */
#define OBJECT_MAX ((size_t)8 * 1024 * 1024)
/* Limit of a line about one rule, which has its text and the changed labels, escaped. */
#define EXPLAIN_MAX ((size_t)16 * LABELS_BYTES_MAX)

struct job {
    struct relabel *rules;
    struct relabel_scratch *scratch;
    struct intern *intern;
    struct labels_builder *builder;
    bool explain;
    bool failed;      /* a rule has failed on some label set */
    size_t next_line; /* the number of the next line of stdin */
    size_t line;      /* the line on which the object starts */
    size_t size;      /* the bytes of the object that were read so far */
    /* The labels before the rule, for --explain. */
    struct label before[LABELS_MAX];
    size_t n_before;
};

/* ---- --explain ------------------------------------------------------------------------------- */

static void put_label(struct buf *out, const char *verb, const struct label *l)
{
    buf_printf(out, " %s ", verb);
    json_escape(l->name, out);
    if (l->value.n > 0) {
        buf_putc(out, '=');
        json_quote(l->value, out);
    }
}

/* Merges two sorted lists of labels: appends those that the rule has removed and set. Returns their
 * number. */
static size_t put_changes(struct buf *out, const struct job *j, const struct labels_builder *b)
{
    size_t n = labels_builder_count(b);
    size_t changes = 0;
    size_t i = 0;
    size_t k = 0;
    while (i < j->n_before || k < n) {
        struct label after = k < n ? labels_builder_at(b, k) : (struct label){0};
        int order = i == j->n_before ? 1 : k == n ? -1 : sv_cmp(j->before[i].name, after.name);
        if (order < 0) {
            put_label(out, "remove", &(struct label){.name = j->before[i].name, .value = SV("")});
            changes++;
        } else if (order > 0 || !sv_eq(j->before[i].value, after.value)) {
            put_label(out, "set", &after);
            changes++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    return changes;
}

static void remember(struct job *j, const struct labels_builder *b)
{
    j->n_before = labels_builder_count(b);
    for (size_t i = 0; i < j->n_before; i++) {
        j->before[i] = labels_builder_at(b, i);
    }
}

static void explain_rule(void *arg, size_t rule, const struct labels_builder *b,
                         enum relabel_outcome outcome)
{
    struct job *j = arg;
    struct buf line;
    buf_init(&line, EXPLAIN_MAX);
    buf_printf(&line, "# rule %zu: ", rule);
    relabel_describe(j->rules, rule, &line);
    buf_puts(&line, ":");
    if (outcome == RELABEL_DROPPED) {
        buf_puts(&line, " dropped");
    } else if (outcome == RELABEL_FAILED) {
        buf_puts(&line, " failed");
    } else if (put_changes(&line, j, b) == 0) {
        buf_puts(&line, " no change");
    }
    buf_putc(&line, '\n');
    fputs(buf_ok(&line) ? line.data : "# (a line that is too long)\n", stderr);
    buf_done(&line);
    if (outcome == RELABEL_KEPT) {
        remember(j, b);
    }
}

/* ---- stdin ----------------------------------------------------------------------------------- */

static bool fail_input(const struct job *j, const char *what, const char *detail)
{
    fprintf(stderr, "profpull: stdin:%zu: %s%s\n", j->line, what, detail);
    return false;
}

/* Returns the next byte that is not white space, or EOF. */
static int skip_space(struct job *j)
{
    int c;
    while ((c = getc(stdin)) != EOF && isspace(c)) {
        j->next_line += c == '\n';
    }
    j->line = j->next_line;
    return c;
}

static bool fill(const struct job *j, json_t *object)
{
    const char *name;
    json_t *value;
    labels_builder_reset(j->builder, NULL);
    json_object_foreach(object, name, value)
    {
        if (!json_is_string(value)) {
            return fail_input(j, "expected a string as the value of label ", name);
        }
        labels_builder_set(j->builder, sv_from(name),
                           (struct sv){json_string_value(value), json_string_length(value)});
    }
    return labels_builder_ok(j->builder) || fail_input(j, "too many labels", "");
}

/* Reads a single byte for jansson, which must not read past the end of the object. */
static size_t relabel_on_read(void *to, size_t size, void *arg)
{
    struct job *j = arg;
    (void)size;
    if (++j->size > OBJECT_MAX) {
        return 0;
    }
    int c = getc(stdin);
    j->next_line += c == '\n';
    *(char *)to = (char)c;
    return c == EOF ? 0 : 1;
}

static bool read_labels(struct job *j)
{
    json_error_t error;
    j->size = 0;
    json_t *object = json_load_callback(relabel_on_read, j,
                                        JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    if (object == NULL && j->size > OBJECT_MAX) {
        return fail_input(j, "the object is too large", "");
    }
    if (object == NULL && (feof(stdin) || ferror(stdin))) {
        return fail_input(j, "the object does not end", "");
    }
    if (object == NULL) {
        return fail_input(j, "not a JSON object: ", error.text);
    }
    bool ok = fill(j, object);
    json_decref(object);
    return ok;
}

/* ---- the work -------------------------------------------------------------------------------- */

static bool print_labels(struct job *j)
{
    struct buf text;
    buf_init(&text, EXPLAIN_MAX);
    struct labels *labels = labels_builder_build(j->builder);
    bool ok = labels != NULL && labels_format_json(labels, &text) && buf_putc(&text, '\n');
    if (ok) {
        fwrite(text.data, 1, text.len, stdout);
    }
    labels_unref(labels);
    buf_done(&text);
    return ok || fail_input(j, "out of memory", "");
}

static bool relabel_one(struct job *j)
{
    if (j->explain) {
        remember(j, j->builder);
        fprintf(stderr, "# stdin:%zu\n", j->line);
    }
    struct relabel_verdict v =
        relabel_apply(j->rules, j->scratch, j->builder, j->explain ? explain_rule : NULL, j);
    bool ok = true;
    if (v.outcome == RELABEL_KEPT) {
        ok = print_labels(j);
    } else {
        puts("null");
    }
    if (v.outcome == RELABEL_FAILED) {
        j->failed = true;
        fprintf(stderr, "profpull: stdin:%zu: rule %zu: %s\n", j->line, v.rule, v.err.msg);
    }
    fflush(stdout);
    return ok;
}

static bool relabel_all(struct job *j)
{
    int c;
    j->next_line = 1;
    while ((c = skip_space(j)) != EOF) {
        if (c != '{') {
            return fail_input(j, "expected a JSON object", "");
        }
        ungetc(c, stdin);
        if (!read_labels(j) || !relabel_one(j)) {
            return false;
        }
    }
    return !ferror(stdin) && !j->failed;
}

static int run_job(struct job *j, const struct config_rules *rules)
{
    struct err err = ERR_INIT;
    j->rules = relabel_new(rules, &err);
    if (j->rules == NULL) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    j->scratch = relabel_scratch_new();
    j->intern = intern_new();
    j->builder = j->intern == NULL ? NULL : labels_builder_new(j->intern);
    int code = EXIT_INPUT;
    if (j->scratch == NULL || j->builder == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else if (relabel_all(j)) {
        code = EXIT_DONE;
    }
    labels_builder_free(j->builder);
    intern_free(j->intern);
    relabel_scratch_free(j->scratch);
    relabel_free(j->rules);
    return code;
}

struct relabel_args {
    const char *file;
    bool explain;
};

static int run_relabel(const void *arg, char *const *operands, size_t n)
{
    const struct relabel_args *args = arg;
    struct config_options options = {.check_rule = cmd_check_rule};
    struct config_rules rules;
    struct config *config = NULL;
    int code = EXIT_INPUT;
    (void)operands;
    (void)n;
    if (args->file == NULL) {
        return cmd_usage_error("relabel", "--rules FILE is needed");
    }
    struct config_errors *errors = config_errors_new();
    struct job *j = calloc(1, sizeof(*j));
    if (errors == NULL || j == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else if ((config = config_load_rules(args->file, &options, errors, &rules)) == NULL) {
        cmd_print_errors(errors);
    } else {
        j->explain = args->explain;
        code = run_job(j, &rules);
    }
    config_unref(config);
    config_errors_free(errors);
    free(j);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "rules", 'r', relabel_args, file, "FILE",
         "a YAML list of rules, or a mapping with the key relabel_configs"),
    FLAG(BOOL, "explain", 'e', relabel_args, explain, NULL,
         "print the effect of each rule on stderr"),
};

const struct command cmd_relabel = {
    .name = "relabel",
    .summary = "run relabel rules over label sets from standard input",
    .usage = "relabel --rules FILE [--explain] < LABELS",
    .description =
        "Runs relabel rules on label sets: reads JSON objects of strings from stdin, and prints "
        "one result a line: an object, or null if a rule dropped the label set.",
    .exit_codes = "Exit code: 0 done, 1 the input or a rule is wrong, or a rule gave up; 2 usage.",
    COMMAND_FLAGS(flags, relabel_args),
    .run = run_relabel,
};
