#include "discovery/kubernetes/proto_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "pprof/wire.h"

/* "k8s" and a NUL: a message Unknown follows. */
#define MAGIC "k8s"
#define MAGIC_BYTES sizeof(MAGIC)
#define LENGTH_BYTES 4
/* A tag of at most 5 bytes and a number of at most 10. */
#define HEADER_MAX 15

enum { UNKNOWN_TYPE_META = 1, UNKNOWN_RAW = 2 };
enum { TYPE_META_KIND = 2 };
enum { LIST_METADATA = 1, LIST_ITEMS = 2 };
enum { WATCH_EVENT_TYPE = 1, WATCH_EVENT_OBJECT = 2, RAW_EXTENSION_RAW = 1 };

enum proto_state {
    AT_LENGTH,   /* in the length of a frame */
    AT_MAGIC,    /* at the beginning of a list: "k8s" and a NUL */
    AT_ENVELOPE, /* at a field of Unknown */
    AT_LIST,     /* at a field of the list */
    BROKEN,
    /* within bytes that belong together; `outer` has the state from the list above */
    IN_FRAME,
    IN_TYPE_META,
    IN_METADATA,
    IN_ITEM,
    IN_OTHER, /* bytes that are dropped */
};

struct proto_stream {
    struct proto_stream_options options;
    enum proto_state state;
    enum proto_state outer;
    bool kind_seen;
    bool list_seen;
    uint64_t list_left; /* bytes of the list still to come, those in `header` and `left` included */
    uint64_t left;      /* bytes still to come of those that belong together */
    char header[HEADER_MAX];
    size_t header_len;
    struct buf held; /* those of them that arrived in earlier pieces of the stream */
};

/* ---- one object ------------------------------------------------------------------------------ */

/* Finds the last field with each number; it is empty if there is none. False if the message is
 * damaged. */
static bool find_bytes(struct sv message, const unsigned *numbers, struct sv *const *rets, size_t n)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        for (size_t i = 0; i < n; i++) {
            if (f.number == numbers[i]) {
                *rets[i] = f.type == WIRE_BYTES ? f.bytes : SV("");
            }
        }
    }
    return r.problem == NULL;
}

static bool read_kind(struct sv type_meta, struct sv *ret_kind)
{
    *ret_kind = SV("");
    return find_bytes(type_meta, (const unsigned[]){TYPE_META_KIND}, (struct sv *const[]){ret_kind},
                      1);
}

bool proto_object_open(struct sv bytes, struct proto_object *ret)
{
    struct sv type_meta = SV("");
    *ret = (struct proto_object){.kind = SV(""), .message = SV("")};
    if (!sv_starts_with(bytes, (struct sv){MAGIC, MAGIC_BYTES})) {
        return false;
    }
    return find_bytes((struct sv){bytes.p + MAGIC_BYTES, bytes.n - MAGIC_BYTES},
                      (const unsigned[]){UNKNOWN_TYPE_META, UNKNOWN_RAW},
                      (struct sv *const[]){&type_meta, &ret->message}, 2) &&
           read_kind(type_meta, &ret->kind);
}

static void skip(struct proto_stream *s, enum discovery_skip why)
{
    s->options.on_skip(s->options.arg, why);
}

static void deliver_event(struct proto_stream *s, struct sv frame)
{
    struct sv type = SV("");
    struct sv extension = SV("");
    struct sv raw = SV("");
    struct proto_object object;
    if (find_bytes(frame, (const unsigned[]){WATCH_EVENT_TYPE, WATCH_EVENT_OBJECT},
                   (struct sv *const[]){&type, &extension}, 2) &&
        find_bytes(extension, (const unsigned[]){RAW_EXTENSION_RAW}, (struct sv *const[]){&raw},
                   1) &&
        proto_object_open(raw, &object)) {
        s->options.on_event(s->options.arg, type, &object);
    } else {
        skip(s, SKIP_SYNTAX);
    }
}

/* Passes the complete bytes of a state to their callback. */
static void deliver(struct proto_stream *s, enum proto_state state, struct sv bytes)
{
    struct sv kind;
    switch (state) {
    case IN_FRAME:
        deliver_event(s, bytes);
        break;
    case IN_TYPE_META:
        s->kind_seen = true;
        s->options.on_kind(s->options.arg, read_kind(bytes, &kind) ? kind : SV(""));
        break;
    case IN_METADATA:
        s->options.on_metadata(s->options.arg, bytes);
        break;
    case IN_ITEM:
        s->options.on_item(s->options.arg, bytes);
        break;
    default:
        break;
    }
}

/* ---- the stream ------------------------------------------------------------------------------ */

static bool is_broken(struct proto_stream *s, struct err *err, const char *expected)
{
    s->state = BROKEN;
    return err_set(err, ERR_INPUT,
                   "the answer is not Kubernetes' protobuf: expected %s, got something else",
                   expected);
}

/* Expects n bytes that belong together. */
static void begin_bytes(struct proto_stream *s, enum proto_state state, uint64_t n)
{
    s->outer = s->state;
    s->state = state;
    s->left = n;
    buf_clear(&s->held);
    if (state != IN_OTHER && n > s->options.object_max) {
        skip(s, SKIP_TOO_LARGE);
        s->state = IN_OTHER;
    }
}

static void end_bytes(struct proto_stream *s, struct sv bytes)
{
    enum proto_state state = s->state;
    s->state = s->outer == AT_LIST && s->list_left == 0 ? AT_ENVELOPE : s->outer;
    deliver(s, state, bytes);
    buf_clear(&s->held);
}

/* Takes bytes that belong together. If all of them are in one piece of the stream, they are not
 * copied. */
static size_t take_bytes(struct proto_stream *s, const char *data, size_t len)
{
    size_t n = s->left < len ? (size_t)s->left : len;
    struct sv bytes = {data, n};
    s->left -= n;
    s->list_left -= s->outer == AT_LIST ? n : 0;
    bool hold = s->state != IN_OTHER && (s->left > 0 || s->held.len > 0);
    if (hold && !buf_append(&s->held, data, n)) {
        skip(s, SKIP_MEMORY);
        s->state = IN_OTHER;
    } else if (hold) {
        bytes = (struct sv){s->held.data, s->held.len};
    }
    if (s->left == 0) {
        end_bytes(s, bytes);
    }
    return n;
}

/* Returns the state for the content of a field, which depends on the message that it is in. */
static enum proto_state state_of_field(const struct proto_stream *s, uint64_t number)
{
    if (s->state == AT_ENVELOPE) {
        return number == UNKNOWN_TYPE_META ? IN_TYPE_META : IN_OTHER;
    }
    return number == LIST_METADATA ? IN_METADATA : number == LIST_ITEMS ? IN_ITEM : IN_OTHER;
}

static bool begin_list(struct proto_stream *s, uint64_t len, struct err *err)
{
    if (!s->kind_seen || s->list_seen) {
        return is_broken(s, err, "one list after its kind");
    }
    s->list_seen = true;
    s->list_left = len;
    s->state = len > 0 ? AT_LIST : AT_ENVELOPE;
    return true;
}

/* Begins a field whose tag and number are complete. */
static bool begin_field(struct proto_stream *s, uint64_t tag, uint64_t value, struct err *err)
{
    static const uint64_t fixed[] = {[WIRE_FIXED64] = 8, [WIRE_FIXED32] = 4};
    unsigned type = (unsigned)(tag & 7);
    uint64_t number = tag >> 3;
    uint64_t size = type == WIRE_BYTES ? value : type == WIRE_VARINT ? 0 : fixed[type];
    bool in_list = s->state == AT_LIST;
    if (number == 0 || (in_list && size > s->list_left)) {
        return is_broken(s, err, in_list ? "an item within its list" : "a field of the envelope");
    }
    if (type == WIRE_BYTES && !in_list && number == UNKNOWN_RAW) {
        return begin_list(s, size, err);
    }
    begin_bytes(s, type == WIRE_BYTES ? state_of_field(s, number) : IN_OTHER, size);
    if (size == 0) {
        end_bytes(s, SV(""));
    }
    return true;
}

/* The tag of a field, and the number or the length that follows it. */
struct header {
    bool cut;            /* more bytes are needed */
    const char *problem; /* the error: what was expected instead; NULL if there is none */
    uint64_t tag;
    uint64_t value;
};

static struct header read_header(struct sv in)
{
    const char *end = in.p + in.n;
    struct wire_varint tag = wire_varint(in.p, end);
    struct wire_varint value = {.next = end, .value = 0};
    unsigned type = (unsigned)(tag.value & 7);
    if (tag.next != NULL && (type == 3 || type == 4 || type > WIRE_FIXED32)) {
        return (struct header){.problem = "a field of a known type"};
    }
    if (tag.next != NULL && (type == WIRE_VARINT || type == WIRE_BYTES)) {
        value = wire_varint(tag.next, end);
    }
    struct wire_varint bad = tag.next == NULL ? tag : value;
    if (bad.next != NULL) {
        return (struct header){.tag = tag.value, .value = value.value};
    }
    bool cut = bad.value != 0 && in.n < HEADER_MAX;
    return (struct header){.cut = cut, .problem = cut ? NULL : "a number of at most 64 bits"};
}

/* Collects the header of a field, byte by byte, until it is complete. */
static bool take_field_byte(struct proto_stream *s, char byte, struct err *err)
{
    if (s->state == AT_LIST && s->list_left == 0) {
        return is_broken(s, err, "an item within its list");
    }
    s->list_left -= s->state == AT_LIST ? 1 : 0;
    s->header[s->header_len++] = byte;
    struct header h = read_header((struct sv){s->header, s->header_len});
    if (h.problem != NULL) {
        return is_broken(s, err, h.problem);
    }
    if (h.cut) {
        return true;
    }
    s->header_len = 0;
    return begin_field(s, h.tag, h.value, err);
}

static bool take_length_byte(struct proto_stream *s, char byte, struct err *err)
{
    uint64_t len = 0;
    s->header[s->header_len++] = byte;
    if (s->header_len < LENGTH_BYTES) {
        return true;
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        len = len << 8 | (unsigned char)s->header[i];
    }
    s->header_len = 0;
    if (len / PROTO_STREAM_RUNAWAY > s->options.object_max) {
        s->state = BROKEN;
        return err_set(err, ERR_LIMIT, "an event of the watch has %llu bytes, at most %zu can be",
                       (unsigned long long)len, PROTO_STREAM_RUNAWAY * s->options.object_max);
    }
    begin_bytes(s, IN_FRAME, len);
    if (len == 0) {
        end_bytes(s, SV(""));
    }
    return true;
}

static bool take_magic_byte(struct proto_stream *s, char byte, struct err *err)
{
    if (byte != MAGIC[s->header_len]) {
        return is_broken(s, err, "\"k8s\" and a NUL");
    }
    s->header_len++;
    if (s->header_len == MAGIC_BYTES) {
        s->header_len = 0;
        s->state = AT_ENVELOPE;
    }
    return true;
}

bool proto_stream_feed(struct proto_stream *s, const char *data, size_t len, struct err *err)
{
    size_t i = 0;
    while (i < len && s->state != BROKEN) {
        if (s->state >= IN_FRAME) {
            i += take_bytes(s, data + i, len - i);
        } else if (s->state == AT_LENGTH) {
            (void)take_length_byte(s, data[i++], err);
        } else if (s->state == AT_MAGIC) {
            (void)take_magic_byte(s, data[i++], err);
        } else {
            (void)take_field_byte(s, data[i++], err);
        }
    }
    return s->state != BROKEN;
}

bool proto_stream_complete(const struct proto_stream *s)
{
    return s->header_len == 0 &&
           (s->state == AT_LENGTH || (s->state == AT_ENVELOPE && s->list_seen));
}

/* ---- life ------------------------------------------------------------------------------------ */

struct proto_stream *proto_stream_new(const struct proto_stream_options *options)
{
    struct proto_stream *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->options = *options;
        buf_init(&s->held, options->object_max + 1); /* and a NUL */
        proto_stream_begin(s, PROTO_STREAM_EVENTS);
    }
    return s;
}

struct proto_stream *proto_stream_free(struct proto_stream *s)
{
    if (s != NULL) {
        buf_done(&s->held);
        free(s);
    }
    return NULL;
}

void proto_stream_begin(struct proto_stream *s, enum proto_stream_form form)
{
    /* Frees the memory of the last stream's largest object. */
    buf_done(&s->held);
    s->state = form == PROTO_STREAM_LIST ? AT_MAGIC : AT_LENGTH;
    s->outer = s->state;
    s->kind_seen = false;
    s->list_seen = false;
    s->list_left = 0;
    s->left = 0;
    s->header_len = 0;
}
