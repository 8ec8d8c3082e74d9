/* Kubernetes objects for tests: read from JSON as it is, or from what the same JSON is in protobuf.
 *
 * The encoder follows the tables of the product, so it shows that both encodings lead to the same
 * objects, not that the numbers in the tables are right: test_discovery_protobuf.c compares these
 * with what Kubernetes' own encoder made. */
#ifndef PROFPULL_TESTS_KUBE_OBJECTS_H
#define PROFPULL_TESTS_KUBE_OBJECTS_H

#include "tests/unit/lib/testing.h"

#include "discovery/kubernetes/types.h"

/* ---- a writer of protobuf -------------------------------------------------------------------- */

static inline void proto_put_varint(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        buf_putc(out, (char)(v | 0x80));
    }
    buf_putc(out, (char)v);
}

static inline void proto_put_bytes(struct buf *out, unsigned number, struct sv bytes)
{
    proto_put_varint(out, number << 3 | 2);
    proto_put_varint(out, bytes.n);
    buf_append(out, bytes.p, bytes.n);
}

/* "k8s\0" and an Unknown with an object of that kind. */
static inline void proto_put_envelope(struct buf *out, const char *kind, struct sv message)
{
    SCOPED(buf) meta = testing_buf(1 << 10);
    proto_put_bytes(&meta, 1, SV("v1"));
    proto_put_bytes(&meta, 2, sv_from(kind));
    buf_append(out, "k8s", 4);
    proto_put_bytes(out, 1, (struct sv){meta.data, meta.len});
    proto_put_bytes(out, 2, message);
    proto_put_bytes(out, 3, SV(""));
    proto_put_bytes(out, 4, SV(""));
}

/* A frame of a watch. */
static inline void proto_put_event(struct buf *out, const char *type, struct sv object)
{
    SCOPED(buf) extension = testing_buf(1 << 24);
    SCOPED(buf) event = testing_buf(1 << 24);
    proto_put_bytes(&extension, 1, object);
    proto_put_bytes(&event, 1, sv_from(type));
    proto_put_bytes(&event, 2, (struct sv){extension.data, extension.len});
    for (int shift = 24; shift >= 0; shift -= 8) {
        buf_putc(out, (char)(event.len >> shift & 0xff));
    }
    buf_append(out, event.data, event.len);
}

/* ---- JSON to protobuf ------------------------------------------------------------------------ */

static inline void proto_put_object(struct buf *out, const struct schema_row *rows,
                                    const json_t *object);

static inline struct sv json_text(const json_t *v)
{
    return (struct sv){json_string_value(v), json_string_length(v)};
}

static inline void proto_put_message(struct buf *out, const struct schema_row *row,
                                     const json_t *object)
{
    SCOPED(buf) message = testing_buf(1 << 24);
    proto_put_object(&message, row->members, object);
    proto_put_bytes(out, row->number, (struct sv){message.data, message.len});
}

static inline void proto_put_pairs(struct buf *out, unsigned number, json_t *map)
{
    const char *name;
    size_t len;
    json_t *value;
    json_object_keylen_foreach(map, name, len, value)
    {
        SCOPED(buf) pair = testing_buf(1 << 24);
        if (json_is_string(value)) {
            proto_put_bytes(&pair, 1, (struct sv){name, len});
            proto_put_bytes(&pair, 2, json_text(value));
            proto_put_bytes(out, number, (struct sv){pair.data, pair.len});
        }
    }
}

static inline void proto_put_elements(struct buf *out, const struct schema_row *row,
                                      const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        if (row->kind == SCHEMA_LIST) {
            proto_put_message(out, row, element);
        } else {
            proto_put_bytes(out, row->number, json_text(element));
        }
    }
}

static inline void proto_put_member(struct buf *out, const struct schema_row *row, json_t *v)
{
    if ((row->kind == SCHEMA_TEXT || row->kind == SCHEMA_MARK) && json_is_string(v)) {
        proto_put_bytes(out, row->number, json_text(v));
    } else if (row->kind == SCHEMA_NUMBER && !json_is_null(v)) {
        proto_put_varint(out, row->number << 3);
        proto_put_varint(out, (uint64_t)json_integer_value(v));
    } else if (row->kind == SCHEMA_FLAG && json_is_boolean(v)) {
        proto_put_varint(out, row->number << 3);
        proto_put_varint(out, json_is_true(v) ? 1 : 0);
    } else if (row->kind == SCHEMA_PART || row->kind == SCHEMA_NOTED) {
        if (json_is_object(v)) {
            proto_put_message(out, row, v);
        }
    } else if (row->kind == SCHEMA_PAIRS) {
        proto_put_pairs(out, row->number, v);
    } else if (row->kind == SCHEMA_TEXTS || row->kind == SCHEMA_LIST) {
        proto_put_elements(out, row, v);
    }
}

/* A member that JSON has in the object around is looked up there. */
static inline void proto_put_object(struct buf *out, const struct schema_row *rows,
                                    const json_t *object)
{
    for (const struct schema_row *row = rows; row->name != NULL; row++) {
        json_t *v = json_object_get(object, row->name);
        if (row->number != 0 && row->name[0] == '\0') {
            proto_put_message(out, row, object);
        } else if (row->number != 0 && v != NULL) {
            proto_put_member(out, row, v);
        }
    }
}

/* ---- one object ------------------------------------------------------------------------------ */

struct test_object {
    struct kube_object object;
    struct arena *arena;
    json_t *json;
    struct buf wire;
};

/* Text in JSON; with `protobuf` the object goes through that, and its kind is the one of the text.
 */
static inline void test_object_read(struct test_object *t, const char *text,
                                    const struct schema_row *rows, bool protobuf)
{
    json_error_t error = {0};
    *t = (struct test_object){.arena = schema_arena_new()};
    buf_init(&t->wire, 1 << 24);
    t->json = json_loads(text, JSON_ALLOW_NUL, &error);
    CHECK_STR(error.text, "", text);
    assert_non_null(t->arena);
    enum discovery_skip skip;
    if (protobuf) {
        proto_put_object(&t->wire, rows, t->json);
        skip = schema_read_wire(rows, (struct sv){t->wire.data, t->wire.len}, t->arena, &t->object);
        t->object.kind = json_text(json_object_get(t->json, "kind"));
    } else {
        skip = schema_read_json(rows, t->json, t->arena, &t->object);
    }
    CHECK_INT(skip, SKIP_NONE, text);
}

static inline void test_object_done(struct test_object *t)
{
    arena_free(t->arena);
    json_decref(t->json);
    buf_done(&t->wire);
}
SCOPED_VALUE(test_object, test_object_done)

#endif
