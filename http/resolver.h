/* The addresses of hosts, as long as they are worth something.
 *
 * A name is looked up once, however many transfers wait for it (lookup.h does it, on a few
 * threads). What is found is used for RESOLVER_FRESH_MS. After that the next transfer still gets it
 * at once and another lookup is started, so that a slow name server delays nobody who has an
 * address; if that lookup fails, and not because the name is gone, the old addresses stay for
 * RESOLVER_STALE_MS. A failure counts for RESOLVER_FAILED_MS. Whoever could not connect says so
 * (resolver_suspect()), and the next transfer waits for a fresh answer.
 *
 * Every transfer has a deadline of its own while it waits. All calls on the loop's thread.
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
/* An address that was looked up so recently is not doubted. */
#define RESOLVER_SURE_MS 1000
/* Names that nobody has asked for since are forgotten. */
#define RESOLVER_UNUSED_MS 600000
#define RESOLVER_HOSTS_MAX 65536

struct resolver;
struct resolver_name;

/* The place of a transfer among those that wait for a lookup. Zeroed: it waits for none. */
struct resolver_use {
    TAILQ_ENTRY(resolver_use) link;
    struct resolver_name *name; /* NULL: not waiting */
    void *transfer;
};

/* Called when a transfer need not wait any longer: with the addresses of the host, valid during the
 * call, or with NULL and the reason. */
typedef void resolver_resume(void *transfer, const char *addresses, const char *reason);

struct resolver_options {
    struct loop *loop;
    struct metrics *metrics; /* may be NULL */
    const char *client;      /* label of the metrics */
    lookup_fn *lookup;       /* NULL: getaddrinfo() */
    resolver_resume *resume;
};

/* NULL if out of memory. */
struct resolver *resolver_new(const struct resolver_options *options);
/* Nothing may wait. Accepts NULL, returns NULL. */
struct resolver *resolver_free(struct resolver *r);

enum resolver_answer { RESOLVER_FOUND, RESOLVER_WAIT, RESOLVER_FAILED };
/* Asks for the addresses of a host. RESOLVER_FOUND: *ret_addresses, valid until the next call.
 * RESOLVER_WAIT: resume() follows, unless resolver_cancel() comes first. RESOLVER_FAILED: the
 * reason is in err, of kind ERR_MEMORY or another. */
enum resolver_answer resolver_get(struct resolver *r, const char *host, int64_t now_ms,
                                  struct resolver_use *use, const char **ret_addresses,
                                  struct err *err);
/* The transfer no longer waits; nothing happens if it does not. */
void resolver_cancel(struct resolver_use *use);
/* No address of this host took a connection. */
void resolver_suspect(struct resolver *r, const char *host);
/* Resumes every transfer that waits with this reason. */
void resolver_abort(struct resolver *r, const char *reason);

#endif
