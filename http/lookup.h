/* Name lookups on a few threads.
 *
 * getaddrinfo() reads /etc/hosts, search domains and all other sources that nsswitch.conf names,
 * and may block for long: a name server that does not answer costs half a minute for each name. So
 * lookups wait in line for a thread. A name is in doubt if its last lookup failed. Such a name gets
 * a thread only when no other name waits, and at most half of the threads look up such names, so
 * that dead names do not delay the others.
 *
 * A lookup cannot be interrupted, so lookups_close() does not wait for the threads: the last one to
 * end frees what they share. All calls are made on the loop's thread.
 */
#ifndef PROFPULL_HTTP_LOOKUP_H
#define PROFPULL_HTTP_LOOKUP_H

#include <stdbool.h>

#include "base/err.h"
#include "base/loop.h"

/* The most threads of one pool, and the descriptors that they need together. */
#define LOOKUP_THREADS 8
#define LOOKUP_FDS (2 * LOOKUP_THREADS)
/* The most addresses of one host; further ones are not used. */
#define LOOKUP_ADDRESSES_MAX 16

/* Looks up a host, on any thread. Returns 0 and its addresses in libcurl's form, "192.0.2.1,[::1]",
 * which the caller frees; or the error code of getaddrinfo(). */
typedef int lookup_fn(const char *host, char **ret_addresses);
/* The lookup_fn of the product. */
int lookup_getaddrinfo(const char *host, char **ret_addresses);

/* Called on the loop's thread when a lookup ends. arg is that of lookups_start(). The callee owns
 * addresses, which are NULL if code is not 0. */
typedef void lookup_done_fn(void *arg, int code, char *addresses);

struct lookups;

struct lookups *lookups_new(struct loop *loop, lookup_fn *fn, lookup_done_fn *done);
/* Closes the pool; done() is not called after this. Accepts NULL, returns NULL. */
struct lookups *lookups_close(struct lookups *l);
/* Puts a host in line. done() is called once, never within this call. Returns false if out of
 * memory, or if there is no thread and none can be started. */
bool lookups_start(struct lookups *l, const char *host, bool in_doubt, void *arg, struct err *err);

#endif
