/* Cuts one JSON value out of a byte stream: finds its end, and keeps its text.
 *
 * The cutter follows only strings, escapes and nesting; the parser checks the rest of the syntax. A
 * value that exceeds a limit is not kept, but its end is found, so that the values after it are not
 * lost. Members that are not needed are dropped on the way, which spares the parser most of a pod,
 * and all that later versions of Kubernetes add to it. If an object has a table of rows (schema.h),
 * members that no row names are dropped; an array passes the table on to its elements. A name that
 * is written with escapes is never dropped. Plain memory, one owner.
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

/* Names of members are compared down to this depth; below it, nothing is dropped. */
#define JSON_CUT_NAMES_DEPTH 64

/* The longest name of a row. */
#define JSON_CUT_NAME_MAX 32

struct json_cut {
    /* Results: the text of the value, or the reason why there is none: SKIP_TOO_LARGE, _TOO_DEEP,
     * _MEMORY, or, if newline_ends is set, SKIP_SYNTAX for a line break within a string. */
    struct buf text;
    enum discovery_skip skip;
    size_t size; /* bytes of the value so far */
    /* Settings, changed between values only. */
    size_t max; /* the most bytes of a value as received, dropped members included */
    unsigned depth_max;
    bool newline_ends; /* a raw line break in a string, never valid, ends the value as broken */
    const struct schema_row *members; /* the members of the value that are kept; NULL keeps all */
    /* Private. */
    int state;
    size_t depth;
    uint64_t objects;
    /* The members to keep of the object at each depth, or of the objects in an array; at depth 0,
     * of the value itself. */
    const struct schema_row *members_at[JSON_CUT_NAMES_DEPTH + 1];
    /* members to keep of the value whose name was kept last */
    const struct schema_row *next_members;
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
/* Begins a value. If keep is false, only its end is searched. */
void json_cut_begin(struct json_cut *c, bool keep);
/* Takes bytes of the value, from its first byte on. Returns the number of bytes that belong to it;
 * *ret_ended is set if it ended there. A number or a word ends before the byte that follows it. */
size_t json_cut_feed(struct json_cut *c, const char *data, size_t len, bool *ret_ended);

#endif
