/* Servers that have held the loop (guard.h). They are not asked for OFFENDERS_PAUSE_MS, because
 * each answer of theirs may cost all others a second. All calls on the loop's thread.
 */
#ifndef PROFPULL_HTTP_OFFENDERS_H
#define PROFPULL_HTTP_OFFENDERS_H

#include <stdint.h>

#define OFFENDERS_PAUSE_MS 600000
/* Servers that are remembered; one more is not. */
#define OFFENDERS_MAX 1024

struct offenders;

struct offenders *offenders_new(void);                 /* NULL if out of memory */
struct offenders *offenders_free(struct offenders *o); /* accepts NULL, returns NULL */
/* Remembers a server by its url_origin_hash(); it is forgotten if memory is short. */
void offenders_add(struct offenders *o, uint64_t origin, int64_t now_ms);
/* The milliseconds for which a server is not asked; 0 if it may be. */
int64_t offenders_left_ms(const struct offenders *o, uint64_t origin, int64_t now_ms);

#endif
