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

/* The line that says what follows has at most so many bytes. */
#define HEADER_MAX 256
/* More than any program has, and far from an overflow. */
#define NUMBER_LARGEST ((uint64_t)1 << 53)
#define HEX_MAX 16 /* digits */

/* The columns of a line in their order, and those of what comes out. */
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
/* Of address space, not of a heap. */
static const struct legacy_kind growth = {
    .n_columns = 2,
    .columns = {{"objects", "count"}, {"space", "bytes"}},
    .period = {"space", "bytes"},
};

/* ---- words ----------------------------------------------------------------------------------- */

static struct sv skip(struct sv v, size_t n)
{
    return (struct sv){.p = v.p + n, .n = v.n - n};
}

static bool take_char(struct sv *in, char c)
{
    bool is = in->n > 0 && in->p[0] == c;
    *in = is ? skip(*in, 1) : *in;
    return is;
}

static void skip_spaces(struct sv *in)
{
    while (take_char(in, ' ') || take_char(in, '\t') || take_char(in, '\r')) {
    }
}

static bool take_text(struct sv *in, struct sv text)
{
    bool is = sv_starts_with(*in, text);
    *in = is ? skip(*in, text.n) : *in;
    return is;
}

static bool take_number(struct sv *in, int64_t *ret)
{
    uint64_t value = 0;
    skip_spaces(in);
    size_t n = 0;
    while (n < in->n && in->p[n] >= '0' && in->p[n] <= '9') {
        n++;
    }
    bool ok = parse_u64((struct sv){in->p, n}, NUMBER_LARGEST, &value);
    *in = skip(*in, n);
    *ret = (int64_t)value;
    return ok;
}

/* "1: 100 [2: 200]" */
static bool take_numbers(struct sv *in, int64_t ret[NUMBERS])
{
    bool ok = take_number(in, &ret[IN_USE_OBJECTS]) && take_char(in, ':') &&
              take_number(in, &ret[IN_USE_BYTES]);
    skip_spaces(in);
    ok = ok && take_char(in, '[') && take_number(in, &ret[ALLOC_OBJECTS]) && take_char(in, ':') &&
         take_number(in, &ret[ALLOC_BYTES]);
    skip_spaces(in);
    ok = ok && take_char(in, ']');
    skip_spaces(in);
    return ok;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "0x401000" */
static bool take_address(struct sv *in, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 0;
    if (!take_text(in, SV("0x"))) {
        return false;
    }
    while (n < in->n && n < HEX_MAX && hex_digit(in->p[n]) >= 0) {
        value = value << 4 | (uint64_t)hex_digit(in->p[n]);
        n++;
    }
    *in = skip(*in, n);
    skip_spaces(in);
    *ret = value;
    return n > 0;
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
    if (l->rest.n == 0) {
        return false;
    }
    if (!sv_cut(l->rest, '\n', &l->line, &l->rest)) {
        l->line = l->rest;
        l->rest.n = 0;
        l->cut = true;
    }
    l->number++;
    return true;
}

static enum legacy_result bad_line(const struct lines *l, const char *what, struct err *err)
{
    err_set(err, ERR_INPUT, "line %zu: %s", l->number, l->cut ? "the end is missing" : what);
    return LEGACY_BAD;
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

/* "heapprofile", "heap_v2/524288", "growthz". Go's own text (heap/1048576) is none: it has names,
 * which its protobuf keeps. */
static bool read_method(struct sv in, struct header *h)
{
    if (take_text(&in, SV("heap_v2/")) || take_text(&in, SV("heapz_v2/"))) {
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
    if (!take_text(&line, SV("heap profile:")) || !take_numbers(&line, h->sums) ||
        !take_char(&line, '@')) {
        return false;
    }
    skip_spaces(&line);
    return read_method(line, h);
}

bool legacy_is_heap(struct sv start)
{
    struct lines l = {.rest = {start.p, start.n < HEADER_MAX ? start.n : HEADER_MAX}};
    struct header h;
    return start.n > 0 && next_line(&l) && !l.cut && read_header(l.line, &h);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Of small blocks few are sampled: what is there stands for so many more. */
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

static bool set_values(struct legacy_sample *s, int64_t n[NUMBERS], const struct header *h,
                       const struct legacy_kind *kind)
{
    bool ok = correct(&n[IN_USE_OBJECTS], &n[IN_USE_BYTES], h->rate);
    size_t at = 0;
    if (kind == &with_alloc) {
        ok = correct(&n[ALLOC_OBJECTS], &n[ALLOC_BYTES], h->rate) && ok;
        s->values[at++] = n[ALLOC_OBJECTS];
        s->values[at++] = n[ALLOC_BYTES];
    }
    s->values[at++] = n[IN_USE_OBJECTS];
    s->values[at] = n[IN_USE_BYTES];
    return ok;
}

/* All of them are where a call returns to: one less is within the call. */
static enum legacy_result read_stack(struct legacy_profile *p, const struct lines *l, struct sv in,
                                     struct legacy_sample *s, struct err *err)
{
    uint64_t address;
    *s = (struct legacy_sample){.first = p->n_frames};
    skip_spaces(&in);
    while (in.n > 0) {
        if (!take_address(&in, &address)) {
            return bad_line(l, "expected addresses behind the @", err);
        }
        if (s->depth == LEGACY_DEPTH_MAX) {
            err_set(err, ERR_LIMIT, "line %zu: more than %d frames", l->number, LEGACY_DEPTH_MAX);
            return LEGACY_TOO_LARGE;
        }
        if (p->n_frames == LEGACY_FRAMES_MAX) {
            err_set(err, ERR_LIMIT, "line %zu: more than %d frames in all", l->number,
                    LEGACY_FRAMES_MAX);
            return LEGACY_TOO_LARGE;
        }
        p->frames[p->n_frames++] = address - 1;
        s->depth++;
    }
    return LEGACY_MADE;
}

static enum legacy_result add_sample(struct legacy_profile *p, const struct legacy_sample *s,
                                     struct err *err)
{
    if (p->n_samples == LEGACY_SAMPLES_MAX) {
        err_set(err, ERR_LIMIT, "more than %d samples", LEGACY_SAMPLES_MAX);
        return LEGACY_TOO_LARGE;
    }
    p->samples[p->n_samples++] = *s;
    return LEGACY_MADE;
}

static enum legacy_result read_sample(struct legacy_profile *p, const struct lines *l,
                                      const struct header *h, struct err *err)
{
    struct legacy_sample s;
    int64_t numbers[NUMBERS];
    struct sv in = l->line;
    if (l->cut || !take_numbers(&in, numbers) || !take_char(&in, '@')) {
        return bad_line(l, "expected \"COUNT: BYTES [COUNT: BYTES] @ ADDRESSES\"", err);
    }
    enum legacy_result r = read_stack(p, l, in, &s, err);
    if (r == LEGACY_MADE && !set_values(&s, numbers, h, p->kind)) {
        return bad_line(l, "numbers that cannot be", err);
    }
    return r == LEGACY_MADE ? add_sample(p, &s, err) : r;
}

/* A stack, and behind it the line of all its threads. */
static enum legacy_result read_jemalloc_sample(struct legacy_profile *p, struct lines *l,
                                               const struct header *h, struct err *err)
{
    struct legacy_sample s;
    int64_t numbers[NUMBERS];
    enum legacy_result r = read_stack(p, l, skip(l->line, 1), &s, err);
    if (r != LEGACY_MADE) {
        return r;
    }
    struct sv in = next_line(l) ? sv_trim(l->line) : SV("");
    if (l->cut || !take_text(&in, SV("t*:")) || !take_numbers(&in, numbers)) {
        return bad_line(l, "expected \"t*: COUNT: BYTES [COUNT: BYTES]\"", err);
    }
    if (!set_values(&s, numbers, h, p->kind)) {
        return bad_line(l, "numbers that cannot be", err);
    }
    return add_sample(p, &s, err);
}

/* Up to the mappings, or the end. */
static enum legacy_result read_samples(struct legacy_profile *p, struct lines *l,
                                       const struct header *h, struct err *err)
{
    enum legacy_result r = LEGACY_MADE;
    while (r == LEGACY_MADE && next_line(l) && !is_maps_title(l->line)) {
        struct sv in = sv_trim(l->line);
        if (in.n == 0 || in.p[0] == '#') {
            continue;
        }
        if (!h->jemalloc) {
            r = read_sample(p, l, h, err);
        } else if (l->line.p[0] == '@') {
            r = read_jemalloc_sample(p, l, h, err);
        } else if (in.p[0] != 't' || l->cut) {
            r = bad_line(l, "expected a stack or the numbers of a thread", err);
        }
    }
    return r;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* At least as many as there can be: each sample has an @, each address an x. */
static size_t count(struct sv text, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == c;
    }
    return n;
}

/* The sum of all stacks, which jemalloc has in a line of its own. */
static bool read_jemalloc_sums(struct lines *l, struct header *h)
{
    struct sv in = next_line(l) ? sv_trim(l->line) : SV("");
    return !l->cut && take_text(&in, SV("t*:")) && take_numbers(&in, h->sums);
}

/* Who does not know what was allocated says nothing of it, or what is in use. */
static const struct legacy_kind *kind_of(const struct header *h)
{
    bool objects = h->sums[ALLOC_OBJECTS] != 0 && h->sums[ALLOC_OBJECTS] != h->sums[IN_USE_OBJECTS];
    bool bytes = h->sums[ALLOC_BYTES] != 0 && h->sums[ALLOC_BYTES] != h->sums[IN_USE_BYTES];
    if (h->growth) {
        return &growth;
    }
    return objects || bytes ? &with_alloc : &in_use_only;
}

enum legacy_result legacy_read_heap(struct legacy_profile *p, struct sv body, uint64_t seed,
                                    struct err *err)
{
    struct lines l = {.rest = body};
    struct header h;
    if (!next_line(&l) || l.cut || !read_header(l.line, &h)) {
        return bad_line(&l, "no header of a heap profile", err);
    }
    if (h.jemalloc && !read_jemalloc_sums(&l, &h)) {
        return bad_line(&l, "expected \"t*: COUNT: BYTES [COUNT: BYTES]\"", err);
    }
    p->kind = kind_of(&h);
    p->period = h.rate;
    size_t samples = count(body, '@');
    enum legacy_result r = legacy_reserve(
        p, samples < LEGACY_SAMPLES_MAX ? samples : LEGACY_SAMPLES_MAX, count(body, 'x'), err);
    if (r == LEGACY_MADE) {
        r = read_samples(p, &l, &h, err);
    }
    if (r == LEGACY_MADE) {
        r = legacy_number(p, seed, err);
    }
    return r == LEGACY_MADE ? legacy_place(p, l.rest, err) : r;
}
