#include "api/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/kept_file.h"
#include "api/protojson.h"

struct settings {
    pthread_mutex_t lock;
    struct buf json; /* an Api__GetSettingsResponse; the file has the same content */
    struct kept_file file;
    struct log *log;
    bool loaded; /* the file was read, or there is none */
};

/* ---- the object ------------------------------------------------------------------------------ */

static Api__GetSettingsResponse *parse(const struct settings *s, struct arena *arena,
                                       struct err *err)
{
    struct sv json = s->json.len > 0 ? (struct sv){s->json.data, s->json.len} : SV("{}");
    return (Api__GetSettingsResponse *)protojson_read(json, &api__get_settings_response__descriptor,
                                                      arena, err);
}

static void load(struct settings *s, struct log *log)
{
    struct err err = ERR_INIT;
    struct arena *arena = arena_new(16 * SETTINGS_BYTES_MAX);
    if (arena == NULL || !kept_file_read(&s->file, &s->json, &err) ||
        parse(s, arena, &err) == NULL) {
        log_warn(log, "settings are not read, and the next change replaces them",
                 LOG_STR("file", s->file.path), LOG_ERR(&err));
        buf_clear(&s->json);
    }
    arena_free(arena);
}

/* Locks the settings. The first call reads the file: not the start, because the disk may hang then.
 */
static void lock_settings(struct settings *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->loaded) {
        load(s, s->log);
        s->loaded = true;
    }
}

struct settings *settings_new(const char *directory, struct log *log)
{
    struct settings *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&s->lock, NULL);
    buf_init(&s->json, SETTINGS_BYTES_MAX);
    s->log = log;
    s->loaded = directory == NULL;
    return kept_file_init(&s->file, directory, SETTINGS_FILE) ? s : settings_free(s);
}

struct settings *settings_free(struct settings *s)
{
    if (s == NULL) {
        return NULL;
    }
    (void)pthread_mutex_destroy(&s->lock);
    buf_done(&s->json);
    kept_file_done(&s->file);
    free(s);
    return NULL;
}

Api__GetSettingsResponse *settings_get(struct settings *s, struct arena *arena, struct err *err)
{
    lock_settings(s);
    Api__GetSettingsResponse *all = parse(s, arena, err);
    pthread_mutex_unlock(&s->lock);
    return all;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Replaces the settings by those of a message; writes the file first. */
static bool keep(struct settings *s, const Api__GetSettingsResponse *all, struct err *err)
{
    struct buf json;
    buf_init(&json, SETTINGS_BYTES_MAX);
    bool ok = protojson_write(&all->base, &json) ||
              err_set(err, ERR_LIMIT, "settings of more than %zu bytes", SETTINGS_BYTES_MAX);
    ok = ok && kept_file_write(&s->file, &json, err);
    if (ok) {
        buf_done(&s->json);
        s->json = json;
    } else {
        buf_done(&json);
    }
    return ok;
}

/* Returns the index of the setting with this name, or the index at which it has to be inserted. */
static size_t place_of(const Api__GetSettingsResponse *all, const char *name, bool *ret_there)
{
    size_t i = 0;
    while (i < all->n_settings && strcmp(all->settings[i]->name, name) < 0) {
        i++;
    }
    *ret_there = i < all->n_settings && strcmp(all->settings[i]->name, name) == 0;
    return i;
}

static bool insert(Api__GetSettingsResponse *all, size_t place, struct arena *arena,
                   struct err *err)
{
    Api__Setting **list = arena_array(arena, all->n_settings + 1, sizeof(void *));
    if (list == NULL) {
        return err_set(err, ERR_LIMIT, "settings of more than %zu bytes", SETTINGS_BYTES_MAX);
    }
    for (size_t i = 0; i < all->n_settings; i++) {
        list[i < place ? i : i + 1] = all->settings[i];
    }
    all->settings = list;
    all->n_settings++;
    return true;
}

static bool set_in(struct settings *s, const Api__Setting *setting, bool *ret_is_older,
                   struct arena *arena, struct err *err)
{
    bool there = false;
    Api__GetSettingsResponse *all = parse(s, arena, err);
    if (all == NULL) {
        return false;
    }
    size_t place = place_of(all, setting->name, &there);
    *ret_is_older = there && all->settings[place]->modifiedat > setting->modifiedat;
    if (*ret_is_older) {
        return true;
    }
    if (!there && !insert(all, place, arena, err)) {
        return false;
    }
    Api__Setting copy = *setting;
    all->settings[place] = &copy;
    return keep(s, all, err);
}

bool settings_set(struct settings *s, const Api__Setting *setting, bool *ret_is_older,
                  struct arena *arena, struct err *err)
{
    lock_settings(s);
    bool ok = set_in(s, setting, ret_is_older, arena, err);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static bool delete_in(struct settings *s, const char *name, struct arena *arena, struct err *err)
{
    bool there = false;
    Api__GetSettingsResponse *all = parse(s, arena, err);
    if (all == NULL) {
        return false;
    }
    size_t place = place_of(all, name, &there);
    if (!there) {
        return true;
    }
    all->n_settings--;
    for (size_t i = place; i < all->n_settings; i++) {
        all->settings[i] = all->settings[i + 1];
    }
    return keep(s, all, err);
}

bool settings_delete(struct settings *s, const char *name, struct arena *arena, struct err *err)
{
    lock_settings(s);
    bool ok = delete_in(s, name, arena, err);
    pthread_mutex_unlock(&s->lock);
    return ok;
}
