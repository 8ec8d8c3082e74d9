#include "write/protocol.h"

#include <stddef.h>

const struct protocol *protocol_of(const struct config_endpoint *endpoint)
{
    return (const struct protocol *)(const void *)endpoint->protocol; /* its first member */
}

struct sink *sink_ref(struct sink *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

struct sink *sink_unref(struct sink *s)
{
    if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        s->free(s);
    }
    return NULL;
}
