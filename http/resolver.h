/* A cache of the addresses of hosts.
 *
 * A name is looked up once, however many transfers wait for it; lookup.h does it on a few threads.
 * The addresses are fresh for RESOLVER_FRESH_MS. After that the next transfer still gets them at
 * once, and another lookup is started, so that a slow name server delays no transfer that has an
 * address. If that lookup fails for another reason than that the name does not exist, the old
 * addresses are used for up to RESOLVER_STALE_MS. A failed lookup is not repeated for
 * RESOLVER_FAILED_MS. A transfer that could not connect calls resolver_suspect(), and the next
 * transfer then waits for a fresh lookup.
 *
 * Every transfer has a deadline of its own while it waits. All calls are made on the loop's thread.
 */
#ifndef PROFPULL_HTTP_RESOLVER_H
#define PROFPULL_HTTP_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "http/lookup.h"

#define RESOLVER_FRESH_MS 30000
#define RESOLVER_FAILED_MS 5000
#define RESOLVER_STALE_MS 3600000
/* Suspected addresses are still used if their lookup ended within this time. */
#define RESOLVER_SURE_MS 1000
/* Names that were not asked for during this time are forgotten. */
#define RESOLVER_UNUSED_MS 600000
#define RESOLVER_HOSTS_MAX 65536

struct resolver;
struct resolver_name;

/* The place of a transfer among those that wait for a lookup. In a zeroed struct, the transfer
 * waits for none. */
struct resolver_use {
    TAILQ_ENTRY(resolver_use) link;
    struct resolver_name *name; /* NULL: not waiting */
    void *transfer;
};

/* Called when a transfer no longer waits, with the addresses of the host, which are valid during
 * the call, or with NULL and the reason. */
typedef void resolver_resume(void *transfer, const char *addresses, const char *reason);

struct resolver_options {
    struct loop *loop;
    struct metrics *metrics; /* may be NULL */
    const char *client;      /* label of the metrics */
    lookup_fn *lookup;       /* NULL: getaddrinfo() */
    resolver_resume *resume;
};

/* Returns NULL if out of memory. */
struct resolver *resolver_new(const struct resolver_options *options);
/* Frees the cache. No transfer may wait. Accepts NULL, returns NULL. */
struct resolver *resolver_free(struct resolver *r);

enum resolver_answer { RESOLVER_FOUND, RESOLVER_WAIT, RESOLVER_FAILED };
/* Asks for the addresses of a host. RESOLVER_FOUND: *ret_addresses is set, and valid until the next
 * call. RESOLVER_WAIT: resume() follows, unless resolver_cancel() comes first. RESOLVER_FAILED: the
 * reason is in err, of kind ERR_MEMORY or another. */
enum resolver_answer resolver_get(struct resolver *r, const char *host, int64_t now_ms,
                                  struct resolver_use *use, const char **ret_addresses,
                                  struct err *err);
/* Ends the wait of a transfer. Does nothing if it does not wait. */
void resolver_cancel(struct resolver_use *use);
/* Notes that no address of this host accepted a connection. */
void resolver_suspect(struct resolver *r, const char *host);
/* Resumes every transfer that waits with this reason. */
void resolver_abort(struct resolver *r, const char *reason);

#endif
