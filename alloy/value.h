/* The values of Alloy's language, immutable, in an arena.
 *
 * A configuration is evaluated once, before anything runs, so a list of discovered targets has no
 * known elements: it is an array with a splice in its place, a handle that only those who put it
 * there understand. Receivers are handles too.
 *
 * A string remembers how the YAML of profpull would say it (form), so that a converted file still
 * reads its environment variables, and which file it is the content of.
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
    /* An error was reported where this value should have come from. Whatever is made of it is
     * unknown as well, without a further error. */
    VALUE_UNKNOWN,
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_SECRET, /* a string that is never shown */
    VALUE_BYTES, /* of a decoded text: an array of numbers that becomes a string where one is wanted
                  */
    VALUE_ARRAY,
    VALUE_OBJECT,
    VALUE_FUNCTION,
    VALUE_HANDLE, /* a receiver, for example */
    VALUE_SPLICE, /* in an array: a list that is not known yet */
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
    struct config_place place; /* of the element in the source; line 0 if it was computed */
    const struct alloy_value *value;
};

struct alloy_value {
    enum alloy_value_kind kind;
    bool truth;
    bool maybe_secret; /* a string that Alloy treats as one that could be secret */
    bool open;         /* an array with a splice in it */
    struct alloy_number number;
    struct sv text; /* of a string, a secret, bytes */
    struct sv form; /* in YAML, if that is not the text itself; p is NULL otherwise */
    /* The text is the content of this file; NULL otherwise. A handle with one is a content
     * (config/content.h) that nobody has read. */
    const char *file;
    const char *holder; /* a handle for the data of "kubernetes:secret/NAMESPACE/NAME"; or NULL */
    const struct alloy_member *members; /* of an object sorted by key, without duplicates */
    size_t n_members;
    const struct alloy_function *function;
    const void *handle;
    const char *what; /* a handle, for messages: "a receiver" */
    bool opaque;      /* a handle whose fields and elements are itself */
};

/* Returns true for a content that can only be named. */
static inline bool alloy_is_content(const struct alloy_value *v)
{
    return v->kind == VALUE_HANDLE && v->file != NULL;
}

extern const struct alloy_value alloy_unknown;
extern const struct alloy_value alloy_null;

/* Makers; NULL if the arena is full. Texts must live as long as the arena. */
struct alloy_value *alloy_value_new(struct arena *arena, enum alloy_value_kind kind);
struct alloy_value *alloy_string(struct arena *arena, struct sv text);
struct alloy_value *alloy_bool(struct arena *arena, bool truth);
struct alloy_value *alloy_number(struct arena *arena, struct alloy_number number);
struct alloy_value *alloy_int(struct arena *arena, int64_t i);
/* Takes over the members, which are in the arena and may change their order. */
struct alloy_value *alloy_array(struct arena *arena, struct alloy_member *members, size_t n);
struct alloy_value *alloy_object(struct arena *arena, struct alloy_member *members, size_t n);

/* Returns the kind of a value, for messages: "a string", "an array", "null". */
const char *alloy_what(const struct alloy_value *v);
/* The value of a key in an object, or NULL. */
const struct alloy_value *alloy_member(const struct alloy_value *object, struct sv key);
/* By value, deep; numbers by what they are worth, a secret as the string that it holds. */
bool alloy_equal(const struct alloy_value *a, const struct alloy_value *b);

double alloy_number_float(struct alloy_number n);
/* A number as text: integers in decimal; a float shortest, without an exponent. */
bool alloy_number_put(struct alloy_number n, struct buf *out);
/* The text of a literal or of a string that a number is wanted of; false if it is none. A literal
 * that begins with 0 is octal if it can be. */
bool alloy_number_literal(struct sv text, struct alloy_number *ret_number);
bool alloy_number_parse(struct sv text, struct alloy_number *ret_number);

#endif
