/* Messages of the Connect APIs: the first byte chooses the message and whether the rest is JSON.
 * What is read is written, as JSON and as bytes, and reads back as the same message. */
#include <string.h>

#include "api/proto/push.pb-c.h"
#include "api/proto/querier.pb-c.h"
#include "api/proto/services.pb-c.h"
#include "api/protojson.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_MAX ((size_t)16 * 1024 * 1024)

static const ProtobufCMessageDescriptor *const messages[] = {
    &api__profile_types_request__descriptor,
    &api__label_names_request__descriptor,
    &api__label_values_request__descriptor,
    &api__series_request__descriptor,
    &api__select_merge_stacktraces_request__descriptor,
    &api__select_merge_span_profile_request__descriptor,
    &api__select_merge_profile_request__descriptor,
    &api__select_series_request__descriptor,
    &api__select_heatmap_request__descriptor,
    &api__diff_request__descriptor,
    &api__analyze_query_request__descriptor,
    &api__set_settings_request__descriptor,
    &api__push_request__descriptor,
    &api__profile__descriptor,
    &api__select_series_response__descriptor,
    &api__select_heatmap_response__descriptor,
};

/* The message written as JSON, which must read back as one that is written the same. */
static void round_trip(const ProtobufCMessage *m, struct arena *arena)
{
    struct buf first;
    struct buf again;
    buf_init(&first, MEMORY_MAX);
    buf_init(&again, MEMORY_MAX);
    REQUIRE(protojson_write(m, &first));
    ProtobufCMessage *copy =
        protojson_read((struct sv){first.data, first.len}, m->descriptor, arena, NULL);
    REQUIRE(copy != NULL && protojson_write(copy, &again));
    REQUIRE(first.len == again.len && memcmp(first.data, again.data, first.len) == 0);
    buf_clear(&again);
    /* The copy has no unknown fields, which are not ours to write. */
    REQUIRE(protojson_write_bytes(copy, &again));
    copy = protojson_read_bytes((struct sv){again.data, again.len}, m->descriptor, arena, NULL);
    REQUIRE(copy != NULL);
    buf_clear(&again);
    REQUIRE(protojson_write(copy, &again));
    REQUIRE(first.len == again.len && memcmp(first.data, again.data, first.len) == 0);
    buf_done(&first);
    buf_done(&again);
}

FUZZ_BY(choice, body)
{
    if (body.n >= MEMORY_MAX / 256) {
        return;
    }
    struct arena *arena = arena_new(MEMORY_MAX);
    struct err err = ERR_INIT;
    REQUIRE(arena != NULL);
    const ProtobufCMessageDescriptor *d =
        messages[(choice & 0x7f) % (sizeof(messages) / sizeof(messages[0]))];
    ProtobufCMessage *m = (choice & 0x80) != 0 ? protojson_read_bytes(body, d, arena, &err)
                                               : protojson_read(body, d, arena, &err);
    REQUIRE((m == NULL) == (err.kind != ERR_NONE));
    if (m != NULL) {
        round_trip(m, arena);
    }
    arena_free(arena);
}
