/* One profile on its way from the scraper to the writer.
 *
 * A profile is immutable and reference-counted (atomic), so any thread may use it. All endpoints
 * share the same bytes.
 */
#ifndef PROFPULL_MODEL_PROFILE_H
#define PROFPULL_MODEL_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "model/receipt.h"

enum profile_format { PROFILE_PPROF, PROFILE_JFR };

/* The names that a profile's addresses got. */
struct profile_names {
    uint64_t awaits; /* 0, or the number of the process whose names may still be found */
    uint32_t all;    /* the addresses that lacked names */
    uint32_t named;  /* of them, those that have one now */
};

struct profile {
    atomic_uint refs;
    struct labels *labels; /* all labels, `__*` included; `__name__` is the series name */
    char *data;            /* gzip or plain, from malloc() */
    size_t size;
    int64_t from_ns; /* wall clock: the window that the profile covers */
    int64_t until_ns;
    int64_t scraped_ms; /* monotonic: when it was complete */
    bool is_delta;      /* covers from..until only, though its kind is cumulative */
    bool is_pushed;     /* a sender pushed it: its `__*` labels have a meaning for the server that
                           stores it */
    /* If no queue takes the profile, the next one of its scrape covers its window as well. So
     * refusing it loses nothing, but dropping it later does. */
    bool refusable;
    struct receipt *receipt; /* a reference; NULL if no sender waits until the profile is safe */
    bool no_sample_texts;    /* no sample has a label that is a text; false if that is not known */
    struct profile_names names;
    enum profile_format format;
    uint32_t job; /* its slot (config/change.h) */
    /* 0, or a number that distinguishes the profile from another one with the same bytes, labels
     * and time. The files of a spool do not store it, so only one of equal profiles remains when
     * they are read from there. */
    uint16_t salt;
};

/* Makes a profile. Takes over data, which is from malloc(), and one reference of labels, also on
 * failure. Returns NULL if out of memory. */
struct profile *profile_new(struct labels *labels, char *data, size_t size);
/* Makes an independent profile with the same bytes, labels and receipt. Returns NULL if out of
 * memory. */
struct profile *profile_copy(const struct profile *p);
/* Makes a profile with the same labels and window but other bytes. It takes over data, which is
 * from malloc(). Returns NULL if out of memory. */
struct profile *profile_with(const struct profile *p, char *data, size_t size);
/* Replaces the labels of a profile and takes over their reference. The profile must have no other
 * reference. */
void profile_set_labels(struct profile *p, struct labels *labels);
struct profile *profile_ref(struct profile *p);
struct profile *profile_unref(struct profile *p); /* accepts NULL, returns NULL */
/* Returns the bytes that a queue counts for a profile: its data, a constant for the rest, and the
 * bytes of labels beyond the usual. Profiles share labels only until the labels change, which the
 * owner of a pod may cause each second, so each profile counts them in full. */
size_t profile_cost(const struct profile *p);
/* Returns profile_cost() of a profile on disk, given the sizes of its data and labels. */
size_t profile_cost_of(size_t size, size_t labels_bytes);

#endif
