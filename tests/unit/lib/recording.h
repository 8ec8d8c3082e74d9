/* A small encoder of recordings for the tests: chunks with metadata, checkpoints and events of all
 * types that profiles are made of; and the reading of such profiles as text.
 *
 *     struct recording r;
 *     recording_init(&r, 1000000000);          // ticks per second
 *     recording_method(&r, 7, "App", "run");   // a method with its class and symbols
 *     recording_stack(&r, 1, false, (uint64_t[]){7, 12}, 1);  // method, line
 *     recording_event(&r, CLASS_EXECUTION_SAMPLE, (uint64_t[]){5, 3, 1, STATE_RUNNABLE_ID, ...});
 *     recording_end_chunk(&r);
 *
 * The fields of an event are given in the order of its class below; a text is given as the index of
 * recording_text().
 */
#ifndef PROFPULL_TESTS_RECORDING_H
#define PROFPULL_TESTS_RECORDING_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/buf.h"
#include "jfr/jfr.h"
#include "pprof/gzip.h"
#include "pprof/wire.h"

/* Ids of classes. */
enum {
    CLASS_LONG = 20,
    CLASS_INT,
    CLASS_BOOLEAN,
    CLASS_STRING,
    CLASS_BYTE,
    CLASS_FLOAT,
    CLASS_STACK_TRACE = 30,
    CLASS_STACK_FRAME,
    CLASS_METHOD,
    CLASS_CLASS,
    CLASS_SYMBOL,
    CLASS_STATE,
    CLASS_THREAD,
    CLASS_CHUNK_HEADER,
    CLASS_FRAME_TYPE,
    CLASS_EXECUTION_SAMPLE = 101,
    CLASS_WALL_CLOCK_SAMPLE,
    CLASS_CPU_TIME_SAMPLE,
    CLASS_IN_NEW_TLAB,
    CLASS_OUTSIDE_TLAB,
    CLASS_ALLOCATION_SAMPLE,
    CLASS_MONITOR_ENTER,
    CLASS_THREAD_PARK,
    CLASS_LIVE_OBJECT,
    CLASS_MALLOC,
    CLASS_ACTIVE_SETTING,
    CLASS_OTHER, /* means nothing */
};

/* Constants of thread states that every chunk has. */
enum { STATE_RUNNABLE_ID = 1, STATE_SLEEPING_ID = 2, STATE_PARKED_ID = 3 };

struct recording_field {
    const char *name;
    unsigned class;
    bool constant;
    bool array;
};
#define RECORDING_FIELDS_MAX 10

struct recording_class {
    unsigned id;
    const char *name;
    struct recording_field fields[RECORDING_FIELDS_MAX];
};

#define STACK_FIELD                                                                                \
    {                                                                                              \
        "stackTrace", CLASS_STACK_TRACE, true, false                                               \
    }
#define THREAD_FIELD                                                                               \
    {                                                                                              \
        "eventThread", CLASS_THREAD, true, false                                                   \
    }
#define START_FIELD                                                                                \
    {                                                                                              \
        "startTime", CLASS_LONG, false, false                                                      \
    }
#define CONTEXT_FIELDS                                                                             \
    {"contextId", CLASS_LONG, false, false}, {"spanId", CLASS_LONG, false, false},                 \
    {                                                                                              \
        "spanName", CLASS_LONG, false, false                                                       \
    }
#define LONG_FIELD(name)                                                                           \
    {                                                                                              \
        name, CLASS_LONG, false, false                                                             \
    }

/* Events begin with startTime and stackTrace, so that one helper writes most of them; CPUTimeSample
 * and the wall clock's sample have another order on purpose. */
static const struct recording_class recording_classes[] = {
    {CLASS_LONG, "long", {{0}}},
    {CLASS_INT, "int", {{0}}},
    {CLASS_BOOLEAN, "boolean", {{0}}},
    {CLASS_STRING, "java.lang.String", {{0}}},
    {CLASS_BYTE, "byte", {{0}}},
    {CLASS_FLOAT, "float", {{0}}},
    {CLASS_STACK_TRACE,
     "jdk.types.StackTrace",
     {{"truncated", CLASS_BOOLEAN, false, false}, {"frames", CLASS_STACK_FRAME, false, true}}},
    {CLASS_STACK_FRAME,
     "jdk.types.StackFrame",
     {{"method", CLASS_METHOD, true, false},
      {"lineNumber", CLASS_INT, false, false},
      {"bytecodeIndex", CLASS_INT, false, false},
      {"type", CLASS_FRAME_TYPE, true, false}}},
    {CLASS_FRAME_TYPE, "jdk.types.FrameType", {{"description", CLASS_STRING, false, false}}},
    {CLASS_METHOD,
     "jdk.types.Method",
     {{"type", CLASS_CLASS, true, false},
      {"name", CLASS_SYMBOL, true, false},
      {"descriptor", CLASS_SYMBOL, true, false},
      {"modifiers", CLASS_INT, false, false},
      {"hidden", CLASS_BOOLEAN, false, false}}},
    {CLASS_CLASS,
     "java.lang.Class",
     {{"modifiers", CLASS_INT, false, false}, {"name", CLASS_SYMBOL, true, false}}},
    {CLASS_SYMBOL, "jdk.types.Symbol", {{"string", CLASS_STRING, false, false}}},
    {CLASS_STATE, "jdk.types.ThreadState", {{"name", CLASS_STRING, false, false}}},
    {CLASS_THREAD,
     "java.lang.Thread",
     {{"osName", CLASS_STRING, false, false}, {"osThreadId", CLASS_LONG, false, false}}},
    {CLASS_CHUNK_HEADER, "jdk.types.ChunkHeader", {{"payload", CLASS_BYTE, false, true}}},
    {CLASS_EXECUTION_SAMPLE,
     "jdk.ExecutionSample",
     {START_FIELD, STACK_FIELD, {"state", CLASS_STATE, true, false}, CONTEXT_FIELDS}},
    {CLASS_WALL_CLOCK_SAMPLE,
     "profiler.WallClockSample",
     {START_FIELD,
      {"state", CLASS_STATE, true, false},
      LONG_FIELD("samples"),
      STACK_FIELD,
      CONTEXT_FIELDS}},
    {CLASS_CPU_TIME_SAMPLE,
     "jdk.CPUTimeSample",
     {START_FIELD,
      STACK_FIELD,
      THREAD_FIELD,
      {"failed", CLASS_BOOLEAN, false, false},
      LONG_FIELD("samplingPeriod")}},
    {CLASS_IN_NEW_TLAB,
     "jdk.ObjectAllocationInNewTLAB",
     {START_FIELD, STACK_FIELD, LONG_FIELD("allocationSize"), LONG_FIELD("tlabSize")}},
    {CLASS_OUTSIDE_TLAB,
     "jdk.ObjectAllocationOutsideTLAB",
     {START_FIELD, STACK_FIELD, LONG_FIELD("allocationSize")}},
    {CLASS_ALLOCATION_SAMPLE,
     "jdk.ObjectAllocationSample",
     {START_FIELD, STACK_FIELD, LONG_FIELD("weight")}},
    {CLASS_MONITOR_ENTER,
     "jdk.JavaMonitorEnter",
     {START_FIELD, STACK_FIELD, LONG_FIELD("duration"), CONTEXT_FIELDS}},
    {CLASS_THREAD_PARK,
     "jdk.ThreadPark",
     {START_FIELD, STACK_FIELD, LONG_FIELD("duration"), LONG_FIELD("timeout")}},
    {CLASS_LIVE_OBJECT,
     "profiler.LiveObject",
     {START_FIELD, STACK_FIELD, LONG_FIELD("allocationSize")}},
    {CLASS_MALLOC,
     "profiler.Malloc",
     {START_FIELD, STACK_FIELD, LONG_FIELD("address"), LONG_FIELD("size")}},
    {CLASS_ACTIVE_SETTING,
     "jdk.ActiveSetting",
     {START_FIELD,
      LONG_FIELD("id"),
      {"name", CLASS_STRING, false, false},
      {"value", CLASS_STRING, false, false}}},
    {CLASS_OTHER,
     "test.Other",
     {START_FIELD, {"ratio", CLASS_FLOAT, false, false}, {"note", CLASS_STRING, false, false}}},
};
#define RECORDING_CLASSES (sizeof(recording_classes) / sizeof(recording_classes[0]))

#define RECORDING_TEXTS_MAX 64

struct recording {
    struct buf out; /* whole chunks, then the one being made */
    size_t chunk;   /* where that one begins */
    int64_t ticks_per_second;
    int64_t start_ns;
    int64_t duration_ns;
    unsigned major;
    bool fixed;           /* integers are not compressed */
    bool raw_head;        /* the pool of chunk heads has them as they are */
    unsigned encoding;    /* of strings: 3, 4 or 5 */
    size_t checkpoint;    /* the last one of this chunk, an offset in it; 0: none */
    struct buf pools[64]; /* entries by class - CLASS_LONG */
    size_t counts[64];
    uint64_t next_symbol;
    uint64_t frame_type; /* of the frames of the next stack: a constant that may be missing */
    const char *texts[RECORDING_TEXTS_MAX];
    size_t n_texts;
};

/* ---- numbers and strings --------------------------------------------------------------------- */

static inline void recording_raw(struct buf *out, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;) {
        buf_putc(out, (char)(value >> 8 * i));
    }
}

static inline void recording_number(const struct recording *r, struct buf *out, uint64_t value,
                                    size_t width)
{
    if (r->fixed) {
        recording_raw(out, value, width);
        return;
    }
    for (size_t i = 0; i < 8 && value >= 0x80; i++) {
        buf_putc(out, (char)(value | 0x80));
        value >>= 7;
    }
    buf_putc(out, (char)value);
}

static inline void recording_string(const struct recording *r, struct buf *out, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        buf_putc(out, text == NULL ? 0 : 1);
        return;
    }
    size_t n = strlen(text);
    buf_putc(out, (char)r->encoding);
    recording_number(r, out, n, 4);
    for (size_t i = 0; i < n; i++) {
        if (r->encoding == 4) {
            recording_number(r, out, (unsigned char)text[i], 2);
        } else {
            buf_putc(out, text[i]);
        }
    }
}

/* ---- the recording --------------------------------------------------------------------------- */

static inline struct buf *recording_pool(struct recording *r, unsigned class, uint64_t index)
{
    struct buf *b = &r->pools[class - CLASS_LONG];
    r->counts[class - CLASS_LONG]++;
    recording_number(r, b, index, 8);
    return b;
}

static inline void recording_state(struct recording *r, uint64_t id, const char *name)
{
    recording_string(r, recording_pool(r, CLASS_STATE, id), name);
}

static inline void recording_begin_chunk(struct recording *r)
{
    static const char zeros[JFR_HEAD_SIZE] = {0};
    r->chunk = r->out.len;
    r->checkpoint = 0;
    buf_append(&r->out, zeros, sizeof(zeros));
    recording_state(r, STATE_RUNNABLE_ID, "STATE_RUNNABLE");
    recording_state(r, STATE_SLEEPING_ID, "STATE_SLEEPING");
    recording_state(r, STATE_PARKED_ID, "STATE_PARKED");
}

/* Set fixed, raw_head, encoding and major before the first event; start a chunk again then. */
static inline void recording_init(struct recording *r, int64_t ticks_per_second)
{
    *r = (struct recording){.ticks_per_second = ticks_per_second,
                            .start_ns = INT64_C(1700000000000000000),
                            .duration_ns = INT64_C(10000000000),
                            .major = 2,
                            .encoding = 3,
                            .next_symbol = 1000};
    buf_init(&r->out, (size_t)64 * 1024 * 1024);
    for (size_t i = 0; i < 64; i++) {
        buf_init(&r->pools[i], (size_t)16 * 1024 * 1024);
    }
    recording_begin_chunk(r);
}

/* The same with other integers or strings. */
static inline void recording_init_as(struct recording *r, bool fixed, unsigned encoding)
{
    recording_init(r, 1000000000);
    buf_clear(&r->out);
    buf_clear(&r->pools[CLASS_STATE - CLASS_LONG]);
    r->counts[CLASS_STATE - CLASS_LONG] = 0;
    r->fixed = fixed;
    r->encoding = encoding;
    recording_begin_chunk(r);
}

static inline void recording_done(struct recording *r)
{
    buf_done(&r->out);
    for (size_t i = 0; i < 64; i++) {
        buf_done(&r->pools[i]);
    }
}
SCOPED_VALUE(recording, recording_done)

static inline struct sv recording_bytes(const struct recording *r)
{
    return (struct sv){r->out.data, r->out.len};
}

/* ---- constants ------------------------------------------------------------------------------- */

static inline uint64_t recording_symbol(struct recording *r, const char *text)
{
    uint64_t id = r->next_symbol++;
    recording_string(r, recording_pool(r, CLASS_SYMBOL, id), text);
    return id;
}

/* A method of a class of its own, which has the same number. */
static inline void recording_method(struct recording *r, uint64_t id, const char *class,
                                    const char *name)
{
    uint64_t class_name = recording_symbol(r, class);
    uint64_t method_name = recording_symbol(r, name);
    struct buf *b = recording_pool(r, CLASS_CLASS, id);
    recording_number(r, b, 1, 4);
    recording_number(r, b, class_name, 8);
    b = recording_pool(r, CLASS_METHOD, id);
    recording_number(r, b, id, 8);
    recording_number(r, b, method_name, 8);
    recording_number(r, b, 0, 8);
    recording_number(r, b, 1, 4);
    buf_putc(b, 0);
}

static inline void recording_frame_type(struct recording *r, uint64_t id, const char *description)
{
    recording_string(r, recording_pool(r, CLASS_FRAME_TYPE, id), description);
}

/* frames: method, line, ..., top frame first. */
static inline void recording_stack(struct recording *r, uint64_t id, bool truncated,
                                   const uint64_t *frames, size_t n)
{
    struct buf *b = recording_pool(r, CLASS_STACK_TRACE, id);
    buf_putc(b, truncated ? 1 : 0);
    recording_number(r, b, n, 4);
    for (size_t i = 0; i < n; i++) {
        recording_number(r, b, frames[2 * i], 8);
        recording_number(r, b, frames[2 * i + 1], 4);
        recording_number(r, b, 3, 4);
        recording_number(r, b, r->frame_type, 8);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Appends an event: its size, type and content. */
static inline void recording_put_event(struct recording *r, uint64_t type,
                                       const struct buf *content)
{
    SCOPED(buf) head = testing_buf(64);
    recording_number(r, &head, type, 8);
    size_t size = head.len + content->len + 4;
    if (r->fixed) {
        recording_raw(&r->out, size, 4);
    } else {
        /* Padded to four bytes, as the JVM does. */
        for (size_t i = 0; i < 3; i++) {
            buf_putc(&r->out, (char)(size >> 7 * i | 0x80));
        }
        buf_putc(&r->out, (char)(size >> 21));
    }
    buf_append(&r->out, head.data, head.len);
    buf_append(&r->out, content->data, content->len);
}

/* The number of a text for recording_event(). */
static inline uint64_t recording_text(struct recording *r, const char *text)
{
    assert_true(r->n_texts < RECORDING_TEXTS_MAX);
    r->texts[r->n_texts] = text;
    return r->n_texts++;
}

static inline const struct recording_class *recording_class_of(unsigned id)
{
    for (size_t i = 0; i < RECORDING_CLASSES; i++) {
        if (recording_classes[i].id == id) {
            return &recording_classes[i];
        }
    }
    fail_msg("no class %u", id);
    return NULL;
}

static inline void recording_value(struct recording *r, struct buf *out,
                                   const struct recording_field *f, uint64_t value)
{
    if (f->constant || f->class == CLASS_LONG) {
        recording_number(r, out, value, 8);
    } else if (f->class == CLASS_INT) {
        recording_number(r, out, value, 4);
    } else if (f->class == CLASS_STRING) {
        recording_string(r, out, r->texts[value]);
    } else if (f->class == CLASS_FLOAT) {
        recording_raw(out, value, 4);
    } else {
        buf_putc(out, (char)value);
    }
}

/* values: one for each field of the class. */
static inline void recording_event(struct recording *r, unsigned class, const uint64_t *values)
{
    const struct recording_class *c = recording_class_of(class);
    SCOPED(buf) b = testing_buf((size_t)1024 * 1024);
    for (size_t i = 0; i < RECORDING_FIELDS_MAX && c->fields[i].name != NULL; i++) {
        recording_value(r, &b, &c->fields[i], values[i]);
    }
    recording_put_event(r, class, &b);
}

#define EVENT(r, class, ...) recording_event((r), (class), (const uint64_t[]){__VA_ARGS__})

static inline void recording_setting(struct recording *r, uint64_t id, const char *name,
                                     const char *value)
{
    uint64_t n = recording_text(r, name);
    uint64_t v = recording_text(r, value);
    EVENT(r, CLASS_ACTIVE_SETTING, 1, id, n, v);
    r->n_texts -= 2;
}

/* ---- metadata, checkpoints, heads ------------------------------------------------------------ */

/* Strings of the metadata, collected while the elements are written. */
struct recording_strings {
    const char *at[256];
    size_t n;
};

static inline void recording_name(const struct recording *r, struct recording_strings *s,
                                  struct buf *out, const char *text)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->at[i], text) != 0) {
        i++;
    }
    if (i == s->n) {
        assert_true(s->n < 256);
        s->at[s->n++] = text;
    }
    recording_number(r, out, i, 4);
}

static inline const char *recording_decimal(unsigned n)
{
    static char texts[256][8];
    snprintf(texts[n], sizeof(texts[n]), "%u", n);
    return texts[n];
}

static inline void recording_put_field(const struct recording *r, struct recording_strings *s,
                                       struct buf *out, const struct recording_field *f)
{
    recording_name(r, s, out, "field");
    recording_number(r, out, 2 + (size_t)f->constant + (size_t)f->array, 4);
    recording_name(r, s, out, "name");
    recording_name(r, s, out, f->name);
    recording_name(r, s, out, "class");
    recording_name(r, s, out, recording_decimal(f->class));
    if (f->constant) {
        recording_name(r, s, out, "constantPool");
        recording_name(r, s, out, "true");
    }
    if (f->array) {
        recording_name(r, s, out, "dimension");
        recording_name(r, s, out, "1");
    }
    /* An annotation, which means nothing here. */
    recording_number(r, out, 1, 4);
    recording_name(r, s, out, "annotation");
    recording_number(r, out, 1, 4);
    recording_name(r, s, out, "class");
    recording_name(r, s, out, "20");
    recording_number(r, out, 0, 4);
}

static inline void recording_put_class(const struct recording *r, struct recording_strings *s,
                                       struct buf *out, const struct recording_class *c)
{
    size_t n = 0;
    while (n < RECORDING_FIELDS_MAX && c->fields[n].name != NULL) {
        n++;
    }
    recording_name(r, s, out, "class");
    recording_number(r, out, 2, 4);
    recording_name(r, s, out, "id");
    recording_name(r, s, out, recording_decimal(c->id));
    recording_name(r, s, out, "name");
    recording_name(r, s, out, c->name);
    recording_number(r, out, n, 4);
    for (size_t i = 0; i < n; i++) {
        recording_put_field(r, s, out, &c->fields[i]);
    }
}

/* Appends the metadata with these classes; returns where they stand in the chunk. */
static inline size_t recording_put_metadata(struct recording *r,
                                            const struct recording_class *classes, size_t n)
{
    struct recording_strings s = {.n = 0};
    size_t at = r->out.len - r->chunk;
    struct buf tree = testing_buf((size_t)1024 * 1024);
    struct buf b = testing_buf((size_t)1024 * 1024);
    recording_name(r, &s, &tree, "root");
    recording_number(r, &tree, 0, 4);
    recording_number(r, &tree, 2, 4);
    recording_name(r, &s, &tree, "metadata");
    recording_number(r, &tree, 0, 4);
    recording_number(r, &tree, n, 4);
    for (size_t i = 0; i < n; i++) {
        recording_put_class(r, &s, &tree, &classes[i]);
    }
    recording_name(r, &s, &tree, "region");
    recording_number(r, &tree, 0, 4);
    recording_number(r, &tree, 0, 4);
    recording_number(r, &b, 1, 8); /* start */
    recording_number(r, &b, 0, 8); /* duration */
    recording_number(r, &b, 1, 8); /* id */
    recording_number(r, &b, s.n, 4);
    for (size_t i = 0; i < s.n; i++) {
        recording_string(r, &b, s.at[i]);
    }
    buf_append(&b, tree.data, tree.len);
    recording_put_event(r, 0, &b);
    buf_done(&tree);
    buf_done(&b);
    return at;
}

static inline void recording_put_raw_head(struct recording *r, struct buf *out)
{
    recording_number(r, out, CLASS_CHUNK_HEADER, 8);
    recording_number(r, out, 1, 4);
    recording_number(r, out, 1, 8);
    if (!r->raw_head) {
        recording_number(r, out, JFR_HEAD_SIZE, 4);
    }
    buf_append(out, "FLR\0", 4);
    for (size_t i = 4; i < JFR_HEAD_SIZE; i++) {
        buf_putc(out, (char)0xff);
    }
}

/* Writes a checkpoint with the constants since the one before. */
static inline void recording_checkpoint(struct recording *r)
{
    size_t at = r->out.len - r->chunk;
    size_t n = 1;
    int64_t delta = r->checkpoint == 0 ? 0 : (int64_t)r->checkpoint - (int64_t)at;
    struct buf b = testing_buf((size_t)32 * 1024 * 1024);
    for (size_t i = 0; i < 64; i++) {
        n += r->counts[i] > 0;
    }
    recording_number(r, &b, 1, 8); /* start */
    recording_number(r, &b, 0, 8); /* duration */
    recording_number(r, &b, (uint64_t)delta, 8);
    buf_putc(&b, 1); /* mask */
    recording_number(r, &b, n, 4);
    recording_put_raw_head(r, &b);
    for (size_t i = 0; i < 64; i++) {
        if (r->counts[i] > 0) {
            recording_number(r, &b, i + CLASS_LONG, 8);
            recording_number(r, &b, r->counts[i], 4);
            buf_append(&b, r->pools[i].data, r->pools[i].len);
            buf_clear(&r->pools[i]);
            r->counts[i] = 0;
        }
    }
    recording_put_event(r, 1, &b);
    buf_done(&b);
    r->checkpoint = at;
}

static inline void recording_put_at(struct recording *r, size_t offset, uint64_t value,
                                    size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        r->out.data[r->chunk + offset + i] = (char)(value >> 8 * (bytes - 1 - i));
    }
}

static inline void recording_put_head(struct recording *r, size_t metadata)
{
    memcpy(r->out.data + r->chunk, "FLR", 4);
    recording_put_at(r, 4, r->major, 2);
    recording_put_at(r, 6, 0, 2);
    recording_put_at(r, 8, r->out.len - r->chunk, 8);
    recording_put_at(r, 16, r->checkpoint, 8);
    recording_put_at(r, 24, metadata, 8);
    recording_put_at(r, 32, (uint64_t)r->start_ns, 8);
    recording_put_at(r, 40, (uint64_t)r->duration_ns, 8);
    recording_put_at(r, 48, 1000, 8);
    recording_put_at(r, 56, (uint64_t)r->ticks_per_second, 8);
    recording_put_at(r, 64, 0, 1);
    recording_put_at(r, 67, r->fixed ? 0 : 1, 1);
}

/* Ends the chunk; the next one may begin. */
static inline void recording_end_chunk_with(struct recording *r,
                                            const struct recording_class *classes, size_t n)
{
    recording_checkpoint(r);
    recording_put_head(r, recording_put_metadata(r, classes, n));
}

static inline void recording_end_chunk(struct recording *r)
{
    recording_end_chunk_with(r, recording_classes, RECORDING_CLASSES);
}

/* ---- profiles as text ------------------------------------------------------------------------ */

struct folded {
    struct sv strings[1024];
    uint64_t functions[1024]; /* names by id */
    uint64_t locations[1024]; /* functions by id */
    uint64_t lines[1024];
    size_t n_strings;
};

static inline void folded_entry(struct folded *x, const struct wire_field *f)
{
    uint64_t n[8] = {0};
    if (f->number == PROFILE_STRING) {
        assert_true(x->n_strings < 1024);
        x->strings[x->n_strings++] = f->bytes;
    } else if (f->number == PROFILE_FUNCTION) {
        wire_read_numbers(f->bytes, n, 8);
        assert_true(n[FUNCTION_ID] < 1024);
        x->functions[n[FUNCTION_ID]] = n[FUNCTION_NAME];
    } else if (f->number == PROFILE_LOCATION) {
        struct wire_reader r = wire_reader_of(f->bytes);
        struct wire_field g;
        wire_read_numbers(f->bytes, n, 8);
        uint64_t id = n[LOCATION_ID];
        assert_true(id < 1024);
        while (wire_next(&r, &g)) {
            if (g.number == LOCATION_LINE) {
                wire_read_numbers(g.bytes, n, 8);
                x->locations[id] = n[LINE_FUNCTION_ID];
                x->lines[id] = n[LINE_LINE];
            }
        }
    }
}

static inline void folded_sample(const struct folded *x, struct sv sample, struct buf *line)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f;
    uint64_t v;
    bool first = true;
    while (wire_next(&r, &f)) {
        struct wire_numbers n = wire_numbers_of(&f);
        if (f.number == SAMPLE_LOCATION_ID) {
            while (wire_numbers_next(&n, &v)) {
                struct sv name = x->strings[x->functions[x->locations[v]]];
                buf_printf(line, "%s%.*s:%llu", first ? "" : ";", SV_ARG(name),
                           (unsigned long long)x->lines[v]);
                first = false;
            }
        } else if (f.number == SAMPLE_VALUE) {
            while (wire_numbers_next(&n, &v)) {
                buf_printf(line, " %lld", (long long)v);
            }
        } else if (f.number == SAMPLE_LABEL) {
            uint64_t l[4] = {0};
            wire_read_numbers(f.bytes, l, 4);
            buf_printf(line, " %.*s=%.*s", SV_ARG(x->strings[l[LABEL_KEY]]),
                       SV_ARG(x->strings[l[LABEL_STR]]));
        }
    }
    buf_putc(line, '\n');
}

/* Appends the samples of a plain profile, a line each, top frame first: frame:line;... values
 * label=value. */
static inline void folded_print(struct sv plain, struct buf *out)
{
    SCOPED_MEMORY struct folded *x = testing_memory(sizeof(*x));
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        folded_entry(x, &f);
    }
    assert_null(r.problem);
    r = wire_reader_of(plain);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            folded_sample(x, f.bytes, out);
        }
    }
}

/* Appends all profiles of a reader: "NAME TYPE:UNIT ... (PERIOD TYPE:UNIT PERIOD)", samples. */
static inline void folded_print_all(struct jfr_reader *r, struct buf *out)
{
    struct jfr_facts facts;
    jfr_reader_facts(r, &facts);
    for (size_t i = 0; i < facts.profiles; i++) {
        struct jfr_profile p;
        struct err err = ERR_INIT;
        SCOPED(buf) plain = testing_buf(JFR_PROFILE_MAX);
        jfr_reader_profile(r, i, &p);
        buf_printf(out, "%s", p.name);
        for (size_t k = 0; k < p.n_columns; k++) {
            buf_printf(out, " %s:%s", p.columns[k].type, p.columns[k].unit);
        }
        buf_printf(out, " (%s:%s %lld)\n", p.period_type.type, p.period_type.unit,
                   (long long)p.period);
        assert_true(jfr_reader_write(r, i, &plain, &err));
        folded_print((struct sv){plain.data, plain.len}, out);
    }
}

/* Reads a recording with these options; *ret_text (freed by the caller) are its profiles. False
 * with an error if it is damaged: then the text is that of what was good. */
static inline bool recording_read(struct sv plain, const struct jfr_options *options,
                                  struct jfr_facts *ret_facts, char **ret_text, struct err *err)
{
    struct jfr_reader *r = jfr_reader_new(options, err);
    assert_non_null(r);
    struct buf text = testing_buf((size_t)1024 * 1024);
    bool ok = jfr_reader_all(r, plain, err);
    folded_print_all(r, &text);
    if (ret_facts != NULL) {
        jfr_reader_facts(r, ret_facts);
        ret_facts->event = (struct sv){"", 0};
    }
    jfr_reader_free(r);
    *ret_text = buf_take(&text, NULL);
    assert_non_null(*ret_text);
    return ok;
}

/* Checks that a recording is good and has these profiles. */
static inline void recording_expect(const struct recording *r, const struct jfr_options *options,
                                    const char *want, const char *row)
{
    struct err err = ERR_INIT;
    char *text;
    bool ok = recording_read(recording_bytes(r), options, NULL, &text, &err);
    CHECK_STR(err.msg, "", row);
    CHECK_INT(ok, true, row);
    CHECK_STR(text, want, row);
    free(text);
}

#endif
