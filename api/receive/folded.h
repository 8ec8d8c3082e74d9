/* Stacks as text, as old agents send them: "main;work;hash 12", one a line, the root first. They
 * become a pprof profile. The text comes from outside and is not trusted. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_FOLDED_H
#define PROFPULL_API_RECEIVE_FOLDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Lines, and different functions: more are refused. */
#define FOLDED_LINES_MAX 500000
#define FOLDED_FUNCTIONS_MAX 500000
/* Frames of a line. */
#define FOLDED_DEPTH_MAX 65536

/* The type of a text profile: the part of an application's name after its last dot. */
struct folded_type {
    const char *suffix;
    const char *name; /* __name__ */
    const char *type;
    const char *unit;
    bool is_time; /* counts are samples, of 1/sampleRate s each */
};
/* NULL for an unknown one. */
const struct folded_type *folded_type_find(struct sv suffix);
/* Cuts an application's name into the service and its type, "cpu" if it has no dot. NULL if the
 * type is unknown. */
const struct folded_type *folded_type_of(struct sv app, struct sv *ret_service);

struct folded_input {
    struct sv text;
    const struct folded_type *type;
    bool counted;         /* each line ends in a count; otherwise it is one */
    unsigned sample_rate; /* in Hz, not 0 */
    int64_t time_ns;
    int64_t duration_ns; /* 0: unknown */
};

/* Appends the profile, not compressed. False with what is wrong, and in which line. *ret_samples:
 * how many it has. */
bool folded_convert(const struct folded_input *in, struct buf *out, size_t *ret_samples,
                    struct err *err);

#endif
