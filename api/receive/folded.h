/* Converts stacks as text to a pprof profile. Old agents send them, one stack a line, the root
 * first: "main;work;hash 12". The text comes from outside and is not trusted. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_FOLDED_H
#define PROFPULL_API_RECEIVE_FOLDED_H

#include "api/receive/frames.h"

/* Limit of the lines of a text. */
#define FOLDED_LINES_MAX FRAMES_SAMPLES_MAX

struct folded_input {
    struct sv text;
    struct frames_options o;
    bool counted; /* each line ends in a count; otherwise each line counts once */
};

/* Appends the profile, not compressed, and sets *ret_samples to its number of samples. False with
 * an error that names the line and the mistake. */
bool folded_convert(const struct folded_input *in, struct buf *out, size_t *ret_samples,
                    struct err *err);

#endif
