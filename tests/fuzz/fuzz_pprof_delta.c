/* Two profiles, one after the other, and the second one once more.
 *
 * The first byte says which: even, then two profiles as bytes (two bytes for the length of the
 * first); odd, then the bytes describe a small world of stacks from which both are written, and a
 * model of a few lines knows the right result. Whatever the input, a delta has no negative
 * counter and passes the checker, its counters add up to the growth of the newer profile, its
 * gauges are those of the newer one, and the delta of the same profile again is zero. */
#include <string.h>

#include "pprof/delta.h"
#include "pprof/gzip.h"
#include "pprof/index.h"
#include "pprof/wire.h"
#include "tests/fuzz/fuzz.h"

#define TYPES_MAX DELTA_TYPES_MAX

/* ---- what a profile adds up to --------------------------------------------------------------- */

struct sums {
    struct pprof_summary summary;
    uint64_t total[TYPES_MAX]; /* modulo 2^64 */
    bool negative[TYPES_MAX];
    bool zero_sample;
};

static void add_sample(struct sv message, struct sums *s)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t i = 0;
    bool zero = true;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
            s->total[i] += v;
            s->negative[i] = s->negative[i] || (int64_t)v < 0;
            zero = zero && v == 0;
            i++;
        }
    }
    s->zero_sample = s->zero_sample || zero;
}

static struct sums sum_up(struct sv plain)
{
    struct sums s = {.zero_sample = false};
    struct err err = ERR_INIT;
    struct wire_field f = {.number = 0};
    REQUIRE(pprof_check(plain, &s.summary, &err));
    REQUIRE(s.summary.n[PROFILE_SAMPLE_TYPE] <= TYPES_MAX);
    struct wire_reader r = wire_reader_of(plain);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            add_sample(f.bytes, &s);
        }
    }
    return s;
}

/* The output, plain; empty if no sample was left. */
static struct sv inflate_output(struct scratch *s, const struct delta_output *out)
{
    struct sv plain = {.p = "", .n = 0};
    struct err err = ERR_INIT;
    if (out->data != NULL) {
        struct sv zipped = {out->data, out->size};
        REQUIRE(gzip_inflate(s, zipped, (size_t)1 << 26, 0, &plain, &err));
    }
    return plain;
}

/* ---- any two profiles ------------------------------------------------------------------------ */

/* Each column must be as in the newer profile, or the growth, or zero. again: of a profile after
 * itself, so growth is zero. */
static void check_output(const struct delta_output *out, enum delta_result result, struct sv before,
                         struct sv after)
{
    struct sums now = sum_up(after);
    struct sums got = {.zero_sample = false};
    struct scratch *s = scratch_new();
    REQUIRE(s != NULL);
    struct sv plain = inflate_output(s, out);
    if (plain.n > 0) {
        struct err err = ERR_INIT;
        struct pprof_index x;
        got = sum_up(plain);
        REQUIRE(pprof_index(&x, s, plain, &got.summary, 1, &err));
        REQUIRE(got.summary.n[PROFILE_SAMPLE_TYPE] == now.summary.n[PROFILE_SAMPLE_TYPE] &&
                !got.zero_sample);
        REQUIRE(got.summary.n[PROFILE_SAMPLE] == out->samples_out &&
                got.summary.n[PROFILE_SAMPLE] <= now.summary.n[PROFILE_SAMPLE]);
        REQUIRE(got.summary.time_ns == now.summary.time_ns);
    }
    struct sums old = {.zero_sample = false};
    if (before.n > 0) {
        old = sum_up(before);
    }
    for (size_t i = 0; i < now.summary.n[PROFILE_SAMPLE_TYPE]; i++) {
        bool gauge = got.total[i] == now.total[i];
        bool unknown = result != DELTA_MADE && got.total[i] == 0;
        /* Stacks that are missing now count in old only. */
        bool growth = result == DELTA_MADE && !got.negative[i] &&
                      (int64_t)(got.total[i] - (now.total[i] - old.total[i])) >= 0;
        REQUIRE(gauge || unknown || growth);
    }
    scratch_free(s);
}

/* A delta reads the samples on its own; it must find good what pprof_check() does, and know what is
 * wrong with the others. */
static void check_verdict(struct sv body, enum delta_result r, const struct err *delta_err)
{
    struct pprof_summary summary;
    struct err err = ERR_INIT;
    bool good = pprof_check(body, &summary, &err);
    REQUIRE(good || r == DELTA_BAD_PPROF || r == DELTA_TOO_LARGE);
    REQUIRE(strstr(delta_err->msg, "cannot be read") == NULL);
}

static enum delta_result step(struct sv body, struct sv before, bool any_counter,
                              const struct delta_state *baseline, struct delta_output *out)
{
    struct err err = ERR_INIT;
    struct delta_input in = {
        .body = body, .baseline = baseline, .any_counter = any_counter, .seed = 3};
    in.scratch = scratch_new();
    enum delta_result r = delta_make(&in, out, &err);
    scratch_free(in.scratch);
    REQUIRE((err.msg[0] != '\0') == (r > DELTA_PASSED));
    REQUIRE((out->next != NULL) == (r < DELTA_PASSED));
    if (!gzip_is(body)) {
        check_verdict(body, r, &err);
    }
    if (r < DELTA_PASSED && !gzip_is(body)) {
        check_output(out, r, before, body);
    }
    return r;
}

/* The profile after itself: the counters have nothing to add. */
static void check_again(struct sv body, bool any_counter, const struct delta_state *baseline)
{
    struct delta_output out;
    struct err err = ERR_INIT;
    struct delta_input in = {
        .body = body, .baseline = baseline, .any_counter = any_counter, .seed = 3};
    in.scratch = scratch_new();
    REQUIRE(delta_make(&in, &out, &err) == DELTA_MADE);
    scratch_reset(in.scratch);
    REQUIRE(out.next->n <= baseline->n); /* missing stacks are forgotten some day */
    struct delta_output third;
    in.baseline = out.next;
    REQUIRE(delta_make(&in, &third, &err) == DELTA_MADE);
    scratch_reset(in.scratch);
    /* Equal profiles may be compressed differently. */
    REQUIRE(sv_eq(inflate_output(in.scratch, &third), inflate_output(in.scratch, &out)));
    scratch_free(in.scratch);
    delta_output_done(&third);
    delta_output_done(&out);
}

static void any_two(const uint8_t *data, size_t size)
{
    const struct sv none = {.p = "", .n = 0};
    if (size < 2) {
        return;
    }
    size_t n = ((size_t)data[0] << 8 | data[1]) % (size - 1);
    struct sv before = {.p = (const char *)data + 2, .n = n};
    struct sv after = {.p = (const char *)data + 2 + n, .n = size - 2 - n};
    bool any = size % 2 == 0;
    struct delta_output first;
    struct delta_output second;
    enum delta_result r = step(before, none, any, NULL, &first);
    struct sv known = r < DELTA_PASSED && !gzip_is(before) ? before : none;
    if (known.n > 0 || r >= DELTA_PASSED) {
        r = step(after, known, any, first.next, &second);
        if (r < DELTA_PASSED) {
            check_again(after, any, second.next);
        }
        delta_output_done(&second);
    }
    delta_output_done(&first);
}

/* ---- a world of stacks ----------------------------------------------------------------------- */

#define STACKS_MAX 24
#define COLUMNS 4

/* alloc_objects/count and so on, in the order that Go writes them. */
static const char *const STRINGS[] = {"",      "alloc_objects", "count",       "alloc_space",
                                      "bytes", "inuse_objects", "inuse_space", "k",
                                      "f",     "/bin/p"};
static const bool COUNTS[COLUMNS] = {true, true, false, false};

struct stack {
    bool there[2];
    bool split; /* two samples in the second profile */
    uint8_t frames;
    uint64_t values[2][COLUMNS];
};

struct world {
    struct stack stacks[STACKS_MAX];
    size_t n;
    uint8_t how[2]; /* to write them: ids, packed, order, addresses */
};

struct source {
    const uint8_t *p;
    size_t n;
};

static uint8_t next_byte(struct source *s)
{
    if (s->n == 0) {
        return 0;
    }
    s->n--;
    return *s->p++;
}

/* Small numbers for the most part, and some of any size up to 2^48. */
static uint64_t next_value(struct source *s)
{
    uint8_t b = next_byte(s);
    return b < 224 ? b : (uint64_t)next_byte(s) << (b % 41);
}

static void read_world(struct source *s, struct world *w)
{
    w->how[0] = next_byte(s);
    w->how[1] = next_byte(s);
    while (s->n > 0 && w->n < STACKS_MAX) {
        struct stack *k = &w->stacks[w->n++];
        uint8_t flags = next_byte(s);
        k->there[0] = (flags & 1) != 0;
        k->there[1] = (flags & 2) != 0;
        k->split = (flags & 4) != 0;
        k->frames = (uint8_t)(flags >> 4);
        for (size_t j = 0; j < COLUMNS; j++) {
            k->values[0][j] = next_value(s);
            k->values[1][j] = (flags & 8) != 0 ? next_value(s) /* may have fallen */
                                               : k->values[0][j] + next_value(s);
        }
    }
}

static void put_varint(struct buf *b, uint64_t v)
{
    while (v >= 0x80) {
        buf_putc(b, (char)(v | 0x80));
        v >>= 7;
    }
    buf_putc(b, (char)v);
}

static void put_num(struct buf *b, unsigned field, uint64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, v);
}

static void put_sub(struct buf *b, unsigned field, struct buf *inner)
{
    put_varint(b, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(b, inner->len);
    buf_append(b, inner->data, inner->len);
    buf_clear(inner);
}

static void put_nums(struct buf *b, unsigned field, const uint64_t *v, size_t n, bool packed)
{
    struct buf inner;
    buf_init(&inner, 1000);
    for (size_t i = 0; i < n; i++) {
        if (packed) {
            put_varint(&inner, v[i]);
        } else {
            put_num(b, field, v[i]);
        }
    }
    if (packed) {
        put_sub(b, field, &inner);
    }
    buf_done(&inner);
}

static uint64_t id_of(uint8_t how, uint64_t i)
{
    return (how & 1) != 0 ? 1000 - 7 * i : i + 1;
}

/* A sample of stack i: one to three frames, and a label with its number. */
static void put_stack(struct buf *b, uint8_t how, const struct stack *k, size_t i,
                      const uint64_t *values)
{
    struct buf m;
    struct buf label;
    uint64_t ids[3];
    size_t n = 1 + k->frames % 3;
    buf_init(&m, 1000);
    buf_init(&label, 100);
    for (size_t j = 0; j < n; j++) {
        ids[j] = id_of(how, (k->frames + j) % 4);
    }
    put_nums(&m, SAMPLE_LOCATION_ID, ids, n, (how & 2) != 0);
    put_nums(&m, SAMPLE_VALUE, values, COLUMNS, (how & 4) != 0);
    put_num(&label, LABEL_KEY, 7);
    put_num(&label, LABEL_NUM, i + 1);
    put_sub(&m, SAMPLE_LABEL, &label);
    put_sub(b, PROFILE_SAMPLE, &m);
    buf_done(&m);
    buf_done(&label);
}

static void put_samples(struct buf *b, const struct world *w, size_t which)
{
    for (size_t at = 0; at < w->n; at++) {
        size_t i = (w->how[which] & 8) != 0 ? w->n - 1 - at : at;
        const struct stack *k = &w->stacks[i];
        uint64_t part[COLUMNS];
        uint64_t rest[COLUMNS];
        for (size_t j = 0; j < COLUMNS; j++) {
            part[j] = k->split ? k->values[which][j] / 3 : 0;
            rest[j] = k->values[which][j] - part[j];
        }
        if (k->there[which]) {
            put_stack(b, w->how[which], k, i, rest);
        }
        if (k->there[which] && k->split) {
            put_stack(b, w->how[which], k, i, part);
        }
    }
}

static void put_frames(struct buf *b, uint8_t how, bool addresses)
{
    struct buf m;
    struct buf line;
    buf_init(&m, 1000);
    buf_init(&line, 100);
    put_num(&m, MAPPING_ID, 5);
    put_num(&m, MAPPING_START, 4096);
    put_num(&m, MAPPING_LIMIT, 8192);
    put_num(&m, MAPPING_FILENAME, 9);
    put_sub(b, PROFILE_MAPPING, &m);
    for (uint64_t i = 0; i < 4; i++) {
        put_num(&m, LOCATION_ID, id_of(how, i));
        put_num(&m, LOCATION_MAPPING_ID, 5);
        put_num(&m, LOCATION_ADDRESS, addresses ? 4097 + i : 0);
        put_num(&line, LINE_FUNCTION_ID, id_of(how, i));
        put_num(&line, LINE_LINE, i);
        put_sub(&m, LOCATION_LINE, &line);
        put_sub(b, PROFILE_LOCATION, &m);
        put_num(&m, FUNCTION_ID, id_of(how, i));
        put_num(&m, FUNCTION_NAME, 8);
        put_sub(b, PROFILE_FUNCTION, &m);
    }
    buf_done(&m);
    buf_done(&line);
}

static void put_strings(struct buf *b)
{
    struct buf m;
    buf_init(&m, 100);
    for (size_t i = 0; i < sizeof(STRINGS) / sizeof(STRINGS[0]); i++) {
        buf_puts(&m, STRINGS[i]);
        put_sub(b, PROFILE_STRING, &m);
    }
    buf_done(&m);
}

static void write_profile(const struct world *w, size_t which, struct buf *b)
{
    static const uint64_t types[COLUMNS][2] = {{1, 2}, {3, 4}, {5, 2}, {6, 4}};
    struct buf m;
    buf_init(b, 100000);
    buf_init(&m, 100);
    if ((w->how[which] & 16) != 0) {
        put_strings(b);
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        put_num(&m, VALUE_TYPE_TYPE, types[i][0]);
        put_num(&m, VALUE_TYPE_UNIT, types[i][1]);
        put_sub(b, PROFILE_SAMPLE_TYPE, &m);
    }
    put_samples(b, w, which);
    put_frames(b, w->how[which], (w->how[0] & 32) != 0);
    if ((w->how[which] & 16) == 0) {
        put_strings(b);
    }
    put_num(b, PROFILE_TIME_NANOS, 1000 + which * 50);
    buf_done(&m);
    REQUIRE(buf_ok(b));
}

/* Is it another process? Something fell, as a whole or on a stack, or most of it has gone. */
static bool restarted(const struct world *w)
{
    for (size_t j = 0; j < COLUMNS; j++) {
        uint64_t total[2] = {0, 0};
        uint64_t gone = 0;
        for (size_t i = 0; i < w->n && COUNTS[j]; i++) {
            const struct stack *k = &w->stacks[i];
            bool counted = k->values[0][0] != 0 || k->values[0][1] != 0;
            total[0] += k->there[0] ? k->values[0][j] : 0;
            total[1] += k->there[1] ? k->values[1][j] : 0;
            gone += k->there[0] && !k->there[1] ? k->values[0][j] : 0;
            if (k->there[0] && k->there[1] && counted && k->values[1][j] < k->values[0][j]) {
                return true;
            }
        }
        if (total[1] < total[0] || gone > total[0] / 2) {
            return true;
        }
    }
    return false;
}

struct got {
    bool there[STACKS_MAX];
    uint64_t values[STACKS_MAX][COLUMNS];
};

static void read_output_sample(struct sv message, struct got *g)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    struct wire_field l = {.number = 0};
    uint64_t values[COLUMNS] = {0};
    uint64_t stack = 0;
    size_t n = 0;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        while (f.number == SAMPLE_VALUE && n < COLUMNS && wire_numbers_next(&numbers, &values[n])) {
            n++;
        }
        struct wire_reader label = wire_reader_of(f.bytes);
        while (f.number == SAMPLE_LABEL && wire_next(&label, &l)) {
            stack = l.number == LABEL_NUM ? l.value : stack;
        }
    }
    REQUIRE(n == COLUMNS && stack >= 1 && stack <= STACKS_MAX && !g->there[stack - 1]);
    g->there[stack - 1] = true;
    memcpy(g->values[stack - 1], values, sizeof(values));
}

static void check_world(const struct world *w, const struct delta_output *out, bool known)
{
    struct got g = {.there = {false}};
    struct wire_field f = {.number = 0};
    struct scratch *s = scratch_new();
    REQUIRE(s != NULL);
    struct wire_reader r = wire_reader_of(inflate_output(s, out));
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            read_output_sample(f.bytes, &g);
        }
        REQUIRE(f.number != PROFILE_DURATION_NANOS || (known && f.value == 50));
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct stack *k = &w->stacks[i];
        bool zero = true;
        for (size_t j = 0; j < COLUMNS; j++) {
            uint64_t want = k->there[1] ? k->values[1][j] : 0;
            want -= COUNTS[j] && known && k->there[0] && k->there[1] ? k->values[0][j] : 0;
            want = COUNTS[j] && !known ? 0 : want;
            REQUIRE(g.values[i][j] == want);
            zero = zero && want == 0;
        }
        REQUIRE(g.there[i] == !zero);
    }
    scratch_free(s);
}

static void known_world(struct source *source)
{
    struct world w = {.n = 0};
    struct buf plain[2];
    struct delta_output out[2];
    read_world(source, &w);
    write_profile(&w, 0, &plain[0]);
    write_profile(&w, 1, &plain[1]);
    struct sv before = {plain[0].data, plain[0].len};
    struct sv after = {plain[1].data, plain[1].len};
    const struct sv none = {.p = "", .n = 0};
    REQUIRE(step(before, none, false, NULL, &out[0]) == DELTA_FIRST);
    enum delta_result r = step(after, before, false, out[0].next, &out[1]);
    REQUIRE(r == (restarted(&w) ? DELTA_REBASED : DELTA_MADE));
    check_world(&w, &out[1], r == DELTA_MADE);
    check_again(after, false, out[1].next);
    for (size_t i = 0; i < 2; i++) {
        delta_output_done(&out[i]);
        buf_done(&plain[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.p = data, .n = size};
    if ((next_byte(&source) & 1) != 0) {
        known_world(&source);
    } else {
        any_two(source.p, source.n);
    }
    return 0;
}
