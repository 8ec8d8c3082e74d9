/* Tables of the members that are read of a Kubernetes object, and of their places in a struct; one
 * table serves both encodings.
 *
 * A row has the name that a member has in JSON, its number in protobuf, and its place in a struct
 * of types.h. json_cut.h drops members that no row names before JSON is parsed. Protobuf is read as
 * received, and fields that no row names are skipped by their length. Texts are views of the bytes
 * or of the tree that they were read from; lists are in the arena. Pure, any thread.
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

/* The most memory for the lists of one object; an object that needs more is SKIP_TOO_LARGE. */
#define SCHEMA_BYTES_MAX ((size_t)16 * 1024 * 1024)

enum schema_kind {
    SCHEMA_KEPT, /* not read here, but kept in the JSON for another reader */
    SCHEMA_TEXT, /* struct sv; stays empty if the value is not a text */
    /* a text that changes with each write of the object, and does not count as content */
    SCHEMA_MARK,
    SCHEMA_NUMBER, /* struct schema_number */
    SCHEMA_FLAG,   /* enum schema_flag */
    SCHEMA_PART,   /* an object whose members are stored in the surrounding struct */
    SCHEMA_NOTED,  /* as SCHEMA_PART, and a bool says whether the object was present */
    SCHEMA_TEXTS,  /* struct schema_list of struct schema_text */
    SCHEMA_PAIRS,  /* a map of strings: struct schema_list of struct schema_pair */
    SCHEMA_LIST,   /* objects: struct schema_list of structs of row.size bytes */
};

struct schema_row {
    const char
        *name; /* "": in JSON its members are those of the object around; NULL ends the table */
    /* members of PART, NOTED and LIST; NULL: all are kept in JSON */
    const struct schema_row *members;
    enum schema_kind kind;
    unsigned number; /* number of the field; 0: not in protobuf */
    size_t offset;
    size_t size; /* bytes of a LIST's struct, which begins with `void *next` */
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

/* Makes an arena for the lists of one object, to be reset between objects. NULL if out of
 * memory. */
struct arena *schema_arena_new(void);
/* Read an object into the struct at ret, which must be zeroed. They return SKIP_NONE, SKIP_SYNTAX
 * (protobuf only), SKIP_TOO_LARGE or SKIP_MEMORY. Invalid UTF-8, which only protobuf can have here,
 * is replaced as Go does in JSON. */
enum discovery_skip schema_read_json(const struct schema_row *rows, const json_t *object,
                                     struct arena *arena, void *ret);
enum discovery_skip schema_read_wire(const struct schema_row *rows, struct sv message,
                                     struct arena *arena, void *ret);
/* Returns a hash of all members that the rows name, except marks. It is the same for both
 * encodings, and never 0. */
uint64_t schema_hash(const struct schema_row *rows, const void *object);

#endif
