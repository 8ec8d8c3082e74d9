/* Describes a subcommand by tables: its flags, its texts, and the function that runs it.
 *
 * The table of flags is used to parse the command line and to write `--help`. command_at() and
 * command_flag() walk through all tables, for other texts that are made from them (manual.h).
 */
#ifndef PROFPULL_CLI_FLAGS_H
#define PROFPULL_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define FLAG_PAIRS_MAX 64
#define COMMAND_FLAGS_MAX 64

/* The kind of a flag determines the type of the field at its offset. Texts point into argv. */
enum flag_kind {
    FLAG_BOOL, /* has no argument, unlike all other kinds */
    FLAG_TEXT,
    FLAG_CHOICE, /* one of the words that choice() returns */
    FLAG_NUMBER,
    FLAG_SIZE,     /* bytes */
    FLAG_DURATION, /* in milliseconds */
    FLAG_TIME,     /* in nanoseconds since 1970 */
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
    const char *name; /* name without dashes */
    char letter;      /* '\0': the flag has no letter */
    enum flag_kind kind;
    size_t offset;        /* offset of its field in the command's arguments */
    const char *argument; /* name of the argument in the help; NULL for FLAG_BOOL */
    const char *help;     /* help text; the default of a number, size or duration is added to it */
    uint64_t min;         /* limits of a number, size or duration */
    uint64_t max;         /* 0: no limit */
    const char *(*choice)(size_t i);  /* returns the i-th word; NULL past the last one */
    const char *(*suggest)(size_t i); /* words that shells complete, of a text that may be others */
    /* the variable of the environment that stands in for a flag that is not given; may be NULL */
    const char *env;
    const char *env_without; /* the variable is ignored if this flag is given; may be NULL */
};

/* A row of a table: the kind of a flag without "FLAG_", and a field of that type in a struct of
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
    const char *summary; /* shown in the list of commands */
    const char *usage;   /* forms of the command, one a line, without "profpull" */
    const char *description;
    const char *exit_codes;
    const struct flag *flags; /* see COMMAND_FLAGS; --help is added */
    size_t n_flags;
    size_t args_size;
    const void *defaults; /* args_size bytes with the default arguments; NULL: zeros */
    size_t operands_max;
    const char *(*subject)(size_t i); /* the i-th word that the first operand may be; may be NULL */
    int (*run)(const void *args, char *const *operands, size_t n);
};

/* Returns the i-th subcommand in the order of the help; NULL past the last one. */
const struct command *command_at(size_t i);
/* Returns the i-th flag of a command in the order of its help; NULL past the last one, which is
 * --help. */
const struct flag *command_flag(const struct command *c, size_t i);

/* Returns true if a command has a flag of this name. */
bool command_has_flag(const struct command *c, const char *name);

/* Returns the command with a name, or NULL. */
const struct command *command_named(const char *name);
/* Appends the text of a flag: its help, its choices and its default. False if out of memory. */
bool flag_describe(const struct command *c, const struct flag *f, struct buf *out);
/* Appends the text that `profpull COMMAND --help` prints. False if out of memory. */
bool command_help(const struct command *c, struct buf *out);

/* Parses argv (argv[0] is the subcommand's name) and runs the command. Returns the exit code. */
int command_main(const struct command *c, int argc, char **argv);

#endif
