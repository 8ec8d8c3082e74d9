/* Reads the text of a server's message: determines who is at fault, and which part of the text to
 * show.
 *
 * With a status that says little (422, 500), a server may pass on the error of another server that
 * it depends on. The gRPC code of that error is somewhere in the text: "code = Unavailable" as gRPC
 * for Go prints it, "unavailable: " as Connect does. Text that is copied from the request does not
 * count, because a pod may have chosen it: label sets and quoted parts are skipped. Pure; any
 * thread. */
#ifndef PROFPULL_WRITE_WORDS_H
#define PROFPULL_WRITE_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* The meaning of a text. If it has words of several kinds, the last of these counts. */
enum words_meaning {
    WORDS_NOTHING,
    WORDS_DOUBT,    /* the profile may be at fault */
    WORDS_REJECTED, /* the profile is at fault */
    WORDS_RATE,     /* the tenant is over a limit */
    WORDS_OUTAGE,   /* the server, or one that it depends on, is out of order */
};

/* Returns the meaning of a message. code: the code of Connect's JSON, "" if there is none. */
enum words_meaning words_meaning(const char *code, struct sv message);

/* Appends the message with each label set as "{...}", and without credentials of the request that
 * it shows ("Basic ***"). Returns false if out of memory. */
bool words_elide(struct sv message, struct buf *out);

#endif
