/* Any JSON as an object of any role, joined with itself and with others: targets within the limits,
 * no change when an object is put again, nothing left when all is removed. The first byte chooses
 * the settings; each line is one object, whose first byte says what becomes of it:
 *
 *   0x20  it is removed again
 *   0x40  it is joined to others, as a (byte / 6 % 4): node, namespace, service, pod
 *   0x80  with that: a service whose first family is IPv4
 *
 * Its role follows from its kind, else from byte % 6. */
#include <string.h>

#include "discovery/kubernetes/join.h"
#include "discovery/kubernetes/roles.h"
#include "tests/fuzz/fuzz.h"

static const struct kube_role *const roles[] = {
    &kube_pods, &kube_nodes, &kube_services, &kube_ingresses, &kube_endpoints, &kube_endpointslices,
};
#define ROLES (sizeof(roles) / sizeof(roles[0]))
/* The roles whose names of joined objects are used. */
static const struct kube_role *const joined[] = {&kube_nodes, &kube_pods, &kube_endpoints,
                                                 &kube_endpointslices};

struct run {
    struct labels_builder *builder;
    struct object_targets targets;
    struct join *join;
};

static void on_change(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved)
{
    (void)arg;
    REQUIRE(key[0] != '\0' && n <= JOIN_TARGETS_MAX && (n != 0 || ip == NULL) && !moved);
    for (size_t i = 0; i < n; i++) {
        REQUIRE(labels_count(targets[i]) != 0 &&
                labels_get(targets[i], SV(KUBE_REF_NAMESPACE)).n == 0);
    }
}

static void on_left_out(void *arg, const char *key, struct sv pod, size_t n)
{
    (void)arg;
    (void)pod;
    REQUIRE(key[0] != '\0' && n != 0);
}

/* Putting an object again must change nothing. */
static void put_fact(struct run *r, const struct kube_role *role, unsigned char what,
                     const struct object_id *id)
{
    struct join_fact fact = {.kind = (enum join_kind)(what / ROLES % JOIN_KINDS),
                             .too_many_labels = r->targets.shared == NULL,
                             .labels = r->targets.shared,
                             .pods = role == &kube_pods ? &r->targets : NULL,
                             .family = (what & 0x80) != 0 ? '4' : (char)0};
    (void)join_fact_put(r->join, 1, id, &fact);
    REQUIRE(join_fact_put(r->join, 1, id, &fact) != STORE_CHANGED);
    if ((what & 0x20) != 0) {
        (void)join_fact_remove(r->join, fact.kind, id);
    }
}

static void put_primary(struct run *r, const struct object_id *id)
{
    (void)join_put(r->join, 0, id, &r->targets);
    REQUIRE(join_put(r->join, 0, id, &r->targets) != STORE_CHANGED);
}

static const struct kube_role *role_of(unsigned char what, const json_t *json)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    for (size_t i = 0; i < ROLES; i++) {
        if (kind != NULL && strcmp(kind, roles[i]->resource.kind) == 0) {
            return roles[i];
        }
    }
    return roles[what % ROLES];
}

/* One object, as primary or as fact of any kind. */
static void feed(struct run *r, unsigned char what, const char *text, size_t n)
{
    json_t *json = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
    const struct kube_role *role = role_of(what, json);
    struct kube_object object = {.kind = SV("")};
    struct arena *arena = schema_arena_new();
    r->targets.without_ip = (what & 0x40) != 0;
    struct object_id id;
    if (json != NULL && schema_read_json(role->resource.rows, json, arena, &object) == SKIP_NONE &&
        object_identify(&object, role->resource.kind, role->resource.namespaced, &id)) {
        enum object_status status = role->read(&object, r->builder, &r->targets);
        REQUIRE(status == OBJECT_OK || r->targets.n == 0);
        if ((what & 0x40) != 0) {
            put_fact(r, role, what, &id);
        } else {
            put_primary(r, &id);
        }
        if ((what & 0x60) == 0x20) {
            (void)join_remove(r->join, &id);
        }
    }
    object_targets_clear(&r->targets);
    arena_free(arena);
    json_decref(json);
}

FUZZ_BY(choice, lines)
{
    struct intern *in = intern_new();
    struct run r = {.builder = labels_builder_new(in)};
    r.targets = (struct object_targets){0};
    r.targets.keep_shared = true;
    r.join = join_new(&(struct join_options){
        .labels = &joined[choice % 4]->join,
        .uses = {(choice & 4) != 0, (choice & 8) != 0, (choice & 16) != 0, (choice & 32) != 0},
        .max = 8,
        .everywhere = (choice & 128) != 0,
        .intern = in,
        .n_lists = 2,
        .on_left_out = on_left_out,
        .on_change = on_change,
        .arg = &r,
    });
    if ((choice & 64) != 0) {
        (void)join_ready(r.join, 0);
    }
    const char *p = lines.p;
    const char *end = lines.p + lines.n;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop == NULL ? end : stop) - p);
        if (n > 1) {
            feed(&r, (unsigned char)p[0], p + 1, n - 1);
        }
        p += n + 1;
    }
    (void)join_ready(r.join, 0);
    for (unsigned list = 0; list < 2; list++) {
        join_list_begin(r.join, list);
        join_list_end(r.join, list);
    }
    REQUIRE(join_count(r.join) == 0);
    join_free(r.join);
    object_targets_done(&r.targets);
    labels_builder_free(r.builder);
    intern_free(in);
}
