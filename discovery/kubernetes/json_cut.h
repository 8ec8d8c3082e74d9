/* Cuts one JSON value out of a byte stream: finds its end, and keeps its text.
 *
 * Follows only strings, escapes and nesting; whether the value is valid is up to the parser. A
 * value beyond its limits is not kept, but its end is found all the same, so that what follows is
 * not lost. Members that are not needed are dropped on the way, which spares the parser most of a
 * pod, and whatever later versions of Kubernetes add to it: of an object with a table of rows
 * (schema.h) those that no row names, while an array passes the table on to its elements. A name
 * that is written with escapes is never dropped. Plain memory, one owner.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JSON_CUT_H
#define PROFPULL_DISCOVERY_KUBERNETES_JSON_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "discovery/counters.h"
#include "discovery/kubernetes/schema.h"

/* Names are followed to this depth; nothing is dropped further in. */
#define JSON_CUT_NAMES_DEPTH 64

/* The longest name of a row. */
#define JSON_CUT_NAME_MAX 32

struct json_cut {
    /* Readable: the text of the value, or why it has none: SKIP_TOO_LARGE, _TOO_DEEP, _MEMORY, or
     * SKIP_SYNTAX for a line break within a string, with newline_ends. */
    struct buf text;
    enum discovery_skip skip;
    size_t size; /* bytes of the value so far */
    /* Settings, changed between values only. */
    size_t max; /* bytes of the value as received, dropped ones included */
    unsigned depth_max;
    bool newline_ends; /* a raw line break in a string, never valid, ends the value as broken */
    const struct schema_row *members; /* of the value; NULL keeps all of it */
    /* Private. */
    int state;
    size_t depth;
    uint64_t objects;
    /* The members to keep of the object at each depth, or of the objects in an array; at depth 0,
     * of the value itself. */
    const struct schema_row *members_at[JSON_CUT_NAMES_DEPTH + 1];
    const struct schema_row *next_members; /* of the value of the last name that was kept */
    size_t omit_depth;
    char name[JSON_CUT_NAME_MAX + 2];
    size_t name_len;
    bool name_next;
    bool in_name;
    bool comma;
    bool keep;
};

/* Allocates nothing. The text is freed with buf_done(). */
void json_cut_init(struct json_cut *c, size_t max, unsigned depth_max);
/* Begins a value; keep = false only looks for its end. */
void json_cut_begin(struct json_cut *c, bool keep);
/* Takes bytes, the very first being the first of the value. Returns how many belong to it;
 * *ret_ended: it ended there. A number or a word ends before the byte that follows it. */
size_t json_cut_feed(struct json_cut *c, const char *data, size_t len, bool *ret_ended);

#endif
