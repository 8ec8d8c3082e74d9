/* The locations of a pprof profile that have no names, and the profile with names.
 *
 * A location lacks names if it has an address and no line, or only lines of functions without a
 * name (Go writes such lines for addresses that it does not know), or only the name that
 * symbol_profile_write() gives to unknown addresses, so that a later attempt can replace that name.
 * All other locations stay byte for byte as they are.
 *
 * The functions read bytes from outside and trust none of them. They are pure; any thread may call
 * them. Their memory is that of a scratch, in proportion to the profile.
 */
#ifndef PROFPULL_SYMBOLS_PROFILE_H
#define PROFPULL_SYMBOLS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* A function. Two lines of a profile with the same pointer to a function share its entry. */
struct symbol_function {
    struct sv name;        /* for people, demangled */
    struct sv system_name; /* as the linker has it; may be empty */
    struct sv file;        /* may be empty */
    uint64_t start_line;   /* 0: unknown */
};

struct symbol_line {
    const struct symbol_function *function;
    uint64_t line; /* 0: unknown */
};

/* The place of a location that has no mapping. */
#define SYMBOL_NO_MAPPING UINT32_MAX

/* A mapping of the profile: a file, or a part of one, in the memory of the process. */
struct symbol_binary {
    uint64_t id;
    uint64_t start;
    uint64_t limit; /* 0: unknown */
    uint64_t offset;
    struct sv file;     /* views into the profile; may be empty */
    struct sv build_id; /* hex as the profile has it */
    size_t unnamed;     /* locations of the mapping that lack names */
    struct {
        uint32_t field_at; /* private: where the mapping's field begins */
        uint32_t at;       /* private: where its content begins, and its length */
        uint32_t n;
    } old;
};

struct symbol_location {
    uint64_t address;
    uint32_t mapping; /* a place in the mappings, or SYMBOL_NO_MAPPING */
    uint32_t n_lines; /* set by the caller; 0: unknown */
    /* Set by the caller: the frames at the address, innermost first. They must live until
     * symbol_profile_write() returns. */
    const struct symbol_line *lines;
    uint8_t known; /* set by the caller: symbol_lines_known() of the lines */
    struct {
        uint32_t field_at; /* private: where the location's field begins */
        uint32_t at;       /* private: where its content begins, and its length */
        uint32_t n;
        bool has_lines; /* private: lines that are replaced */
        bool is_marked; /* private: its name is already that of an unknown address */
    } old;
};

struct symbol_profile {
    struct sv plain;
    struct scratch *scratch;
    struct symbol_binary *mappings;
    size_t n_mappings;
    struct symbol_location *locations; /* those that lack names, in the order of the profile */
    size_t n_locations;
    uint64_t n_strings; /* private, as is the next one */
    uint64_t max_function;
};

/* Returns a set of facts about the lines of a location, which symbol_profile_write() needs for the
 * mapping. A cache of lines keeps it with them, so that writing a profile need not read each
 * function of each line. */
uint8_t symbol_lines_known(const struct symbol_line *lines, size_t n);

enum symbol_glance {
    SYMBOL_GLANCE_NAMED,   /* the beginning has locations, and all of them have lines */
    SYMBOL_GLANCE_UNNAMED, /* a location has no line */
    SYMBOL_GLANCE_UNSURE,  /* the beginning has no location */
};

/* Inspects the first few KiB of a profile, gzip or plain. The work does not grow with the profile.
 */
enum symbol_glance symbol_profile_glance(struct sv body);

/* Returns true if a location of a plain profile may lack names. It reads the profile once and makes
 * no tables: a small part of the work of symbol_profile_read(). */
bool symbol_profile_may_lack(struct sv plain);

/* Finds the locations that lack names in a plain profile, which must live as long as p. Returns
 * false with an error if the profile is damaged, has 4 GiB or more, or if out of memory. */
bool symbol_profile_read(struct symbol_profile *p, struct scratch *scratch, struct sv plain,
                         struct err *err);

/* Returns the place of an address in the file of its mapping. An address outside of the mapping's
 * range is taken as a place in the file, as profilers write it that normalise addresses. */
uint64_t symbol_file_offset(const struct symbol_binary *m, uint64_t address);

/* Returns true if symbol_profile_write() would change the profile: a location has lines now, or is
 * not yet named as unknown. */
bool symbol_profile_changes(const struct symbol_profile *p);

/* Appends the profile with the names of all locations that have lines now. A location without lines
 * is named by the file of its mapping and its place in it ("libc.so.6!0x2724a"), which does not
 * change when the program starts again; without such a file, it is "[unknown]". Sets has_functions,
 * has_filenames, has_line_numbers and has_inline_frames of mappings whose locations were all named.
 * Returns false if out of memory, or at the limit of the buffer. */
bool symbol_profile_write(const struct symbol_profile *p, struct buf *out, struct err *err);

#endif
