/* Tree -> structs, by tables. A table names the keys of one mapping, how each is read and where the
 * value goes; the driver refuses unknown, duplicate and missing keys and wrong kinds of values with
 * their places, and goes on, so that one run finds every mistake. The readers of values report an
 * error or fill in the value; where there was an error the default stays.
 *
 * All strings and arrays that are made live in the reader's arena. One thread, one file.
 */
#ifndef PROFPULL_CONFIG_SCHEMA_H
#define PROFPULL_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/errors.h"
#include "config/yaml.h"

struct reader {
    struct arena *arena;   /* what stays with the configuration */
    struct arena *scratch; /* what dies after loading */
    struct config_errors *errors;
    const struct config_options *options;
    const char *file;
    const char *directory; /* of the file, with a slash at its end; "" if it has none */
    bool out_of_memory;    /* something is missing that no error tells of */
    size_t reported;
};

/* Where we are in the tree: a chain on the stack, from which the path of an error is made. */
struct place {
    const struct place *parent; /* NULL at the root */
    const char *key;            /* in a mapping; NULL: element `index` of a list, or the root */
    size_t index;
    const struct yaml_node *node;
};

/* The value of a key; a missing one has the node (so the position) of the mapping. */
struct place place_of_key(const struct place *at, const char *key);
struct config_pos place_pos(const struct reader *r, const struct place *at);

/* Reports an error at a place, with its path. */
void reader_error(struct reader *r, const struct place *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An error about the command line, which has no place in the file. */
void reader_option_error(struct reader *r, const char *option, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A value for a message: quoted, escaped and cut; for what is not a scalar its kind. */
const char *reader_got(struct reader *r, const struct yaml_node *n);
const char *reader_quote(struct reader *r, struct sv v);
/* "one", "one or two", "one, two or three", each in quotes. */
const char *reader_choices(struct reader *r, const char *const *names, size_t n);
/* Arena memory; NULL notes out_of_memory. */
void *reader_alloc(struct reader *r, size_t count, size_t size);
const char *reader_strndup(struct reader *r, const char *s, size_t n);

typedef void read_fn(struct reader *r, const struct place *at, const void *arg, void *out);

struct field {
    const char *key;
    read_fn *read;
    size_t offset; /* of the value in the struct that is filled */
    const void *arg;
    bool required;
};

/* A table and the struct that it fills. Several may share one mapping. */
struct section {
    const struct field *fields;
    size_t n_fields;
    void *out;
};
#define SECTION(table, where)                                                                      \
    {                                                                                              \
        .fields = (table), .n_fields = sizeof(table) / sizeof((table)[0]), .out = (where)          \
    }

/* Reads a mapping: complains about unknown keys, then reads the fields in the order of the tables
 * (not of the file: later ones may depend on earlier ones), then complains about missing ones. */
void read_sections(struct reader *r, const struct place *at, const struct section *sections,
                   size_t n);

/* May the node be walked as a list or mapping? Complains if it is something else, and about bad and
 * duplicate keys. Null counts as empty. */
bool reader_enter(struct reader *r, const struct place *at, enum yaml_kind kind);

/* Reads a list, each element of `size` bytes with read_one. */
void read_list(struct reader *r, const struct place *at, size_t size, read_fn *read_one,
               const void *arg, void **ret_array, size_t *ret_n);

/* ---- readers of values, for tables ----------------------------------------------------------- */

/* What a text must be. */
struct text_kind {
    const char *expected;    /* "a URL such as ..." */
    bool (*ok)(struct sv v); /* NULL: every text */
    bool raw;                /* "$" is the value's own: no environment */
    bool secret;             /* never shown */
    bool url;                /* not shown if it might hold a password */
    bool file_name;          /* relative to the directory of the configuration file */
};
extern const struct text_kind text_any;      /* every string */
extern const struct text_kind text_nonempty; /* but "" */
extern const struct text_kind text_secret;
extern const struct text_kind text_file_name;

/* The text of a scalar as a text_kind demands, or NULL after an error. */
const char *reader_text(struct reader *r, const struct place *at, const struct text_kind *kind);

struct range {
    uint64_t min;
    uint64_t max;
};

struct choices {
    const char *const *names;
    size_t n;
};

/* out: const char *; arg: struct text_kind or NULL for any. */
void read_text(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: bool. */
void read_bool(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: uint64_t; arg: struct range. */
void read_number(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: unsigned; arg: struct range. */
void read_unsigned(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: int64_t in milliseconds; arg: struct range in milliseconds. */
void read_duration(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: uint64_t in bytes; arg: struct range. */
void read_size(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: an enum that counts from 0; arg: struct choices in the order of the enum. */
void read_choice(struct reader *r, const struct place *at, const void *arg, void *out);
/* out: struct config_strings; arg: struct text_kind of each. */
void read_strings(struct reader *r, const struct place *at, const void *arg, void *out);

struct pairs_kind {
    const struct text_kind *name;
    const struct text_kind *value;
    bool lists; /* a value may be a list: the name repeats */
};
/* out: struct config_pairs; arg: struct pairs_kind. */
void read_pairs(struct reader *r, const struct place *at, const void *arg, void *out);
/* A key of the design that nothing implements yet: always an error. */
void read_later(struct reader *r, const struct place *at, const void *arg, void *out);
/* A key that is read elsewhere. */
void read_elsewhere(struct reader *r, const struct place *at, const void *arg, void *out);

#endif
