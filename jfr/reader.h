/* The reader of a recording. Private to jfr. */
#ifndef PROFPULL_JFR_READER_H
#define PROFPULL_JFR_READER_H

#include "jfr/contexts.h"
#include "jfr/jfr.h"
#include "jfr/metadata.h"
#include "jfr/pools.h"
#include "jfr/samples.h"

/* A type of events and what was counted of it. */
struct jfr_counted {
    uint64_t events;
    uint64_t bytes;
};

struct jfr_reader {
    struct jfr_options options;
    struct budget budget;
    struct jfr_contexts contexts;
    struct jfr_metadata metadata;
    struct jfr_pools pools;
    struct jfr_samples samples;
    struct jfr_head head; /* head of the chunk being read */
    struct jfr_facts facts;
    size_t chunks_begun;
    uint64_t offset; /* offset of the chunk in the recording */
    /* Settings of the recording. The last value of each counts. */
    struct buf event;
    bool is_wall;                /* the event is "wall" */
    int64_t periods[JFR_CLOCKS]; /* 0: not known */
    /* Working memory. */
    struct buf symbol;
    struct buf name;
    unsigned char *frames; /* the stack being read: numbers of locations as varints */
    size_t frames_cap;
    struct table types; /* names; what was counted follows each */
    struct jfr_counted *counted;
    size_t counted_cap;
};

/* Finds the types of events of the chunk that are used. */
bool jfr_events_prepare(struct jfr_reader *r, struct err *err);
/* Reads all events of the chunk. */
bool jfr_events_read(struct jfr_reader *r, struct sv chunk, struct err *err);

enum jfr_stack_result { JFR_STACK_FOUND, JFR_STACK_MISSING, JFR_STACK_FAILED };
/* Finds the number of a stack of the pool. JFR_STACK_FAILED with err if out of memory. */
enum jfr_stack_result jfr_stack_find(struct jfr_reader *r, uint64_t id, uint32_t *ret_stack,
                                     bool *ret_truncated, struct err *err);

#endif
