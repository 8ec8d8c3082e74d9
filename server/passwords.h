/* Passwords of clients against bcrypt hashes, which take long on purpose: on a thread of its own, a
 * few at a time, and once for each password, since those that were right are remembered.
 *
 * On the server's loop, except for the hashing.
 */
#ifndef PROFPULL_SERVER_PASSWORDS_H
#define PROFPULL_SERVER_PASSWORDS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"

/* Passwords that wait to be hashed, the one at hand included; the server refuses further ones. */
#define PASSWORDS_WAITING_MAX 16
/* Correct passwords that are remembered, each as a keyed digest. */
#define PASSWORDS_KNOWN_MAX 128
/* A longer password is wrong; bcrypt looks at 72 bytes. */
#define PASSWORD_MAX ((size_t)1024)

struct passwords;
struct passwords *passwords_new(struct loop *loop, struct err *err);
/* Ends the thread once it has hashed what waits. Its last results are posted to the loop. */
void passwords_stop(struct passwords *p); /* accepts NULL */
struct passwords *
passwords_free(struct passwords *p); /* after the loop; accepts NULL, returns NULL */

/* Has this password been right for this hash? */
bool passwords_know(const struct passwords *p, const char *hash, struct sv password);
/* Calls fn on the loop with the answer. hash NULL: of nobody, which takes as long and is wrong.
 * False, and fn is not called, if too many wait or memory ran out. */
bool passwords_check(struct passwords *p, const char *hash, struct sv password,
                     void (*fn)(void *arg, bool right), void *arg);

#endif
