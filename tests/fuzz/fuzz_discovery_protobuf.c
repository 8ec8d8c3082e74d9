/* Bytes in Kubernetes' protobuf -> objects -> targets. The same bytes in other pieces must yield
 * the same objects; each of them is read as an object of every role; then the bytes pass through
 * the state machine, as a list and as a watch.
 *
 * The first byte of the input chooses the form and the size of the pieces. */
#include <string.h>

#include "base/utf8.h"
#include "discovery/kubernetes/proto_stream.h"
#include "discovery/kubernetes/roles.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_watch.h"

/* Small, so that the limit is reached. */
#define OBJECT_MAX 2048

static const struct kube_role *const roles[] = {
    &kube_pods, &kube_nodes, &kube_services, &kube_ingresses, &kube_endpoints, &kube_endpointslices,
};
#define ROLES (sizeof(roles) / sizeof(roles[0]))

struct sum {
    uint64_t hash; /* of all output */
    size_t n;
    struct arena *arena; /* NULL: the objects are not read */
    struct labels_builder *builder;
    struct object_targets targets;
};

static void add(struct sum *s, const char *what, struct sv bytes)
{
    s->hash = hash_bytes(what, strlen(what), s->hash);
    s->hash = hash_bytes(bytes.p, bytes.n, s->hash);
    s->n++;
}

static void read_as(struct sum *s, const struct kube_role *role, struct sv message)
{
    struct kube_object object = {.kind = SV("")};
    struct object_id id;
    arena_reset(s->arena);
    if (schema_read_wire(role->resource.rows, message, s->arena, &object) != SKIP_NONE) {
        return;
    }
    (void)object_identify(&object, role->resource.kind, role->resource.namespaced, &id);
    enum object_status status = role->read(&object, s->builder, &s->targets);
    REQUIRE(status == OBJECT_OK || s->targets.n == 0);
    for (size_t i = 0; i < s->targets.n; i++) {
        for (size_t k = 0; k < labels_count(s->targets.at[i]); k++) {
            REQUIRE(utf8_valid(labels_at(s->targets.at[i], k).value));
        }
    }
    object_targets_clear(&s->targets);
}

static void on_object(struct sum *s, struct sv message)
{
    for (size_t i = 0; i < ROLES && s->arena != NULL; i++) {
        read_as(s, roles[i], message);
    }
}

static void on_kind(void *arg, struct sv kind)
{
    add(arg, "kind", kind);
}

static void on_metadata(void *arg, struct sv message)
{
    add(arg, "metadata", message);
}

static void on_item(void *arg, struct sv message)
{
    add(arg, "item", message);
    on_object(arg, message);
}

static void on_event(void *arg, struct sv type, const struct proto_object *object)
{
    add(arg, "type", type);
    add(arg, "kind", object->kind);
    add(arg, "object", object->message);
    on_object(arg, object->message);
}

static void on_skip(void *arg, enum discovery_skip why)
{
    static const char *const names[] = {"large", "deep", "syntax", "memory"};
    add(arg, names[why], SV(""));
}

static void read_stream(const char *data, size_t size, enum proto_stream_form form, size_t piece,
                        struct sum *sum)
{
    struct proto_stream *s = proto_stream_new(&(struct proto_stream_options){
        .object_max = OBJECT_MAX,
        .on_kind = on_kind,
        .on_metadata = on_metadata,
        .on_item = on_item,
        .on_event = on_event,
        .on_skip = on_skip,
        .arg = sum,
    });
    proto_stream_begin(s, form);
    bool ok = true;
    for (size_t i = 0; i < size && ok; i += piece) {
        struct err err = ERR_INIT;
        ok = proto_stream_feed(s, data + i, size - i < piece ? size - i : piece, &err);
        REQUIRE(ok == (err.kind == ERR_NONE));
    }
    add(sum, !ok ? "broken" : proto_stream_complete(s) ? "complete" : "unfinished", SV(""));
    proto_stream_free(s);
}

/* ---- the state machine ----------------------------------------------------------------------- */

static void run_machine(struct sv body, size_t piece)
{
    static const char list[] = "k8s\0\x0a\x09\x12\x07PodList\x12\x05\x0a\x03\x12\x01"
                               "1";
    const char *const type = PROTO_MEDIA_TYPE;
    struct machine m;
    machine_init(&m, OBJECT_MAX, 16, 4 * OBJECT_MAX);
    machine_answer(&m, 200, type, body, piece);
    machine_answer(&m, 422, type, body, piece);
    machine_answer(&m, 200, type, body, piece);
    machine_answer(&m, 200, type, (struct sv){list, sizeof(list) - 1}, piece);
    machine_answer(&m, 200, type, body, piece);
    machine_answer(&m, 504, type, body, piece);
    machine_done(&m);
}

FUZZ_BY(choice, body)
{
    size_t piece = (size_t)(choice & 0x7f) + 1;
    enum proto_stream_form form = choice & 0x80 ? PROTO_STREAM_LIST : PROTO_STREAM_EVENTS;
    struct intern *in = intern_new();
    struct sum whole = {.arena = schema_arena_new(), .builder = labels_builder_new(in)};
    struct sum pieces = {0};
    whole.targets.keep_shared = true;
    read_stream(body.p, body.n, form, body.n + 1, &whole);
    read_stream(body.p, body.n, form, piece, &pieces);
    REQUIRE(whole.hash == pieces.hash && whole.n == pieces.n);
    run_machine(body, piece);
    object_targets_done(&whole.targets);
    labels_builder_free(whole.builder);
    arena_free(whole.arena);
    intern_free(in);
}
