/* The fields of pprof's messages: a table for each message of perftools.profiles. */
#ifndef PROFPULL_PPROF_FIELDS_H
#define PROFPULL_PPROF_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "pprof/wire.h"

enum field_kind {
    FIELD_UNKNOWN, /* skipped */
    FIELD_NUMBER,
    FIELD_NUMBERS, /* repeated, packed or not */
    FIELD_STRING,  /* the index of a string */
    FIELD_STRINGS,
    FIELD_ID, /* never 0; a message without it is bad */
    FIELD_IDS,
    FIELD_TEXT,
    FIELD_MESSAGE,
};

struct field_table {
    const char *name;                              /* name of the message */
    const struct field_table *sub[PROFILE_FIELDS]; /* tables of fields that are messages */
    uint8_t kind[PROFILE_FIELDS];                  /* enum field_kind, by number */
    uint8_t id;                                    /* the field that the message must have, or 0 */
    /* For a field with ids of mappings, locations or functions: the field of the profile whose
     * entries they are. */
    uint8_t ref[PROFILE_FIELDS];
};

/* The table of the Profile message. The other tables are reached through it. */
extern const struct field_table profile_table;

static inline enum field_kind field_kind_of(const struct field_table *t, const struct wire_field *f)
{
    return f->number < PROFILE_FIELDS ? (enum field_kind)t->kind[f->number] : FIELD_UNKNOWN;
}

/* Returns true if a field of this kind may have the wire type. */
static inline bool field_fits(enum field_kind kind, unsigned type)
{
    enum { VARINT = 1 << WIRE_VARINT, BYTES = 1 << WIRE_BYTES };
    static const uint8_t types[] = {
        [FIELD_UNKNOWN] = 0xff,           [FIELD_NUMBER] = VARINT,
        [FIELD_NUMBERS] = VARINT | BYTES, [FIELD_STRING] = VARINT,
        [FIELD_STRINGS] = VARINT | BYTES, [FIELD_ID] = VARINT,
        [FIELD_IDS] = VARINT | BYTES,     [FIELD_TEXT] = BYTES,
        [FIELD_MESSAGE] = BYTES,
    };
    return (types[kind] >> type & 1) != 0;
}

/* Returns false for a known field of the Profile message with a wire type that it cannot have. */
static inline bool profile_field_fits(const struct wire_field *f)
{
    return field_fits(field_kind_of(&profile_table, f), f->type);
}

#endif
