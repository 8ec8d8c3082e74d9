#include "pprof/legacy/maps.h"

/* A program that is not relocatable starts here on x86-64. */
#define PROGRAM_START UINT64_C(0x400000)
#define HEX_MAX 16 /* digits */
#define PERMISSIONS 4

/* ---- a line ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static struct sv skip(struct sv v, size_t n)
{
    return (struct sv){.p = v.p + n, .n = v.n - n};
}

static bool take_hex(struct sv *in, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 0;
    while (n < in->n && n < HEX_MAX && hex_digit(in->p[n]) >= 0) {
        value = value << 4 | (uint64_t)hex_digit(in->p[n]);
        n++;
    }
    *in = skip(*in, n);
    *ret = value;
    return n > 0;
}

static bool take_char(struct sv *in, char c)
{
    if (in->n == 0 || in->p[0] != c) {
        return false;
    }
    *in = skip(*in, 1);
    return true;
}

static bool take_space(struct sv *in)
{
    bool some = false;
    while (take_char(in, ' ') || take_char(in, '\t')) {
        some = true;
    }
    return some;
}

static bool take_number(struct sv *in)
{
    size_t n = 0;
    while (n < in->n && is_digit(in->p[n])) {
        n++;
    }
    *in = skip(*in, n);
    return n > 0;
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
    *in = skip(*in, PERMISSIONS);
    return true;
}

/* Device and inode. */
static bool take_inode(struct sv *in)
{
    uint64_t device;
    return take_hex(in, &device) && take_char(in, ':') && take_hex(in, &device) && take_space(in) &&
           take_number(in) && (in->n == 0 || take_space(in));
}

/* "00400000-004a1000 r-xp 00000000 fd:00 1234   /usr/bin/x". False for all that is none, and for
 * what cannot be executed. */
static bool read_line(struct sv line, struct legacy_mapping *ret)
{
    bool executable;
    bool ok = take_hex(&line, &ret->start) && take_char(&line, '-') &&
              take_hex(&line, &ret->limit) && take_space(&line) &&
              take_permissions(&line, &executable) && take_space(&line) &&
              take_hex(&line, &ret->offset) && take_space(&line) && take_inode(&line);
    if (!ok || !executable || ret->start >= ret->limit) {
        return false;
    }
    line = sv_trim(line);
    const struct sv deleted = SV(" (deleted)");
    if (sv_ends_with(line, deleted)) {
        line.n -= deleted.n;
    }
    ret->file = line;
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Are they two parts of one? What is not told contradicts nothing. */
static bool continues(const struct legacy_mapping *a, const struct legacy_mapping *b)
{
    return a->limit == b->start && (a->file.n == 0 || b->file.n == 0 || sv_eq(a->file, b->file)) &&
           (a->offset == 0 || b->offset == 0 || a->offset + (a->limit - a->start) == b->offset);
}

static void add(struct legacy_maps *m, const struct legacy_mapping *mapping)
{
    struct legacy_mapping *last = m->n == 0 ? NULL : &m->at[m->n - 1];
    if (last != NULL && continues(last, mapping)) {
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
        struct sv rest = skip(file, i);
        if (sv_starts_with(rest, SV(".so")) &&
            (rest.n == 3 ||
             (rest.n >= 5 && (rest.p[3] == '.' || rest.p[3] == '_') && is_digit(rest.p[4])))) {
            return true;
        }
    }
    return false;
}

/* What is read first is the program: a file, and no library. */
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

/* The start of a program that was moved to huge pages is a mapping of its own, without its name;
 * and one whose first pages are mapped apart still begins where it was linked to. */
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

static size_t count_lines(struct sv text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '\n';
    }
    return n;
}

bool legacy_maps_read(struct scratch *s, struct sv text, struct legacy_maps *ret)
{
    size_t lines = count_lines(text);
    size_t cap = lines < LEGACY_MAPPINGS_MAX ? lines : LEGACY_MAPPINGS_MAX;
    struct legacy_mapping mapping;
    *ret = (struct legacy_maps){.at = scratch_array(s, cap + 1, sizeof(*ret->at))};
    if (ret->at == NULL) {
        return false;
    }
    struct sv line;
    while (text.n > 0) {
        if (!sv_cut(text, '\n', &line, &text)) {
            line = text;
            text.n = 0;
        }
        if (read_line(line, &mapping)) {
            add(ret, &mapping);
        }
    }
    put_program_first(ret);
    mend_program(ret);
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The part of a mapping before its start in the file was left out of the list. */
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
