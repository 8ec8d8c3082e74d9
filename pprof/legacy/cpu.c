/* The CPU profiles of gperftools: machine words of 4 or 8 bytes, in the byte order of the machine.
 *
 *     0, 3, 0, period in microseconds, 0
 *     count, depth, address...            for each sample, the leaf first
 *     0, 1, 0                             the end
 *     the text of /proc/self/maps
 */
#include <endian.h>
#include <string.h>

#include "pprof/legacy/profile.h"
#include "pprof/legacy/text.h"

#define HEADER_WORDS 5
/* The longest period between two samples, an hour. A longer one is an error; the usual one is 10
 * ms. */
#define PERIOD_MAX_US (UINT64_C(3600) * 1000 * 1000)
#define NS_PER_US 1000
/* The second frame is the signal handler's even if one in this many samples has another one. */
#define HANDLER_SHARE 32
/* The most frames that are removed as the signal handler's. */
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

/* Reads the next word, which must exist. */
static uint64_t next_word(struct words *w)
{
    const char *p = w->in.p + w->at;
    uint32_t small;
    uint64_t large;
    w->at += w->size;
    if (w->size == sizeof(small)) {
        memcpy(&small, p, sizeof(small));
        return w->big_endian ? be32toh(small) : le32toh(small);
    }
    memcpy(&large, p, sizeof(large));
    return w->big_endian ? be64toh(large) : le64toh(large);
}

/* Reads the first n words of a header and leaves w after them. Returns false if they are not the
 * words of a header. */
static bool read_header(struct words *w, size_t n, uint64_t *ret_period)
{
    static const uint64_t want[HEADER_WORDS] = {0, 3, 0, 0, 0};
    bool ok = words_left(w) >= n;
    for (size_t i = 0; i < n && ok; i++) {
        uint64_t word = next_word(w);
        if (i == 3) {
            *ret_period = word;
        }
        ok = i == 3 ? word > 0 : word == want[i];
    }
    return ok;
}

/* Finds the size and the order of the words, and reads n words of the header. */
static bool find_words(struct sv in, size_t n, struct words *ret, uint64_t *ret_period)
{
    static const struct {
        size_t size;
        bool big_endian;
    } forms[] = {{4, false}, {4, true}, {8, false}, {8, true}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        *ret = (struct words){.in = in, .size = forms[i].size, .big_endian = forms[i].big_endian};
        if (read_header(ret, n, ret_period)) {
            return true;
        }
    }
    return false;
}

bool legacy_is_cpu(struct sv start)
{
    struct words w;
    uint64_t period;
    return find_words(start, HEADER_WORDS, &w, &period);
}

bool legacy_is_cut_cpu(struct sv start)
{
    struct words w;
    uint64_t period;
    return find_words(start, 2, &w, &period);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Reads the addresses of one sample. The leaf is where the program was interrupted, the others are
 * return addresses: one less is within the call. */
static void add_sample(struct legacy_profile *p, struct words *w, uint64_t count, size_t depth)
{
    p->samples[p->n_samples++] = (struct legacy_sample){
        .first = p->n_frames,
        .depth = depth,
        .values = {(int64_t)count, (int64_t)count * p->period},
    };
    for (size_t i = 0; i < depth; i++) {
        p->frames[p->n_frames++] = next_word(w) - (i > 0);
    }
}

static bool is_end(struct words w, uint64_t count, uint64_t depth)
{
    return count == 0 && depth == 1 && next_word(&w) == 0;
}

/* Checks the head of a sample at byte `at`. left: the count that remains below the limit. */
static bool check_sample(const struct legacy_profile *p, size_t at, uint64_t count, uint64_t depth,
                         uint64_t left, struct err *err)
{
    if (count > left) {
        return err_set(err, ERR_INPUT, "an impossible count in the sample at byte %zu", at);
    }
    if (p->n_samples == LEGACY_SAMPLES_MAX || depth > LEGACY_FRAMES_MAX - p->n_frames) {
        return err_set(err, ERR_LIMIT, "more than %d samples, or %d frames in all",
                       LEGACY_SAMPLES_MAX, LEGACY_FRAMES_MAX);
    }
    return true;
}

/* Reads up to the end of the samples, and leaves w after it. */
static bool read_samples(struct legacy_profile *p, struct words *w, struct err *err)
{
    uint64_t left = (uint64_t)INT64_MAX / (uint64_t)p->period;
    for (;;) {
        size_t at = w->at;
        bool cut = words_left(w) < 2;
        uint64_t count = cut ? 0 : next_word(w);
        uint64_t depth = cut ? UINT64_MAX : next_word(w);
        if (depth > words_left(w)) {
            return err_set(err, ERR_INPUT, "it ends within the sample at byte %zu of %zu", at,
                           w->in.n);
        }
        if (depth > LEGACY_DEPTH_MAX) {
            return err_set(err, ERR_LIMIT, "more than %d frames in the sample at byte %zu",
                           LEGACY_DEPTH_MAX, at);
        }
        if (is_end(*w, count, depth)) {
            (void)next_word(w);
            return true;
        }
        if (!check_sample(p, at, count, depth, left, err)) {
            return false;
        }
        left -= count;
        add_sample(p, w, count, (size_t)depth);
    }
}

/* ---- spurious frames ------------------------------------------------------------------------- */

/* Removes the frame after the leaf. */
static void drop_second(struct legacy_profile *p, struct legacy_sample *s)
{
    p->frames[s->first + 1] = p->frames[s->first];
    s->first++;
    s->depth--;
}

/* Returns the address that most samples have after their leaf, if one has a majority. */
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

/* Removes frames of the signal handler that took the samples: a frame that nearly all samples have
 * after their leaf. */
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

/* Removes a duplicate of the leaf. The leaf may occur twice, from the signal's context and from the
 * stack. The second one was read as a return address, so it is one less. */
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

bool legacy_read_cpu(struct legacy_profile *p, struct sv body, struct err *err)
{
    struct words w;
    uint64_t period_us;
    if (!find_words(body, HEADER_WORDS, &w, &period_us)) {
        return err_set(err, ERR_INPUT, "no header of a CPU profile");
    }
    if (period_us > PERIOD_MAX_US) {
        return err_set(err, ERR_INPUT, "a period of more than an hour");
    }
    p->kind = &cpu_kind;
    p->period = (int64_t)period_us * NS_PER_US;
    /* A sample has at least two words. */
    if (!legacy_reserve(p, words_left(&w) / 2, words_left(&w), err) || !read_samples(p, &w, err)) {
        return false;
    }
    for (size_t i = 0; i < HANDLER_FRAMES; i++) {
        drop_handler(p);
    }
    if (!legacy_locate(p, sv_skip(body, w.at), err)) {
        return false;
    }
    drop_duplicates(p);
    return true;
}
