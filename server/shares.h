/* Counts the requests of each client address that wait or are worked on, so that one client cannot
 * take all places of a queue. Belongs to the loop of the server.
 */
#ifndef PROFPULL_SERVER_SHARES_H
#define PROFPULL_SERVER_SHARES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct shares;

struct shares *shares_new(void);              /* NULL if out of memory */
struct shares *shares_free(struct shares *s); /* accepts NULL, returns NULL */
/* Counts one more request of an address. Returns false, and counts nothing, if the address has
 * `most` already or memory is short. */
bool shares_take(struct shares *s, const struct in6_addr *address, size_t most);
/* Takes back one request of an address that shares_take() has counted. */
void shares_give(struct shares *s, const struct in6_addr *address);

#endif
