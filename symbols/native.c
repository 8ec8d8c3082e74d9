#include "symbols/native.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sv.h"
#include "symbols/demangle.h"
#include "symbols/functions.h"
#include "symbols/inlines.h"
#include "symbols/segments.h"
#include "symbols/units.h"

struct native {
    Dwfl *dwfl;
    Dwfl_Module *module;
    uint64_t bias; /* of libdwfl's addresses over virtual ones */
    struct segments segments;
    bool partial;
    struct functions functions;
    struct units units; /* those that .debug_aranges does not list */
};

/* Other files are never looked for: the child may open none. */
static int native_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                               const char *file, const char *link, GElf_Word crc, char **ret_file)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)ret_file;
    return -1;
}

static bool fail(enum symbols_failure *ret, enum symbols_failure f)
{
    *ret = f;
    return false;
}

static bool unreadable(enum symbols_failure *ret, struct err *err)
{
    int code = dwfl_errno();
    if (errno == ENOMEM) {
        err_set(err, ERR_LIMIT, "opening the file takes more memory than is allowed");
        return fail(ret, SYMBOLS_MEMORY);
    }
    err_set(err, ERR_INPUT, "expected an ELF file of a program or library: %s",
            code == 0 ? "it is not one" : dwfl_errmsg(code));
    return fail(ret, SYMBOLS_UNREADABLE);
}

static bool load(struct native *n, int fd, enum symbols_failure *ret, struct err *err)
{
    static const Dwfl_Callbacks callbacks = {
        .find_debuginfo = native_no_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    /* libdwfl closes the descriptor that it gets. */
    int own = dup(fd);
    if (own < 0) {
        err_sys(err, "duplicating the descriptor");
        return fail(ret, SYMBOLS_UNREADABLE);
    }
    n->dwfl = dwfl_begin(&callbacks);
    if (n->dwfl == NULL) {
        close(own);
        err_memory(err);
        return fail(ret, SYMBOLS_MEMORY);
    }
    dwfl_report_begin(n->dwfl);
    errno = 0;
    n->module = dwfl_report_offline(n->dwfl, "file", "file", own);
    if (n->module == NULL) {
        close(own);
    }
    dwfl_report_end(n->dwfl, NULL, NULL);
    GElf_Addr bias;
    Elf *elf = n->module == NULL ? NULL : dwfl_module_getelf(n->module, &bias);
    if (elf == NULL || !segments_read(&n->segments, elf)) {
        return unreadable(ret, err);
    }
    n->bias = bias;
    return true;
}

/* Compares the note of the file with the build id that is wanted. */
static bool check_build_id(struct native *n, const char *wanted, enum symbols_failure *ret,
                           struct err *err)
{
    GElf_Addr bias;
    const void *note;
    char found[2 * 64 + 1] = "";
    ssize_t size = dwelf_elf_gnu_build_id(dwfl_module_getelf(n->module, &bias), &note);
    for (ssize_t i = 0; i < size && i < 64; i++) {
        (void)snprintf(found + 2 * i, 3, "%02x", ((const unsigned char *)note)[i]);
    }
    if (wanted[0] == '\0' || strcmp(found, wanted) == 0) {
        return true;
    }
    err_set(err, ERR_INPUT, "expected a file with build id %s, got %s", wanted,
            found[0] != '\0' ? found : "one without");
    return fail(ret, SYMBOLS_BUILD_ID);
}

/* Returns true if the file has a section .debug_info with content. */
static bool has_debug_information(Elf *elf)
{
    size_t names;
    GElf_Shdr header;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return false;
    }
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s != NULL; s = elf_nextscn(elf, s)) {
        const char *name =
            gelf_getshdr(s, &header) == NULL ? NULL : elf_strptr(elf, names, header.sh_name);
        if (name != NULL && header.sh_type != SHT_NOBITS &&
            (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)) {
            return true;
        }
    }
    return false;
}

bool native_is_partial(const struct native *n)
{
    return n->partial;
}

struct native *native_open(int fd, const char *build_id, enum symbols_failure *ret_failure,
                           struct err *err)
{
    struct native *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        err_memory(err);
        fail(ret_failure, SYMBOLS_MEMORY);
        return NULL;
    }
    (void)elf_version(EV_CURRENT);
    if (!load(n, fd, ret_failure, err) || !check_build_id(n, build_id, ret_failure, err)) {
        return native_free(n);
    }
    GElf_Addr bias;
    n->partial = dwfl_module_getdwarf(n->module, &bias) == NULL &&
                 has_debug_information(dwfl_module_getelf(n->module, &bias));
    return n;
}

struct native *native_free(struct native *n)
{
    if (n != NULL) {
        units_done(&n->units);
        functions_done(&n->functions);
        if (n->dwfl != NULL) {
            dwfl_end(n->dwfl);
        }
        free(n);
    }
    return NULL;
}

/* ---- an address ------------------------------------------------------------------------------ */

/* An address of libdwfl in DWARF. */
struct place {
    Dwarf_Die *unit; /* NULL: DWARF does not know it */
    uint64_t address;
    const char *file; /* "": unknown */
    int64_t line;
    uint64_t row; /* the first address that the line table has this line for */
};

static void add_line(struct place *p, Dwarf_Line *line)
{
    const char *file = dwarf_linesrc(line, NULL, NULL);
    Dwarf_Addr row;
    int number;
    if (file != NULL) {
        p->file = file;
        p->line = dwarf_lineno(line, &number) == 0 ? number : 0;
        p->row = dwarf_lineaddr(line, &row) == 0 ? row : p->row;
    }
}

/* Returns true if a unit has code at an address. Nearly always the index of functions, which is
 * made anyway, says so; units have up to ten thousands of ranges, which libdw reads one by one. */
static bool has_code(struct native *n, Dwarf_Die *unit, uint64_t address)
{
    Dwarf_Die function;
    return functions_find(&n->functions, unit, address, &function) ||
           dwarf_haspc(unit, address) > 0;
}

/* Finds the unit with code at an address. libdwfl gives an address that .debug_aranges does not
 * list to the unit of the range in front of it, so the unit is asked. Returns NULL if no unit has
 * code there: the code was compiled without debug information. */
static Dwarf_Die *find_unit(struct native *n, uint64_t address, Dwarf_Addr *ret_bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(n->module, address, ret_bias);
    return unit != NULL && has_code(n, unit, address - *ret_bias)
               ? unit
               : units_find(&n->units, n->module, address, ret_bias);
}

static struct place find_place(struct native *n, uint64_t address)
{
    Dwarf_Addr bias;
    struct place p = {.file = "", .unit = find_unit(n, address, &bias)};
    if (p.unit == NULL) {
        return p;
    }
    p.address = address - bias;
    p.row = p.address;
    Dwarf_Line *line = dwarf_getsrc_die(p.unit, p.address);
    if (line != NULL) {
        add_line(&p, line);
    }
    return p;
}

/* Returns a file with the directory in which it was compiled in front, as eu-addr2line prints it.
 * Returns the file itself if its name is absolute or the directory is unknown. The caller frees
 * *ret_whole. */
static const char *with_directory(Dwarf_Die *unit, const char *file, char **ret_whole)
{
    Dwarf_Attribute attribute;
    const char *directory = unit == NULL || file[0] == '/' || file[0] == '\0'
                                ? NULL
                                : dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    *ret_whole = NULL;
    if (directory == NULL || asprintf(ret_whole, "%s/%s", directory, file) < 0) {
        return file;
    }
    return *ret_whole;
}

static void add_frame(struct answer_writer *w, Dwarf_Die *unit, const struct symbol_frame *f)
{
    char *whole;
    char *readable = demangle(f->system_name);
    struct symbol_frame frame = *f;
    frame.function = readable != NULL && readable[0] != '\0' ? readable : f->system_name;
    frame.file = with_directory(unit, f->file, &whole);
    answer_add_frame(w, &frame);
    free(whole);
    free(readable);
}

/* The line of a frame is where the next inner one was inlined. */
static void add_inlines(struct answer_writer *w, const struct place *p, const struct inlined *f,
                        size_t n)
{
    const char *file = p->file;
    int64_t line = p->line;
    for (size_t i = 0; i < n; i++) {
        add_frame(w, p->unit,
                  &(struct symbol_frame){
                      .system_name = f[i].name != NULL ? f[i].name : "??",
                      .file = file,
                      .line = line,
                      .start_line = f[i].start_line,
                  });
        file = f[i].call_file != NULL ? f[i].call_file : "";
        line = f[i].call_line;
    }
}

static bool is_named(const struct inlined *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (f[i].name != NULL) {
            return true;
        }
    }
    return false;
}

/* Finds the functions at a place. A line can belong to several inlined copies of one function: the
 * line table does not say to which. For such a line, eu-addr2line prints the callers at its first
 * address. This function does the same, unless that address is in another function. */
static size_t find_functions(struct native *n, const struct place *p,
                             struct inlined ret[INLINES_MAX])
{
    struct inlined first[INLINES_MAX];
    size_t found = p->unit == NULL ? 0 : inlines_find(&n->functions, p->unit, p->address, ret);
    if (found < 2 || p->row == p->address) {
        return found;
    }
    size_t n_first = inlines_find(&n->functions, p->unit, p->row, first);
    if (n_first < 2 || first[n_first - 1].die != ret[found - 1].die ||
        !str_same(first[0].name, ret[0].name)) {
        return found;
    }
    memcpy(ret, first, n_first * sizeof(*ret));
    return n_first;
}

static void ask(struct native *n, uint64_t address, struct answer_writer *w)
{
    struct inlined functions[INLINES_MAX];
    struct place p = find_place(n, address);
    size_t found = find_functions(n, &p, functions);
    if (is_named(functions, found)) {
        add_inlines(w, &p, functions, found);
        return;
    }
    const char *symbol = dwfl_module_addrname(n->module, address);
    if (symbol != NULL && symbol[0] != '\0') {
        add_frame(w, p.unit,
                  &(struct symbol_frame){.system_name = symbol, .file = p.file, .line = p.line});
    }
}

void native_ask(struct native *n, const struct symbol_mapping *mapping, const uint64_t *addresses,
                size_t count, struct answer_writer *w)
{
    for (size_t i = 0; i < count && !w->failed; i++) {
        uint64_t address;
        if (segments_find(&n->segments, mapping, addresses[i], &address)) {
            ask(n, address + n->bias, w);
        }
        answer_end_address(w);
    }
}
