#include "api/receive/profile_name.h"

#include <jansson.h>
#include <string.h>

/* The names that Pyroscope's server uses for Go's sample types, unless the request sets others. */
static const struct {
    const char *type;
    const char *display;
} displays[] = {
    {"samples", "cpu"},
    {"goroutine", "goroutines"},
    {"contentions", "mutex_count"},
    {"delay", "mutex_duration"},
};

/* The name of a profile by one of its sample types; the first row that fits counts. */
static const struct {
    const char *part;
    bool whole; /* the type must equal `part`; otherwise it must contain it */
    const char *name;
} names[] = {
    {"cpu", false, "process_cpu"},
    {"alloc_", false, "memory"},
    {"inuse_", false, "memory"},
    {"space", true, "memory"},
    {"objects", true, "memory"},
    {"mutex_", false, "mutex"},
    {"block_", false, "block"},
    /* Pyroscope uses "goroutines" here and "goroutine" for pushed profiles; here both are one type.
     */
    {"goroutines", false, "goroutine"},
};

static struct sv builtin_display(struct sv type)
{
    for (size_t i = 0; i < sizeof(displays) / sizeof(displays[0]); i++) {
        if (sv_eq_str(type, displays[i].type)) {
            return sv_from(displays[i].display);
        }
    }
    return type;
}

/* Returns the name of a sample type. A configuration in the request replaces the built-in names. */
static struct sv display_of(struct sv type, const json_t *config)
{
    if (config == NULL) {
        return builtin_display(type);
    }
    json_t *entry = json_object_getn(config, type.p, type.n);
    json_t *display = json_object_get(entry, "display-name");
    return json_string_length(display) > 0
               ? (struct sv){json_string_value(display), json_string_length(display)}
               : type;
}

static bool contains(struct sv text, const char *part)
{
    return text.n > 0 && memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static const char *known_name(struct sv display)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].whole ? sv_eq_str(display, names[i].part) : contains(display, names[i].part)) {
            return names[i].name;
        }
    }
    return NULL;
}

static bool has_type(const struct pprof_summary *s, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq_str(s->types[i].type_text, type)) {
            return true;
        }
    }
    return false;
}

static void put_name(const struct pprof_summary *s, const json_t *config, struct sv app,
                     struct buf *out)
{
    size_t n = s->n[PROFILE_SAMPLE_TYPE] < SUMMARY_TYPES_MAX ? s->n[PROFILE_SAMPLE_TYPE]
                                                             : SUMMARY_TYPES_MAX;
    struct sv display = {"", 0};
    if (has_type(s, n, "wall")) {
        buf_puts(out, "wall");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        display = display_of(s->types[i].type_text, config);
        const char *name = known_name(display);
        if (name != NULL) {
            /* Profiles of mutexes and of blocking differ only in the name of the application. */
            bool block =
                config == NULL && strcmp(name, "mutex") == 0 && sv_ends_with(app, SV(".block"));
            buf_puts(out, block ? "block" : name);
            return;
        }
    }
    buf_append(out, display.p, display.n);
}

bool profile_name_of(const struct pprof_summary *s, struct sv config, struct sv app,
                     struct buf *out, struct err *err)
{
    json_t *root = NULL;
    if (config.n > PROFILE_NAME_CONFIG_MAX) {
        return err_set(err, ERR_LIMIT, "sample_type_config: more than %zu bytes",
                       PROFILE_NAME_CONFIG_MAX);
    }
    if (config.n > 0) {
        json_error_t error;
        root = json_loadb(config.p, config.n, 0, &error);
        if (!json_is_object(root)) {
            json_decref(root);
            return err_set(err, ERR_INPUT, "sample_type_config: expected a JSON object: %s",
                           root == NULL ? error.text : "got another value");
        }
    }
    put_name(s, root, app, out);
    json_decref(root);
    return true;
}
