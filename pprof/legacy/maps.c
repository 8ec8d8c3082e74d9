#include "pprof/legacy/maps.h"

#include "base/ascii.h"
#include "pprof/legacy/text.h"

/* A program that is not relocatable starts here on x86-64. */
#define PROGRAM_START UINT64_C(0x400000)
#define PERMISSIONS 4

/* ---- a line ---------------------------------------------------------------------------------- */

static bool take_spaces(struct sv *in)
{
    return text_take_any(in, " \t");
}

static bool take_permissions(struct sv *in, bool *ret_executable)
{
    *ret_executable = false;
    for (size_t i = 0; i < PERMISSIONS; i++) {
        char c = in->n > i ? in->p[i] : '\0';
        if (c != '-' && c != 'r' && c != 'w' && c != 'x' && c != 'p' && c != 's') {
            return false;
        }
        *ret_executable = *ret_executable || c == 'x';
    }
    *in = sv_skip(*in, PERMISSIONS);
    return true;
}

/* Skips the device and the inode. */
static bool take_inode(struct sv *in)
{
    uint64_t device;
    return text_take_hex(in, true, &device) && text_take(in, SV(":")) &&
           text_take_hex(in, true, &device) && take_spaces(in) && text_take_digits(in).n > 0 &&
           (in->n == 0 || take_spaces(in));
}

/* "00400000-004a1000 r-xp 00000000 fd:00 1234   /usr/bin/x". Returns false for any other line, and
 * for a mapping that cannot be executed. */
static bool read_line(struct sv line, struct legacy_mapping *ret)
{
    bool executable;
    bool ok = text_take_hex(&line, true, &ret->start) && text_take(&line, SV("-")) &&
              text_take_hex(&line, true, &ret->limit) && take_spaces(&line) &&
              take_permissions(&line, &executable) && take_spaces(&line) &&
              text_take_hex(&line, true, &ret->offset) && take_spaces(&line) && take_inode(&line);
    if (!ok || !executable || ret->start >= ret->limit) {
        return false;
    }
    line = sv_trim(line);
    const struct sv deleted = SV(" (deleted)");
    line.n -= sv_ends_with(line, deleted) ? deleted.n : 0;
    ret->file = line;
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Returns true if two mappings are parts of one. Facts that are missing do not contradict this. */
static bool continues(const struct legacy_mapping *a, const struct legacy_mapping *b)
{
    return a->limit == b->start && (a->file.n == 0 || b->file.n == 0 || sv_eq(a->file, b->file)) &&
           (a->offset == 0 || b->offset == 0 || a->offset + (a->limit - a->start) == b->offset);
}

static void add(struct legacy_maps *m, const struct legacy_mapping *mapping)
{
    struct legacy_mapping *last = &m->at[m->n == 0 ? 0 : m->n - 1];
    if (m->n > 0 && continues(last, mapping)) {
        last->limit = mapping->limit;
        last->file = mapping->file.n == 0 ? last->file : mapping->file;
    } else if (m->n < LEGACY_MAPPINGS_MAX) {
        m->at[m->n++] = *mapping;
    }
}

/* "libc.so", "libc.so.6", "libc.so_1" */
static bool is_library(struct sv file)
{
    for (size_t i = 0; i + 3 <= file.n; i++) {
        struct sv rest = sv_skip(file, i);
        if (sv_starts_with(rest, SV(".so")) &&
            (rest.n == 3 || (rest.n >= 5 && (rest.p[3] == '.' || rest.p[3] == '_') &&
                             ascii_is_digit(rest.p[4])))) {
            return true;
        }
    }
    return false;
}

/* Moves the program, the first file that is not a library, to the first place. */
static void put_program_first(struct legacy_maps *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct sv file = m->at[i].file;
        if (file.n > 0 && file.p[0] != '[' && !is_library(file)) {
            struct legacy_mapping program = m->at[i];
            m->at[i] = m->at[0];
            m->at[0] = program;
            return;
        }
    }
}

/* The start of a program that was moved to huge pages is a mapping of its own, without its name. A
 * program whose first pages are mapped separately still begins at its link address. */
static void mend_program(struct legacy_maps *m)
{
    if (m->n > 1 && sv_starts_with(m->at[0].file, SV("/anon_hugepage")) &&
        m->at[0].limit == m->at[1].start) {
        m->at++;
        m->n--;
    }
    if (m->n > 0 && m->at[0].start - m->at[0].offset == PROGRAM_START) {
        m->at[0].start = PROGRAM_START;
        m->at[0].offset = 0;
    }
}

bool legacy_maps_read(struct scratch *s, struct sv text, struct legacy_maps *ret)
{
    size_t lines = text_count(text, '\n') + 1;
    size_t cap = lines < LEGACY_MAPPINGS_MAX ? lines : LEGACY_MAPPINGS_MAX;
    struct legacy_mapping mapping;
    *ret = (struct legacy_maps){.at = scratch_array(s, cap + 1, sizeof(*ret->at))};
    if (ret->at == NULL) {
        return false;
    }
    struct sv line;
    while (text_take_line(&text, &line)) {
        if (read_line(line, &mapping)) {
            add(ret, &mapping);
        }
    }
    put_program_first(ret);
    mend_program(ret);
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Extends a mapping to an address before it, if the list left out that part of the file. */
static bool widen(struct legacy_mapping *m, uint64_t address)
{
    if (m->offset == 0 || m->start - m->offset > address || address >= m->start) {
        return false;
    }
    m->start -= m->offset;
    m->offset = 0;
    return true;
}

uint32_t legacy_maps_place(struct legacy_maps *m, uint64_t address)
{
    if (address == 0) {
        return 0;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->at[i].start <= address && address < m->at[i].limit) {
            return (uint32_t)i + 1;
        }
    }
    for (size_t i = 0; i < m->n; i++) {
        if (widen(&m->at[i], address)) {
            return (uint32_t)i + 1;
        }
    }
    if (m->unknown == 0) {
        m->at[m->n++] = (struct legacy_mapping){.limit = UINT64_MAX};
        m->unknown = (uint32_t)m->n;
    }
    return m->unknown;
}
