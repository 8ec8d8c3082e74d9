/* Private to timelines and heatmaps: one observation for each profile or span.
 *
 * A profile whose samples have different string labels belongs to several series, and each of these
 * has a piece of it. In a group of series it is one profile: its value is the sum of its pieces,
 * and its exemplar has the labels that all of them share. Pieces of the same id are added up until
 * their file (for spans: the profiles of their millisecond) has been read. A piece that is alone is
 * passed on at once, so memory grows with the profiles of one file that have several pieces. One
 * thread.
 */
#ifndef PROFPULL_STORE_QUERY_PIECES_H
#define PROFPULL_STORE_QUERY_PIECES_H

#include "store/query/query_private.h"

/* The id of a profile; or that of a span, 16 hexadecimal digits, with that of its trace, 32 more,
 * if it has one. */
#define OBSERVATION_ID_MAX 48

struct observation {
    uint32_t group;  /* number of a projection in groups */
    uint32_t labels; /* number of a projection in others; 0 if no exemplars are wanted */
    int64_t time_ns;
    int64_t value;
    char id[OBSERVATION_ID_MAX + 1];
};

struct pieces {
    struct budget *budget;     /* borrowed */
    struct projections groups; /* the labels that are grouped by */
    struct projections others; /* the other labels */
    bool wants_labels;         /* for exemplars */
    /* The series that came last, and its projections: most points have the series of the one
     * before.
     */
    bool has_last;
    uint64_t last_series;
    uint32_t last_group;
    uint32_t last_labels;
    /* Pieces that wait for others. */
    struct table waiting; /* keys are struct waiting_key */
    struct observation *at;
    size_t cap;
    uint64_t batch;
};

/* Receives each observation once. False with err ends the reading. */
struct observer {
    bool (*observe)(void *arg, const struct observation *o, struct err *err);
    void *arg;
};

void pieces_init(struct pieces *p, const struct query_steps *o, struct budget *budget);
void pieces_done(struct pieces *p);

/* A piece as it is read. */
struct piece {
    const struct store_series *series;
    int64_t time_ns;
    int64_t value;
    const char *id; /* at most OBSERVATION_ID_MAX bytes */
    bool shared;    /* there may be others of the same id and batch */
    uint64_t batch; /* number of what is read together: a file or a profile */
};
/* Adds a piece; observes it at once if it is alone, and those that wait if it begins a batch. */
bool pieces_add(struct pieces *p, const struct piece *piece, const struct observer *observer,
                struct err *err);
/* Observes all that wait: at the end of the reading. */
bool pieces_flush(struct pieces *p, const struct observer *observer, struct err *err);

#endif
