/* The dictionary of an OTLP request: the tables that all of its profiles share.
 *
 * Each table holds messages in their wire format (the table of strings holds texts), numbered in
 * the order of arrival. Number 0 is the empty message, which means "not set". An entry that several
 * profiles have is stored once. The memory of all tables together is bounded. One owner, no
 * locking.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_OTLP_DICTIONARY_H
#define PROFPULL_WRITE_PROTOCOLS_OTLP_DICTIONARY_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/index.h"
#include "pprof/scratch.h"
#include "pprof/table.h"

/* The most bytes of the number of a location, encoded: fewer than 2^28 fit into OTLP_WORK_MAX. */
#define OTLP_FRAME_BYTES sizeof(uint32_t)

enum otlp_table {
    OTLP_MAPPINGS,
    OTLP_LOCATIONS,
    OTLP_FUNCTIONS,
    OTLP_LINKS,
    OTLP_STRINGS,
    OTLP_ATTRIBUTES,
    OTLP_STACKS,
    OTLP_TABLES,
};

/* Numbers of the fields of frequent messages. These are encoded by hand, because the generated code
 * takes several times as long for messages of a few numbers. */
struct otlp_fields {
    uint64_t locations; /* a field of a stack */
    uint64_t mapping;   /* a field of a location, as are the next members */
    uint64_t address;
    uint64_t lines;
    uint64_t attributes;
    uint64_t function; /* a field of a line, as are the next members */
    uint64_t line;
    uint64_t column;
    uint64_t name; /* a field of a function, as are the next members */
    uint64_t system_name;
    uint64_t filename;
    uint64_t start_line;
};

struct otlp_dictionary {
    struct table tables[OTLP_TABLES];
    size_t bytes_max; /* of one request; memory that is kept from earlier ones adds to the budget */
    struct budget budget;
    struct buf message; /* being made, as are the next ones */
    struct buf part;
    struct buf text;
    struct buf value;
    struct otlp_fields fields;
};

/* Initialises the dictionary. Returns false if out of memory. Call otlp_dictionary_done() in any
 * case. */
bool otlp_dictionary_init(struct otlp_dictionary *d, size_t bytes_max, struct err *err);
void otlp_dictionary_done(struct otlp_dictionary *d);
/* Empties the dictionary for another request, and keeps its memory. Returns false if out of memory.
 */
bool otlp_dictionary_reset(struct otlp_dictionary *d, struct err *err);
/* Returns the bytes that the dictionary holds. */
size_t otlp_dictionary_bytes(const struct otlp_dictionary *d);

/* The following functions find or add an entry and set *ret to its number. They return false at the
 * limit (ERR_LIMIT), or if out of memory. */

/* Adds a text; bytes that are not UTF-8 are repaired. */
bool otlp_text(struct otlp_dictionary *d, struct sv text, uint32_t *ret, struct err *err);
bool otlp_message(struct otlp_dictionary *d, enum otlp_table table, const ProtobufCMessage *m,
                  uint32_t *ret, struct err *err);
/* Attributes: a text; a flag; and a text or number in an array of its own, as labels of samples
 * are. */
bool otlp_text_attribute(struct otlp_dictionary *d, const char *key, struct sv value, uint32_t *ret,
                         struct err *err);
bool otlp_flag_attribute(struct otlp_dictionary *d, const char *key, bool value, uint32_t *ret,
                         struct err *err);
struct otlp_label {
    struct sv key;
    bool is_number;
    struct sv text;
    int64_t number;
    struct sv unit;
};
bool otlp_label_attribute(struct otlp_dictionary *d, const struct otlp_label *label, uint32_t *ret,
                          struct err *err);

/* Returns the number of a field, which the message must have. */
uint64_t otlp_field(const ProtobufCMessageDescriptor *message, const char *field);
/* Appends a message. */
void otlp_pack(struct buf *out, const ProtobufCMessage *m);
/* Returns the size of the message Dictionary, in bytes. */
size_t otlp_dictionary_size(const struct otlp_dictionary *d);
/* Appends the message Dictionary. */
void otlp_dictionary_write(const struct otlp_dictionary *d, struct buf *out);

/* ---- the entries of one profile -------------------------------------------------------------- */

/* The number of a location, encoded: the first n bytes in memory of `bytes`, which is a number
 * because a compiler copies arrays byte by byte. n is 0 if the location has no number yet. */
struct otlp_frame {
    uint32_t bytes;
    uint32_t n;
};

/* The message of a stack, which is being looked up. */
struct otlp_stack {
    unsigned char *room;
    const unsigned char *message;
    size_t n;
    uint32_t hash;
};

struct otlp_lookup {
    struct otlp_dictionary *d;
    const struct pprof_index *x;
    /* By field and place: the number of the entry + 1; 0: none yet. */
    uint32_t *numbers[PROFILE_STRING + 1];
    size_t longest_sample; /* in bytes: no sample has more frames or labels */
    /* By the id of the location; by its place if the ids need a hash table. */
    struct otlp_frame *frames;
    size_t frames_n;
    bool by_id;
    struct otlp_stack stacks[2]; /* of the current sample and of the one before it, by turns */
    struct err *err;
};

/* Initialises a lookup, in memory of the scratch. Returns false if out of memory. */
bool otlp_lookup_init(struct otlp_lookup *l, struct otlp_dictionary *d, const struct pprof_index *x,
                      struct scratch *s, struct err *err);
/* Finds or adds a string of the profile. */
bool otlp_lookup_string(struct otlp_lookup *l, uint64_t place, uint32_t *ret);
bool otlp_lookup_mapping(struct otlp_lookup *l, size_t place, uint32_t *ret);
/* Finds or adds all locations, in the order of the profile. The profiles of a series have most of
 * them in the same order, in which tables are searched fastest. */
bool otlp_lookup_locations(struct otlp_lookup *l);
/* Makes the message of the stack of a sample (its message), in one of the two places of the lookup.
 * Also returns false if the sample has a location that the profile does not define. */
bool otlp_make_stack(struct otlp_lookup *l, struct sv sample, struct otlp_stack *s);
/* Finds or adds a stack. It is best done after the next stack has been made, because the memory
 * that it needs arrives meanwhile. */
bool otlp_lookup_stack(struct otlp_lookup *l, const struct otlp_stack *s, uint32_t *ret);

#endif
