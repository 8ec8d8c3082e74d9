/* Private to timelines and heatmaps: makes one observation of each profile or span.
 *
 * If the samples of a profile have different string labels, the profile belongs to several series,
 * and each of them has a piece of it. A group of series counts it as one profile: its value is the
 * sum of its pieces, and its exemplar has the labels that all pieces share. Pieces with the same id
 * are added up until their file (for spans: the profiles of their millisecond) has been read. A
 * piece that is the only one of its profile is observed at once, so memory grows only with the
 * profiles of one file that have several pieces. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_PIECES_H
#define PROFPULL_STORE_QUERY_PIECES_H

#include "store/query/query_private.h"

/* Longest id of an observation: the id of a profile; or that of a span, 16 hexadecimal digits,
 * followed by that of its trace, 32 digits, if it has one. */
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
    struct projections groups; /* projections to the labels that are grouped by */
    struct projections others; /* projections to the other labels */
    bool wants_labels;         /* exemplars are wanted, which need labels */
    /* The series of the last piece, and its projections: most points have the same series as the
     * point before. */
    bool has_last;
    uint64_t last_series;
    uint32_t last_group;
    uint32_t last_labels;
    /* The members below are the pieces that wait for others of their id. */
    struct table waiting; /* its keys are struct waiting_key */
    struct observation *at;
    size_t cap;
    uint64_t batch;
};

/* Receives each observation once. If it returns false with err, the reading ends. */
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
    bool shared;    /* there may be other pieces of the same id and batch */
    uint64_t batch; /* number of the file or profile that the piece was read from */
};
/* Adds a piece. If it is not shared, it is observed at once. If it begins a new batch, the pieces
 * that wait are observed first. */
bool pieces_add(struct pieces *p, const struct piece *piece, const struct observer *observer,
                struct err *err);
/* Observes all pieces that wait. Call it at the end of the reading. */
bool pieces_flush(struct pieces *p, const struct observer *observer, struct err *err);

#endif
