/* The address of a target: what may stand in `__address__`, and whose it is.
 *
 * Pods influence it through relabelling, so it is taken apart and put together again; nothing but a
 * host and a port survives. Pure functions, any thread.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_ADDRESS_H
#define PROFPULL_SCRAPER_TARGETS_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Longest host with port, with the NUL. */
#define ADDRESS_MAX 300

struct address {
    char text[ADDRESS_MAX];      /* "10.1.2.3:6060", "[::1]:80", "web:80" */
    char canonical[ADDRESS_MAX]; /* one spelling for each host: what identifies the process */
};

/* Takes host or host:port and adds the default port where there is none. An IPv6 address may stand
 * without brackets if it has no port. Errors: `no address`, `invalid address: ...`. */
bool address_parse(struct sv v, uint16_t default_port, struct address *ret, struct err *err);

/* The same host with another port. */
void address_set_port(struct address *a, uint16_t port);

/* Whether the host of a is `host`, spelled as it may be. */
bool address_is_host(const struct address *a, const char *host);

#endif
