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

static void log_state(const struct listing *l, const struct list_options *options,
                      const struct err *err)
{
    if (l->broken) {
        log_warn(options->log, l->messages->broken, LOG_STR("job", options->job),
                 LOG_STR(l->messages->key, l->shown), LOG_INT("targets", l->n), LOG_ERR(err));
    } else {
        log_info(options->log, l->messages->good, LOG_STR("job", options->job),
                 LOG_STR(l->messages->key, l->shown), LOG_INT("targets", l->n));
    }
}

void listing_update(struct listing *l, const struct list_options *options, const struct sv *text,
                    struct err *err)
{
    struct static_group targets = {0};
    bool was_broken = l->broken;
    int64_t had_targets = l->n > 0;
    enum discovery_refresh result =
        text == NULL ? REFRESH_FAILED : listing_take(l, *text, options->intern, &targets, err);
    l->broken = result == REFRESH_FAILED;
    metric_inc(l->refreshes[result]);
    metric_gauge_add(l->groups, (l->n > 0) - had_targets);
    if (l->broken != was_broken) {
        log_state(l, options, err);
    }
    if (result == REFRESH_CHANGED) {
        options->on_change(options->arg, l->source, targets.at, targets.n);
    }
    static_group_done(&targets);
}

void listing_done(struct listing *l)
{
    metric_gauge_add(l->groups, l->n > 0 ? -1 : 0);
}
