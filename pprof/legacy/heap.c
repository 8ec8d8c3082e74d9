/* The heap profiles of gperftools and of jemalloc: lines of text.
 *
 *     heap profile: 3: 300 [9: 900] @ heap_v2/524288     the sum, and how it was sampled
 *       1: 100 [2: 200] @ 0x401000 0x402000              in use [allocated] @ stack
 *
 *     heap_v2/524288                                     jemalloc
 *       t*: 3: 300 [9: 900]                              the sum
 *     @ 0x401000 0x402000
 *       t*: 1: 100 [2: 200]                              of this stack: all threads
 *       t0: 1: 100 [2: 200]                              and each of them
 *
 * Then a line MAPPED_LIBRARIES: and the text of /proc/self/maps. */
#include <math.h>
#include <string.h>

#include "pprof/legacy/profile.h"
#include "pprof/legacy/text.h"

/* The most bytes of the header line. */
#define HEADER_MAX 256
/* The largest number. It is more than any program has, and far from an overflow. */
#define NUMBER_LARGEST ((uint64_t)1 << 53)

/* The columns of a line in their order, and of the result. */
enum { IN_USE_OBJECTS, IN_USE_BYTES, ALLOC_OBJECTS, ALLOC_BYTES, NUMBERS };

static const struct legacy_kind with_alloc = {
    .n_columns = 4,
    .columns = {{"alloc_objects", "count"},
                {"alloc_space", "bytes"},
                {"inuse_objects", "count"},
                {"inuse_space", "bytes"}},
    .period = {"space", "bytes"},
};
static const struct legacy_kind in_use_only = {
    .n_columns = 2,
    .columns = {{"inuse_objects", "count"}, {"inuse_space", "bytes"}},
    .period = {"space", "bytes"},
};
/* The kind of a "growth" profile: growth of the address space, not a heap. */
static const struct legacy_kind growth = {
    .n_columns = 2,
    .columns = {{"objects", "count"}, {"space", "bytes"}},
    .period = {"space", "bytes"},
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool take_spaces(struct sv *in)
{
    return text_take_any(in, " \t\r");
}

static bool take_number(struct sv *in, int64_t *ret)
{
    uint64_t value = 0;
    take_spaces(in);
    bool ok = parse_u64(text_take_digits(in), NUMBER_LARGEST, &value);
    *ret = (int64_t)value;
    return ok;
}

/* "1: 100 [2: 200]" */
static bool take_numbers(struct sv *in, int64_t ret[NUMBERS])
{
    bool ok = take_number(in, &ret[IN_USE_OBJECTS]) && text_take(in, SV(":")) &&
              take_number(in, &ret[IN_USE_BYTES]);
    take_spaces(in);
    ok = ok && text_take(in, SV("[")) && take_number(in, &ret[ALLOC_OBJECTS]) &&
         text_take(in, SV(":")) && take_number(in, &ret[ALLOC_BYTES]);
    take_spaces(in);
    ok = ok && text_take(in, SV("]"));
    take_spaces(in);
    return ok;
}

/* "t*: 1: 100 [2: 200]" */
static bool take_sum_of_threads(struct sv in, int64_t ret[NUMBERS])
{
    in = sv_trim(in);
    return text_take(&in, SV("t*:")) && take_numbers(&in, ret);
}

/* "0x401000" */
static bool take_address(struct sv *in, uint64_t *ret)
{
    bool ok = text_take(in, SV("0x")) && text_take_hex(in, false, ret);
    take_spaces(in);
    return ok;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct lines {
    struct sv rest;
    struct sv line;
    size_t number;
    bool cut; /* the last line has no end */
};

static bool next_line(struct lines *l)
{
    const char *end = l->rest.p + l->rest.n;
    if (!text_take_line(&l->rest, &l->line)) {
        return false;
    }
    l->cut = l->line.p + l->line.n == end;
    l->number++;
    return true;
}

static bool bad_line(const struct lines *l, const char *what, struct err *err)
{
    return err_set(err, ERR_INPUT, "line %zu: %s", l->number, l->cut ? "the end is missing" : what);
}

static bool is_maps_title(struct sv line)
{
    line = sv_trim(line);
    return sv_eq_str(line, "MAPPED_LIBRARIES:") || sv_eq_str(line, "--- Memory map: ---");
}

/* ---- the header ------------------------------------------------------------------------------ */

struct header {
    bool jemalloc;
    bool growth;
    int64_t rate; /* bytes between two samples; at most 1 if everything is counted */
    int64_t sums[NUMBERS];
};

/* Reads the method of a header: "heapprofile", "heap_v2/524288", "growthz". Go's own text
 * (heap/1048576) is refused, because it has names of functions, which only Go's protobuf keeps. */
static bool read_method(struct sv in, struct header *h)
{
    if (text_take(&in, SV("heap_v2/")) || text_take(&in, SV("heapz_v2/"))) {
        return take_number(&in, &h->rate) && h->rate >= 0 && in.n == 0;
    }
    h->rate = 1;
    h->growth = sv_starts_with(in, SV("growth")) || sv_starts_with(in, SV("fragmentation"));
    return h->growth || sv_eq_str(in, "heapprofile");
}

static bool read_header(struct sv line, struct header *h)
{
    *h = (struct header){.jemalloc = sv_starts_with(line, SV("heap_v2/"))};
    line = sv_trim(line);
    if (h->jemalloc) {
        return read_method(line, h);
    }
    if (!text_take(&line, SV("heap profile:")) || !take_numbers(&line, h->sums) ||
        !text_take(&line, SV("@"))) {
        return false;
    }
    take_spaces(&line);
    return read_method(line, h);
}

bool legacy_is_heap(struct sv start)
{
    struct lines l = {.rest = {start.p, start.n < HEADER_MAX ? start.n : HEADER_MAX}};
    struct header h;
    return start.n > 0 && next_line(&l) && !l.cut && read_header(l.line, &h);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Corrects a sample for the sampling rate. Small blocks are rarely sampled, so each sampled one
 * counts for many more. */
static bool correct(int64_t *count, int64_t *bytes, int64_t rate)
{
    if (*count == 0) {
        return *bytes == 0;
    }
    if (rate <= 1 || *bytes == 0) {
        *count = rate > 1 ? 0 : *count;
        return true;
    }
    double scale = 1 / (1 - exp(-((double)*bytes / (double)*count) / (double)rate));
    double more = (double)*count * scale;
    double larger = (double)*bytes * scale;
    bool ok = fabs(more) < (double)INT64_MAX / 2 && fabs(larger) < (double)INT64_MAX / 2;
    *count = ok ? (int64_t)more : 0;
    *bytes = ok ? (int64_t)larger : 0;
    return ok;
}

static bool set_values(struct legacy_sample *s, int64_t n[NUMBERS], const struct legacy_profile *p)
{
    bool ok = correct(&n[IN_USE_OBJECTS], &n[IN_USE_BYTES], p->period);
    size_t at = 0;
    if (p->kind == &with_alloc) {
        ok = correct(&n[ALLOC_OBJECTS], &n[ALLOC_BYTES], p->period) && ok;
        s->values[at++] = n[ALLOC_OBJECTS];
        s->values[at++] = n[ALLOC_BYTES];
    }
    s->values[at++] = n[IN_USE_OBJECTS];
    s->values[at] = n[IN_USE_BYTES];
    return ok;
}

/* Reads the addresses of a stack. All of them are return addresses; one less is within the call. */
static bool read_stack(struct legacy_profile *p, const struct lines *l, struct sv in,
                       struct legacy_sample *s, struct err *err)
{
    uint64_t address;
    *s = (struct legacy_sample){.first = p->n_frames};
    take_spaces(&in);
    while (in.n > 0) {
        if (!take_address(&in, &address)) {
            return bad_line(l, "expected addresses after the @", err);
        }
        if (s->depth == LEGACY_DEPTH_MAX) {
            return err_set(err, ERR_LIMIT, "line %zu: more than %d frames", l->number,
                           LEGACY_DEPTH_MAX);
        }
        if (p->n_frames == LEGACY_FRAMES_MAX) {
            return err_set(err, ERR_LIMIT, "line %zu: more than %d frames in all", l->number,
                           LEGACY_FRAMES_MAX);
        }
        p->frames[p->n_frames++] = address - 1;
        s->depth++;
    }
    return true;
}

static bool add_sample(struct legacy_profile *p, struct legacy_sample s, int64_t numbers[NUMBERS],
                       const struct lines *l, struct err *err)
{
    if (!set_values(&s, numbers, p)) {
        return bad_line(l, "impossible numbers", err);
    }
    if (p->n_samples == LEGACY_SAMPLES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d samples", LEGACY_SAMPLES_MAX);
    }
    p->samples[p->n_samples++] = s;
    return true;
}

static bool read_sample(struct legacy_profile *p, const struct lines *l, struct err *err)
{
    struct legacy_sample s;
    int64_t numbers[NUMBERS];
    struct sv in = l->line;
    if (l->cut || !take_numbers(&in, numbers) || !text_take(&in, SV("@"))) {
        return bad_line(l, "expected \"COUNT: BYTES [COUNT: BYTES] @ ADDRESSES\"", err);
    }
    return read_stack(p, l, in, &s, err) && add_sample(p, s, numbers, l, err);
}

/* Reads a stack and the line after it, which has the sum of all its threads. */
static bool read_jemalloc_sample(struct legacy_profile *p, struct lines *l, struct err *err)
{
    struct legacy_sample s;
    int64_t numbers[NUMBERS];
    if (!read_stack(p, l, sv_skip(l->line, 1), &s, err)) {
        return false;
    }
    if (!next_line(l) || l->cut || !take_sum_of_threads(l->line, numbers)) {
        return bad_line(l, "expected \"t*: COUNT: BYTES [COUNT: BYTES]\"", err);
    }
    return add_sample(p, s, numbers, l, err);
}

/* Reads all samples, up to the mappings or the end. */
static bool read_samples(struct legacy_profile *p, struct lines *l, bool jemalloc, struct err *err)
{
    bool ok = true;
    while (ok && next_line(l) && !is_maps_title(l->line)) {
        struct sv in = sv_trim(l->line);
        if (in.n == 0 || in.p[0] == '#') {
            continue;
        }
        if (!jemalloc) {
            ok = read_sample(p, l, err);
        } else if (l->line.p[0] == '@') {
            ok = read_jemalloc_sample(p, l, err);
        } else if (in.p[0] != 't' || l->cut) {
            ok = bad_line(l, "expected a stack or the numbers of a thread", err);
        }
    }
    return ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns the kind of a profile. Profilers that do not know the allocations write zeros for them,
 * or repeat the numbers in use. */
static const struct legacy_kind *kind_of(const struct header *h)
{
    bool objects = h->sums[ALLOC_OBJECTS] != 0 && h->sums[ALLOC_OBJECTS] != h->sums[IN_USE_OBJECTS];
    bool bytes = h->sums[ALLOC_BYTES] != 0 && h->sums[ALLOC_BYTES] != h->sums[IN_USE_BYTES];
    if (h->growth) {
        return &growth;
    }
    return objects || bytes ? &with_alloc : &in_use_only;
}

bool legacy_read_heap(struct legacy_profile *p, struct sv body, struct err *err)
{
    struct lines l = {.rest = body};
    struct header h;
    if (!next_line(&l) || l.cut || !read_header(l.line, &h)) {
        return bad_line(&l, "no header of a heap profile", err);
    }
    if (h.jemalloc && (!next_line(&l) || l.cut || !take_sum_of_threads(l.line, h.sums))) {
        return bad_line(&l, "expected \"t*: COUNT: BYTES [COUNT: BYTES]\"", err);
    }
    p->kind = kind_of(&h);
    p->period = h.rate;
    /* Each sample has an @, each address an x. */
    return legacy_reserve(p, text_count(body, '@'), text_count(body, 'x'), err) &&
           read_samples(p, &l, h.jemalloc, err) && legacy_locate(p, l.rest, err);
}
