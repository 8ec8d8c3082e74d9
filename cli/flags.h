/* A subcommand described by tables: its flags, its texts and the function that runs it.
 *
 * The table of flags parses the command line and writes `--help`. command_at() and command_flag()
 * walk all of them, for what else is written from the tables (manual.h).
 */
#ifndef PROFPULL_CLI_FLAGS_H
#define PROFPULL_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define FLAG_PAIRS_MAX 64
#define COMMAND_FLAGS_MAX 32

/* The kind of a flag says what is at its offset. Texts point into argv. */
enum flag_kind {
    FLAG_BOOL, /* the only kind without an argument */
    FLAG_TEXT,
    FLAG_CHOICE, /* one of choice() */
    FLAG_NUMBER,
    FLAG_SIZE,     /* bytes */
    FLAG_DURATION, /* milliseconds */
    FLAG_TIME,     /* nanoseconds since 1970 */
    FLAG_PAIRS,    /* NAME=VALUE, repeatable, each name once */
    FLAG_LIST,     /* repeatable */
};
#define FLAG_TYPE_BOOL bool
#define FLAG_TYPE_TEXT const char *
#define FLAG_TYPE_CHOICE const char *
#define FLAG_TYPE_NUMBER uint64_t
#define FLAG_TYPE_SIZE uint64_t
#define FLAG_TYPE_DURATION int64_t
#define FLAG_TYPE_TIME int64_t
#define FLAG_TYPE_PAIRS struct flag_pairs
#define FLAG_TYPE_LIST struct flag_list

struct flag_pair {
    struct sv name;
    const char *value;
};

struct flag_pairs {
    struct flag_pair at[FLAG_PAIRS_MAX];
    size_t n;
};

struct flag_list {
    const char *at[FLAG_PAIRS_MAX];
    size_t n;
};

struct flag {
    const char *name; /* without dashes */
    char letter;      /* '\0' for none */
    enum flag_kind kind;
    size_t offset;                   /* into the command's arguments */
    const char *argument;            /* its name in the help; NULL for FLAG_BOOL */
    const char *help;                /* the default of a number, size or duration is added */
    uint64_t min;                    /* of a number, size or duration */
    uint64_t max;                    /* 0: unlimited */
    const char *(*choice)(size_t i); /* NULL past the last one */
};

/* A row of a table: the flag's kind without "FLAG_", and a field of that type in a struct of
 * arguments, which the compiler checks. The help comes last; more designators may follow it. */
#define FLAG(k, n, l, args, field, a, ...)                                                         \
    {                                                                                              \
        .name = (n), .letter = (l), .kind = FLAG_##k,                                              \
        .offset = offsetof(struct args, field) +                                                   \
                  0 * sizeof((FLAG_TYPE_##k *)NULL == &((struct args *)NULL)->field),              \
        .argument = (a), .help = __VA_ARGS__                                                       \
    }

/* The table of a command's flags, and the struct of arguments that it fills. */
#define COMMAND_FLAGS(table, args)                                                                 \
    .flags = (table), .n_flags = sizeof(table) / sizeof((table)[0]),                               \
    .args_size = sizeof(struct args)

struct command {
    const char *name;
    const char *summary; /* for the list of commands */
    const char *usage;   /* one form a line, without "profpull" */
    const char *description;
    const char *exit_codes;
    const struct flag *flags; /* see COMMAND_FLAGS(); --help is added */
    size_t n_flags;
    size_t args_size;
    const void *defaults; /* args_size bytes; NULL: zeros */
    size_t operands_max;
    int (*run)(const void *args, char *const *operands, size_t n);
};

/* All subcommands in the order of the help; NULL past the last one. */
const struct command *command_at(size_t i);
/* The flags of a command in the order of its help; NULL past the last one, --help. */
const struct flag *command_flag(const struct command *c, size_t i);

/* The command of a name, or NULL. */
const struct command *command_named(const char *name);
/* Appends the text of a flag: its help, its choices and its default. False if out of memory. */
bool flag_describe(const struct command *c, const struct flag *f, struct buf *out);
/* Appends what `profpull COMMAND --help` prints; false if out of memory. */
bool command_help(const struct command *c, struct buf *out);

/* Parses argv (argv[0] is the subcommand's name) and runs the command. Returns the exit code. */
int command_main(const struct command *c, int argc, char **argv);

#endif
