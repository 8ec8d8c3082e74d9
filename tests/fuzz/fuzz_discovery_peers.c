/* EndpointSlices of our own Service: from JSON to members. */
#include "discovery/kubernetes/peers.h"
#include "discovery/kubernetes/roles.h"
#include "tests/fuzz/fuzz.h"

static void check(struct peer_set *s)
{
    struct peers_now now;
    if (!peer_set_now(s, &now)) {
        return;
    }
    for (size_t i = 0; i < now.n; i++) {
        REQUIRE(now.names[i].n != 0 && (i == 0 || sv_cmp(now.names[i - 1], now.names[i]) < 0));
    }
    REQUIRE(now.n <= PEERS_MAX && (now.self == SIZE_MAX || now.self < now.n));
}

FUZZ(in)
{
    static const struct peer_set_options options = {.self = "p-1", .self_ip = "10.0.0.1"};
    static const struct object_id ids[] = {{.namespace = {"n", 1}, .name = {"a", 1}},
                                           {.namespace = {"n", 1}, .name = {"b", 1}}};
    json_t *slice = json_loadb(in.p, in.n, JSON_ALLOW_NUL, NULL);
    struct peer_set *s = peer_set_new(&options);
    struct kube_object object = {.kind = SV("")};
    struct arena *arena = schema_arena_new();
    if (slice != NULL && s != NULL &&
        schema_read_json(kube_endpointslices.resource.rows, slice, arena, &object) == SKIP_NONE) {
        peer_set_put(s, &ids[0], &object.slice);
        peer_set_put(s, &ids[1], &object.slice);
        check(s);
        peer_set_remove(s, &ids[0]);
        check(s);
    }
    arena_free(arena);
    json_decref(slice);
    peer_set_free(s);
}
