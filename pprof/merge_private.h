/* Shared by the two halves of merging: merge.c reads, merge_write.c writes.
 *
 * Entries are rows of 32-bit words that refer to each other by number. Numbers of 64 bits are two
 * words, the low one first. An entry begins with its key, the words that google/pprof compares;
 * words that are only written follow.
 */
#ifndef PROFPULL_PPROF_MERGE_PRIVATE_H
#define PROFPULL_PPROF_MERGE_PRIVATE_H

#include <stdint.h>

#include "pprof/columns.h"
#include "pprof/merge.h"
#include "pprof/table.h"

enum merge_table {
    MERGE_STRINGS,   /* bytes */
    MERGE_COMMENTS,  /* a string */
    MERGE_FUNCTIONS, /* words of enum merge_function */
    MERGE_MAPPINGS,
    MERGE_LOCATIONS,
    MERGE_STACKS, /* stacks of samples: the number of frames, the frames, the labels */
    MERGE_TABLES,
};

enum merge_function {
    FN_NAME,
    FN_SYSTEM_NAME,
    FN_FILE,
    FN_START_LINE,
    FN_WORDS = FN_START_LINE + 2
};

enum merge_mapping {
    MAP_SIZE,       /* rounded up to whole pages */
    MAP_OFFSET = 2, /* 64 bits, as START and LIMIT */
    MAP_NAME = 4,   /* the build id, or else the file */
    MAP_KEY_WORDS = 5,
    MAP_START = 5,
    MAP_LIMIT = 7,
    MAP_FILE = 9,
    MAP_BUILD_ID = 10,
    MAP_FLAGS = 11, /* has_functions and the three after it, one bit each */
    MAP_WORDS = 12,
};

/* The mapping of a location that has none. */
#define MERGE_NONE UINT32_MAX

/* A location: the words up to LOC_LINES, then LN_WORDS for each line. All of them are its key. */
enum merge_location {
    LOC_MAPPING, /* or MERGE_NONE */
    LOC_FOLDED,
    LOC_OFFSET, /* of the address from the start of its mapping */
    LOC_LINES = 4,
};

enum merge_line {
    LN_FUNCTION,
    LN_NUMBER,     /* 64 bits, as COLUMN */
    LN_COLUMN = 3, /* 0 if the writer does not know columns, as Go's runtime */
    LN_WORDS = 5,
};

/* A label of a stack, sorted as google/pprof writes them. */
enum merge_label {
    LABEL_KEY_TEXT, /* string x 2, + 1 if it is a number */
    LABEL_TEXT,     /* the value, or the unit */
    LABEL_NUMBER,   /* 64 bits */
    LABEL_WORDS = 4,
};

/* The members of a merged profile other than its entries. */
struct merge_head {
    size_t profiles;
    size_t types;
    uint32_t type[SUMMARY_TYPES_MAX]; /* strings */
    uint32_t unit[SUMMARY_TYPES_MAX];
    bool is_last[SUMMARY_TYPES_MAX]; /* columns of which the last profile's values stay */
    uint32_t period_type;
    uint32_t period_unit;
    uint32_t drop_frames;
    uint32_t keep_frames;
    uint32_t default_type;
    uint32_t doc_url;
    int64_t time_ns;
    int64_t duration_ns;
    int64_t period;
};

struct merge {
    struct merge_options o;
    struct scratch *own; /* NULL if the options have one */
    struct budget budget;
    struct table tables[MERGE_TABLES];
    struct merge_head head;
    int64_t *values; /* head.types values for each stack */
    size_t values_cap;
    uint32_t *seen; /* of each stack: the value of head.profiles when a profile last had it */
    size_t seen_cap;
};

static inline const uint32_t *merge_words(const struct merge *m, enum merge_table table, uint32_t i,
                                          size_t *ret_n)
{
    size_t n;
    const void *words = merge_table_get(&m->tables[table], i, &n);
    *ret_n = n / sizeof(uint32_t);
    return words;
}

static inline uint64_t merge_u64(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

#endif
