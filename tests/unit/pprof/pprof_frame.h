/* pprof_index_frame() checks and fills its tables in one walk: compares it with the functions that
 * do so one after the other. */
#ifndef PROFPULL_TESTS_PPROF_FRAME_H
#define PROFPULL_TESTS_PPROF_FRAME_H

#include <stdlib.h>
#include <string.h>

#include "pprof/columns.h"
#include "pprof/index.h"

static inline bool frame_same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

static inline bool frame_same_summaries(const struct pprof_summary *a,
                                        const struct pprof_summary *b)
{
    bool same = frame_same_bytes(a->n, b->n, sizeof(a->n)) && a->time_ns == b->time_ns &&
                a->duration_ns == b->duration_ns && a->period == b->period &&
                a->plain_size == b->plain_size && a->whole == b->whole &&
                a->period_type.type == b->period_type.type &&
                a->period_type.unit == b->period_type.unit;
    for (size_t i = 0; i < a->n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        same = same && a->types[i].type == b->types[i].type && a->types[i].unit == b->types[i].unit;
    }
    return same;
}

/* Returns true if the function that an index has kept of a location is that of its only line. An
 * index may keep none. */
static inline bool frame_knows_line(const struct pprof_index *x, size_t i)
{
    struct wire_reader r = wire_reader_of(pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[i]));
    struct wire_field f = {.number = 0};
    uint64_t v[LINE_FUNCTION_ID + 1] = {0};
    size_t lines = 0;
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            lines++;
            wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
        }
    }
    uint64_t function = x->locations[i].function;
    return function == 0 || (lines == 1 && function == v[LINE_FUNCTION_ID]);
}

static inline bool frame_same_locations(const struct pprof_index *a, const struct pprof_index *b)
{
    bool same = true;
    for (size_t i = 0; same && i < a->summary.n[PROFILE_LOCATION]; i++) {
        const struct pprof_location *x = &a->locations[i];
        const struct pprof_location *y = &b->locations[i];
        same = x->mapping == y->mapping && x->address == y->address && frame_knows_line(a, i) &&
               frame_knows_line(b, i) && a->location_keys[i] == b->location_keys[i];
    }
    return same;
}

/* Returns the first difference between the tables; NULL if there is none. */
static inline const char *frame_difference_of(const struct pprof_index *a,
                                              const struct pprof_index *b)
{
    if (!frame_same_summaries(&a->summary, &b->summary)) {
        return "summary";
    }
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_STRING; field++) {
        const struct pprof_entries *x = &a->entries[field];
        const struct pprof_entries *y = &b->entries[field];
        size_t n = a->summary.n[field];
        size_t ids = field == PROFILE_STRING ? 0 : n;
        if (x->ids.n != n || y->ids.n != n ||
            !frame_same_bytes(x->spans, y->spans, n * sizeof(*x->spans)) ||
            !frame_same_bytes(x->used, y->used, n) ||
            !frame_same_bytes(x->ids.at, y->ids.at, ids * sizeof(*x->ids.at)) ||
            (x->ids.slots == NULL) != (y->ids.slots == NULL)) {
            return "entries";
        }
    }
    for (size_t i = 0; i < a->summary.n[PROFILE_FUNCTION]; i++) {
        const struct pprof_function *x = &a->functions[i];
        const struct pprof_function *y = &b->functions[i];
        if (x->name != y->name || x->system_name != y->system_name || x->file != y->file ||
            x->has_key != y->has_key || (x->has_key && x->key != y->key)) {
            return "functions";
        }
    }
    bool same = frame_same_locations(a, b) &&
                frame_same_bytes(a->mappings, b->mappings,
                                 a->summary.n[PROFILE_MAPPING] * sizeof(*a->mappings));
    return same ? NULL : "locations";
}

/* Returns true if pprof_index_whole() finds a profile good if, and only if, the check of the whole
 * profile and the index do, one after the other. */
static inline bool whole_agrees(struct scratch *s, struct sv plain)
{
    struct pprof_summary summary;
    struct pprof_index in_parts;
    struct pprof_index at_once;
    struct err err = ERR_INIT;
    bool good = pprof_check(plain, &summary, &err) && pprof_small_enough(summary.n, "test", &err) &&
                pprof_index(&in_parts, s, plain, &summary, 5, &err);
    return good == pprof_index_whole(&at_once, s, plain, "test", 5, &err);
}

/* Returns NULL if both ways find a profile good, with the same tables, or bad, with the same
 * reason; otherwise the difference. */
static inline const char *frame_difference(struct sv plain)
{
    struct scratch *s = scratch_new();
    struct pprof_summary summary;
    struct pprof_index in_parts;
    struct pprof_index at_once;
    struct err err = ERR_INIT;
    struct err err_at_once = ERR_INIT;
    if (s == NULL) {
        return "no memory";
    }
    bool good = pprof_check_frame(plain, &summary, &err) &&
                pprof_small_enough(summary.n, "test", &err) &&
                pprof_index(&in_parts, s, plain, &summary, 5, &err);
    bool good_at_once = pprof_index_frame(&at_once, s, plain, "test", 5, &err_at_once);
    const char *difference = NULL;
    if (good != good_at_once || err.kind != err_at_once.kind ||
        strcmp(err.msg, err_at_once.msg) != 0) {
        difference = "verdict";
    } else if (good && !(pprof_index_keys(&in_parts, s) && pprof_index_keys(&at_once, s))) {
        difference = "no memory";
    } else if (good) {
        difference = frame_difference_of(&in_parts, &at_once);
    }
    difference = difference == NULL && !whole_agrees(s, plain) ? "whole" : difference;
    scratch_free(s);
    return difference;
}

#endif
