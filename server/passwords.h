/* Checks passwords of clients against bcrypt hashes. Hashing takes long on purpose: it runs on a
 * thread of its own, for a limited number of passwords at a time, and only once for each correct
 * password, because correct ones are remembered.
 *
 * All functions run on the server's loop; only the hashing does not.
 */
#ifndef PROFPULL_SERVER_PASSWORDS_H
#define PROFPULL_SERVER_PASSWORDS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"

/* Passwords that may wait to be hashed, including the one that is being hashed. The server refuses
 * further ones. */
#define PASSWORDS_WAITING_MAX 16
/* Correct passwords that are remembered, each as a keyed digest. */
#define PASSWORDS_KNOWN_MAX 128
/* A longer password is wrong, though its check takes as long; bcrypt uses only the first 72 bytes.
 */
#define PASSWORD_MAX ((size_t)1024)

struct passwords;
struct passwords *passwords_new(struct loop *loop, struct err *err);
/* Ends the thread after it has hashed the passwords that wait. Its last results are posted to the
 * loop. */
void passwords_stop(struct passwords *p); /* accepts NULL */
struct passwords *
passwords_free(struct passwords *p); /* after the loop is freed; accepts NULL, returns NULL */

/* Returns true if this password is remembered as correct for this hash. */
bool passwords_know(const struct passwords *p, const char *hash, struct sv password);
/* Hashes a password and calls fn on the loop with the result. hash NULL stands for an unknown user:
 * the check takes as long, and the password is wrong. If too many passwords wait or memory ran out,
 * returns false and does not call fn. */
bool passwords_check(struct passwords *p, const char *hash, struct sv password,
                     void (*fn)(void *arg, bool right), void *arg);

#endif
