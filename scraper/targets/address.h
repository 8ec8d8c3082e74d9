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

/* Parses host or host:port. A host without a port gets the default port. An IPv6 address without a
 * port needs no brackets. Errors: `no address`, `invalid address: ...`. */
bool address_parse(struct sv v, uint16_t default_port, struct address *ret, struct err *err);

/* Changes the port of an address. */
void address_set_port(struct address *a, uint16_t port);

/* Returns true if the host of a is `host`, in any spelling. */
bool address_is_host(const struct address *a, const char *host);
/* Does the same as address_is_host() for the text of a canonical address (struct address). */
bool address_has_host(struct sv canonical, const char *host);

/* Returns the words for a special address, such as "a loopback address", "a link-local address" or
 * the metadata service of a cloud; NULL for any other address. No pod has a special address, and a
 * pod that could claim one would aim the scraper at its own machine or at credentials. An IPv4
 * address within an IPv6 address counts as the IPv4 address; names are not looked up. Static
 * storage. */
const char *address_special(const struct address *a);
/* Does the same as address_special() for a host without a port. */
const char *address_special_host(const char *host);

#endif
