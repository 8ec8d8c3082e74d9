/* Reads a tree of nodes into structs, and writes structs as YAML, by one set of tables. A schema
 * has a row for each key of a mapping: the kind of the value (and so how it is read and written),
 * the place in the struct, the bounds and the default. The reader reports unknown, duplicate and
 * missing keys and wrong kinds of values with their positions, and continues, so that one run finds
 * every mistake; a value with an error keeps its default. A dump (dump.h) walks the same rows.
 *
 * All strings and arrays live in the reader's arena. One thread, one file.
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
    struct arena *arena;   /* memory of the configuration */
    struct arena *scratch; /* memory freed after loading */
    struct config_errors *errors;
    const struct config_options *options;
    const char *file;
    const char *other_file; /* the file of the last position, if there are several files */
    /* directory of the file, with a slash at its end; "" if there is none */
    const char *directory;
    /* the contents named so far, room for CONFIG_CONTENTS_MAX; NULL before the first */
    const char **contents;
    size_t n_contents;
    /* the imports read so far, room for CONFIG_IMPORTS_MAX; NULL before the first */
    const char **imports;
    size_t n_imports;
    /* errors were reported before, and the reader only looks for further ones */
    bool partial;
    bool out_of_memory; /* the result is incomplete without an error */
    size_t reported;
};

/* A position in the tree: a chain on the stack, which gives the path of an error. */
struct place {
    const struct place *parent; /* NULL at the root */
    /* the key in a mapping; NULL for element `index` of a list, and for the root */
    const char *key;
    size_t index;
    const struct yaml_node *node;
};

/* Returns the place of a key's value. If the key is missing, the place has the node, and so the
 * position, of the mapping. */
struct place place_of_key(const struct place *at, const char *key);
/* Returns the place of an element of a list; index is below its length. */
struct place place_of_element(const struct place *list, size_t index);
struct config_pos place_pos(struct reader *r, const struct place *at);

/* Reports an error at a place, with its path. */
void reader_error(struct reader *r, const struct place *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct text_kind;
/* Returns a copy of a value from the command line. NULL after an error, which has no position in
 * the file. */
const char *reader_option(struct reader *r, const char *option, const struct text_kind *kind,
                          const char *value);
/* Returns the tree of a text; a YAML null if the text has no node. NULL after an error. */
const struct yaml_node *reader_parse(struct reader *r, struct sv text);
/* Returns a value as messages show it: a scalar quoted, escaped and cut; for other nodes their
 * kind. */
const char *reader_got(struct reader *r, const struct yaml_node *n);
const char *reader_quote(struct reader *r, struct sv v);
/* Joins names, each between quotes: "one", "one or two", "one, two or three" if `last` is " or ".
 */
const char *reader_join(struct reader *r, const char *const *names, size_t n, const char *quote,
                        const char *last);
/* Returns `; did you mean "name"?` with the closest of the names; "" if none is close. */
const char *reader_hint(struct reader *r, struct sv word, const char *const *names, size_t n);
/* Allocates from the arena. If it returns NULL, r->out_of_memory is set. */
void *reader_alloc(struct reader *r, size_t count, size_t size);
const char *reader_strndup(struct reader *r, const char *s, size_t n);

typedef void read_fn(struct reader *r, const struct place *at, const void *arg, void *out);
struct dumper;
/* Writes a value with its key in front, or without one (NULL) in a list. */
typedef void write_fn(struct dumper *d, const char *key, const void *arg, const void *value);

struct kind {
    read_fn *read;
    write_fn *write; /* NULL: not part of a dump */
    /* bytes of a value for which a row may give a default; 0: the value always starts as zeros */
    size_t size;
    bool is_array;   /* a struct array */
    bool nests;      /* arg is the struct schema of the value, or of each element */
    bool is_mapping; /* kind_mapping: the value is a struct within the record */
};

/* The layout of every array in the model: config_strings, config_pairs, config_rules, ... */
struct array {
    void *at;
    size_t n;
};

union initial {
    const char *text;
    bool on;
    unsigned number; /* or an enum */
    uint64_t size;
    int64_t ms;
};

struct field {
    const char *key; /* NULL: the rows of the nested schema are in the same mapping */
    const struct kind *kind;
    size_t offset; /* offset of the value in the struct that is filled */
    const void *arg;
    union initial initial;
    bool required;
    bool optional;                    /* left out of a dump if it has its default */
    bool (*when)(const void *record); /* left out of a dump if this returns false */
};
#define ROW(of, key_, member, ...)                                                                 \
    {                                                                                              \
        .key = (key_), .offset = offsetof(struct of, member), .kind = __VA_ARGS__                  \
    }
/* A key whose rows fill the same struct as those around it, or that another function reads. */
#define PART(key_, ...)                                                                            \
    {                                                                                              \
        .key = (key_), .kind = __VA_ARGS__                                                         \
    }

struct schema {
    const struct field *fields;
    size_t n;
    size_t size; /* bytes of the struct, for elements of a list */
    /* Checks that involve several keys: conflicts, or a key that needs another one. clean: this
     * mapping had no error. May be NULL. */
    void (*check)(struct reader *r, const struct place *at, bool clean, void *out);
};
#define SCHEMA(table, ...)                                                                         \
    {                                                                                              \
        .fields = (table), .n = sizeof(table) / sizeof((table)[0]), .size = __VA_ARGS__            \
    }

/* Fills in the defaults of the rows and of the mappings in them; the rest of the struct stays. */
void schema_defaults(const struct schema *s, void *out);
/* Returns true if all rows have their defaults. Only rows of kinds that can have a default count.
 */
bool schema_is_default(const struct schema *s, const void *record);
/* Returns true if any key of the schema is in this mapping. */
bool schema_has_key(const struct schema *s, const struct yaml_node *n);
/* Reads a mapping: reports unknown keys, reads the rows in their order (not that of the file,
 * because later rows may depend on earlier ones), reports missing keys, and calls `check`. */
void schema_read(struct reader *r, const struct place *at, const struct schema *s, void *out);
void schema_write(struct dumper *d, const struct schema *s, const void *record);

/* Returns true if the node can be walked as a list or mapping. Reports an error if it is something
 * else, and for bad and duplicate keys. Null counts as empty. */
bool reader_enter(struct reader *r, const struct place *at, enum yaml_kind kind);

/* Reads a list, each element of `size` bytes with read_one, into a struct array, which stays as it
 * is if there is no list. */
void read_list(struct reader *r, const struct place *at, size_t size, read_fn *read_one,
               const void *arg, void *ret_array);

/* ---- kinds of values ------------------------------------------------------------------------- */

/* The form of a text. */
struct text_kind {
    const char *expected;    /* "a URL such as ..." */
    bool (*ok)(struct sv v); /* NULL: every text of this length */
    size_t min;              /* bytes */
    size_t max;              /* 0: any number */
    bool raw;                /* "$" is part of the value: variables are not expanded */
    bool secret;             /* never shown */
    bool url;                /* a URL, which messages show only if it cannot hold a password */
    bool file_name;          /* relative to the directory of the configuration file */
    bool content;            /* with file_name: may name a content (content.h) instead */
    bool word;               /* dumped without quotes */
};
extern const struct text_kind text_any;
extern const struct text_kind text_nonempty;
extern const struct text_kind text_secret;
extern const struct text_kind text_file_name;
extern const struct text_kind text_content; /* a file name, or the name of a content */

bool text_ok(const struct text_kind *kind, struct sv v);
/* Returns the text of a scalar that satisfies kind, or NULL after an error. */
const char *reader_text(struct reader *r, const struct place *at, const struct text_kind *kind);

struct range {
    uint64_t min;
    uint64_t max;
};

/* The names of an enum, in its order; NULL for a value that has none. */
struct choices {
    const char *const *names;
    size_t n;
};
#define CHOICES(table)                                                                             \
    {                                                                                              \
        .names = (table), .n = sizeof(table) / sizeof((table)[0])                                  \
    }
/* "" if the value has no name, "unknown" if there is no such value. */
const char *choice_name(const struct choices *c, unsigned value);
bool choice_find(const struct choices *c, struct sv name, unsigned *ret_value);

struct pairs_kind {
    const struct text_kind *name;
    const struct text_kind *value;
    bool lists;   /* a value may be a list: the name repeats */
    bool headers; /* a value may also be {values: [...], secrets: [...]} */
    /* Returns true if a dump hides the value; all: `global.mask_all_params`. NULL: values are
     * shown. */
    bool (*is_hidden)(struct sv name, bool all);
    /* Returns false, and an explanation, if a name is not allowed. May be NULL. */
    bool (*check)(struct sv name, const char **ret_problem);
};

/* For each kind: the C type of the value, and then the type of `arg`. */
extern const struct kind kind_text;     /* const char *; struct text_kind, NULL for any */
extern const struct kind kind_bool;     /* bool */
extern const struct kind kind_number;   /* uint64_t; struct range */
extern const struct kind kind_unsigned; /* unsigned; struct range */
extern const struct kind kind_duration; /* int64_t, milliseconds; struct range of them */
extern const struct kind kind_size;     /* uint64_t, bytes; struct range */
extern const struct kind kind_choice;   /* an enum that counts from 0; struct choices */
extern const struct kind kind_strings;  /* struct config_strings; struct text_kind of each */
extern const struct kind kind_pairs;    /* struct array of pairs of strings; struct pairs_kind */
extern const struct kind kind_mapping;  /* a struct; struct schema */
extern const struct kind kind_list;     /* a struct array; struct schema of the elements */
extern const struct kind kind_deferred; /* as kind_list, but another function reads it */
extern const struct kind kind_later;    /* not supported yet: always an error */
extern const struct kind kind_ignored;  /* read and written by other rows */

/* Exported for kinds of other files that read or write like these. */
read_fn read_nothing;
write_fn write_text;
write_fn write_unsigned;
write_fn write_elements;

#endif
