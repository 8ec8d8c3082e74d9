/* The tables of commands and flags, and the command line that they parse. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"

#define HELP_MAX ((size_t)64 * 1024)
#define LINE_MAX_CHARS 100

static const struct flag *find_flag(const struct command *c, const char *name)
{
    const struct flag *f;
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        if (strcmp(f->name, name) == 0) {
            return f;
        }
    }
    return NULL;
}

static const char *choose(size_t i)
{
    static const char *const names[] = {"red", "green"};
    return i < 2 ? names[i] : NULL;
}

struct args {
    bool flag;
    const char *text;
    const char *choice;
    uint64_t number;
    uint64_t size;
    int64_t duration_ms;
    int64_t time_ns;
    struct flag_pairs pairs;
    bool ran;
};

static struct {
    struct args args;
    size_t n;
    const char *first;
} seen;

static int run_sample(const void *args, char *const *operands, size_t n)
{
    memcpy(&seen.args, args, sizeof(seen.args));
    seen.args.ran = true;
    seen.n = n;
    seen.first = n == 0 ? "" : operands[0];
    return EXIT_PEER;
}

static const struct flag sample_flags[] = {
    FLAG(BOOL, "flag", 'f', args, flag, NULL, "a switch"),
    FLAG(TEXT, "text", 't', args, text, "TEXT", "a text"),
    FLAG(CHOICE, "choice", 0, args, choice, "COLOUR", "a colour", .choice = choose),
    FLAG(NUMBER, "number", 0, args, number, "N", "a number", .min = 1, .max = 9),
    FLAG(SIZE, "size", 0, args, size, "SIZE", "a size", .max = 1024),
    FLAG(DURATION, "duration", 0, args, duration_ms, "DUR", "a duration", .min = 5),
    FLAG(TIME, "time", 0, args, time_ns, "TIME", "a time"),
    FLAG(PAIRS, "label", 'l', args, pairs, "NAME=VALUE", "labels"),
};

static const struct command sample = {
    .name = "sample",
    .summary = "a command",
    .usage = "sample [OPTIONS]\nsample --flag",
    .description = "Does nothing.",
    .exit_codes = "Exit code: 0 done.",
    .flags = sample_flags,
    .n_flags = sizeof(sample_flags) / sizeof(sample_flags[0]),
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.number = 7, .size = 512, .duration_ms = 90000},
    .operands_max = 1,
    .run = run_sample,
};

/* Splits a line at its spaces and runs the sample with it. */
static int run_line(const char *line)
{
    static char text[1024];
    char *argv[128] = {(char[]){"sample"}};
    int argc = 1;
    (void)snprintf(text, sizeof(text), "%s", line);
    char *next = text;
    for (char *word; (word = strsep(&next, " ")) != NULL && argc < 127;) {
        argv[argc] = word;
        argc += word[0] != '\0';
    }
    argv[argc] = NULL;
    memset(&seen, 0, sizeof(seen));
    return command_main(&sample, argc, argv);
}

TEST(every_kind_of_flag_is_parsed)
{
    assert_int_equal(run_line("-f --text=a=b file --choice green --number 3 --size 1KiB --duration "
                              "1m --time 1709204400 -l a=1 -lb.c=x=y"),
                     EXIT_PEER);
    assert_true(seen.args.ran && seen.args.flag);
    CHECK_STR(seen.args.text, "a=b", "text");
    CHECK_STR(seen.args.choice, "green", "choice");
    CHECK_INT(seen.args.number, 3, "number");
    CHECK_INT(seen.args.size, 1024, "size");
    CHECK_INT(seen.args.duration_ms, 60000, "duration");
    CHECK_INT(seen.args.time_ns, 1709204400 * NS_PER_S, "time");
    CHECK_INT(seen.args.pairs.n, 2, "labels");
    assert_true(sv_eq_str(seen.args.pairs.at[1].name, "b.c"));
    CHECK_STR(seen.args.pairs.at[1].value, "x=y", "label");
    CHECK_INT(seen.n, 1, "operands");
    CHECK_STR(seen.first, "file", "operand between flags");
}

TEST(defaults_stay_without_flags)
{
    assert_int_equal(run_line("-- -f"), EXIT_PEER);
    CHECK_INT(seen.args.number, 7, "");
    CHECK_INT(seen.args.duration_ms, 90000, "");
    assert_false(seen.args.flag);
    CHECK_STR(seen.first, "-f", "what follows -- is an operand");
}

TEST(wrong_command_lines_do_not_run)
{
    static const char *const lines[] = {
        "--nonsense",     "-x",           "--text",       "--flag=1",    "--choice blue",
        "--number 0",     "--number 10",  "--number x",   "--size 1025", "--size many",
        "--duration 4ms", "--duration x", "--time today", "--label a",   "--label =1",
        "-l a=1 -l a=2",  "one two",      "--t a",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        CHECK_INT(run_line(lines[i]), EXIT_USAGE, lines[i]);
        CHECK_INT(seen.args.ran, false, lines[i]);
    }
    char many[1024] = "";
    for (size_t i = 0; i <= FLAG_PAIRS_MAX; i++) {
        CHECK_INT(run_line(many), EXIT_PEER, "up to the limit of labels");
        size_t n = strlen(many);
        (void)snprintf(many + n, sizeof(many) - n, "-lk%zu= ", i);
    }
    CHECK_INT(run_line(many), EXIT_USAGE, "one label too many");
}

TEST(help_does_not_run)
{
    CHECK_INT(run_line("--help"), EXIT_DONE, "");
    assert_false(seen.args.ran);
}

TEST(help_comes_from_the_table)
{
    SCOPED(buf) text = testing_buf(HELP_MAX);
    assert_true(command_help(&sample, &text));
    CHECK_STR(text.data,
              "Usage: profpull sample [OPTIONS]\n"
              "       profpull sample --flag\n"
              "\n"
              "Does nothing.\n"
              "\n"
              "  -f, --flag              a switch\n"
              "  -t, --text TEXT         a text\n"
              "      --choice COLOUR     a colour: red, green\n"
              "      --number N          a number (7)\n"
              "      --size SIZE         a size (512B)\n"
              "      --duration DUR      a duration (1m30s)\n"
              "      --time TIME         a time\n"
              "  -l, --label NAME=VALUE  labels\n"
              "  -h, --help              print this text\n"
              "\n"
              "Exit code: 0 done.\n",
              "");
}

static void check_flag(const struct command *c, const struct flag *f, const char *help)
{
    char label[64];
    (void)snprintf(label, sizeof(label), "--%s%s%s", f->name, f->argument == NULL ? "" : " ",
                   f->argument == NULL ? "" : f->argument);
    CHECK_CONTAINS(help, label, c->name);
    assert_true(f->help[0] != '\0');
    CHECK_INT(f->argument == NULL, f->kind == FLAG_BOOL, f->name);
    assert_ptr_equal(find_flag(c, f->name), f); /* no name twice */
    if (f->kind == FLAG_NUMBER || f->kind == FLAG_SIZE || f->kind == FLAG_DURATION) {
        assert_non_null(c->defaults);
    }
    for (size_t i = 0; f->letter != '\0' && command_flag(c, i) != f; i++) {
        assert_true(command_flag(c, i)->letter != f->letter);
    }
}

TEST(every_command_documents_every_flag)
{
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        const struct flag *f;
        SCOPED(buf) help = testing_buf(HELP_MAX);
        assert_true(command_help(c, &help));
        assert_true(c->n_flags <= COMMAND_FLAGS_MAX && c->summary[0] != '\0');
        CHECK_CONTAINS(help.data, c->exit_codes[0] == 'E' ? "\nExit code: " : "?", c->name);
        for (size_t k = 0; (f = command_flag(c, k)) != NULL; k++) {
            check_flag(c, f, help.data);
        }
        for (char *line = help.data; *line != '\0'; line += strcspn(line, "\n") + 1) {
            assert_true(strcspn(line, "\n") <= LINE_MAX_CHARS);
        }
    }
}
