#include "cli/flags.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/parse_time.h"

#define HELP_WIDTH 96
/* The texts of the help begin at this column at most. A longer label has a line of its own. */
#define HELP_COLUMN_MAX 30
#define HELP_MAX ((size_t)64 * 1024)
/* getopt returns values from this one on for flags without a letter. */
#define FIRST_VALUE 256

/* ---- values ---------------------------------------------------------------------------------- */

static void format_value(const struct flag *f, uint64_t value, char *out, size_t size)
{
    if (f->kind == FLAG_DURATION) {
        format_duration_ms((int64_t)value, out, size);
    } else if (f->kind == FLAG_SIZE) {
        format_size(value, out, size);
    } else {
        snprintf(out, size, "%llu", (unsigned long long)value);
    }
}

static bool is_within(const struct flag *f, uint64_t value)
{
    return value >= f->min && (f->max == 0 || value <= f->max);
}

static bool fail_bounds(const struct flag *f, const char *text, struct err *err)
{
    static const char *const nouns[] = {
        [FLAG_NUMBER] = "number", [FLAG_SIZE] = "size", [FLAG_DURATION] = "duration"};
    char min[32];
    char max[32];
    format_value(f, f->min, min, sizeof(min));
    format_value(f, f->max, max, sizeof(max));
    return err_set(err, ERR_INPUT, "expected a %s %s %s%s%s, got \"%s\"", nouns[f->kind],
                   f->max == 0 ? "of at least" : "from", min, f->max == 0 ? "" : " to ",
                   f->max == 0 ? "" : max, text);
}

static bool set_text(const struct flag *f, const char *text, void *to, struct err *err)
{
    (void)f;
    (void)err;
    *(const char **)to = text;
    return true;
}

static bool set_choice(const struct flag *f, const char *text, void *to, struct err *err)
{
    char names[512] = "";
    for (size_t i = 0; f->choice(i) != NULL; i++) {
        if (strcmp(f->choice(i), text) == 0) {
            *(const char **)to = f->choice(i);
            return true;
        }
        size_t n = strlen(names);
        snprintf(names + n, sizeof(names) - n, "%s%s", i == 0 ? "" : ", ", f->choice(i));
    }
    return err_set(err, ERR_INPUT, "expected one of %s, got \"%s\"", names, text);
}

static bool set_number(const struct flag *f, const char *text, void *to, struct err *err)
{
    uint64_t *value = to;
    return (parse_u64(sv_from(text), UINT64_MAX, value) && is_within(f, *value)) ||
           fail_bounds(f, text, err);
}

static bool set_size(const struct flag *f, const char *text, void *to, struct err *err)
{
    uint64_t *value = to;
    return parse_size(sv_from(text), value, err) &&
           (is_within(f, *value) || fail_bounds(f, text, err));
}

static bool set_duration(const struct flag *f, const char *text, void *to, struct err *err)
{
    int64_t *value = to;
    return parse_duration_ms(sv_from(text), value, err) &&
           (is_within(f, (uint64_t)*value) || fail_bounds(f, text, err));
}

static bool set_time(const struct flag *f, const char *text, void *to, struct err *err)
{
    (void)f;
    return parse_time(text, to, err);
}

static bool add_pair(const struct flag *f, const char *text, void *to, struct err *err)
{
    struct flag_pairs *pairs = to;
    struct sv name;
    struct sv value;
    (void)f;
    if (!sv_cut(sv_from(text), '=', &name, &value) || name.n == 0) {
        return err_set(err, ERR_INPUT, "expected NAME=VALUE, got \"%s\"", text);
    }
    for (size_t i = 0; i < pairs->n; i++) {
        if (sv_eq(pairs->at[i].name, name)) {
            return err_set(err, ERR_INPUT, "\"%.*s\" is given twice", SV_ARG(name));
        }
    }
    if (pairs->n == FLAG_PAIRS_MAX) {
        return err_set(err, ERR_INPUT, "at most %d of them", FLAG_PAIRS_MAX);
    }
    pairs->at[pairs->n++] = (struct flag_pair){.name = name, .value = value.p};
    return true;
}

static bool add_text(const struct flag *f, const char *text, void *to, struct err *err)
{
    struct flag_list *list = to;
    (void)f;
    if (list->n == FLAG_PAIRS_MAX) {
        return err_set(err, ERR_INPUT, "at most %d of them", FLAG_PAIRS_MAX);
    }
    list->at[list->n++] = text;
    return true;
}

static bool set_flag(const struct flag *f, const char *text, void *args, struct err *err)
{
    static bool (*const setters[])(const struct flag *, const char *, void *, struct err *) = {
        [FLAG_TEXT] = set_text,  [FLAG_CHOICE] = set_choice,     [FLAG_NUMBER] = set_number,
        [FLAG_SIZE] = set_size,  [FLAG_DURATION] = set_duration, [FLAG_TIME] = set_time,
        [FLAG_PAIRS] = add_pair, [FLAG_LIST] = add_text,
    };
    void *to = (char *)args + f->offset;
    if (f->kind == FLAG_BOOL) {
        *(bool *)to = true;
        return true;
    }
    return setters[f->kind](f, text, to, err);
}

/* ---- the command line ------------------------------------------------------------------------ */

const struct flag *command_flag(const struct command *c, size_t i)
{
    static const struct flag help = {.name = "help", .letter = 'h', .help = "print this text"};
    return i < c->n_flags ? &c->flags[i] : i == c->n_flags ? &help : NULL;
}

bool command_has_flag(const struct command *c, const char *name)
{
    size_t i = 0;
    while (i < c->n_flags && strcmp(c->flags[i].name, name) != 0) {
        i++;
    }
    return i < c->n_flags;
}

static int value_of(const struct command *c, size_t i)
{
    char letter = command_flag(c, i)->letter;
    return letter == '\0' ? FIRST_VALUE + (int)i : letter;
}

/* The tables that getopt_long() needs. */
struct getopt_tables {
    struct option options[COMMAND_FLAGS_MAX + 2];
    char letters[2 * COMMAND_FLAGS_MAX + 3];
};

static void fill_tables(const struct command *c, struct getopt_tables *t)
{
    const struct flag *f;
    char *letter = t->letters;
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        int argument = f->kind == FLAG_BOOL ? no_argument : required_argument;
        t->options[i] =
            (struct option){.name = f->name, .has_arg = argument, .val = value_of(c, i)};
        if (f->letter != '\0') {
            *letter++ = f->letter;
            *letter = ':';
            letter += argument == required_argument;
        }
    }
    *letter = '\0';
}

static int print_help(const struct command *c)
{
    struct buf text;
    buf_init(&text, HELP_MAX);
    return cmd_print(command_help(c, &text), &text, stdout);
}

/* Prints which option may be meant, after getopt has reported an unknown one. */
static void suggest_option(const struct command *c, const char *word)
{
    const char *names[COMMAND_FLAGS_MAX + 1];
    const struct flag *f;
    size_t n = 0;
    for (; (f = command_flag(c, n)) != NULL; n++) {
        names[n] = f->name;
    }
    if (strncmp(word, "--", 2) == 0) {
        struct sv name = {.p = word + 2, .n = strcspn(word + 2, "=")};
        const char *near = suggest(name, names, n);
        if (near != NULL) {
            fprintf(stderr, "Did you mean --%s?\n", near);
        }
    }
}

static bool is_given(const struct command *c, const bool *given, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < c->n_flags && name != NULL; i++) {
        found = found || (given[i] && strcmp(c->flags[i].name, name) == 0);
    }
    return found;
}

/* Sets the flags that are not given from the environment. */
static bool take_environment(const struct command *c, const bool *given, void *args, int *ret_code)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < c->n_flags; i++) {
        const struct flag *f = &c->flags[i];
        const char *value = f->env == NULL ? NULL : getenv(f->env);
        if (value == NULL || value[0] == '\0' || given[i] || is_given(c, given, f->env_without)) {
            continue;
        }
        if (!set_flag(f, value, args, &err)) {
            *ret_code = cmd_usage_error(c->name, "%s: %s", f->env, err.msg);
            return false;
        }
    }
    return true;
}

/* Parses the command line. Returns false if the command must not run; then *ret_code is the exit
 * code. */
static bool parse(const struct command *c, int argc, char **argv, void *args, int *ret_code)
{
    struct getopt_tables tables = {.letters = ""};
    bool given[COMMAND_FLAGS_MAX + 1] = {false};
    struct err err = ERR_INIT;
    int value;
    fill_tables(c, &tables);
    optind = 0; /* resets GNU's getopt */
    while ((value = getopt_long(argc, argv, tables.letters, tables.options, NULL)) != -1) {
        size_t i = 0;
        while (i < c->n_flags && value_of(c, i) != value) {
            i++;
        }
        if (value == '?') { /* getopt has printed the reason */
            if (optopt == 0) {
                suggest_option(c, argv[optind - 1]);
            }
            *ret_code = cmd_usage_hint(c->name);
            return false;
        }
        if (i == c->n_flags) {
            *ret_code = print_help(c);
            return false;
        }
        if (!set_flag(&c->flags[i], optarg, args, &err)) {
            *ret_code = cmd_usage_error(c->name, "--%s: %s", c->flags[i].name, err.msg);
            return false;
        }
        given[i] = true;
    }
    if ((size_t)(argc - optind) > c->operands_max) {
        *ret_code = cmd_usage_error(c->name, "unexpected argument: %s",
                                    argv[(size_t)optind + c->operands_max]);
        return false;
    }
    return take_environment(c, given, args, ret_code);
}

int command_main(const struct command *c, int argc, char **argv)
{
    char title[64]; /* getopt begins its messages with it */
    int code = EXIT_INPUT;
    void *args = calloc(1, c->args_size + 1);
    if (args == NULL) {
        fputs("profpull: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    if (c->defaults != NULL) {
        memcpy(args, c->defaults, c->args_size);
    }
    snprintf(title, sizeof(title), "profpull %s", c->name);
    argv[0] = title;
    if (parse(c, argc, argv, args, &code)) {
        code = c->run(args, argv + optind, (size_t)(argc - optind));
    }
    free(args);
    return cmd_flush(code);
}

/* ---- help ------------------------------------------------------------------------------------ */

static void new_line(struct buf *out, size_t column)
{
    buf_printf(out, "\n%*s", (int)column, "");
}

/* Appends a text from the given column on, wrapped at HELP_WIDTH. Line breaks in the text are kept.
 */
static void put_wrapped(struct buf *out, size_t column, const char *text)
{
    size_t at = column;
    while (*text != '\0') {
        size_t spaces = strspn(text, " ");
        size_t n = spaces + strcspn(text + spaces, " \n");
        if (at + n > HELP_WIDTH) {
            new_line(out, column);
            at = column;
            text += spaces;
            n -= spaces;
        }
        buf_append(out, text, n);
        at += n;
        text += n;
        if (*text == '\n') {
            new_line(out, column);
            at = column;
            text++;
        }
    }
}

static void put_usage(struct buf *out, const char *usage)
{
    for (const char *before = "Usage:"; *usage != '\0'; before = "      ") {
        size_t n = strcspn(usage, "\n");
        buf_printf(out, "%s profpull %.*s\n", before, (int)n, usage);
        usage += n + (usage[n] == '\n');
    }
    buf_putc(out, '\n');
}

/* Appends the label of a flag: "  -c, --config FILE". */
static void put_label(struct buf *out, const struct flag *f)
{
    char letter[] = {'-', f->letter, ',', '\0'};
    buf_printf(out, "  %-3s --%s%s%s", f->letter == '\0' ? "" : letter, f->name,
               f->argument == NULL ? "" : " ", f->argument == NULL ? "" : f->argument);
}

/* Returns the column at which the texts of a command's flags begin. */
static size_t help_column(const struct command *c)
{
    const struct flag *f;
    size_t column = 0;
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        size_t n = strlen("  -x, --") + strlen(f->name) + 2;
        n += f->argument == NULL ? 0 : strlen(f->argument) + 1;
        if (n > column && n <= HELP_COLUMN_MAX) {
            column = n;
        }
    }
    return column;
}

bool flag_describe(const struct command *c, const struct flag *f, struct buf *out)
{
    buf_puts(out, f->help);
    for (size_t i = 0; f->kind == FLAG_CHOICE && f->choice(i) != NULL; i++) {
        buf_printf(out, "%s%s", i == 0 ? ": " : ", ", f->choice(i));
    }
    bool counts = f->kind == FLAG_NUMBER || f->kind == FLAG_SIZE || f->kind == FLAG_DURATION;
    if (counts && c->defaults != NULL) {
        char value[32];
        uint64_t number;
        memcpy(&number, (const char *)c->defaults + f->offset, sizeof(number));
        format_value(f, number, value, sizeof(value));
        buf_printf(out, " (%s)", value);
    }
    if (f->env != NULL) {
        buf_printf(out, "; or %s", f->env);
    }
    return buf_ok(out);
}

static void put_flag(struct buf *out, const struct command *c, const struct flag *f, size_t column)
{
    struct buf text;
    size_t start = out->len;
    buf_init(&text, HELP_MAX);
    put_label(out, f);
    size_t n = out->len - start;
    if (n + 2 > column) {
        new_line(out, column);
    } else {
        buf_printf(out, "%*s", (int)(column - n), "");
    }
    put_wrapped(out, column, flag_describe(c, f, &text) ? text.data : "");
    buf_putc(out, '\n');
    buf_done(&text);
}

bool command_help(const struct command *c, struct buf *out)
{
    const struct flag *f;
    size_t column = help_column(c);
    put_usage(out, c->usage);
    put_wrapped(out, 0, c->description);
    buf_puts(out, "\n\n");
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        put_flag(out, c, f, column);
    }
    buf_puts(out, "\n");
    put_wrapped(out, 0, c->exit_codes);
    buf_puts(out, "\n");
    return buf_ok(out);
}
