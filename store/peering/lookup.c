/* Finds the addresses of a DNS name every ten seconds: a headless Service has the addresses of
 * its pods. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/peering/private.h"

int peering_getaddrinfo(const char *host, char **ret_addresses)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct buf out;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code != 0) {
        return code;
    }
    buf_init(&out, (size_t)(PEERING_PEERS_MAX + 1) * (INET6_ADDRSTRLEN + 3));
    size_t n = 0;
    for (const struct addrinfo *a = list; a != NULL && n <= PEERING_PEERS_MAX; a = a->ai_next) {
        char text[INET6_ADDRSTRLEN];
        const void *from =
            a->ai_family == AF_INET6
                ? (const void *)&((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_addr
                : (const void *)&((struct sockaddr_in *)(void *)a->ai_addr)->sin_addr;
        if (inet_ntop(a->ai_family, from, text, sizeof(text)) != NULL) {
            buf_printf(&out, "%s%s", n++ > 0 ? "," : "", text);
        }
    }
    freeaddrinfo(list);
    *ret_addresses = n > 0 ? buf_take(&out, NULL) : NULL;
    buf_done(&out);
    return n == 0 ? EAI_NONAME : *ret_addresses == NULL ? EAI_MEMORY : 0;
}

/* Returns the current settings with a reference if they have a name; NULL if they have none. */
static struct peering_setup *named(struct peering *p, struct sv *ret_host, uint16_t *ret_port)
{
    pthread_mutex_lock(&p->lock);
    struct peering_setup *s = p->setup != NULL ? peering_setup_ref(p->setup) : NULL;
    pthread_mutex_unlock(&p->lock);
    if (s != NULL && s->settings.mode == PEERING_DNS &&
        split_host_port(sv_from(s->settings.dns), ret_host, ret_port, NULL)) {
        return s;
    }
    return peering_setup_unref(s);
}

static void failed(struct peering *p, const char *why)
{
    pthread_mutex_lock(&p->lock);
    const char *name =
        p->setup != NULL && p->setup->settings.dns != NULL ? p->setup->settings.dns : "";
    /* Addresses that were found before stay. */
    bool is_new = p->lookup_err.kind == ERR_NONE;
    p->lookup_err = (struct err){0};
    err_set(&p->lookup_err, ERR_NETWORK,
            "query.peers.dns: %s cannot be resolved: %s: expected the name of a headless Service "
            "with a port",
            name, why);
    struct err why_now = p->lookup_err;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (is_new) {
        log_warn(p->options.log, "the peers cannot be resolved", LOG_ERR(&why_now));
    }
}

static void look_up(struct peering *p)
{
    struct sv host = SV("");
    uint16_t port = 0;
    char name[256];
    struct err err = ERR_INIT;
    struct peering_setup *s = p->looking_up || p->ending ? NULL : named(p, &host, &port);
    if (s == NULL) {
        return;
    }
    (void)snprintf(name, sizeof(name), "%.*s", SV_ARG(host));
    p->looking_up = lookups_start(p->lookups, name, false, p, &err);
    if (!p->looking_up) {
        failed(p, err.msg);
    }
    loop_timer_after(p->timer, PEERING_LOOKUP_MS);
    peering_setup_unref(s);
}

void peering_lookup_begin(struct loop_task *task)
{
    struct peering *p =
        (struct peering *)(void *)((char *)task - offsetof(struct peering, begin_task));
    pthread_mutex_lock(&p->lock);
    p->begin_posted = false;
    pthread_mutex_unlock(&p->lock);
    look_up(p);
}

void peering_lookup_on_timer(void *arg)
{
    look_up(arg);
}

void peering_lookup_on_done(void *arg, int code, char *addresses)
{
    struct peering *p = arg;
    struct sv host = SV("");
    uint16_t port = 0;
    p->looking_up = false;
    if (code != 0) {
        failed(p, gai_strerror(code));
        return;
    }
    struct peering_setup *s = named(p, &host, &port);
    if (s != NULL) {
        peering_use_addresses(p, s, addresses, port);
    }
    peering_setup_unref(s);
    free(addresses);
}
