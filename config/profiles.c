/* The profile types of a job: the built-in ones (types.c) and its own. */
#include <string.h>

#include "base/clock.h"
#include "config/dump.h"
#include "config/parts.h"

/* The longest name of a custom type; it becomes a label value. */
#define NAME_LEN_MAX 2048

/* A type that is being read, and its context. */
struct type_context {
    struct reader *r;
    const struct place *job_place;
    const struct config_job *job;
    const char *continuous; /* the key of the first continuous type, or NULL */
};

static const char *const delta_names[] = {
    [DELTA_OFF] = "off", [DELTA_AUTO] = "auto", [DELTA_SERVER] = "server"};
static const struct choices deltas = CHOICES(delta_names);

const char *config_delta_name(enum config_delta delta)
{
    return choice_name(&deltas, delta);
}

static const char *const format_names[] = {[FORMAT_PPROF] = "pprof", [FORMAT_JFR] = "jfr"};
static const struct choices formats = CHOICES(format_names);

/* Reads a duration of whole seconds, from 1 s to a day. */
static void read_seconds(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct range range = {1000, UINT64_C(24) * 60 * 60 * 1000};
    int64_t ms = 0;
    kind_duration.read(r, at, &range, &ms);
    if (ms % MS_PER_S != 0) {
        reader_error(r, at, "expected whole seconds, got %s", reader_got(r, at->node));
    } else if (ms != 0) {
        *(int64_t *)out = ms / MS_PER_S;
    }
}

static void write_seconds(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_duration(d, key, *(const int64_t *)value * MS_PER_S);
}

static const struct kind kind_seconds = {read_seconds, write_seconds, .size = sizeof(int64_t)};

/* Reads a path. The error for a path that only lacks its first slash has a hint. */
static void read_path(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *path = reader_text(r, at, &text_path_prefix);
    if (path == NULL) {
        return;
    }
    if (path[0] == '/') {
        *(const char **)out = path;
    } else if (path[0] == '\0') {
        reader_error(r, at, "expected a path that begins with \"/\", got \"\"");
    } else {
        reader_error(r, at,
                     "expected a path that begins with \"/\", got %s; did you mean \"/%.64s\"?",
                     reader_quote(r, sv_from(path)), path);
    }
}

static const struct text_kind text_name = {
    .expected = "a name that is not empty (at most 2048 bytes)", .min = 1, .max = NAME_LEN_MAX};

static const struct kind kind_path = {read_path, write_text, .size = sizeof(const char *)};

static void read_sampling(struct reader *r, const struct place *at, const void *arg, void *out)
{
    kind_bool.read(r, at, arg, &((struct config_type *)out)->sampling);
}

/* Writes `sampling`. A type with delta "server" samples as well, but its file does not set this
 * key. */
static void write_sampling(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const struct config_type *t = value;
    bool sampling = t->sampling && t->delta != DELTA_SERVER;
    kind_bool.write(d, key, arg, &sampling);
}

static const struct kind kind_sampling = {.read = read_sampling, .write = write_sampling};

static const struct field type_rows[] = {
    ROW(config_type, "enabled", enabled, &kind_bool),
    ROW(config_type, "path", path, &kind_path),
    ROW(config_type, "interval", interval_ms, &kind_duration, .arg = &range_interval),
    ROW(config_type, "timeout", timeout_ms, &kind_duration, .arg = &range_interval),
    ROW(config_type, "seconds", seconds, &kind_seconds, .optional = true),
    ROW(config_type, "continuous", continuous, &kind_bool, .optional = true),
    ROW(config_type, "params", params, &kind_pairs, .arg = &pairs_params),
    ROW(config_type, "delta", delta, &kind_choice, .arg = &deltas),
};
const struct schema schema_type = SCHEMA(type_rows, sizeof(struct config_type));

static bool has_series(const void *record)
{
    const struct config_type *t = record;
    return strcmp(t->name, t->key) != 0;
}

static const struct field custom_rows[] = {
    ROW(config_type, "name", key, &kind_text, .arg = &text_name),
    ROW(config_type, "series", name, &kind_text, .arg = &text_name, .when = has_series),
    PART("sampling", &kind_sampling),
    ROW(config_type, "format", format, &kind_choice, .arg = &formats),
    PART(NULL, &kind_mapping, .arg = &schema_type),
};
const struct schema schema_custom_type = SCHEMA(custom_rows, sizeof(struct config_type));

/* Returns the place of the interval: in the type, in the job, or else the job itself if the
 * interval is global. */
static struct place interval_place(const struct type_context *c, const struct place *at)
{
    bool in_type = at != NULL && yaml_get(at->node, "interval") != NULL;
    if (in_type) {
        return place_of_key(at, "interval");
    }
    return yaml_get(c->job_place->node, "scrape_interval") != NULL
               ? place_of_key(c->job_place, "scrape_interval")
               : *c->job_place;
}

/* Checks `continuous`. Only types that sample over time can be continuous. A process is sampled for
 * one type at a time, so two continuous types would each get half the time, which is not what
 * "continuous" promises. */
static void finish_continuous(struct type_context *c, const struct place *at, struct config_type *t)
{
    if (!t->continuous) {
        return;
    }
    struct place place = place_of_key(at, "continuous");
    if (!t->sampling) {
        reader_error(c->r, &place, "%s does not sample over time",
                     reader_quote(c->r, sv_from(t->key)));
        t->continuous = false;
    } else if (t->enabled && t->delta != DELTA_SERVER && c->continuous != NULL) {
        reader_error(c->r, &place,
                     "%s is continuous already: a process is sampled for one type at a time",
                     reader_quote(c->r, sv_from(c->continuous)));
    } else if (t->enabled && t->delta != DELTA_SERVER) {
        c->continuous = t->key;
    }
}

/* Checks the seconds that the file sets. */
static void check_seconds(const struct type_context *c, const struct place *at,
                          const struct config_type *t, int64_t margin_ms)
{
    char interval[32];
    struct place place = place_of_key(at, "seconds");
    format_duration_ms(t->interval_ms, interval, sizeof(interval));
    if (!t->sampling) {
        reader_error(c->r, &place,
                     "%s does not sample over time (a custom type with sampling: true does)",
                     reader_quote(c->r, sv_from(t->key)));
    } else if (t->seconds * MS_PER_S > t->interval_ms - margin_ms) {
        reader_error(c->r, &place, "seconds must %s the interval (%s)",
                     t->continuous ? "not be larger than" : "be at least 1s smaller than",
                     interval);
    }
}

/* Derives the seconds from the interval. `at` is NULL if the file does not mention the type. */
static void derive_seconds(const struct type_context *c, const struct place *at,
                           struct config_type *t, int64_t margin_ms)
{
    char interval[32];
    t->seconds = (t->interval_ms - margin_ms) / MS_PER_S;
    if (t->seconds > 0) {
        return;
    }
    t->seconds = 0;
    if (t->enabled) {
        struct place place = interval_place(c, at);
        format_duration_ms(t->interval_ms, interval, sizeof(interval));
        reader_error(c->r, &place,
                     "the interval must be at least %ds for the sampling type %s, got \"%s\"",
                     t->continuous ? 1 : 2, reader_quote(c->r, sv_from(t->key)), interval);
    }
}

static void finish_seconds(const struct type_context *c, const struct place *at,
                           struct config_type *t)
{
    /* The part of the interval that is left to the target for its answer. */
    int64_t margin_ms = t->continuous ? 0 : MS_PER_S;
    t->seconds_given = t->seconds > 0;
    if (t->seconds_given) {
        check_seconds(c, at, t, margin_ms);
    } else if (t->sampling) {
        derive_seconds(c, at, t, margin_ms);
    }
}

/* Returns the reason why a type cannot have its kind of delta, or NULL. */
static const char *delta_problem(const struct config_type *t, bool custom)
{
    if (t->delta == DELTA_OFF) {
        return NULL;
    }
    if (t->is_delta) {
        return "the target makes the delta already";
    }
    if (t->format == FORMAT_JFR) {
        return "a JFR recording is passed on as it is";
    }
    if (t->sampling) {
        return "it samples over time: there is nothing to subtract";
    }
    if (!custom && !t->cumulative) {
        return "it is a snapshot: there is nothing to subtract";
    }
    if (!custom && t->delta == DELTA_SERVER && strcmp(t->name, "memory") == 0) {
        return "Go would make differences of inuse_* too; use auto, or godeltaprof_memory";
    }
    return NULL;
}

/* at: the mapping of the type, or NULL. */
static void finish_delta(const struct type_context *c, const struct place *at, bool custom,
                         struct config_type *t)
{
    const char *problem = delta_problem(t, custom);
    if (problem != NULL) {
        /* defaults have no problem, so `at` is not NULL */
        struct place place = place_of_key(at, "delta");
        reader_error(c->r, &place, "delta: \"%s\" does not go with %s: %s",
                     config_delta_name(t->delta), reader_quote(c->r, sv_from(t->key)), problem);
        t->delta = DELTA_OFF;
    }
    if (t->delta == DELTA_SERVER) {
        t->sampling = true;
        t->is_delta = true;
    }
}

static bool has_param(const struct config_pairs *params, const char *name)
{
    for (size_t i = 0; i < params->n; i++) {
        if (strcmp(params->at[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The parameters of the job, overridden by those of the type. */
static void finish_params(const struct type_context *c, struct config_type *t)
{
    const struct config_pairs *base = &c->job->params;
    if (t->params.n == 0 || base->n == 0) {
        t->params = t->params.n == 0 ? *base : t->params;
        return;
    }
    struct config_pair *all = reader_alloc(c->r, base->n + t->params.n, sizeof(*all));
    if (all == NULL) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < base->n; i++) {
        if (!has_param(&t->params, base->at[i].name)) {
            all[n++] = base->at[i];
        }
    }
    for (size_t i = 0; i < t->params.n; i++) {
        all[n++] = t->params.at[i];
    }
    t->params = (struct config_pairs){all, n};
}

/* at: the mapping of the type, or NULL. */
static void read_type(struct type_context *c, const struct place *at, bool custom,
                      struct config_type *t)
{
    t->interval_ms = c->job->interval_ms;
    t->timeout_ms = c->job->timeout_ms;
    if (at != NULL) {
        schema_read(c->r, at, custom ? &schema_custom_type : &schema_type, t);
    }
    if (custom && t->name == NULL) {
        t->name = t->key;
    }
    if (t->key != NULL) {
        finish_delta(c, at, custom, t);
        finish_continuous(c, at, t);
        finish_seconds(c, at, t);
    }
    finish_params(c, t);
}

static void check_custom(const struct type_context *c, const struct place *at,
                         const struct config_type *t, struct map *seen)
{
    static const char *const required[] = {"name", "path"};
    for (size_t i = 0; i < 2; i++) {
        if (yaml_get(at->node, required[i]) == NULL) {
            reader_error(c->r, at, "missing required key \"%s\"", required[i]);
        }
    }
    if (t->key == NULL) {
        return;
    }
    struct place name = place_of_key(at, "name");
    if (config_builtin_type_find(sv_from(t->key)) != NULL) {
        reader_error(c->r, &name, "%s is a built-in type: change it under profiles.%s",
                     reader_quote(c->r, sv_from(t->key)), t->key);
    } else {
        check_unique(c->r, &name, t->key, seen);
    }
}

static void read_custom(struct type_context *c, const struct place *list, struct config_type *types)
{
    struct map *seen = map_new();
    if (seen == NULL) {
        c->r->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < list->node->n_items; i++) {
        struct place at = place_of_element(list, i);
        types[i].enabled = true;
        read_type(c, &at, true, &types[i]);
        if (at.node->kind == YAML_MAPPING) {
            check_custom(c, &at, &types[i], seen);
        } else if (yaml_is_null(at.node)) {
            reader_error(c->r, &at, "expected a mapping, got null");
        }
    }
    map_free(seen, NULL);
}

/* The keys of `profiles` itself; the mappings of the types are read afterwards. */
static void read_keys(struct reader *r, const struct place *at, struct config_job *job)
{
    struct field rows[CONFIG_BUILTIN_TYPES + 2] = {
        ROW(config_job, "path_prefix", path_prefix, &kind_text, .arg = &text_path_prefix),
        PART("custom", &kind_ignored),
    };
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        rows[i + 2] = (struct field)PART(config_builtin_type(i)->type.key, &kind_ignored);
    }
    const struct schema schema = SCHEMA(rows, 0);
    schema_read(r, at, &schema, job);
}

static void write_profiles(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    const struct config_job *job = value;
    dump_begin_mapping(d, key);
    dump_text(d, "path_prefix", &text_path_prefix, job->path_prefix);
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        kind_mapping.write(d, job->types[i].key, &schema_type, &job->types[i]);
    }
    const struct array custom = {(void *)(uintptr_t)&job->types[CONFIG_BUILTIN_TYPES],
                                 job->n_types - CONFIG_BUILTIN_TYPES};
    kind_list.write(d, "custom", &schema_custom_type, &custom);
    dump_end_mapping(d);
}

const struct kind kind_profiles = {.read = read_nothing, .write = write_profiles};

void read_profiles(struct reader *r, const struct place *job_place, struct config_job *job)
{
    struct type_context c = {.r = r, .job_place = job_place, .job = job};
    struct place at = place_of_key(job_place, "profiles");
    bool given = at.node != job_place->node;
    struct place custom = {0};
    size_t n_custom = 0;
    if (given) {
        read_keys(r, &at, job);
        custom = place_of_key(&at, "custom");
        bool have = custom.node != at.node && reader_enter(r, &custom, YAML_LIST);
        n_custom = have ? custom.node->n_items : 0;
    }
    struct config_type *types = reader_alloc(r, CONFIG_BUILTIN_TYPES + n_custom, sizeof(*types));
    if (types == NULL) {
        return;
    }
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        types[i] = config_builtin_type(i)->type;
        struct place type = {0};
        if (given) {
            type = place_of_key(&at, config_builtin_type(i)->type.key);
        }
        bool mentioned = given && type.node != at.node;
        read_type(&c, mentioned ? &type : NULL, false, &types[i]);
    }
    if (n_custom > 0) {
        read_custom(&c, &custom, types + CONFIG_BUILTIN_TYPES);
    }
    job->types = types;
    job->n_types = CONFIG_BUILTIN_TYPES + n_custom;
}
