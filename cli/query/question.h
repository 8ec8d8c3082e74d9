/* One question of `profpull query` or `profpull flame`: its arguments, the place that is asked, and
 * what the subjects share. One thread.
 */
#ifndef PROFPULL_CLI_QUERY_QUESTION_H
#define PROFPULL_CLI_QUERY_QUESTION_H

#include "base/clock.h"
#include "cli/query/args.h"
#include "cli/terminal/terminal.h"

/* The other side of `query diff`. */
struct query_base {
    const char *file;
    const char *service;
    struct flag_pairs labels; /* in place of the labels with the same names, or in addition */
    int64_t from_ns;          /* QUERY_NO_TIME if it is not given, as until_ns */
    int64_t until_ns;
    int64_t before_ms; /* the base ends this much earlier; 0: not given */
};

struct query_args {
    struct query_common common;
    const char *protocol;
    const char *store; /* a directory; NULL: a server or a file is asked */
    const char *file;
    const char *title; /* what the file is called in messages; NULL: by its name */
    const char *type;
    const char *value;
    const char *language;
    const char *output;
    bool as_recorded;
    bool json;
    uint64_t limit;
    /* the terminal */
    bool watch;
    int64_t interval_ms;
    bool interactive;
    bool ascii;
    const char *colour;
    uint64_t width; /* 0: that of the terminal */
    uint64_t depth;
    const char *search;
    /* query diff */
    struct query_base base;
    bool normalize;
    /* query changes */
    const char *base_version;
    const char *new_version;
    const char *fail_above; /* a percentage; NULL: changes do not affect the exit code */
};

struct question {
    char value[TOP_UNIT_MAX]; /* of ask.value, if the name of the type determines it */
    const struct query_args *args;
    const struct query_source *source;
    struct query_peer peer;
    struct query_ask ask;
    const char *operand; /* of peek: the function */
    struct terminal terminal;
};

/* Print a message and return the exit code: question_missing() if the place has no API for a
 * subject, question_nothing() if it has no profile. */
int question_missing(const struct question *q, const char *subject);
int question_nothing(const struct question *q, const struct query_peer *peer,
                     const struct query_ask *ask);
/* Fetches the tree of one question, whose totals are computed. The caller frees it. NULL with err
 * on failure; NULL without err if nothing was found. */
struct tree *question_tree(const struct question *q, struct query_peer *peer,
                           const struct query_ask *ask, char unit[TOP_UNIT_MAX], struct err *err);
/* Fetches the tree of the question itself, which the caller frees. If there is none, prints why,
 * sets *ret_code and returns false. */
bool question_own_tree(struct question *q, struct tree **ret, char unit[TOP_UNIT_MAX],
                       int *ret_code);
/* Appends a title for a profile: "cart, cpu", or the name of a file. */
void question_title(const struct query_peer *peer, const struct query_ask *ask, struct buf *out);
/* Prints a text that a subject has made, or the error. An object of JSON gets the member "partial"
 * first, if the server could not read all of its parts. Frees the text. Returns the exit code. */
int question_print(const struct question *q, bool ok, struct buf *text, const struct err *err);

/* Runs one subject: services, types, top, flame, diff, peek, changes or merge. */
int question_run(const struct query_args *args, const char *subject, const char *operand);
/* Returns the i-th subject; NULL past the last one. */
const char *question_subject(size_t i);
/* Returns the i-th protocol of --protocol; NULL past the last one. */
const char *question_protocol(size_t i);

typedef int question_show(struct question *q);
question_show show_services;
question_show show_types;
question_show show_merge;
question_show show_top;
question_show show_flame;
question_show show_diff;
question_show show_peek;
question_show show_changes;

/* clang-format off: rows of a table, which `query` and `flame` share */
#define QUESTION_PROFILE_FLAGS                                                                     \
    FLAG(TEXT, "value", 0, query_args, value, "NAME",                                              \
         "the sample type to count, if a profile has several (alloc_space); by default that "      \
         "of go tool pprof"),                                                                      \
        FLAG(BOOL, "as-recorded", 0, query_args, as_recorded, NULL,                                \
             "do not repair stacks that Go's runtime has cut off")
#define QUESTION_TERMINAL_FLAGS                                                                    \
    FLAG(BOOL, "interactive", 'i', query_args, interactive, NULL,                                  \
         "flame: move, zoom and search with keys; ? lists them"),                                  \
        FLAG(CHOICE, "color", 0, query_args, colour, "WHEN", "the colours of flame",               \
             .choice = terminal_colour_word),                                                      \
        FLAG(BOOL, "ascii", 0, query_args, ascii, NULL, "no character outside of ASCII"),          \
        FLAG(NUMBER, "width", 0, query_args, width, "N",                                           \
             "columns of flame; 0: those of the terminal", .max = TERMINAL_WIDTH_MAX),             \
        FLAG(NUMBER, "depth", 0, query_args, depth, "N", "levels of flame; 0: all"),               \
        FLAG(TEXT, "search", 0, query_args, search, "TEXT",                                        \
             "flame marks the functions whose names contain TEXT, and prints their share"),        \
        FLAG(BOOL, "json", 0, query_args, json, NULL, "print JSON")
/* clang-format on */

#endif
