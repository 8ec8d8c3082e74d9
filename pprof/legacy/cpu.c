/* The CPU profiles of gperftools: machine words of 4 or 8 bytes, in the byte order of the machine.
 *
 *     0, 3, 0, period in microseconds, 0
 *     count, depth, address...            for each sample, the leaf first
 *     0, 1, 0                             the end
 *     the text of /proc/self/maps
 */
#include <string.h>

#include "pprof/legacy/profile.h"

#define HEADER_WORDS 5
/* A longer period between two samples is none; the usual one is 10 ms. */
#define PERIOD_MAX_US (UINT64_C(3600) * 1000 * 1000)
#define NS_PER_US 1000
/* Of so many samples one may have another second frame, and it still is the signal handler's. */
#define HANDLER_SHARE 32
/* At most so many frames are the signal handler's. */
#define HANDLER_FRAMES 2

static const struct legacy_kind cpu_kind = {
    .n_columns = 2,
    .columns = {{"samples", "count"}, {"cpu", "nanoseconds"}},
    .period = {"cpu", "nanoseconds"},
    .samples_time = true,
};

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
    struct sv in;
    size_t at; /* bytes */
    size_t size;
    bool big_endian;
};

static size_t words_left(const struct words *w)
{
    return (w->in.n - w->at) / w->size;
}

/* There must be one. */
static uint64_t next_word(struct words *w)
{
    const unsigned char *p = (const unsigned char *)w->in.p + w->at;
    uint64_t value = 0;
    for (size_t i = 0; i < w->size; i++) {
        value = value << 8 | p[w->big_endian ? i : w->size - 1 - i];
    }
    w->at += w->size;
    return value;
}

/* Is it a header in this form? Leaves w behind it. */
static bool read_header(struct words *w, uint64_t *ret_period)
{
    static const uint64_t want[HEADER_WORDS] = {0, 3, 0, 0, 0};
    bool ok = words_left(w) >= HEADER_WORDS;
    for (size_t i = 0; i < HEADER_WORDS && ok; i++) {
        uint64_t word = next_word(w);
        if (i == 3) {
            *ret_period = word;
        }
        ok = i == 3 ? word > 0 : word == want[i];
    }
    return ok;
}

/* Finds the size and the order of the words, and reads the header. */
static bool find_words(struct sv in, struct words *ret, uint64_t *ret_period)
{
    static const struct {
        size_t size;
        bool big_endian;
    } forms[] = {{4, false}, {4, true}, {8, false}, {8, true}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        *ret = (struct words){.in = in, .size = forms[i].size, .big_endian = forms[i].big_endian};
        if (read_header(ret, ret_period)) {
            return true;
        }
    }
    return false;
}

bool legacy_is_cpu(struct sv start)
{
    struct words w;
    uint64_t period;
    return find_words(start, &w, &period);
}

/* ---- samples --------------------------------------------------------------------------------- */

enum record { RECORD_SAMPLE, RECORD_END, RECORD_CUT, RECORD_DEEP };

/* Skips the addresses of the record at w. */
static enum record next_record(struct words *w, uint64_t *ret_count, size_t *ret_depth)
{
    if (words_left(w) < 2) {
        return RECORD_CUT;
    }
    *ret_count = next_word(w);
    uint64_t depth = next_word(w);
    if (depth > words_left(w)) {
        return RECORD_CUT;
    }
    if (depth > LEGACY_DEPTH_MAX) {
        return RECORD_DEEP;
    }
    *ret_depth = (size_t)depth;
    struct words addresses = *w;
    w->at += *ret_depth * w->size;
    bool end = *ret_count == 0 && depth == 1 && next_word(&addresses) == 0;
    return end ? RECORD_END : RECORD_SAMPLE;
}

struct totals {
    size_t samples;
    size_t frames;
    uint64_t count;
};

/* Walks to the end of the samples before anything is allocated. */
static enum legacy_result measure(struct words *w, uint64_t period_ns, struct totals *t,
                                  struct err *err)
{
    uint64_t count = 0;
    size_t depth = 0;
    for (;;) {
        size_t at = w->at;
        switch (next_record(w, &count, &depth)) {
        case RECORD_END:
            return LEGACY_MADE;
        case RECORD_CUT:
            err_set(err, ERR_INPUT, "it ends within the sample at byte %zu of %zu", at, w->in.n);
            return LEGACY_BAD;
        case RECORD_DEEP:
            err_set(err, ERR_LIMIT, "more than %d frames in the sample at byte %zu",
                    LEGACY_DEPTH_MAX, at);
            return LEGACY_TOO_LARGE;
        case RECORD_SAMPLE:
            break;
        }
        if (count > (uint64_t)INT64_MAX / period_ns - t->count) {
            err_set(err, ERR_INPUT, "a count that cannot be in the sample at byte %zu", at);
            return LEGACY_BAD;
        }
        if (t->samples == LEGACY_SAMPLES_MAX || depth > LEGACY_FRAMES_MAX - t->frames) {
            err_set(err, ERR_LIMIT, "more than %d samples, or %d frames in all", LEGACY_SAMPLES_MAX,
                    LEGACY_FRAMES_MAX);
            return LEGACY_TOO_LARGE;
        }
        t->count += count;
        t->samples++;
        t->frames += depth;
    }
}

/* The leaf is where it was interrupted, the others where they return to: one less is within the
 * call. */
static void read_samples(struct legacy_profile *p, struct words w, const struct totals *t)
{
    uint64_t count = 0;
    size_t depth = 0;
    while (p->n_samples < t->samples) {
        struct words addresses = w;
        addresses.at += 2 * w.size;
        (void)next_record(&w, &count, &depth);
        p->samples[p->n_samples++] = (struct legacy_sample){
            .first = p->n_frames,
            .depth = depth,
            .values = {(int64_t)count, (int64_t)count * p->period},
        };
        for (size_t i = 0; i < depth; i++) {
            p->frames[p->n_frames++] = next_word(&addresses) - (i > 0);
        }
    }
}

/* ---- frames that are none -------------------------------------------------------------------- */

/* Takes out the frame behind the leaf. */
static void drop_second(struct legacy_profile *p, struct legacy_sample *s)
{
    p->frames[s->first + 1] = p->frames[s->first];
    s->first++;
    s->depth--;
}

/* The address that most samples have behind their leaf, if any has a majority. */
static uint64_t majority(const struct legacy_profile *p)
{
    uint64_t candidate = 0;
    size_t votes = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        if (p->samples[i].depth < 2) {
            continue;
        }
        uint64_t address = p->frames[p->samples[i].first + 1];
        if (votes == 0) {
            candidate = address;
        }
        votes = address == candidate ? votes + 1 : votes - 1;
    }
    return candidate;
}

static bool is_second(const struct legacy_profile *p, const struct legacy_sample *s,
                      uint64_t address)
{
    return s->depth > 1 && p->frames[s->first + 1] == address;
}

/* A frame that nearly all samples have behind their leaf was pushed by the signal handler that took
 * the sample. */
static void drop_handler(struct legacy_profile *p)
{
    uint64_t address = majority(p);
    size_t n = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        n += is_second(p, &p->samples[i], address);
    }
    if (n < p->n_samples - p->n_samples / HANDLER_SHARE) {
        return;
    }
    for (size_t i = 0; i < p->n_samples; i++) {
        if (is_second(p, &p->samples[i], address)) {
            drop_second(p, &p->samples[i]);
        }
    }
}

/* The leaf may be there twice, from the signal's context and from the stack; the second one was
 * taken for a caller, and is one less. */
static void drop_duplicates(struct legacy_profile *p)
{
    for (size_t i = 0; i < p->n_samples; i++) {
        struct legacy_sample *s = &p->samples[i];
        if (s->depth > 1 && p->locations[p->frames[s->first] - 1].address ==
                                p->locations[p->frames[s->first + 1] - 1].address + 1) {
            drop_second(p, s);
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static enum legacy_result read_body(struct legacy_profile *p, struct words w, uint64_t seed,
                                    struct err *err)
{
    struct words end = w;
    struct totals t = {.samples = 0};
    enum legacy_result r = measure(&end, (uint64_t)p->period, &t, err);
    if (r == LEGACY_MADE) {
        r = legacy_reserve(p, t.samples, t.frames, err);
    }
    if (r != LEGACY_MADE) {
        return r;
    }
    read_samples(p, w, &t);
    for (size_t i = 0; i < HANDLER_FRAMES; i++) {
        drop_handler(p);
    }
    r = legacy_number(p, seed, err);
    if (r == LEGACY_MADE) {
        struct sv text = {.p = w.in.p + end.at, .n = w.in.n - end.at};
        r = legacy_place(p, text, err);
    }
    if (r == LEGACY_MADE) {
        drop_duplicates(p);
    }
    return r;
}

enum legacy_result legacy_read_cpu(struct legacy_profile *p, struct sv body, uint64_t seed,
                                   struct err *err)
{
    struct words w;
    uint64_t period_us;
    if (!find_words(body, &w, &period_us)) {
        err_set(err, ERR_INPUT, "no header of a CPU profile");
        return LEGACY_BAD;
    }
    if (period_us > PERIOD_MAX_US) {
        err_set(err, ERR_INPUT, "a period of more than an hour");
        return LEGACY_BAD;
    }
    p->kind = &cpu_kind;
    p->period = (int64_t)period_us * NS_PER_US;
    return read_body(p, w, seed, err);
}
