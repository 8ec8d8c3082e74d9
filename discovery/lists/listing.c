#include "discovery/lists/listing.h"

#include "config/target_file.h"

static bool make_targets(const struct listing *l, struct sv text, struct intern *intern,
                         struct static_group *ret, struct err *err)
{
    struct arena *arena = arena_new(TARGET_FILE_ARENA_MAX);
    if (arena == NULL) {
        return err_memory(err);
    }
    struct target_file file;
    bool ok = target_file_parse(text, arena, &file, err) &&
              static_group_make(file.groups, file.n, &l->mark, intern, ret, err);
    arena_free(arena);
    return ok;
}

enum discovery_refresh listing_take(struct listing *l, struct sv text, struct intern *intern,
                                    struct static_group *ret, struct err *err)
{
    uint64_t hash = hash_bytes(text.p, text.n, 0);
    if (l->known && l->hash == hash) {
        return REFRESH_UNCHANGED;
    }
    if (!make_targets(l, text, intern, ret, err)) {
        return REFRESH_FAILED;
    }
    l->known = true;
    l->hash = hash;
    l->n = ret->n;
    return REFRESH_CHANGED;
}

bool listing_note(struct listing *l, enum discovery_refresh result)
{
    bool broken = result == REFRESH_FAILED;
    bool news = broken != l->broken;
    l->broken = broken;
    return news;
}
