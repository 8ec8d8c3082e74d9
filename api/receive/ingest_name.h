/* Parses the name of a profile in `POST /ingest`: "app{key=value,...}". The name comes from outside
 * and is not trusted. Pure; any thread.
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
    struct sv app; /* all views point into the text */
    /* each name once, with its last value; no names that begin with `__` */
    struct label pairs[INGEST_PAIRS_MAX];
    size_t n;
    /* the profile belongs to a single request: Pyroscope accepts and discards it */
    bool has_profile_id;
};

/* Parses a decoded name. The grammar is Pyroscope's, except that a key may have any character that
 * does not end it. False with the message of Pyroscope's server. */
bool ingest_name_read(struct sv text, struct ingest_name *ret, struct err *err);
/* Returns the value of a key, or an empty view. */
struct sv ingest_name_get(const struct ingest_name *name, struct sv key);

#endif
