#include "server/passwords.h"

#include <crypt.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/worker.h"

#define KEY_SIZE 32
#define DIGEST_SIZE 32
/* A hash that no password has: compared when the user is unknown, so that the response takes as
 * long as for a known user. */
static const char hash_of_nobody[] = "$2b$10$abcdefghijklmnopqrstuufSOlAlDHX6OpYZF25f9x6UkWjRId9eS";

struct passwords {
    struct loop *loop;
    struct worker_pool *thread;
    unsigned n_waiting;
    /* random for each process, so that a digest is useless elsewhere */
    unsigned char key[KEY_SIZE];
    unsigned char known[PASSWORDS_KNOWN_MAX][DIGEST_SIZE];
    size_t n_known;
    size_t next; /* the entry to replace next */
};

struct check {
    struct work work; /* must be the first member: the check is found by it */
    struct passwords *passwords;
    void (*fn)(void *arg, bool right);
    void *arg;
    bool is_somebody;
    bool right;
    char hash[64];
    char password[PASSWORD_MAX + 1];
    struct crypt_data data;
};

/* ---- what is known --------------------------------------------------------------------------- */

static bool same_bytes(const unsigned char *a, const char *b, size_t n)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < n; i++) {
        difference |= a[i] ^ (unsigned char)b[i];
    }
    return difference == 0;
}

/* Computes the digest of a hash together with a password. False if the library fails. */
static bool digest_of(const struct passwords *p, const char *hash, struct sv password,
                      unsigned char ret[DIGEST_SIZE])
{
    struct buf text;
    unsigned n = 0;
    buf_init(&text, 256 + PASSWORD_MAX);
    bool ok = buf_puts(&text, hash) && buf_putc(&text, '\0') &&
              buf_append(&text, password.p, password.n) &&
              HMAC(EVP_sha256(), p->key, KEY_SIZE, (const unsigned char *)text.data, text.len, ret,
                   &n) != NULL;
    buf_wipe(&text);
    return ok && n == DIGEST_SIZE;
}

bool passwords_know(const struct passwords *p, const char *hash, struct sv password)
{
    unsigned char digest[DIGEST_SIZE];
    bool found = false;
    if (password.n > PASSWORD_MAX || !digest_of(p, hash, password, digest)) {
        return false;
    }
    for (size_t i = 0; i < p->n_known; i++) {
        found = same_bytes(p->known[i], (const char *)digest, DIGEST_SIZE) || found;
    }
    return found;
}

static void remember(struct passwords *p, const char *hash, struct sv password)
{
    unsigned char digest[DIGEST_SIZE];
    if (passwords_know(p, hash, password) || !digest_of(p, hash, password, digest)) {
        return;
    }
    memcpy(p->known[p->next], digest, DIGEST_SIZE);
    p->next = (p->next + 1) % PASSWORDS_KNOWN_MAX;
    p->n_known += p->n_known < PASSWORDS_KNOWN_MAX;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Hashes a password, on the thread. */
static void passwords_on_run(struct work *w)
{
    struct check *c = (struct check *)(void *)w;
    const char *got = crypt_r(c->password, c->hash, &c->data);
    size_t n = strlen(c->hash);
    c->right = c->is_somebody && got != NULL && strlen(got) == n &&
               same_bytes((const unsigned char *)got, c->hash, n);
}

static void passwords_on_done(struct work *w)
{
    struct check *c = (struct check *)(void *)w;
    struct passwords *p = c->passwords;
    p->n_waiting--;
    if (c->right) {
        remember(p, c->hash, sv_from(c->password));
    }
    c->fn(c->arg, c->right);
    explicit_bzero(c, sizeof(*c));
    free(c);
}

bool passwords_check(struct passwords *p, const char *hash, struct sv password,
                     void (*fn)(void *arg, bool right), void *arg)
{
    struct check *c = p->n_waiting < PASSWORDS_WAITING_MAX ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        return false;
    }
    bool is_password = password.n <= PASSWORD_MAX && memchr(password.p, '\0', password.n) == NULL;
    c->work = (struct work){.home = p->loop, .run = passwords_on_run, .done = passwords_on_done};
    c->passwords = p;
    c->fn = fn;
    c->arg = arg;
    c->is_somebody = hash != NULL && strlen(hash) < sizeof(c->hash) && is_password;
    memcpy(c->hash, c->is_somebody ? hash : hash_of_nobody,
           strlen(c->is_somebody ? hash : hash_of_nobody));
    if (is_password && password.n > 0) {
        memcpy(c->password, password.p, password.n);
    }
    p->n_waiting++;
    worker_submit(p->thread, &c->work);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct passwords *passwords_new(struct loop *loop, struct err *err)
{
    struct passwords *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    p->loop = loop;
    if (RAND_bytes(p->key, KEY_SIZE) != 1) {
        err_set(err, ERR_SYSTEM, "no random bytes");
        return passwords_free(p);
    }
    p->thread = worker_thread_new("passwords", err);
    return p->thread != NULL ? p : passwords_free(p);
}

void passwords_stop(struct passwords *p)
{
    if (p != NULL) {
        p->thread = worker_pool_free(p->thread);
    }
}

struct passwords *passwords_free(struct passwords *p)
{
    passwords_stop(p);
    if (p != NULL) {
        explicit_bzero(p, sizeof(*p));
        free(p);
    }
    return NULL;
}
