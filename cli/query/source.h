/* The places that can be asked for profiles: servers (Pyroscope and profpull itself, profefe,
 * DeepFlow), a directory in which profpull has stored profiles, and a file.
 *
 * Each kind is a row of functions. One thread at a time.
 */
#ifndef PROFPULL_CLI_QUERY_SOURCE_H
#define PROFPULL_CLI_QUERY_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/flags.h"
#include "cli/query/remote.h"
#include "cli/query/top.h"

struct json_t;

struct store;

/* The place that is asked. Only the member of its kind is set. */
struct query_peer {
    const char *name; /* for messages: the URL, the directory or the file */
    struct remote *remote;
    struct store *store;
    const char *file; /* "-": standard input */
};

struct query_ask {
    const char *service;  /* NULL: all services */
    const char *type;     /* NULL: the type that a file itself names; a server needs a type */
    const char *value;    /* the sample type of a profile of several; NULL: its default */
    bool as_recorded;     /* stacks that Go's runtime cut off are not repaired */
    const char *language; /* used by DeepFlow only */
    const struct flag_pairs *labels;
    int64_t from_ns;
    int64_t until_ns;
};

/* The functions of one kind of place; a member is NULL if it has no such API. */
struct query_source {
    const char *name;
    /* Return arrays of strings, which the caller releases; NULL with err. */
    struct json_t *(*services)(struct query_peer *p, const struct query_ask *ask, struct err *err);
    struct json_t *(*types)(struct query_peer *p, const struct query_ask *ask, struct err *err);
    /* Fetches the merged profile: pprof, compressed or not, as the server sends it. The caller has
     * not initialised *ret, and frees it. *ret is empty if nothing was found. */
    bool (*merge)(struct query_peer *p, const struct query_ask *ask, struct buf *ret,
                  struct err *err);
    /* Fetches a tree and the unit of its values; only for places without merge(). The caller frees
     * the tree. */
    struct tree *(*tree)(struct query_peer *p, const struct query_ask *ask, char unit[TOP_UNIT_MAX],
                         struct err *err);
};

extern const struct query_source query_pyroscope;
extern const struct query_source query_profefe;
extern const struct query_source query_deepflow;
extern const struct query_source query_stored; /* a directory of profpull's own store */
extern const struct query_source query_file;   /* a profile or a recording of Java */

#define PGO_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
/* Fetches a merged CPU profile from a Pyroscope, with only the parts that `go build -pgo` reads:
 * the five innermost frames of each stack, callees as a whole. */
bool query_pyroscope_pgo(struct remote *r, const struct query_ask *ask, struct buf *ret,
                         struct err *err);

/* Finds the id that a user means by a type: a name of config_type_name(), or the name or sample
 * type of an id. Appends the id. ERR_INPUT if none or several of the ids fit. */
bool query_choose_type(const struct json_t *ids, const char *type, struct buf *out,
                       struct err *err);

#endif
