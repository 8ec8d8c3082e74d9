/* Remembers servers that have blocked the loop (guard.h). They get no request for
 * OFFENDERS_PAUSE_MS, because each of their responses may delay all others by a second. All calls
 * are made on the loop's thread.
 */
#ifndef PROFPULL_HTTP_OFFENDERS_H
#define PROFPULL_HTTP_OFFENDERS_H

#include <stdint.h>

#define OFFENDERS_PAUSE_MS 600000
/* The most servers that are remembered; further ones are ignored. */
#define OFFENDERS_MAX 1024

struct offenders;

struct offenders *offenders_new(void);                 /* NULL if out of memory */
struct offenders *offenders_free(struct offenders *o); /* accepts NULL, returns NULL */
/* Remembers a server by its url_origin_hash(). Does nothing if out of memory. */
void offenders_add(struct offenders *o, uint64_t origin, int64_t now_ms);
/* Returns the milliseconds for which a server gets no request, or 0 if it may be asked. */
int64_t offenders_left_ms(const struct offenders *o, uint64_t origin, int64_t now_ms);

#endif
