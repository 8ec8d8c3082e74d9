/* Which members of a Kubernetes object are read, and where they go: one table for both encodings.
 *
 * A row has the name that a member has in JSON, its number in protobuf, and its place in a struct
 * of types.h. json_cut.h drops what no row names before JSON is parsed; protobuf is read as it is,
 * and what no row names is skipped by its length. What is read are views of the bytes or of the
 * tree that it was read from; lists are in the arena. Pure, any thread.
 *
 * Reference: the files generated.proto of k8s.io/api and k8s.io/apimachinery.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_SCHEMA_H
#define PROFPULL_DISCOVERY_KUBERNETES_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "discovery/counters.h"

/* The lists of one object in memory; one beyond is SKIP_TOO_LARGE. */
#define SCHEMA_BYTES_MAX ((size_t)16 * 1024 * 1024)

enum schema_kind {
    SCHEMA_KEPT,   /* not read: kept in JSON for another reader */
    SCHEMA_TEXT,   /* struct sv; stays empty if it is something else */
    SCHEMA_MARK,   /* a text that each write of the object changes: not part of its content */
    SCHEMA_NUMBER, /* struct schema_number */
    SCHEMA_FLAG,   /* enum schema_flag */
    SCHEMA_PART,   /* an object whose members have their places in the struct around it */
    SCHEMA_NOTED,  /* the same, and a bool says that it was there */
    SCHEMA_TEXTS,  /* struct schema_list of struct schema_text */
    SCHEMA_PAIRS,  /* a map of strings: struct schema_list of struct schema_pair */
    SCHEMA_LIST,   /* objects: struct schema_list of structs of row.size bytes */
};

struct schema_row {
    const char
        *name; /* "": in JSON its members are those of the object around; NULL ends the table */
    const struct schema_row *members; /* of PART, NOTED, LIST; NULL: all are kept in JSON */
    enum schema_kind kind;
    unsigned number; /* of the field; 0: there is none in protobuf */
    size_t offset;
    size_t size; /* of LIST; the struct begins with `void *next` */
};

/* Rows: a member of a struct; a part; a list of structs. */
#define SCHEMA_MEMBER(json_name, field, what, type, member)                                        \
    {                                                                                              \
        .name = (json_name), .number = (field), .kind = SCHEMA_##what,                             \
        .offset = offsetof(type, member)                                                           \
    }
#define SCHEMA_PART_OF(json_name, field, rows)                                                     \
    {                                                                                              \
        .name = (json_name), .number = (field), .kind = SCHEMA_PART, .members = (rows)             \
    }
#define SCHEMA_LIST_OF(json_name, field, element, rows, type, member)                              \
    {                                                                                              \
        .name = (json_name), .number = (field), .kind = SCHEMA_LIST, .members = (rows),            \
        .offset = offsetof(type, member), .size = sizeof(element)                                  \
    }
#define SCHEMA_END                                                                                 \
    {                                                                                              \
        .name = NULL                                                                               \
    }

struct schema_number {
    bool given;
    int64_t value; /* 0 if it is no integer */
};

enum schema_flag { FLAG_UNSET, FLAG_FALSE, FLAG_TRUE };

struct schema_list {
    void *first;
    void *last;
};

struct schema_text {
    void *next;
    struct sv text;
};

struct schema_pair {
    void *next;
    struct sv name;
    struct sv value;
};

/* For what is read, to be reset between objects. NULL if out of memory. */
struct arena *schema_arena_new(void);
/* Fill the struct at ret, which is zeroed. SKIP_NONE, SKIP_SYNTAX (protobuf only), SKIP_TOO_LARGE
 * or SKIP_MEMORY. Invalid UTF-8, which only protobuf can have here, is replaced as Go does in JSON.
 */
enum discovery_skip schema_read_json(const struct schema_row *rows, const json_t *object,
                                     struct arena *arena, void *ret);
enum discovery_skip schema_read_wire(const struct schema_row *rows, struct sv message,
                                     struct arena *arena, void *ret);
/* A hash of all members that the rows name, marks excepted: the same in either encoding. Never 0.
 */
uint64_t schema_hash(const struct schema_row *rows, const void *object);

#endif
