/* Stray bytes: bytes that a peer sends although no request asked for them.
 *
 * A response belongs to a request by its place alone: it is the first one that comes after the
 * request. A peer that sends more, or earlier, would have its bytes taken for the response to
 * another request: a profile would count as sent that never arrived, or be stored under the type of
 * another one. So a connection ends as soon as a stray byte is seen on it, and the byte is not
 * taken for a response. docs/architecture.md has the rules. HTTP/2 numbers its responses and needs
 * none of them.
 *
 * No client can detect one case: a response that crosses the request on its way, and is read after
 * the peer's kernel has acknowledged the request.
 *
 * For http/ and its tests only.
 */
#ifndef PROFPULL_HTTP_STRAY_H
#define PROFPULL_HTTP_STRAY_H

#include "base/metrics.h"

enum stray {
    STRAY_IDLE,     /* bytes on a kept connection, between two requests */
    STRAY_FIRST,    /* bytes on a new connection, before its first request */
    STRAY_EARLY,    /* a response that began before its request was sent */
    STRAY_SURPLUS,  /* bytes after the end of a response, read together with it */
    STRAY_DOUBTFUL, /* a response on a kept connection that need not be about the request, which is
                       sent again on a new one: a 400 or 408 that ends the connection, a change of
                       protocol, or no HTTP at all */
    STRAY_REASONS,
};

/* Returns the value of the label "reason". */
const char *stray_name(enum stray reason);

struct stray_counters {
    struct metric_cell *cells[STRAY_REASONS];
};

void stray_register(struct stray_counters *s, struct metrics *m, const char *client);
void stray_count(const struct stray_counters *s, enum stray reason);

#endif
