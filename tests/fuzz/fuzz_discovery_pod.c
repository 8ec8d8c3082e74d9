/* A pod in JSON -> targets. They must be consistent, and the same when the stream drops the members
 * that are not needed. */
#include <arpa/inet.h>
#include <string.h>

#include "discovery/kubernetes/json_stream.h"
#include "discovery/kubernetes/roles.h"
#include "tests/fuzz/fuzz.h"

struct result {
    struct labels_builder *builder;
    struct object_targets targets;
    enum object_status status;
    size_t pods;
    struct buf text;
};

static void check_target(const struct labels *l, const char *ip)
{
    struct sv address = labels_get(l, SV(LABEL_ADDRESS));
    struct sv host;
    uint16_t port;
    struct err err = ERR_INIT;
    REQUIRE(split_host_port(address, &host, &port, &err) && sv_eq_str(host, ip));
    REQUIRE(sv_eq_str(labels_get(l, SV("__meta_kubernetes_pod_ip")), ip));
}

static void check_targets(const struct result *r)
{
    struct in6_addr address;
    const char *ip = r->targets.ip;
    REQUIRE(r->targets.n <= OBJECT_TARGETS_MAX && (ip != NULL || r->targets.n == 0) &&
            (r->status == OBJECT_OK || r->targets.n == 0));
    REQUIRE(ip == NULL || inet_pton(AF_INET, ip, &address) == 1 ||
            inet_pton(AF_INET6, ip, &address) == 1);
    for (size_t i = 0; i < r->targets.n; i++) {
        check_target(r->targets.at[i], ip);
    }
}

static void on_pod(void *arg, const json_t *json)
{
    struct result *r = arg;
    struct object_id id;
    struct kube_object pod = {.kind = SV("")};
    struct arena *arena = schema_arena_new();
    (void)schema_read_json(kube_pods.resource.rows, json, arena, &pod);
    r->pods++;
    if (object_identify(&pod, "Pod", true, &id)) {
        buf_printf(&r->text, "%.*s/%.*s\n", SV_ARG(id.namespace), SV_ARG(id.name));
    }
    r->status = kube_pods.read(&pod, r->builder, &r->targets);
    check_targets(r);
    buf_printf(&r->text, "%d %zu %zu %zu\n", (int)r->status, r->targets.bad_ip,
               r->targets.bad_ports, r->targets.too_many_targets);
    for (size_t i = 0; i < r->targets.n; i++) {
        labels_format_json(r->targets.at[i], &r->text);
    }
    arena_free(arena);
}

static void ignore_metadata(void *arg, const json_t *json)
{
    (void)arg;
    (void)json;
}

static void ignore_skip(void *arg, enum discovery_skip why)
{
    (void)arg;
    (void)why;
}

static void read_list(struct result *r, struct intern *in, const uint8_t *data, size_t size,
                      const struct schema_row *members)
{
    *r = (struct result){.builder = labels_builder_new(in)};
    r->targets = (struct object_targets){0};
    buf_init(&r->text, 64 << 20);
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = OBJECT_BYTES_MAX,
        .depth_max = OBJECT_DEPTH_MAX,
        .members = members,
        .on_object = on_pod,
        .on_metadata = ignore_metadata,
        .on_skip = ignore_skip,
        .arg = r,
    });
    json_stream_begin(s, JSON_STREAM_LIST);
    struct err err = ERR_INIT;
    json_stream_feed(s, "{\"items\":[", 10, &err);
    json_stream_feed(s, (const char *)data, size, &err);
    json_stream_feed(s, "]}", 2, &err);
    json_stream_free(s);
}

static void done(struct result *r)
{
    object_targets_done(&r->targets);
    labels_builder_free(r->builder);
    buf_done(&r->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct intern *in = intern_new();
    struct result whole;
    struct result part;
    read_list(&whole, in, data, size, NULL);
    read_list(&part, in, data, size, kube_pods.resource.rows);
    /* Errors within dropped members are not seen, so there may be one pod more, never fewer. */
    REQUIRE(part.pods >= whole.pods);
    REQUIRE(part.pods != whole.pods || strcmp(whole.text.data, part.text.data) == 0);
    done(&whole);
    done(&part);
    intern_free(in);
    return 0;
}
