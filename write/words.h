/* The text of a server's message: who is at fault, and which part of it is worth showing.
 *
 * With a status that says little (422, 500), servers pass on the error of a server that they depend
 * on, with its gRPC code somewhere in the text: "code = Unavailable" as gRPC for Go prints it,
 * "unavailable: " as Connect does. Text that is copied from the request, and so comes from a pod,
 * does not count: label sets and quoted parts are skipped. Pure; any thread. */
#ifndef PROFPULL_WRITE_WORDS_H
#define PROFPULL_WRITE_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* The meaning of a text. If it has words of several kinds, the last of these counts. */
enum words_meaning {
    WORDS_NOTHING,
    WORDS_DOUBT,    /* the profile may be at fault */
    WORDS_REJECTED, /* it is */
    WORDS_RATE,     /* the tenant is over a limit */
    WORDS_OUTAGE,   /* the server, or one that it depends on, is out of order */
};

/* code: of Connect's JSON, "" if there is none. */
enum words_meaning words_meaning(const char *code, struct sv message);

/* Appends the message with each label set as "{...}", and without credentials of the request that
 * it shows ("Basic ***"). False if out of memory. */
bool words_elide(struct sv message, struct buf *out);

#endif
