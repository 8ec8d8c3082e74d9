/* The servers that can be asked for profiles: Pyroscope (and profpull itself), profefe, DeepFlow.
 *
 * A row of functions for each. One thread at a time.
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

struct query_ask {
    const char *service; /* NULL: all */
    const char *type;
    const char *language; /* of DeepFlow */
    const struct flag_pairs *labels;
    int64_t from_ns;
    int64_t until_ns;
};

/* The API of one kind of server; a member is NULL if the server has no such API. */
struct query_source {
    const char *name;
    /* Arrays of strings, which the caller releases; NULL with err. */
    struct json_t *(*services)(struct remote *r, const struct query_ask *ask, struct err *err);
    struct json_t *(*types)(struct remote *r, const struct query_ask *ask, struct err *err);
    /* The merged profile, pprof in whichever compression it came, in a buffer that the caller has
     * not initialised and frees; empty if nothing was found. */
    bool (*merge)(struct remote *r, const struct query_ask *ask, struct buf *ret, struct err *err);
    /* A tree, of servers without merge(), and the unit of its values; the caller frees it. */
    struct tree *(*tree)(struct remote *r, const struct query_ask *ask, char unit[TOP_UNIT_MAX],
                         struct err *err);
};

extern const struct query_source query_pyroscope;
extern const struct query_source query_profefe;
extern const struct query_source query_deepflow;

#define PGO_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
/* A merged CPU profile of a Pyroscope, cut to what `go build -pgo` reads: the five innermost
 * frames of each stack, callees as a whole. */
bool query_pyroscope_pgo(struct remote *r, const struct query_ask *ask, struct buf *ret,
                         struct err *err);

/* The sample type of a type id that a user means: the id itself, its name, or its sample type.
 * Appends the id; ERR_INPUT if none or several of ids fit. */
bool query_choose_type(const struct json_t *ids, const char *type, struct buf *out,
                       struct err *err);

#endif
