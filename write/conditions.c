#include "write/conditions.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"

struct conditions {
    pthread_mutex_t lock;
    struct map *by_endpoint; /* name -> struct write_condition */
};

struct conditions *conditions_new(void)
{
    struct conditions *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    c->by_endpoint = map_new();
    return c->by_endpoint == NULL ? conditions_free(c) : c;
}

struct conditions *conditions_free(struct conditions *c)
{
    if (c != NULL) {
        map_free(c->by_endpoint, free);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

static struct write_condition *add(struct conditions *c, struct sv name)
{
    struct write_condition *v = calloc(1, sizeof(*v));
    if (v != NULL && !map_put(c->by_endpoint, name, v, NULL)) {
        free(v);
        v = NULL;
    }
    return v;
}

void conditions_set(struct conditions *c, const char *endpoint, const struct write_condition *now)
{
    if (c == NULL) {
        return;
    }
    struct sv name = sv_from(endpoint);
    pthread_mutex_lock(&c->lock);
    struct write_condition *v = map_get(c->by_endpoint, name);
    v = v == NULL ? add(c, name) : v;
    if (v != NULL) {
        *v = *now;
    }
    pthread_mutex_unlock(&c->lock);
}

bool conditions_get(struct conditions *c, const char *endpoint, struct write_condition *ret)
{
    if (c == NULL) {
        return false;
    }
    pthread_mutex_lock(&c->lock);
    const struct write_condition *v = map_get(c->by_endpoint, sv_from(endpoint));
    if (v != NULL) {
        *ret = *v;
    }
    pthread_mutex_unlock(&c->lock);
    return v != NULL;
}
