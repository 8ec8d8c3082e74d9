/* The address of a target: the value of `__address__`, parsed.
 *
 * Pods influence the label through relabelling, so it is parsed and formatted again: only a host
 * and a port survive. Pure functions, any thread.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_ADDRESS_H
#define PROFPULL_SCRAPER_TARGETS_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* The longest host with port, with the NUL. */
#define ADDRESS_MAX 300

struct address {
    char text[ADDRESS_MAX];      /* "10.1.2.3:6060", "[::1]:80", "web:80" */
    char canonical[ADDRESS_MAX]; /* one spelling per host: identifies the process */
};

/* Parses host or host:port; the default port is for the former. An IPv6 address without a port
 * needs no brackets. Errors: `no address`, `invalid address: ...`. */
bool address_parse(struct sv v, uint16_t default_port, struct address *ret, struct err *err);

/* Changes the port. */
void address_set_port(struct address *a, uint16_t port);

/* Whether the host of a is `host`, in any spelling. */
bool address_is_host(const struct address *a, const char *host);
/* The same of a canonical address as in struct address. */
bool address_has_host(struct sv canonical, const char *host);

/* What is special about the host: "a loopback address", "a link-local address" and the like, or the
 * metadata service of a cloud; NULL if nothing is. No pod has such an address, and whoever could
 * claim one would aim the scraper at its own machine or at credentials. IPv4 addresses within IPv6
 * ones count as what they are; names are not looked up. Static storage. */
const char *address_special(const struct address *a);
/* The same of a host alone. */
const char *address_special_host(const char *host);

#endif
