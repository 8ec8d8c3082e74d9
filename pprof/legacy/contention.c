/* The lock contention profiles of gperftools and brpc: lines of text.
 *
 *     --- contention                          gperftools: --- contentionz 1 ---
 *     cycles/second = 2000000000
 *     sampling period = 100
 *     ms since reset = 5000
 *     9000 3 @ 0x401000 0x402000              cycles waited, times, stack
 *
 * Then the text of /proc/self/maps, with or without a title. The rules are those of Google's pprof:
 * times and waits are multiplied by the sampling period, and cycles become nanoseconds.
 *
 * Go's own text begins with "--- contention:" or "--- mutex:". It is refused, because it has names
 * of functions, which only Go's protobuf keeps. */
#include <string.h>

#include "pprof/legacy/profile.h"
#include "pprof/legacy/text.h"

/* The largest number. It is more than any program has, and far from an overflow. */
#define NUMBER_LARGEST ((uint64_t)1 << 53)

static const struct legacy_kind contention = {
    .n_columns = 2,
    .columns = {{"contentions", "count"}, {"delay", "nanoseconds"}},
    .period = {"contentions", "count"},
    .samples_time = true,
};

struct header {
    uint64_t hz; /* cycles a second; 0: waits are nanoseconds */
};

bool legacy_is_contention(struct sv start)
{
    return sv_starts_with(start, SV("--- contention\n")) ||
           sv_starts_with(start, SV("--- contentionz "));
}

static bool bad_line(size_t number, const char *what, struct err *err)
{
    return err_set(err, ERR_INPUT, "line %zu: %s", number, what);
}

/* Reads "key = value". Returns false for a line that is none. */
static bool read_key(struct sv line, struct header *h, struct legacy_profile *p)
{
    struct sv key;
    struct sv value;
    uint64_t number;
    if (!sv_cut(line, '=', &key, &value)) {
        return false;
    }
    key = sv_trim(key);
    if (!parse_u64(sv_trim(value), NUMBER_LARGEST, &number)) {
        return true; /* the keys that count have numbers */
    }
    if (sv_eq_str(key, "cycles/second")) {
        h->hz = number;
    } else if (sv_eq_str(key, "sampling period") && number > 0) {
        p->period = (int64_t)number;
    }
    return true;
}

/* Reads the two numbers of a sample. Returns false for a line that is no sample. */
static bool take_numbers(struct sv *in, uint64_t *wait, uint64_t *times)
{
    text_take_any(in, " \t");
    bool ok = parse_u64(text_take_digits(in), NUMBER_LARGEST, wait) && text_take_any(in, " \t") &&
              parse_u64(text_take_digits(in), NUMBER_LARGEST, times);
    text_take_any(in, " \t");
    return ok && text_take(in, SV("@"));
}

/* Reads a stack. All addresses are return addresses; one less is within the call. */
static bool read_stack(struct legacy_profile *p, struct sv in, struct legacy_sample *s,
                       size_t number, struct err *err)
{
    uint64_t address;
    text_take_any(&in, " \t\r");
    while (in.n > 0) {
        if (!text_take(&in, SV("0x")) || !text_take_hex(&in, false, &address)) {
            return bad_line(number, "expected addresses after the @", err);
        }
        if (s->depth == LEGACY_DEPTH_MAX || p->n_frames == LEGACY_FRAMES_MAX) {
            return err_set(err, ERR_LIMIT, "line %zu: more than %d frames, or %d in all", number,
                           LEGACY_DEPTH_MAX, LEGACY_FRAMES_MAX);
        }
        p->frames[p->n_frames++] = address - 1;
        s->depth++;
        text_take_any(&in, " \t\r");
    }
    return true;
}

/* Multiplies by the sampling period, and turns cycles into nanoseconds. */
static bool set_values(struct legacy_profile *p, const struct header *h, uint64_t wait,
                       uint64_t times, struct legacy_sample *s)
{
    double ghz = h->hz > 0 ? (double)h->hz / 1e9 : 1;
    double ns = (double)wait * (double)p->period / ghz;
    double n = (double)times * (double)p->period;
    bool ok = ns < (double)INT64_MAX / 2 && n < (double)INT64_MAX / 2;
    s->values[0] = ok ? (int64_t)n : 0;
    s->values[1] = ok ? (int64_t)ns : 0;
    return ok;
}

static bool read_sample(struct legacy_profile *p, const struct header *h, struct sv in,
                        uint64_t wait, uint64_t times, size_t number, struct err *err)
{
    struct legacy_sample s = {.first = p->n_frames};
    if (!set_values(p, h, wait, times, &s)) {
        return bad_line(number, "impossible numbers", err);
    }
    if (!read_stack(p, in, &s, number, err)) {
        return false;
    }
    if (p->n_samples == LEGACY_SAMPLES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d samples", LEGACY_SAMPLES_MAX);
    }
    p->samples[p->n_samples++] = s;
    return true;
}

/* Reads keys and samples, up to the first line that is neither. *ret_maps begins there. */
static bool read_lines(struct legacy_profile *p, struct sv rest, struct sv *ret_maps,
                       struct err *err)
{
    struct header h = {.hz = 0};
    struct sv line;
    for (size_t number = 2; *ret_maps = rest, text_take_line(&rest, &line); number++) {
        struct sv in = line;
        uint64_t wait;
        uint64_t times;
        if (sv_trim(line).n == 0) {
            continue;
        }
        if (take_numbers(&in, &wait, &times)) {
            if (!read_sample(p, &h, in, wait, times, number, err)) {
                return false;
            }
        } else if (p->n_samples > 0 || !read_key(line, &h, p)) {
            return true;
        }
    }
    return true;
}

bool legacy_read_contention(struct legacy_profile *p, struct sv body, struct err *err)
{
    struct sv rest = body;
    struct sv title;
    struct sv maps = SV("");
    if (!text_take_line(&rest, &title)) {
        return bad_line(1, "no header of a contention profile", err);
    }
    p->kind = &contention;
    p->period = 1;
    return legacy_reserve(p, text_count(body, '@'), text_count(body, 'x'), err) &&
           read_lines(p, rest, &maps, err) && legacy_locate(p, maps, err);
}
