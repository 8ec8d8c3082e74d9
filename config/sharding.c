/* The key `sharding`: how several replicas share the targets. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

#define REPLICAS_MAX 1000
#define DEFAULT_HANDOVER_MS (5 * MS_PER_S)
#define DEFAULT_ISOLATION_MS (10 * 60 * MS_PER_S)
/* Kubernetes' limits: of a Service a DNS label, of a pod a DNS subdomain. */
#define SERVICE_LEN_MAX 63
#define POD_LEN_MAX 253

static const char *const modes[] = {"none", "static", "kubernetes"};
static const struct choices mode_choices = {modes, 3};

const char *config_sharding_mode_name(enum config_sharding_mode mode)
{
    return modes[mode];
}

static bool is_dns(struct sv v, bool dots)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool edge = i == 0 || i + 1 == v.n;
        bool inner = c == '-' || (dots && c == '.');
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (inner && !edge))) {
            return false;
        }
    }
    return v.n > 0;
}

static bool check_service(struct sv v)
{
    return is_dns(v, false) && v.n <= SERVICE_LEN_MAX;
}

static bool check_own_namespace(struct sv v)
{
    return v.n == 0 || text_namespace.ok(v);
}

static bool check_pod(struct sv v)
{
    return v.n == 0 || (is_dns(v, true) && v.n <= POD_LEN_MAX);
}

static const struct text_kind text_service = {.expected = "the name of a Service",
                                              .ok = check_service};
static const struct text_kind text_own_namespace = {
    .expected = "the name of a namespace, or \"\" for the own one", .ok = check_own_namespace};
static const struct text_kind text_pod = {.expected = "the name of a pod", .ok = check_pod};

static const struct range range_replicas = {.min = 1, .max = REPLICAS_MAX};
static const struct range range_handover = {.min = (uint64_t)MS_PER_S,
                                            .max = (uint64_t)(10 * 60 * MS_PER_S)};
static const struct range range_isolation = {.min = 0, .max = UINT64_C(24) * 60 * 60 * 1000};

/* A number, or what stands behind the last "-" of the name of a pod of a StatefulSet. */
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

#define FIELD(key_, read_, member, arg_)                                                           \
    {                                                                                              \
        .key = (key_), .read = (read_), .offset = offsetof(struct config_sharding, member),        \
        .arg = (arg_)                                                                              \
    }

static const struct field fields[] = {
    FIELD("mode", read_choice, mode, &mode_choices),
    FIELD("replicas", read_unsigned, replicas, &range_replicas),
    FIELD("index", read_index, index, NULL),
    FIELD("service", read_text, service, &text_service),
    FIELD("namespace", read_text, namespace, &text_own_namespace),
    FIELD("pod_name", read_text, pod_name, &text_pod),
    FIELD("kubeconfig_file", read_text, kubernetes.kubeconfig_file, &text_file_name),
    FIELD("handover", read_duration, handover_ms, &range_handover),
    FIELD("isolation_timeout", read_duration, isolation_ms, &range_isolation),
};

/* The keys of one mode mean nothing in another, nor without any: they would hide a mistake. Next to
 * `mode: none` they may stay, so that this one key switches sharing on and off. */
static const struct {
    const char *key;
    enum config_sharding_mode mode;
    bool required;
} belongs[] = {
    {"replicas", SHARDING_STATIC, true},      {"index", SHARDING_STATIC, true},
    {"service", SHARDING_KUBERNETES, true},   {"namespace", SHARDING_KUBERNETES, false},
    {"pod_name", SHARDING_KUBERNETES, false}, {"kubeconfig_file", SHARDING_KUBERNETES, false},
    {"handover", SHARDING_KUBERNETES, false}, {"isolation_timeout", SHARDING_KUBERNETES, false},
};

static void check_mode(struct reader *r, const struct place *at, const struct config_sharding *s)
{
    for (size_t i = 0; i < sizeof(belongs) / sizeof(belongs[0]); i++) {
        struct place place = place_of_key(at, belongs[i].key);
        bool given = yaml_get(at->node, belongs[i].key) != NULL;
        if (given && yaml_get(at->node, "mode") == NULL) {
            reader_error(r, &place, "means nothing without the key \"mode\" (%s)",
                         modes[belongs[i].mode]);
        } else if (given && s->mode != belongs[i].mode && s->mode != SHARDING_NONE) {
            reader_error(r, &place, "has no meaning with mode: %s", modes[s->mode]);
        } else if (!given && belongs[i].required && s->mode == belongs[i].mode) {
            reader_error(r, at, "mode: %s needs the key \"%s\"", modes[s->mode], belongs[i].key);
        }
    }
}

void sharding_defaults(struct config_sharding *s)
{
    s->service = "";
    s->namespace = "";
    s->pod_name = "";
    s->handover_ms = DEFAULT_HANDOVER_MS;
    s->isolation_ms = DEFAULT_ISOLATION_MS;
    http_defaults(&s->kubernetes.http);
}

void read_sharding(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_sharding *s = &((struct config *)out)->sharding;
    const struct section section = SECTION(fields, s);
    size_t before = r->reported;
    read_sections(r, at, &section, 1);
    if (r->reported > before) {
        return;
    }
    check_mode(r, at, s);
    if (r->reported == before && s->mode == SHARDING_STATIC && s->index >= s->replicas) {
        struct place place = place_of_key(at, "index");
        reader_error(r, &place, "expected a number below replicas (%u), got %u", s->replicas,
                     s->index);
    }
}
