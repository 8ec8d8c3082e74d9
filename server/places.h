/* The connections of a server, by the addresses of their clients. If a new connection finds no free
 * place, this module says which one has to end: of the address with the most connections, the
 * connection whose last request is the oldest. The cost of each function does not depend on the
 * number of connections. Belongs to the loop of the server; owns no connection.
 */
#ifndef PROFPULL_SERVER_PLACES_H
#define PROFPULL_SERVER_PLACES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct connection;
struct place;
struct places;

/* max: the most connections in all; max_of_one: the most of one address. NULL if out of memory. */
struct places *places_new(size_t max, size_t max_of_one);
struct places *places_free(struct places *p); /* accepts NULL, returns NULL */

/* Returns the number of connections. */
size_t places_count(const struct places *p);
/* Returns the number of addresses that have connections. */
size_t places_addresses(const struct places *p);
/* Returns the address of a place's connection. */
const struct in6_addr *place_address(const struct place *place);
/* Returns the i-th connection, in no particular order. */
struct connection *places_at(const struct places *p, size_t i);

/* Returns the connection that an address has to give up for a further one of its own; NULL if it
 * may have one more. */
struct connection *places_own_victim(const struct places *p, const struct in6_addr *address);
/* Returns the connection that has to end if any has to; NULL if there is none. */
struct connection *places_victim(const struct places *p);
bool places_are_full(const struct places *p);

/* Adds a connection; the places must not be full. NULL if out of memory. */
struct place *places_add(struct places *p, const struct in6_addr *address, struct connection *c);
/* Notes a new request of the place's connection. */
void places_use(struct places *p, struct place *place);
void places_remove(struct places *p, struct place *place);

#endif
