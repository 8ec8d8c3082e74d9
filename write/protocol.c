#include "write/protocol.h"

#include <stddef.h>

const struct protocol *protocol_of(const struct config_endpoint *endpoint)
{
    return (const struct protocol *)(const void *)endpoint->protocol; /* its first member */
}

bool protocol_is_http(const struct protocol *p)
{
    return p->build != NULL || p->build_many != NULL;
}

void sink_init(struct sink *s, void (*free_sink)(struct sink *s))
{
    *s = (struct sink){.free = free_sink, .end = &s->first};
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
}

struct sink *sink_ref(struct sink *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

struct sink *sink_unref(struct sink *s)
{
    if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_destroy(&s->lock);
        s->free(s);
    }
    return NULL;
}
