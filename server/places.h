/* The connections that a server has, by the addresses that they come from, and which of them has to
 * go when a new one comes and there is no place left: of the address with the most connections, the
 * one whose last request is the oldest. Each step takes the same time however many there are.
 * Belongs to the loop of the server; owns no connection.
 */
#ifndef PROFPULL_SERVER_PLACES_H
#define PROFPULL_SERVER_PLACES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct connection;
struct place;
struct places;

/* At most so many in all, and of one address. NULL if out of memory. */
struct places *places_new(size_t max, size_t max_of_one);
struct places *places_free(struct places *p); /* accepts NULL, returns NULL */

size_t places_count(const struct places *p);
/* The i-th one, in no particular order. */
struct connection *places_at(const struct places *p, size_t i);

/* Which of its own connections an address has to give up for one more; NULL: none. */
struct connection *places_own_victim(const struct places *p, const struct in6_addr *address);
/* Which connection has to go if any has; NULL if there is none. */
struct connection *places_victim(const struct places *p);
bool places_are_full(const struct places *p);

/* NULL if out of memory. They must not be full. */
struct place *places_add(struct places *p, const struct in6_addr *address, struct connection *c);
/* Its connection has a new request. */
void places_use(struct places *p, struct place *place);
void places_remove(struct places *p, struct place *place);

#endif
