/* Makes a pprof profile of stacks, for the formats that old agents send: text, tries, trees and
 * speedscope's files. A caller builds a stack frame by frame, the root first, and puts it with its
 * value. Pure; one owner.
 */
#ifndef PROFPULL_API_RECEIVE_FRAMES_H
#define PROFPULL_API_RECEIVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Limits of a profile: of its samples, of its different functions, and of the frames of a stack. */
#define FRAMES_SAMPLES_MAX 500000
#define FRAMES_FUNCTIONS_MAX 500000
#define FRAMES_DEPTH_MAX 65536

/* The type of a profile that has no types of its own: the part of an application's name after its
 * last dot. */
struct frames_type {
    const char *suffix;
    const char *name; /* __name__ */
    const char *type;
    const char *unit;
    bool is_time; /* counts are samples, of 1 / sample_rate seconds each */
};
/* Returns the type with a suffix; NULL if it is unknown. */
const struct frames_type *frames_type_find(struct sv suffix);
/* Splits an application's name into the service and its type, which is "cpu" if the name has no
 * dot. NULL if the type is unknown. */
const struct frames_type *frames_type_of(struct sv app, struct sv *ret_service);

struct frames_options {
    const struct frames_type *type;
    unsigned sample_rate; /* in Hz, not 0 */
    bool in_nanoseconds;  /* the values of a time are nanoseconds already */
    bool names_live;      /* the names outlive the stacks; otherwise they are copied */
    int64_t time_ns;
    int64_t duration_ns; /* 0: unknown */
};

struct frames;

/* Makes an empty profile, which is appended to `out`. NULL with err. */
struct frames *frames_new(const struct frames_options *o, struct buf *out, struct err *err);
struct frames *frames_free(struct frames *s); /* accepts NULL, returns NULL */

/* Adds a frame to the stack. False with ERR_LIMIT or ERR_MEMORY. */
bool frames_push(struct frames *s, struct sv name, struct err *err);
/* Removes all frames but the first n. */
void frames_cut(struct frames *s, size_t n);
/* Returns the number of frames of the stack. */
size_t frames_depth(const struct frames *s);
/* Replaces the stack by the frames of a text: "main;work". */
bool frames_split(struct frames *s, struct sv text, struct err *err);
/* Adds a sample with the stack. False with ERR_INPUT if the value is too large, ERR_LIMIT or
 * ERR_MEMORY. */
bool frames_put(struct frames *s, uint64_t value, struct err *err);
/* Completes the profile, and sets *ret_samples to its number of samples. */
bool frames_finish(struct frames *s, size_t *ret_samples, struct err *err);

#endif
