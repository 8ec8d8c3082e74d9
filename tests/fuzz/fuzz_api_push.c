/* The bodies of push.v1: the first byte chooses JSON or protobuf. What is in them is opened and
 * checked as far as the queues. */
#include "agent/receive.h"
#include "agent/received_labels.h"
#include "api/proto/push.pb-c.h"
#include "api/protojson.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_MAX ((size_t)16 << 20)
#define SHOWN_LABELS_MAX 64

static const struct config_receive limits = {
    .job = {.name = "receive"},
    .max_profile_size = 1 << 20,
    .max_label_names = 30,
    .max_label_name_length = 64,
    .max_label_value_length = 64,
};

static void check_labels(const Api__RawProfileSeries *s, struct intern *intern)
{
    struct label labels[SHOWN_LABELS_MAX];
    struct err err = ERR_INIT;
    size_t n = s->n_labels < SHOWN_LABELS_MAX ? s->n_labels : SHOWN_LABELS_MAX;
    for (size_t i = 0; i < n; i++) {
        labels[i] = (struct label){sv_from(s->labels[i]->name), sv_from(s->labels[i]->value)};
    }
    n = received_labels_sort(labels, n);
    if (!received_labels_check(labels, n, &limits, &err)) {
        REQUIRE(err.kind == ERR_INPUT);
        return;
    }
    struct labels_builder *b = labels_builder_new(intern);
    received_labels_put(labels, n, b);
    struct labels *l = labels_builder_build(b);
    REQUIRE(l != NULL && labels_get(l, SV(LABEL_NAME)).n > 0);
    REQUIRE(labels_get(l, SV(LABEL_SERVICE_NAME)).n > 0);
    REQUIRE(labels_get(l, SV(LABEL_TENANT)).n == 0);
    labels_unref(l);
    labels_builder_free(b);
}

static void check_samples(const Api__RawProfileSeries *s, struct receive *r)
{
    for (size_t i = 0; i < s->n_samples; i++) {
        const ProtobufCBinaryData *raw = &s->samples[i]->raw_profile;
        struct err err = ERR_INIT;
        struct receive_item item;
        enum receive_result result =
            receive_open(r, RECEIVE_PUSH, PROFILE_PPROF,
                         (struct sv){(const char *)raw->data, raw->len}, &item, &err);
        REQUIRE((result == RECEIVE_ACCEPTED) == (err.kind == ERR_NONE));
        receive_close(r, &item);
    }
}

FUZZ_BY(choice, body)
{
    struct err err = ERR_INIT;
    struct arena *arena = arena_new(ARENA_MAX);
    struct intern *intern = intern_new();
    const struct receive_options options = {.config = &limits, .intern = intern};
    struct receive *r = receive_new(&options, &err);
    REQUIRE(arena != NULL && r != NULL);
    const Api__PushRequest *push =
        (const Api__PushRequest *)(choice == 'j'
                                       ? protojson_read(body, &api__push_request__descriptor, arena,
                                                        &err)
                                       : protojson_read_bytes(body, &api__push_request__descriptor,
                                                              arena, &err));
    for (size_t i = 0; push != NULL && i < push->n_series; i++) {
        check_labels(push->series[i], intern);
        check_samples(push->series[i], r);
    }
    receive_free(r);
    intern_free(intern);
    arena_free(arena);
}
