/* Settings for names of addresses. config/ fills them in; they live as long as the configuration.
 */
#ifndef PROFPULL_SYMBOLS_SETTINGS_H
#define PROFPULL_SYMBOLS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

/* Programs are asked for the names of their own addresses (auto), or not. */
enum symbols_target { SYMBOLS_TARGET_AUTO, SYMBOLS_TARGET_OFF };

struct symbols_list {
    const char *const *at;
    size_t n;
};

/* The sources of names, which a job may set for itself. */
struct symbols_sources {
    bool given;                      /* the file sets them here */
    unsigned target;                 /* enum symbols_target */
    struct symbols_list debuginfod;  /* URLs, in the order in which they are asked */
    struct symbols_list directories; /* with the layout DIR/.build-id/ab/cdef.debug */
    int64_t wait_ms;                 /* how long a profile may wait for names */
};

struct symbols_settings {
    struct symbols_sources sources; /* of all profiles but those of jobs with their own */
    const char *cache_directory;    /* NULL: nothing is kept on disk */
    uint64_t cache_max_bytes;
    uint64_t names_max_bytes;  /* of names in memory */
    uint64_t max_file_size;    /* of one file with debug information */
    uint64_t max_memory;       /* address space of the process that reads such files */
    int64_t timeout_ms;        /* of one question to that process, and of one download */
    struct http_settings http; /* of requests to debuginfod */
};

#endif
