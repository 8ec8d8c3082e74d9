/* Shared by making.c, which writes a profile, and entries.c, which writes its locations, functions
 * and mappings. */
#ifndef PROFPULL_PPROF_OTLP_MAKING_H
#define PROFPULL_PPROF_OTLP_MAKING_H

#include "pprof/otlp/private.h"

/* A profile that is being made. */
struct making {
    struct otlp_reader *r;
    uint32_t part;
    int64_t factor;     /* of all values */
    uint32_t trace_key; /* numbers of strings; 0: not there yet */
    uint32_t span_key;
    size_t n_samples;
    struct pprof_value_type types[OTLP_TYPES_MAX];
    struct err *err;
};

/* Finds the number of an entry, which gets the next one if it has none. */
bool making_number(struct making *m, unsigned table, uint64_t index, uint32_t *ret);
/* Finds the number of a string of the dictionary; 0 for "". */
bool making_string(struct making *m, uint64_t index, uint32_t *ret);
/* Adds a string; equal ones may be there already. */
bool making_add(struct making *m, struct sv text, uint32_t *ret);
/* Puts a field that is a number, unless it is 0. Returns the place after it. */
unsigned char *making_put(unsigned char *at, uint64_t field, uint64_t value);
/* The bytes of a head that stands in front of less than 128 bytes, if the number of the field is
 * below 16. Nearly all fields have such a head. */
#define MAKING_HEAD 2
/* Puts the head of a field in front of its content, where MAKING_HEAD bytes are free. A content of
 * 128 bytes or more moves, by less than WIRE_HEAD_MAX bytes. Returns the place after the field. */
unsigned char *making_close(unsigned char *content, unsigned char *end, uint64_t field);
/* Appends what r->sample has from MAKING_HEAD on as a field of the profile. False with err. */
bool making_append(struct making *m, unsigned char *end, uint64_t field);
/* Returns true if the buffer has taken everything so far. */
bool making_has_room(struct making *m);
/* Puts the locations, functions and mappings that have numbers. */
bool making_tables(struct making *m);

#endif
