#include "http/lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/thread.h"

struct lookup {
    struct loop_task task;
    STAILQ_ENTRY(lookup) link;
    struct lookups *all;
    void *arg;
    bool in_doubt;
    int code;
    char *addresses;
    char host[];
};

STAILQ_HEAD(lookup_line, lookup);

struct lookups {
    struct loop *loop;
    lookup_fn *fn;
    lookup_done_fn *done;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    struct lookup_line line;
    struct lookup_line doubtful;
    unsigned n_threads;
    unsigned n_idle;
    size_t n_waiting;    /* lookups in both lines */
    unsigned n_in_doubt; /* threads that look up a name in doubt */
    unsigned refs;       /* the owner, threads, and lookups whose task is posted */
    bool closed;         /* written by the owner only */
};

/* ---- getaddrinfo ----------------------------------------------------------------------------- */

/* Appends an address. Returns false if it has no form that libcurl accepts, such as a link-local
 * address with its interface. */
static bool append_address(struct buf *out, const struct addrinfo *a)
{
    char text[INET6_ADDRSTRLEN];
    const void *bytes;
    bool v6 = a->ai_family == AF_INET6;
    if (v6) {
        const struct sockaddr_in6 *in6 = (const void *)a->ai_addr;
        bytes = in6->sin6_scope_id == 0 ? &in6->sin6_addr : NULL;
    } else {
        const struct sockaddr_in *in = (const void *)a->ai_addr;
        bytes = a->ai_family == AF_INET ? &in->sin_addr : NULL;
    }
    if (bytes == NULL || inet_ntop(a->ai_family, bytes, text, sizeof(text)) == NULL) {
        return false;
    }
    buf_printf(out, v6 ? "%s[%s]" : "%s%s", out->len > 0 ? "," : "", text);
    return true;
}

int lookup_getaddrinfo(const char *host, char **ret_addresses)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct buf out;
    unsigned n = 0;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code != 0) {
        return code;
    }
    buf_init(&out, (size_t)LOOKUP_ADDRESSES_MAX * (INET6_ADDRSTRLEN + 3));
    for (const struct addrinfo *a = list; a != NULL && n < LOOKUP_ADDRESSES_MAX; a = a->ai_next) {
        n += append_address(&out, a) ? 1 : 0;
    }
    freeaddrinfo(list);
    *ret_addresses = n > 0 ? buf_take(&out, NULL) : NULL;
    buf_done(&out);
    return n == 0 ? EAI_NONAME : *ret_addresses == NULL ? EAI_MEMORY : 0;
}

/* ---- the threads ----------------------------------------------------------------------------- */

static void unlock_and_unref(struct lookups *l)
{
    bool last = --l->refs == 0;
    pthread_mutex_unlock(&l->lock);
    if (last) {
        pthread_cond_destroy(&l->wake);
        pthread_mutex_destroy(&l->lock);
        free(l);
    }
}

static void lookup_free(struct lookup *lookup)
{
    free(lookup->addresses);
    free(lookup);
}

static void free_line(struct lookup_line *line)
{
    struct lookup *lookup;
    while ((lookup = STAILQ_FIRST(line)) != NULL) {
        STAILQ_REMOVE_HEAD(line, link);
        lookup_free(lookup);
    }
}

/* Takes the next lookup for this thread. Returns NULL if there is none. */
static struct lookup *take(struct lookups *l)
{
    struct lookup_line *line = &l->line;
    if (STAILQ_EMPTY(line) && l->n_in_doubt < LOOKUP_THREADS / 2) {
        line = &l->doubtful;
    }
    struct lookup *lookup = STAILQ_FIRST(line);
    if (lookup != NULL) {
        STAILQ_REMOVE_HEAD(line, link);
        l->n_waiting--;
        l->n_in_doubt += lookup->in_doubt ? 1 : 0;
    }
    return lookup;
}

/* Runs on the loop's thread, possibly after the pool has been closed. */
static void lookup_on_task(struct loop_task *task)
{
    struct lookup *lookup = (struct lookup *)task; /* its first member */
    struct lookups *l = lookup->all;
    if (!l->closed) {
        l->done(lookup->arg, lookup->code, lookup->addresses);
        lookup->addresses = NULL;
    }
    lookup_free(lookup);
    pthread_mutex_lock(&l->lock);
    unlock_and_unref(l);
}

static void run(struct lookups *l, struct lookup *lookup)
{
    pthread_mutex_unlock(&l->lock);
    lookup->code = l->fn(lookup->host, &lookup->addresses);
    pthread_mutex_lock(&l->lock);
    l->n_in_doubt -= lookup->in_doubt ? 1 : 0;
    if (l->closed) {
        lookup_free(lookup);
        return;
    }
    /* Under the lock: once the pool is closed, the loop may be gone. */
    l->refs++;
    loop_post(l->loop, &lookup->task);
}

static void *thread_main(void *arg)
{
    struct lookups *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->closed) {
        struct lookup *lookup = take(l);
        if (lookup != NULL) {
            run(l, lookup);
            continue;
        }
        l->n_idle++;
        pthread_cond_wait(&l->wake, &l->lock);
        l->n_idle--;
    }
    unlock_and_unref(l);
    return NULL;
}

/* Starts one more thread if the limit allows it. The caller holds the lock. Returns false if there
 * is no thread at all. */
static bool add_thread(struct lookups *l, struct err *err)
{
    pthread_t thread;
    if (l->n_threads == LOOKUP_THREADS) {
        return true;
    }
    if (!thread_start(&thread, "lookup", thread_main, l, err)) {
        return l->n_threads > 0;
    }
    pthread_detach(thread);
    l->n_threads++;
    l->refs++;
    return true;
}

/* ---- the owner's side ------------------------------------------------------------------------ */

struct lookups *lookups_new(struct loop *loop, lookup_fn *fn, lookup_done_fn *done)
{
    struct lookups *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->loop = loop;
    l->fn = fn != NULL ? fn : lookup_getaddrinfo;
    l->done = done;
    l->refs = 1;
    STAILQ_INIT(&l->line);
    STAILQ_INIT(&l->doubtful);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    return l;
}

struct lookups *lookups_close(struct lookups *l)
{
    if (l == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&l->lock);
    l->closed = true;
    free_line(&l->line);
    free_line(&l->doubtful);
    pthread_cond_broadcast(&l->wake);
    unlock_and_unref(l);
    return NULL;
}

bool lookups_start(struct lookups *l, const char *host, bool in_doubt, void *arg, struct err *err)
{
    size_t size = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof(*lookup) + size);
    if (lookup == NULL) {
        return err_memory(err);
    }
    lookup->task.run = lookup_on_task;
    lookup->all = l;
    lookup->arg = arg;
    lookup->in_doubt = in_doubt;
    memcpy(lookup->host, host, size);
    pthread_mutex_lock(&l->lock);
    bool ok = l->n_idle > l->n_waiting || add_thread(l, err);
    if (ok) {
        l->n_waiting++;
        struct lookup_line *line = in_doubt ? &l->doubtful : &l->line;
        STAILQ_INSERT_TAIL(line, lookup, link);
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&l->lock);
    if (!ok) {
        lookup_free(lookup);
    }
    return ok;
}
