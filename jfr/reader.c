#include "jfr/reader.h"

#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "base/clock.h"

/* The most bytes of a name, which has two symbols. A symbol of the JVM has at most 65,535 bytes. */
#define NAME_MAX_BYTES ((size_t)1024 * 1024)
/* The most bytes of the setting "event", which becomes a label. */
#define EVENT_MAX_BYTES ((size_t)1024)

/* ---- heads ----------------------------------------------------------------------------------- */

/* The offsets of the members of a head. */
enum {
    HEAD_MAJOR = 4,
    HEAD_MINOR = 6,
    HEAD_SIZE = 8,
    HEAD_CHECKPOINT = 16,
    HEAD_METADATA = 24,
    HEAD_START = 32,
    HEAD_DURATION = 40,
    HEAD_TICKS_PER_SECOND = 56,
    HEAD_STATE = 64,
    HEAD_FLAGS = 67,
};
#define STATE_BEING_WRITTEN 0xff
#define FLAG_COMPRESSED 1

static uint64_t long_at(struct sv head, size_t at)
{
    uint64_t v;
    memcpy(&v, head.p + at, sizeof(v));
    return be64toh(v);
}

static unsigned byte_at(struct sv head, size_t at)
{
    return (unsigned char)head.p[at];
}

static bool check_head(const struct jfr_head *h, struct sv start, struct err *err)
{
    bool being_written = h->size == 0 || byte_at(start, HEAD_STATE) == STATE_BEING_WRITTEN;
    if (h->major == 0) {
        return err_set(err, ERR_INPUT,
                       "a chunk of version 0.%u, the format before JDK 9: expected 1.x or 2.x",
                       h->minor);
    }
    if (h->major > 2) {
        return err_set(err, ERR_INPUT, "a chunk of version %u.%u: expected 1.x or 2.x", h->major,
                       h->minor);
    }
    if (being_written) {
        return err_set(err, ERR_INPUT,
                       "a chunk that is still being written: dump the recording "
                       "again once it is complete");
    }
    if (h->size < JFR_HEAD_SIZE) {
        return err_set(err, ERR_INPUT, "a chunk of %llu bytes: expected at least %zu",
                       (unsigned long long)h->size, JFR_HEAD_SIZE);
    }
    if (h->size > JFR_CHUNK_MAX) {
        return err_set(err, h->size > INT64_MAX ? ERR_INPUT : ERR_LIMIT,
                       "a chunk of %llu bytes: expected at most %llu", (unsigned long long)h->size,
                       (unsigned long long)JFR_CHUNK_MAX);
    }
    return h->ticks_per_second > 0 ||
           err_set(err, ERR_INPUT, "a chunk with %lld ticks per second: expected at least 1",
                   (long long)h->ticks_per_second);
}

bool jfr_head_read(struct sv start, struct jfr_head *ret, struct err *err)
{
    static const char magic[] = "FLR";
    if (start.n < sizeof(magic) || memcmp(start.p, magic, sizeof(magic)) != 0) {
        return err_set(err, ERR_INPUT, "expected a chunk, which begins with FLR and a 0");
    }
    if (start.n < JFR_HEAD_SIZE) {
        return err_set(err, ERR_INPUT, "a head of %zu bytes: expected %zu", start.n, JFR_HEAD_SIZE);
    }
    *ret = (struct jfr_head){
        .major = byte_at(start, HEAD_MAJOR) << 8 | byte_at(start, HEAD_MAJOR + 1),
        .minor = byte_at(start, HEAD_MINOR) << 8 | byte_at(start, HEAD_MINOR + 1),
        .size = long_at(start, HEAD_SIZE),
        .checkpoint = long_at(start, HEAD_CHECKPOINT),
        .metadata = long_at(start, HEAD_METADATA),
        .start_ns = clock_ns_or_0(long_at(start, HEAD_START)),
        .duration_ns = clock_ns_or_0(long_at(start, HEAD_DURATION)),
        .ticks_per_second = (int64_t)long_at(start, HEAD_TICKS_PER_SECOND),
        .fixed = (byte_at(start, HEAD_FLAGS) & FLAG_COMPRESSED) == 0,
    };
    return check_head(ret, start, err);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

struct jfr_reader *jfr_reader_new(const struct jfr_options *options, struct err *err)
{
    struct jfr_reader *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    r->options = *options;
    r->budget.max = options->memory_max != 0 ? options->memory_max : JFR_MEMORY_MAX;
    jfr_metadata_init(&r->metadata, options->seed, &r->budget);
    jfr_pools_init(&r->pools, options->seed, &r->budget);
    jfr_samples_init(&r->samples, options->seed, &r->budget);
    merge_table_init(&r->types, options->seed);
    buf_init(&r->event, EVENT_MAX_BYTES);
    buf_init(&r->symbol, NAME_MAX_BYTES);
    buf_init(&r->name, 2 * NAME_MAX_BYTES);
    static const struct jfr_correlation none = {.context = 0};
    uint32_t first;
    bool ok = jfr_contexts_read(&r->contexts, options->labels, &r->budget, err) &&
              merge_table_add(&r->samples.correlations, &r->budget, &none, sizeof(none),
                              sizeof(none), &first, err);
    return ok ? r : jfr_reader_free(r);
}

struct jfr_reader *jfr_reader_free(struct jfr_reader *r)
{
    if (r != NULL) {
        jfr_contexts_done(&r->contexts);
        jfr_metadata_done(&r->metadata);
        jfr_pools_done(&r->pools);
        jfr_samples_done(&r->samples);
        merge_table_done(&r->types);
        buf_done(&r->event);
        buf_done(&r->symbol);
        buf_done(&r->name);
        free(r->frames);
        free(r->counted);
        free(r);
    }
    return NULL;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Adds the counts of the types of this chunk to the counts of the recording. */
static bool count_types(struct jfr_reader *r, struct err *err)
{
    for (size_t i = 0; i < r->metadata.n_classes; i++) {
        const struct jfr_class *class = &r->metadata.classes[i];
        size_t known = r->types.n;
        uint32_t at;
        if (class->events == 0) {
            continue;
        }
        buf_clear(&r->name);
        jfr_class_name(&r->metadata, class, &r->name);
        if (!buf_ok(&r->name)) {
            return buf_too_big(&r->name) || err_memory(err);
        }
        struct jfr_counted *grown =
            budget_grow(&r->budget, r->counted, &r->counted_cap, known + 1, sizeof(*grown), err);
        r->counted = grown != NULL ? grown : r->counted;
        if (grown == NULL || !merge_table_add(&r->types, &r->budget, r->name.data, r->name.len,
                                              r->name.len, &at, err)) {
            return false;
        }
        if (at == known) {
            grown[at] = (struct jfr_counted){.events = 0};
        }
        grown[at].events += class->events;
        grown[at].bytes += class->bytes;
    }
    return true;
}

/* Multiplies the samples of this chunk with their periods. */
static void settle(struct jfr_reader *r)
{
    int64_t execution = r->periods[JFR_CLOCK_EXECUTION];
    execution = execution > 0 ? execution : JFR_PERIOD_DEFAULT_NS;
    int64_t wall = r->periods[JFR_CLOCK_WALL] > 0 ? r->periods[JFR_CLOCK_WALL] : execution;
    if (r->options.sample_rate > 0) {
        execution = wall = INT64_C(1000000000) / r->options.sample_rate;
    }
    const int64_t periods[JFR_CLOCKS] = {
        [JFR_CLOCK_EXECUTION] = execution, [JFR_CLOCK_WALL] = wall};
    jfr_samples_settle(&r->samples, periods);
}

static void add_time(struct jfr_reader *r)
{
    const struct jfr_head *h = &r->head;
    int64_t end;
    if (r->facts.start_ns == 0 || (h->start_ns > 0 && h->start_ns < r->facts.start_ns)) {
        r->facts.start_ns = h->start_ns;
    }
    if (!__builtin_add_overflow(h->start_ns, h->duration_ns, &end) && end > r->facts.end_ns) {
        r->facts.end_ns = end;
    }
}

static bool check_offset(uint64_t offset, const char *what, const struct jfr_head *h,
                         struct err *err)
{
    return (offset >= JFR_HEAD_SIZE && offset < h->size) ||
           err_set(err, ERR_INPUT,
                   "offset %lld of the %s: expected one within the chunk's %llu bytes",
                   (long long)offset, what, (unsigned long long)h->size);
}

static bool read_chunk(struct jfr_reader *r, struct sv chunk, struct err *err)
{
    const struct jfr_head *h = &r->head;
    if (!jfr_head_read(chunk, &r->head, err)) {
        return false;
    }
    if (h->size != chunk.n) {
        return err_set(err, ERR_INPUT, "a chunk of %llu bytes: got only %zu of them",
                       (unsigned long long)h->size, chunk.n);
    }
    if (!check_offset(h->metadata, "metadata", h, err) ||
        !check_offset(h->checkpoint, "last checkpoint", h, err) ||
        !jfr_metadata_read(&r->metadata, chunk, h->fixed, h->metadata, err) ||
        !jfr_pools_read(&r->pools, &r->metadata, h->checkpoint, err) ||
        !jfr_events_prepare(r, err)) {
        return false;
    }
    add_time(r);
    bool ok = jfr_events_read(r, chunk, err);
    settle(r);
    return (!r->options.count_types || count_types(r, err)) && ok;
}

bool jfr_reader_chunk(struct jfr_reader *r, struct sv chunk, struct err *err)
{
    r->chunks_begun++;
    bool ok = read_chunk(r, chunk, err);
    r->facts.chunks += ok;
    if (!ok) {
        err_wrap(err, "chunk %zu at byte %llu", r->chunks_begun, (unsigned long long)r->offset);
    }
    r->offset += chunk.n;
    return ok;
}

bool jfr_reader_all(struct jfr_reader *r, struct sv plain, struct err *err)
{
    struct jfr_head head = {.size = 0};
    do {
        size_t size = plain.n;
        if (jfr_head_read(plain, &head, NULL) && head.size < plain.n) {
            size = (size_t)head.size;
        }
        if (!jfr_reader_chunk(r, (struct sv){plain.p, size}, err)) {
            return false;
        }
        plain = sv_skip(plain, size);
    } while (plain.n > 0);
    return true;
}

/* ---- results --------------------------------------------------------------------------------- */

void jfr_reader_facts(const struct jfr_reader *r, struct jfr_facts *ret)
{
    *ret = r->facts;
    for (size_t i = 0; i < JFR_PROFILES_MAX; i++) {
        ret->profiles += r->samples.of_row[i] > 0;
    }
    ret->event = (struct sv){r->event.data, buf_ok(&r->event) ? r->event.len : 0};
    ret->memory = r->budget.used;
}

bool jfr_reader_type(const struct jfr_reader *r, size_t i, struct jfr_type *ret)
{
    if (i >= r->types.n) {
        return false;
    }
    ret->name.p = merge_table_get(&r->types, (uint32_t)i, &ret->name.n);
    ret->events = r->counted[i].events;
    ret->bytes = r->counted[i].bytes;
    return true;
}

/* Returns the row of the i-th profile that has samples. */
static enum jfr_row row_of(const struct jfr_reader *r, size_t i)
{
    size_t row = 0;
    for (; row + 1 < JFR_PROFILES_MAX; row++) {
        if (r->samples.of_row[row] > 0 && i-- == 0) {
            break;
        }
    }
    return (enum jfr_row)row;
}

void jfr_reader_profile(const struct jfr_reader *r, size_t i, struct jfr_profile *ret)
{
    jfr_samples_profile(&r->samples, row_of(r, i), ret);
}

bool jfr_reader_write(struct jfr_reader *r, size_t i, struct buf *out, struct err *err)
{
    return jfr_samples_write(
        &r->samples, row_of(r, i), &r->contexts, r->facts.start_ns,
        r->facts.end_ns > r->facts.start_ns ? r->facts.end_ns - r->facts.start_ns : 0, out, err);
}
