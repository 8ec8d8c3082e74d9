#include "http/offenders.h"

#include <stdlib.h>

#include "base/map.h"

struct offenders {
    struct map *until; /* origin -> int64_t, in milliseconds */
};

static struct sv key_of(const uint64_t *origin)
{
    return (struct sv){(const char *)origin, sizeof(*origin)};
}

struct offenders *offenders_new(void)
{
    struct offenders *o = calloc(1, sizeof(*o));
    if (o != NULL) {
        o->until = map_new();
    }
    return o != NULL && o->until != NULL ? o : offenders_free(o);
}

struct offenders *offenders_free(struct offenders *o)
{
    if (o != NULL) {
        map_free(o->until, free);
        free(o);
    }
    return NULL;
}

static void forget_past(struct offenders *o, int64_t now_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(o->until, &cursor, &key, &value)) {
        if (*(const int64_t *)value <= now_ms) {
            map_remove_at(o->until, cursor);
            free(value);
        }
    }
}

void offenders_add(struct offenders *o, uint64_t origin, int64_t now_ms)
{
    void *old = NULL;
    forget_past(o, now_ms);
    int64_t *until = map_count(o->until) < OFFENDERS_MAX ? malloc(sizeof(*until)) : NULL;
    if (until == NULL) {
        return;
    }
    *until = now_ms + OFFENDERS_PAUSE_MS;
    if (map_put(o->until, key_of(&origin), until, &old)) {
        free(old);
    } else {
        free(until);
    }
}

int64_t offenders_left_ms(const struct offenders *o, uint64_t origin, int64_t now_ms)
{
    if (map_count(o->until) == 0) {
        return 0;
    }
    const int64_t *until = map_get(o->until, key_of(&origin));
    return until != NULL && *until > now_ms ? *until - now_ms : 0;
}
