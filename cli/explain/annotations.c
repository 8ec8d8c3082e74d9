#include "cli/explain/annotations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "config/config.h"

#define GRAFANA "profiles.grafana.com/"
#define GRAFANA_LABEL "profiles_grafana_com_"
#define SHOWN_MAX 200
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int annotation_shown(struct sv value)
{
    return (int)(value.n < SHOWN_MAX ? value.n : SHOWN_MAX);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const settings[] = {"scrape", "port", "port_name",
                                       "scheme", "path", "container"};

/* The well-known annotations that do not belong to a profile type. */
static const char *const annotations[] = {"profiles.grafana.com/service_name",
                                          "profiles.grafana.com/service_repository",
                                          "profiles.grafana.com/service_git_ref",
                                          "profiles.grafana.com/service_root_path",
                                          "pyroscope.io/scrape",
                                          "pyroscope.io/port",
                                          "pyroscope.io/application-name",
                                          "pyroscope.io/service_name",
                                          "pyroscope.io/spy-name",
                                          "pyroscope.io/scheme",
                                          "pyroscope.io/path",
                                          "pyroscope.io/profile-cpu-enabled",
                                          "pyroscope.io/profile-mem-enabled",
                                          "pyroscope.io/profile-goroutines-enabled",
                                          "pyroscope.io/profile-mutex-enabled",
                                          "pyroscope.io/profile-block-enabled",
                                          "profefe.com/enable",
                                          "profefe.com/port",
                                          "profefe.com/service",
                                          "profefe.com/path"};

/* The custom types of the built-in configuration, which have annotations like built-in types. */
static const char *const custom_types[] = {"growth", "contention"};

#define TYPES (CONFIG_BUILTIN_TYPES + COUNT(custom_types))
#define KNOWN_MAX (TYPES * COUNT(settings) + COUNT(annotations))

/* Returns the name in annotations of the i-th type; i is less than TYPES. */
static const char *type_name(size_t i)
{
    return i < CONFIG_BUILTIN_TYPES ? config_builtin_type(i)->annotation
                                    : custom_types[i - CONFIG_BUILTIN_TYPES];
}

/* The labels of all well-known annotations. */
struct known {
    char text[KNOWN_MAX][64];
    const char *at[KNOWN_MAX];
    size_t n;
    const char *read[KNOWN_MAX]; /* those of them that the rules read */
    size_t n_read;
};

static char label_char(char c)
{
    return ascii_is_word(c) ? c : '_';
}

static bool is_label_of(struct sv label, const char *annotation)
{
    size_t i = 0;
    while (i < label.n && annotation[i] != '\0' && label.p[i] == label_char(annotation[i])) {
        i++;
    }
    return i == label.n && annotation[i] == '\0';
}

bool annotation_is_read(const struct rule_reader *rules, struct sv label)
{
    char name[256];
    int n = snprintf(name, sizeof(name), ANNOTATION_PREFIX "%.*s", SV_ARG(label));
    return n > 0 && (size_t)n < sizeof(name) && rules->reads(rules->arg, sv_from(name));
}

static void known_add(struct known *k, const struct rule_reader *rules, const char *prefix,
                      const char *name)
{
    char *text = k->text[k->n];
    snprintf(text, sizeof(k->text[0]), "%s%s", prefix, name);
    for (char *p = text; *p != '\0'; p++) {
        *p = label_char(*p);
    }
    k->at[k->n++] = text;
    if (annotation_is_read(rules, sv_from(text))) {
        k->read[k->n_read++] = text;
    }
}

static struct known *known_new(const struct rule_reader *rules)
{
    struct known *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return NULL;
    }
    for (size_t t = 0; t < TYPES; t++) {
        char prefix[64];
        snprintf(prefix, sizeof(prefix), GRAFANA "%s.", type_name(t));
        for (size_t s = 0; s < COUNT(settings); s++) {
            known_add(k, rules, prefix, settings[s]);
        }
    }
    for (size_t i = 0; i < COUNT(annotations); i++) {
        known_add(k, rules, "", annotations[i]);
    }
    return k;
}

/* Returns the length of the profile type in "cpu_port_name"; 0 if there is none. An unknown type is
 * taken to end at the last underscore. */
static size_t type_length(struct sv name)
{
    for (size_t i = 0; i < TYPES; i++) {
        struct sv type = sv_from(type_name(i));
        if (sv_starts_with(name, type) && name.n > type.n && name.p[type.n] == '_') {
            return type.n;
        }
    }
    size_t n = name.n;
    while (n > 0 && name.p[n - 1] != '_') {
        n--;
    }
    return n == 0 ? 0 : n - 1;
}

void annotation_put_name(struct sv label, struct buf *out)
{
    static const char *const domains[] = {GRAFANA, "pyroscope.io/", "profefe.com/"};
    for (size_t i = 0; i < COUNT(annotations); i++) {
        if (is_label_of(label, annotations[i])) {
            buf_puts(out, annotations[i]);
            return;
        }
    }
    for (size_t i = 0; i < COUNT(domains); i++) {
        size_t n = strlen(domains[i]);
        if (label.n < n || !is_label_of((struct sv){.p = label.p, .n = n}, domains[i])) {
            continue;
        }
        label = sv_skip(label, n);
        buf_puts(out, domains[i]);
        size_t type = strcmp(domains[i], GRAFANA) == 0 ? type_length(label) : 0;
        if (type > 0) {
            buf_printf(out, "%.*s.", (int)type, label.p);
            label = sv_skip(label, type + 1);
        }
        break;
    }
    buf_append(out, label.p, label.n);
}

/* ---- those of a pod -------------------------------------------------------------------------- */

static bool is_switch(struct sv label)
{
    return sv_ends_with(label, SV("_scrape")) || sv_ends_with(label, SV("_enable")) ||
           sv_ends_with(label, SV("_enabled"));
}

/* Returns true for "True", "yes" and other values that are meant as "true" but do not count. */
static bool is_nearly_true(struct sv value)
{
    static const char *const words[] = {"true", "yes", "y", "on", "1", "t", "enabled", "enable"};
    struct sv v = sv_trim(value);
    while (v.n >= 2 && (v.p[0] == '"' || v.p[0] == '\'') && v.p[v.n - 1] == v.p[0]) {
        v = (struct sv){.p = v.p + 1, .n = v.n - 2};
    }
    for (size_t i = 0; i < COUNT(words); i++) {
        if (sv_eq_nocase(v, words[i])) {
            return !sv_eq_str(value, "true");
        }
    }
    return false;
}

/* Returns true for an annotation of a well-known domain, or of one that is easily mistaken for it.
 */
static bool is_family(struct sv label)
{
    static const char *const prefixes[] = {"profiles_", "profile_", "pyroscope_",
                                           "profefe_",  "grafana_", "parca_dev_"};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (sv_starts_with(label, sv_from(prefixes[i]))) {
            return true;
        }
    }
    return false;
}

/* Returns the label of the annotation with the same name in the right domain; for
 * "pyroscope_grafana_com_x", for example, that of profiles.grafana.com/x. NULL if the rules read
 * none. */
static const char *in_right_domain(const struct known *k, struct sv label)
{
    for (size_t i = 0; i < k->n_read; i++) {
        struct sv known = sv_from(k->read[i]);
        if (!sv_starts_with(known, SV(GRAFANA_LABEL))) {
            continue;
        }
        struct sv name = sv_skip(known, strlen(GRAFANA_LABEL));
        if (label.n > name.n + 1 && sv_ends_with(label, name) &&
            label.p[label.n - name.n - 1] == '_') {
            return k->read[i];
        }
    }
    return NULL;
}

static void put_known(const struct known *k, struct sv label, struct sv value, struct buf *out)
{
    if (is_switch(label) && !sv_in(label, k->read, k->n_read)) {
        buf_puts(out, " No rule of the job reads the annotation ");
        annotation_put_name(label, out);
        buf_putc(out, '.');
    } else if (is_switch(label) && is_nearly_true(value)) {
        buf_puts(out, " The annotation ");
        annotation_put_name(label, out);
        buf_printf(out, " has the value \"%.*s\"; only \"true\" counts.", annotation_shown(value),
                   value.p);
    }
}

/* Returns the annotation that an unknown annotation of a well-known family was probably meant to
 * be; NULL if there is none. */
static const char *nearest(const struct known *k, struct sv label)
{
    const char *near = suggest(label, k->read, k->n_read);
    return near == NULL ? in_right_domain(k, label) : near;
}

bool annotation_is_renamed(const struct rule_reader *rules, struct sv label)
{
    struct known *k = is_family(label) ? known_new(rules) : NULL;
    bool is = k != NULL && !sv_in(label, k->at, k->n) && nearest(k, label) != NULL;
    free(k);
    return is;
}

static void put_unknown(const struct known *k, struct sv label, struct buf *out)
{
    const char *near = nearest(k, label);
    buf_puts(out, " The annotation ");
    annotation_put_name(label, out);
    if (near == NULL) {
        buf_puts(out, " has no meaning here.");
        return;
    }
    buf_puts(out, " has no meaning here; rename it to ");
    annotation_put_name(sv_from(near), out);
    buf_puts(out, ", if that is what it stands for.");
}

void annotations_explain(const struct rule_reader *rules, const struct labels *discovered,
                         struct buf *out)
{
    struct known *k = known_new(rules);
    for (size_t i = 0; k != NULL && i < labels_count(discovered); i++) {
        struct label l = labels_at(discovered, i);
        if (!sv_starts_with(l.name, SV(ANNOTATION_PREFIX))) {
            continue;
        }
        struct sv name = sv_skip(l.name, strlen(ANNOTATION_PREFIX));
        if (sv_in(name, k->at, k->n)) {
            put_known(k, name, l.value, out);
        } else if (is_family(name)) {
            put_unknown(k, name, out);
        }
    }
    free(k);
}
