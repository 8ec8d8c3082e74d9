/* One profile on its way from the scraper to the writer.
 *
 * Immutable and reference-counted (atomic, any thread); all endpoints share the same bytes.
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

struct profile {
    atomic_uint refs;
    struct labels *labels; /* all labels, `__*` included; `__name__` is the series name */
    char *data;            /* gzip or plain, from malloc() */
    size_t size;
    int64_t from_ns; /* wall clock: the window that the profile covers */
    int64_t until_ns;
    int64_t scraped_ms; /* monotonic: when it was complete */
    bool is_delta;      /* covers from..until only, though its kind is cumulative */
    bool is_pushed;     /* a sender made it: its `__*` labels mean something to whoever keeps it */
    /* If nobody takes it, the next one of its scrape covers its window as well: refusing it loses
     * nothing, dropping it later does. */
    bool refusable;
    struct receipt *receipt; /* a reference; NULL: nobody waits for it to be safe */
    bool no_sample_texts;    /* no sample has a label that is a text; false if that is not known */
    enum profile_format format;
    uint32_t job; /* its slot (config/change.h) */
    /* 0, or what keeps it apart from another profile with the same bytes, labels and time. The
     * files of a spool do not have it: of equal profiles that are read from there one is left. */
    uint16_t salt;
};

/* Takes over data (malloc'd) and one reference of labels, also on failure. NULL if out of memory.
 */
struct profile *profile_new(struct labels *labels, char *data, size_t size);
/* A profile of its own with the same bytes, labels and receipt. NULL if out of memory. */
struct profile *profile_copy(const struct profile *p);
/* One with the same labels and window and other bytes (malloc'd), which it takes over. NULL if out
 * of memory. */
struct profile *profile_with(const struct profile *p, char *data, size_t size);
/* Replaces its labels; takes over the reference. Only while there is no other reference. */
void profile_set_labels(struct profile *p, struct labels *labels);
struct profile *profile_ref(struct profile *p);
struct profile *profile_unref(struct profile *p); /* accepts NULL, returns NULL */
/* The bytes that a queue accounts for a profile: its data, a constant for the rest, and labels as
 * far as they are longer than usual. Profiles share their labels only until those change, which the
 * owner of a pod may do each second: so each of them counts in full. */
size_t profile_cost(const struct profile *p);
/* The same of one that is on disk. */
size_t profile_cost_of(size_t size, size_t labels_bytes);

#endif
