/* Cuts one JSON value out of a byte stream: knows where it ends, keeps its text.
 *
 * Follows strings, escapes and nesting only; whether the value is valid is the parser's business.
 * A value over its limits is not kept, but its end is found all the same, so that what follows it
 * is not lost. Members that nobody asks for are left out on the way, which spares the parser most
 * of a pod, and what later versions of Kubernetes add to it. Plain memory, one owner.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JSON_CUT_H
#define PROFPULL_DISCOVERY_KUBERNETES_JSON_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Names are followed to this depth; nothing is left out further in. */
#define JSON_CUT_NAMES_DEPTH 64

/* The longest name that json_keep can have. */
#define JSON_CUT_NAME_MAX 32

/* A member to keep. Of an object whose members are listed, all others are left out; an array passes
 * the list on to its elements. A name that is written with escapes is never left out. */
struct json_keep {
    const char *name;                /* NULL ends the list */
    const struct json_keep *members; /* of the value, if it is an object; NULL keeps all of it */
};

enum json_cut_verdict {
    JSON_CUT_KEPT,
    JSON_CUT_TOO_LARGE,
    JSON_CUT_TOO_DEEP,
    JSON_CUT_BROKEN, /* a line ended within a string, with newline_ends */
    JSON_CUT_NO_MEMORY,
};

struct json_cut {
    /* Readable: the text of the value when json_cut_verdict() is JSON_CUT_KEPT. */
    struct buf text;
    /* Settings, written between values only. */
    size_t max; /* bytes of the value as it came, what is left out included */
    unsigned depth_max;
    bool newline_ends; /* a raw line end in a string, never valid, ends the value as broken */
    const struct json_keep *members; /* of the value; NULL keeps all of it */
    /* Private. */
    int state;
    size_t raw;
    size_t depth;
    uint64_t objects;
    /* What is kept of the object at each depth, or of the objects in an array; of depth 0, of the
     * value itself. */
    const struct json_keep *members_at[JSON_CUT_NAMES_DEPTH + 1];
    const struct json_keep *next_members; /* of the value of the name that was kept last */
    size_t omit_depth;
    char name[JSON_CUT_NAME_MAX + 2];
    size_t name_len;
    bool name_next;
    bool in_name;
    bool comma;
    bool keep;
    bool too_deep;
    bool broken;
    bool no_memory;
};

/* Allocates nothing. */
void json_cut_init(struct json_cut *c, size_t max, unsigned depth_max);
void json_cut_done(struct json_cut *c);
/* Begins a value; keep = false only looks for its end. */
void json_cut_begin(struct json_cut *c, bool keep);
/* Takes bytes, the first of all being the first of the value. Returns how many belong to it;
 * *ret_ended tells whether it ended there. A number or a word ends before what follows it. */
size_t json_cut_feed(struct json_cut *c, const char *data, size_t len, bool *ret_ended);
/* What became of the value that has ended. */
enum json_cut_verdict json_cut_verdict(const struct json_cut *c);
/* Bytes of the value so far. */
size_t json_cut_size(const struct json_cut *c);

#endif
