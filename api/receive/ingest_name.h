/* The name of a profile in `POST /ingest`: "app{key=value,...}". It comes from outside and is not
 * trusted. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_INGEST_NAME_H
#define PROFPULL_API_RECEIVE_INGEST_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"

/* A name with more pairs is refused. */
#define INGEST_PAIRS_MAX 256

struct ingest_name {
    struct sv app;                        /* views of the text */
    struct label pairs[INGEST_PAIRS_MAX]; /* each name once, the last value; no `__*` */
    size_t n;
    bool has_profile_id; /* a profile of one request: Pyroscope takes and forgets it */
};

/* Reads a decoded name. The grammar is Pyroscope's, except that any character may be in a key that
 * does not end one. False with the server's message. */
bool ingest_name_read(struct sv text, struct ingest_name *ret, struct err *err);
/* The value of a key, or an empty view. */
struct sv ingest_name_get(const struct ingest_name *name, struct sv key);

#endif
