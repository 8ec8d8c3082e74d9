/* The values of Alloy's language. They are immutable and live in an arena.
 *
 * A configuration is evaluated once, before anything runs, so a list of discovered targets has no
 * known elements: it is an array with a splice in place of the elements. A splice is a handle whose
 * content only targets.h understands. Receivers are handles as well.
 *
 * A string remembers how it is written in the YAML of profpull (form), so that a converted file
 * still reads its environment variables. It also remembers the file whose content it is.
 */
#ifndef PROFPULL_ALLOY_VALUE_H
#define PROFPULL_ALLOY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloy/scan.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum alloy_value_kind {
    /* The result of an expression for which an error was reported. A value that is computed from it
     * is unknown as well, without a further error. */
    VALUE_UNKNOWN,
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_SECRET, /* a string that is never shown */
    VALUE_BYTES,  /* decoded text: an array of numbers, accepted where a string is expected */
    VALUE_ARRAY,
    VALUE_OBJECT,
    VALUE_FUNCTION,
    VALUE_HANDLE, /* a receiver, for example */
    VALUE_SPLICE, /* a part of an array: a list whose elements are not known yet */
};

enum alloy_number_kind { NUMBER_INT, NUMBER_UINT, NUMBER_FLOAT };

struct alloy_number {
    enum alloy_number_kind kind;
    union {
        int64_t i;
        uint64_t u; /* above INT64_MAX */
        double f;
    };
};

struct alloy_value;
struct alloy_function;

struct alloy_member {
    struct sv key;
    struct config_place place; /* place of the element in the source; line 0 if it was computed */
    const struct alloy_value *value;
};

struct alloy_value {
    enum alloy_value_kind kind;
    bool truth;
    bool maybe_secret; /* a string that Alloy treats as one that could be secret */
    bool open;         /* an array with a splice in it */
    struct alloy_number number;
    struct sv text; /* text of a string, a secret, bytes */
    struct sv form; /* the text as YAML writes it, if that differs; p is NULL otherwise */
    /* The file whose content the text is; NULL otherwise. A handle with a file is a content
     * (config/content.h), whose value is not known while loading. */
    const char *file;
    const char *holder; /* a handle for the data of "kubernetes:secret/NAMESPACE/NAME"; or NULL */
    /* those of an object are sorted by key, without duplicates */
    const struct alloy_member *members;
    size_t n_members;
    const struct alloy_function *function;
    const void *handle;
    const char *what; /* a handle, for messages: "a receiver" */
    bool opaque;      /* a handle: each field or element of it is the handle itself */
};

/* Returns true for a content, of which only the name is known. */
static inline bool alloy_is_content(const struct alloy_value *v)
{
    return v->kind == VALUE_HANDLE && v->file != NULL;
}

extern const struct alloy_value alloy_unknown;
extern const struct alloy_value alloy_null;

/* Make values; NULL if the arena is full. Texts must live as long as the arena. */
struct alloy_value *alloy_value_new(struct arena *arena, enum alloy_value_kind kind);
struct alloy_value *alloy_string(struct arena *arena, struct sv text);
struct alloy_value *alloy_bool(struct arena *arena, bool truth);
struct alloy_value *alloy_number(struct arena *arena, struct alloy_number number);
struct alloy_value *alloy_int(struct arena *arena, int64_t i);
/* Takes over the members, which must be in the arena and may be reordered. */
struct alloy_value *alloy_array(struct arena *arena, struct alloy_member *members, size_t n);
struct alloy_value *alloy_object(struct arena *arena, struct alloy_member *members, size_t n);

/* Returns the kind of a value, for messages: "a string", "an array", "null". */
const char *alloy_what(const struct alloy_value *v);
/* Returns the value of a key in an object, or NULL. */
const struct alloy_value *alloy_member(const struct alloy_value *object, struct sv key);
/* Returns true if two values are equal, at all depths. Numbers of different types are compared by
 * their value, and a secret as the string that it holds. */
bool alloy_equal(const struct alloy_value *a, const struct alloy_value *b);

double alloy_number_float(struct alloy_number n);
/* Appends a number: integers in decimal; floats with the fewest digits that read back as the same
 * value, without an exponent. */
bool alloy_number_put(struct alloy_number n, struct buf *out);
/* Parses the text of a literal, or a string where a number is expected; false if it is no number. A
 * literal that begins with 0 is octal if its digits allow it. */
bool alloy_number_literal(struct sv text, struct alloy_number *ret_number);
bool alloy_number_parse(struct sv text, struct alloy_number *ret_number);

#endif
