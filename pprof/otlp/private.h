/* Shared by the files of pprof/otlp, and by nobody else: tables.c reads requests, attributes.c
 * makes labels, making.c and entries.c write pprof, otlp.c goes through the messages. */
#ifndef PROFPULL_PPROF_OTLP_PRIVATE_H
#define PROFPULL_PPROF_OTLP_PRIVATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "pprof/otlp/otlp.h"
#include "pprof/proto/otlp_fields.h"
#include "pprof/table.h"
#include "pprof/wire.h"

/* The most sample types of a profile that is made of several messages. */
#define OTLP_TYPES_MAX 16
/* The most attributes by which a sample is assigned to a profile; further ones are ignored. */
#define OTLP_SPLITS_MAX 8
#define OTLP_TABLES (OTLP_DICTIONARY_STACK_TABLE + 1)

/* A message inside of the request. */
struct otlp_span {
    uint32_t at;
    uint32_t n;
};

/* A table of the dictionary. The profile that is being made numbers the entries that it uses from
 * 1, in the order in which it meets them. */
struct otlp_table {
    struct otlp_span *at;
    uint32_t *local; /* the number of an entry in the profile; 0: it has none yet */
    size_t n;
    size_t cap;
    uint32_t *used; /* the entries that have numbers, in the order of these */
    size_t n_used;
    size_t cap_used;
};

enum otlp_value_kind { OTLP_VALUE_OTHER, OTLP_VALUE_TEXT, OTLP_VALUE_NUMBER, OTLP_VALUE_BOOL };

/* A value of an attribute. A list of one value is that value, as in Pyroscope. */
struct otlp_value {
    enum otlp_value_kind kind;
    struct sv text;
    int64_t number; /* of a bool: 0 or 1 */
};

/* An entry of the table of attributes, once it was read. */
struct otlp_attribute {
    bool is_read;
    bool splits;  /* samples with different values belong to different profiles */
    uint32_t key; /* indices of strings */
    uint32_t unit;
    struct sv key_text;
    struct otlp_value value;
};

struct otlp_sample {
    uint32_t stack;
    uint32_t link;
    uint32_t attributes; /* the place of the first one in otlp_samples.attributes */
    uint32_t n_attributes;
    uint32_t part; /* number of the profile that it goes to */
};

/* The samples of a message, with the values of all messages of its group. */
struct otlp_samples {
    struct otlp_sample *at;
    uint32_t *attributes; /* indices of the table of attributes */
    int64_t *values[OTLP_TYPES_MAX];
    bool any_splits; /* a sample has an attribute that splits */
    size_t n;
    size_t n_attributes;
    size_t cap;
    size_t cap_attributes;
    size_t cap_values[OTLP_TYPES_MAX];
};

/* The fields of a message Profile besides its samples. */
struct otlp_head {
    uint32_t type; /* indices of strings */
    uint32_t unit;
    uint32_t period_type;
    uint32_t period_unit;
    int64_t period;
    uint64_t time_ns;
    uint64_t duration_ns;
};

struct otlp_labels {
    struct label *at;
    size_t n;
    size_t cap;
};

/* Says if a scope has a message with the type cpu:nanoseconds. */
enum otlp_cpu { OTLP_CPU_UNKNOWN, OTLP_CPU_NONE, OTLP_CPU_MEASURED };

struct otlp_reader {
    struct sv message;
    struct otlp_limits limits;
    struct otlp_facts facts;
    struct budget budget;                  /* of all arrays */
    size_t n_entries;                      /* of all tables */
    struct otlp_table tables[OTLP_TABLES]; /* by the field of the dictionary */
    struct otlp_attribute *attributes;
    /* The place in the request. */
    struct wire_reader resources;
    struct wire_reader scopes;   /* inside of the current ResourceProfiles */
    struct wire_reader profiles; /* inside of the current ScopeProfiles */
    struct sv resource;          /* messages; empty: there is none */
    struct sv scope;
    struct sv scope_message; /* the current ScopeProfiles */
    enum otlp_cpu scope_cpu;
    struct sv pending; /* a message Profile that was read, but did not belong to the last group;
                          p is NULL: there is none */
    /* The current group. */
    struct otlp_samples samples;
    struct otlp_samples more; /* of the message that may belong to the group, too */
    struct otlp_head heads[OTLP_TYPES_MAX];
    struct sv first; /* the first message of the group */
    size_t n_types;
    size_t group;
    uint32_t n_parts;
    uint32_t next_part;        /* to be made; n_parts: the group is done */
    struct table parts;        /* the attributes that split, as indices */
    struct arena *texts;       /* of labels of the group */
    struct otlp_labels common; /* labels of the group */
    struct otlp_labels labels; /* labels of the part */
    /* The profile that is being made. */
    struct buf out;
    struct sv *strings;
    size_t n_strings;
    size_t cap_strings;
    unsigned char *sample; /* bytes of a sample */
    size_t cap_sample;
    uint8_t *mappings; /* bits of entries.c, by the number of a mapping; 0: of no mapping */
    size_t n_mappings;
    size_t cap_mappings;
    size_t made; /* bytes of all profiles so far */
};

/* ---- tables.c -------------------------------------------------------------------------------- */

/* Makes room for n elements in an array of the reader. False with err. */
#define OTLP_GROW(r, array, cap, n, err)                                                           \
    (__builtin_expect((n)-1 < (cap), 1) ||                                                         \
     otlp_grow(r, (void **)&(array), &(cap), n, sizeof(*(array)), err))
/* Private: does the work of OTLP_GROW() for elements of `size` bytes. */
bool otlp_grow(struct otlp_reader *r, void **array, size_t *cap, size_t n, size_t size,
               struct err *err);
/* Reads the tables, and counts the messages. */
bool otlp_read_request(struct otlp_reader *r, struct err *err);
/* Returns true if the reader has come to the end of its message; otherwise it is damaged there. */
bool otlp_is_whole(const struct otlp_reader *r, const struct wire_reader *at, struct err *err);
/* Private: the result of otlp_entry() for an index beyond the table. Index 0 means "not set" in
 * each table: then *ret is empty. False with err for any other index. */
bool otlp_no_entry(const struct otlp_reader *r, unsigned table, uint64_t index, struct sv *ret,
                   struct err *err);
/* Finds the message of an entry. False with err if the table has no such entry. */
static inline bool otlp_entry(const struct otlp_reader *r, unsigned table, uint64_t index,
                              struct sv *ret, struct err *err)
{
    const struct otlp_table *t = &r->tables[table];
    if (index >= t->n) {
        return otlp_no_entry(r, table, index, ret, err);
    }
    *ret = (struct sv){.p = r->message.p + t->at[index].at, .n = t->at[index].n};
    return true;
}
/* Reads a message Profile without its samples. */
bool otlp_read_head(struct otlp_reader *r, struct sv message, struct otlp_head *ret,
                    struct err *err);
/* Reads the samples of a message, and their values as values[0]. */
bool otlp_read_samples(struct otlp_reader *r, struct sv message, struct otlp_samples *ret,
                       struct err *err);

/* ---- attributes.c ---------------------------------------------------------------------------- */

/* Reads an entry of the table of attributes. */
bool otlp_read_attribute(struct otlp_reader *r, uint64_t index, const struct otlp_attribute **ret,
                         struct err *err);
/* Collects the labels that all parts of the group have: the name of the type, the service, and
 * attributes of resource, scope and profile. */
bool otlp_common_labels(struct otlp_reader *r, struct err *err);
/* Makes the labels of a part, given the attributes that split it off (indices). */
bool otlp_part_labels(struct otlp_reader *r, const uint32_t *attributes, size_t n, struct err *err);
/* Returns true if the values of the group are counts of samples that are to become nanoseconds: the
 * scope does not have the nanoseconds themselves. */
bool otlp_counts_are_time(struct otlp_reader *r);

/* ---- making.c -------------------------------------------------------------------------------- */

/* Makes the profile of a part in r->out. */
bool otlp_make(struct otlp_reader *r, uint32_t part, struct pprof_summary *ret, struct err *err);

#endif
