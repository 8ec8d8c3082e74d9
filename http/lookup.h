/* Name lookups on a few threads.
 *
 * getaddrinfo() knows /etc/hosts, search domains and whatever else nsswitch.conf names, and blocks
 * for as long as it likes: a name server that does not answer costs half a minute for each name.
 * So lookups wait in line for a thread. A name that is in doubt, because its last lookup failed,
 * gets a thread only when no other name waits, and never the last half of them: dead names do not
 * hold up the living ones.
 *
 * A lookup cannot be interrupted: lookups_close() does not wait, and what is shared with the
 * threads is freed by the last one to leave. All calls on the loop's thread.
 */
#ifndef PROFPULL_HTTP_LOOKUP_H
#define PROFPULL_HTTP_LOOKUP_H

#include <stdbool.h>

#include "base/err.h"
#include "base/loop.h"

/* Threads of one pool, and the descriptors that all of them need. */
#define LOOKUP_THREADS 8
#define LOOKUP_FDS (2 * LOOKUP_THREADS)
/* Addresses of one host; further ones are not used. */
#define LOOKUP_ADDRESSES_MAX 16

/* Looks up a host, on any thread. 0 and its addresses, as libcurl wants them: "192.0.2.1,[::1]",
 * allocated; or the code of getaddrinfo(). */
typedef int lookup_fn(const char *host, char **ret_addresses);
/* The one that is meant. */
int lookup_getaddrinfo(const char *host, char **ret_addresses);

/* The end of a lookup, on the loop's thread: arg is that of lookups_start(); addresses become the
 * callee's, NULL if code is not 0. */
typedef void lookup_done_fn(void *arg, int code, char *addresses);

struct lookups;

struct lookups *lookups_new(struct loop *loop, lookup_fn *fn, lookup_done_fn *done);
/* No done() comes after this. Accepts NULL, returns NULL. */
struct lookups *lookups_close(struct lookups *l);
/* Puts a host in line; done() is called once, never within this call. False if out of memory, or if
 * there is no thread and none can be started. */
bool lookups_start(struct lookups *l, const char *host, bool in_doubt, void *arg, struct err *err);

#endif
