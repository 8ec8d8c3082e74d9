/* The key `sharding`: how several replicas share the targets. */
#include <string.h>

#include "base/clock.h"
#include "config/dump.h"
#include "config/parts.h"

#define REPLICAS_MAX 1000
#define DEFAULT_HANDOVER_MS (5 * MS_PER_S)
#define DEFAULT_ISOLATION_MS (10 * 60 * MS_PER_S)

static const char *const mode_names[] = {
    [SHARDING_NONE] = "none", [SHARDING_STATIC] = "static", [SHARDING_KUBERNETES] = "kubernetes"};
static const struct choices modes = CHOICES(mode_names);

static const struct text_kind text_service = {
    .expected = "the name of a Service", .ok = check_dns_label, .min = 1, .max = DNS_LABEL_MAX};
static const struct text_kind text_own_namespace = {
    .expected = "the name of a namespace, or \"\" for the own one",
    .ok = check_dns_label,
    .max = DNS_LABEL_MAX};
static const struct text_kind text_pod = {
    .expected = "the name of a pod", .ok = check_dns_subdomain, .max = DNS_SUBDOMAIN_MAX};

static const struct range range_replicas = {.min = 1, .max = REPLICAS_MAX};
static const struct range range_handover = {.min = (uint64_t)MS_PER_S,
                                            .max = (uint64_t)(10 * 60 * MS_PER_S)};
static const struct range range_isolation = {.min = 0, .max = UINT64_C(24) * 60 * 60 * 1000};

/* Reads the index: a number, or the name of a StatefulSet's pod, whose part after the last "-"
 * counts. */
static void read_index(struct reader *r, const struct place *at, const void *arg, void *out)
{
    static const struct text_kind kind = {
        .expected = "a number from 0, or a name that ends in one (\"profpull-2\")"};
    (void)arg;
    const char *text = reader_text(r, at, &kind);
    if (text == NULL) {
        return;
    }
    const char *dash = strrchr(text, '-');
    struct sv digits = sv_from(dash == NULL || dash == text ? text : dash + 1);
    uint64_t index;
    if (!parse_u64(digits, REPLICAS_MAX - 1, &index)) {
        reader_error(r, at, "expected %s, got %s", kind.expected, reader_quote(r, sv_from(text)));
        return;
    }
    *(unsigned *)out = (unsigned)index;
}

static const struct kind kind_index = {read_index, write_unsigned, .size = sizeof(unsigned)};

static bool is_static(const void *record)
{
    return ((const struct config_sharding *)record)->mode == SHARDING_STATIC;
}

static bool is_kubernetes(const void *record)
{
    return ((const struct config_sharding *)record)->mode == SHARDING_KUBERNETES;
}

static const struct field static_rows[] = {
    ROW(config_sharding, "replicas", replicas, &kind_unsigned, .arg = &range_replicas),
    ROW(config_sharding, "index", index, &kind_index),
};
static const struct schema schema_static = SCHEMA(static_rows, 0);

static const struct field kubernetes_rows[] = {
    ROW(config_sharding, "service", service, &kind_text, .arg = &text_service, .initial.text = ""),
    ROW(config_sharding, "namespace", namespace, &kind_text, .arg = &text_own_namespace,
        .initial.text = ""),
    ROW(config_sharding, "pod_name", pod_name, &kind_text, .arg = &text_pod, .initial.text = ""),
    ROW(config_sharding, "kubeconfig_file", kubernetes.kubeconfig_file, &kind_text,
        .arg = &text_file_name),
    ROW(config_sharding, "handover", handover_ms, &kind_duration, .arg = &range_handover,
        .initial.ms = DEFAULT_HANDOVER_MS),
    ROW(config_sharding, "isolation_timeout", isolation_ms, &kind_duration, .arg = &range_isolation,
        .initial.ms = DEFAULT_ISOLATION_MS),
};
static const struct schema schema_kubernetes = SCHEMA(kubernetes_rows, 0);

/* The keys of each mode. A key that has no effect in the given mode, or without a mode, is an
 * error. With `mode: none` all keys are allowed, so that this one key switches sharing on and
 * off. */
static const struct {
    const struct schema *schema;
    size_t required; /* number of required rows, counted from the first */
} groups[] = {
    [SHARDING_STATIC] = {&schema_static, 2},
    [SHARDING_KUBERNETES] = {&schema_kubernetes, 1},
};

static void check_key(struct reader *r, const struct place *at, const struct config_sharding *s,
                      enum config_sharding_mode mode, size_t row)
{
    const char *key = groups[mode].schema->fields[row].key;
    const char *now = choice_name(&modes, s->mode);
    struct place place = place_of_key(at, key);
    bool given = yaml_get(at->node, key) != NULL;
    if (given && yaml_get(at->node, "mode") == NULL) {
        reader_error(r, &place, "has no effect without the key \"mode\" (%s)",
                     choice_name(&modes, mode));
    } else if (given && s->mode != mode && s->mode != SHARDING_NONE) {
        reader_error(r, &place, "has no effect with mode: %s", now);
    } else if (!given && row < groups[mode].required && s->mode == mode) {
        reader_error(r, at, "mode: %s needs the key \"%s\"", now, key);
    }
}

static void check_sharding(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_sharding *s = out;
    size_t before = r->reported;
    for (unsigned mode = SHARDING_STATIC; clean && mode < modes.n; mode++) {
        for (size_t row = 0; row < groups[mode].schema->n; row++) {
            check_key(r, at, s, (enum config_sharding_mode)mode, row);
        }
    }
    if (clean && r->reported == before && is_static(s) && s->index >= s->replicas) {
        struct place place = place_of_key(at, "index");
        reader_error(r, &place, "expected a number below replicas (%u), got %u", s->replicas,
                     s->index);
    }
}

static const struct field sharding_rows[] = {
    ROW(config_sharding, "mode", mode, &kind_choice, .arg = &modes),
    PART(NULL, &kind_mapping, .arg = &schema_static, .when = is_static),
    PART(NULL, &kind_mapping, .arg = &schema_kubernetes, .when = is_kubernetes),
};
const struct schema schema_sharding =
    SCHEMA(sharding_rows, sizeof(struct config_sharding), .check = check_sharding);

void apply_sharding_service(struct reader *r, struct config *c)
{
    const char *service = r->options == NULL ? NULL : r->options->sharding_service;
    if (service != NULL) {
        c->sharding.mode = SHARDING_KUBERNETES;
        c->sharding.service = reader_option(r, "--sharding.service", &text_service, service);
    }
}
