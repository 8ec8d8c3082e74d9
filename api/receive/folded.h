/* Converts stacks as text to a pprof profile. Old agents send them, one stack a line, the root
 * first: "main;work;hash 12". The text comes from outside and is not trusted. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_FOLDED_H
#define PROFPULL_API_RECEIVE_FOLDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Limits of the lines and of the different functions of a text. */
#define FOLDED_LINES_MAX 500000
#define FOLDED_FUNCTIONS_MAX 500000
/* Limit of the frames of a line. */
#define FOLDED_DEPTH_MAX 65536

/* The type of a profile in text form, which is the part of an application's name after its last
 * dot. */
struct folded_type {
    const char *suffix;
    const char *name; /* __name__ */
    const char *type;
    const char *unit;
    bool is_time; /* counts are samples, of 1 / sample_rate seconds each */
};
/* Returns the type with a name; NULL if it is unknown. */
const struct folded_type *folded_type_find(struct sv suffix);
/* Splits an application's name into the service and its type, which is "cpu" if the name has no
 * dot. NULL if the type is unknown. */
const struct folded_type *folded_type_of(struct sv app, struct sv *ret_service);

struct folded_input {
    struct sv text;
    const struct folded_type *type;
    bool counted;         /* each line ends in a count; otherwise each line counts once */
    unsigned sample_rate; /* in Hz, not 0 */
    int64_t time_ns;
    int64_t duration_ns; /* 0: unknown */
};

/* Appends the profile, not compressed, and sets *ret_samples to its number of samples. False with
 * an error that names the line and the mistake. */
bool folded_convert(const struct folded_input *in, struct buf *out, size_t *ret_samples,
                    struct err *err);

#endif
