/* The metadata of a chunk: the classes of its events and constants, and programs that read their
 * values. Private to jfr.
 *
 * A program is a flat list of reads, to which a class is compiled: nested classes are inlined, and
 * arrays refer to the program of their elements. Fields that a caller wants have a slot; everything
 * else is skipped. One reader owns the metadata, and uses it again for each chunk.
 */
#ifndef PROFPULL_JFR_METADATA_H
#define PROFPULL_JFR_METADATA_H

#include "base/err.h"
#include "jfr/cursor.h"
#include "pprof/table.h"

/* The names of elements, attributes, classes and fields that have a meaning here. */
enum jfr_atom {
    ATOM_OTHER,
    /* elements and attributes */
    ATOM_CLASS,
    ATOM_FIELD,
    ATOM_ID,
    ATOM_NAME,
    ATOM_CONSTANT_POOL,
    ATOM_DIMENSION,
    /* classes of values */
    ATOM_BOOLEAN,
    ATOM_BYTE,
    ATOM_CHAR,
    ATOM_SHORT,
    ATOM_INT,
    ATOM_LONG,
    ATOM_FLOAT,
    ATOM_DOUBLE,
    ATOM_STRING,
    /* classes of constants */
    ATOM_STACK_TRACE,
    ATOM_STACK_FRAME,
    ATOM_METHOD,
    ATOM_JAVA_CLASS,
    ATOM_SYMBOL,
    ATOM_THREAD_STATE,
    ATOM_CHUNK_HEADER,
    /* events */
    ATOM_EXECUTION_SAMPLE,
    ATOM_WALL_CLOCK_SAMPLE,
    ATOM_CPU_TIME_SAMPLE,
    ATOM_IN_NEW_TLAB,
    ATOM_OUTSIDE_TLAB,
    ATOM_ALLOCATION_SAMPLE,
    ATOM_MONITOR_ENTER,
    ATOM_THREAD_PARK,
    ATOM_LIVE_OBJECT,
    ATOM_MALLOC,
    ATOM_ACTIVE_SETTING,
    /* fields */
    ATOM_STACK_TRACE_FIELD,
    ATOM_STATE,
    ATOM_CONTEXT_ID,
    ATOM_SPAN_ID,
    ATOM_SPAN_NAME,
    ATOM_SAMPLES,
    ATOM_SAMPLING_PERIOD,
    ATOM_FAILED,
    ATOM_TLAB_SIZE,
    ATOM_ALLOCATION_SIZE,
    ATOM_WEIGHT,
    ATOM_DURATION,
    ATOM_SIZE,
    ATOM_VALUE,
    ATOM_TRUNCATED,
    ATOM_FRAMES,
    ATOM_METHOD_FIELD,
    ATOM_LINE_NUMBER,
    ATOM_TYPE,
    ATOM_STRING_FIELD,
    ATOMS, /* count */
};

/* The number that stands for no class or no program. */
#define JFR_NONE UINT32_MAX
/* The most slots of a program. */
#define JFR_SLOTS_MAX 8

struct jfr_field {
    uint64_t class_id;
    uint8_t name;  /* enum jfr_atom */
    bool constant; /* its value is an index in the pool of its class */
    bool array;
};

struct jfr_class {
    uint64_t id;
    uint64_t events; /* events of this type in this chunk */
    uint64_t bytes;
    uint32_t name; /* the number of its string */
    uint32_t first_field;
    uint32_t n_fields;
    uint32_t program;       /* skips a value; made when it is first needed */
    uint32_t event_program; /* JFR_NONE: its events are only counted */
    uint8_t event_row;      /* the caller's: the meaning of its events */
    uint8_t atom;           /* the atom of its name */
};

enum jfr_op_kind { JFR_OP_RAW, JFR_OP_NUMBERS, JFR_OP_STRING, JFR_OP_ARRAY, JFR_OP_BAD };

struct jfr_op {
    uint8_t kind;  /* enum jfr_op_kind */
    uint8_t width; /* in bytes; for numbers an enum jfr_width */
    uint8_t slot;  /* JFR_SLOTS_MAX: none */
    uint8_t atom;  /* of the class of an index in a pool, else ATOM_OTHER */
    uint32_t n;    /* JFR_OP_NUMBERS: how many; JFR_OP_ARRAY: the program of an element */
};

struct jfr_program {
    uint32_t first; /* op */
    uint32_t n;
    uint32_t min_size; /* bytes of the shortest value */
};

/* The value of a wanted field. */
struct jfr_value {
    uint64_t number;         /* for an array, the number of its elements */
    const unsigned char *at; /* NULL: the class has no such field */
    bool is_text;            /* a string begins at `at` */
    uint8_t atom;            /* of the class of an index in a pool */
};

struct jfr_metadata {
    struct sv chunk;
    bool fixed;
    uint32_t *strings; /* offsets in the chunk */
    uint8_t *atoms;    /* atoms of the strings */
    struct jfr_class *classes;
    struct jfr_field *fields;
    struct jfr_op *ops;
    struct jfr_program *programs;
    uint32_t *slots; /* class + 1 by id */
    size_t n_strings, n_classes, n_fields, n_ops, n_programs, n_slots;
    size_t strings_cap, atoms_cap, classes_cap, fields_cap, ops_cap, programs_cap, slots_cap;
    size_t visits; /* fields that were compiled */
    uint64_t seed;
    struct budget *budget;
};

void jfr_metadata_init(struct jfr_metadata *m, uint64_t seed, struct budget *budget);
void jfr_metadata_done(struct jfr_metadata *m);

/* Reads the metadata event at an offset of a chunk. An error names the offset. */
bool jfr_metadata_read(struct jfr_metadata *m, struct sv chunk, bool fixed, uint64_t offset,
                       struct err *err);
/* Appends the name of a class. */
void jfr_class_name(const struct jfr_metadata *m, const struct jfr_class *class, struct buf *out);
/* Returns a cursor from an offset, which must be within the chunk, to the end of the chunk. */
struct jfr_cursor jfr_cursor_at(const struct jfr_metadata *m, uint64_t offset);
/* Sets an error about a place of the chunk. Returns false. */
bool jfr_damage(const struct jfr_metadata *m, const unsigned char *at, const char *problem,
                struct err *err);

/* Returns the class of an id, or NULL. */
struct jfr_class *jfr_class_by_id(const struct jfr_metadata *m, uint64_t id);
/* Returns the first class whose name is this atom, or NULL. */
struct jfr_class *jfr_class_by_atom(const struct jfr_metadata *m, enum jfr_atom atom);
/* Compiles the program that reads these fields (wanted[i] into slot i) of a class, at the end of
 * the list of programs. Returns its number, or JFR_NONE with err if out of memory. The program of a
 * class that cannot be read fails when it runs. */
uint32_t jfr_compile(struct jfr_metadata *m, struct jfr_class *class, const enum jfr_atom *wanted,
                     size_t n_wanted, struct err *err);
/* Returns the program that skips a value of the class, which is made once. */
uint32_t jfr_compile_skip(struct jfr_metadata *m, struct jfr_class *class, struct err *err);
/* Runs a program, which reads a value. values[] has JFR_SLOTS_MAX elements, which the caller has
 * zeroed; NULL: everything is skipped. */
void jfr_run(const struct jfr_metadata *m, uint32_t program, struct jfr_cursor *c,
             struct jfr_value *values);

#endif
