#include "symbols/native.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "symbols/inlines.h"
#include "symbols/segments.h"
#include "symbols/units.h"

struct native {
    Dwfl *dwfl;
    Dwfl_Module *module;
    uint64_t bias; /* of libdwfl's addresses over virtual ones */
    struct segments segments;
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
    err_set(err, ERR_INPUT, "expected an ELF file of a program or library: %s",
            code == 0 ? "it is none" : dwfl_errmsg(code));
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
    return n;
}

struct native *native_free(struct native *n)
{
    if (n != NULL) {
        units_done(&n->units);
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
};

static void add_line(struct place *p, Dwarf_Line *line)
{
    const char *file = dwarf_linesrc(line, NULL, NULL);
    int number;
    if (file != NULL) {
        p->file = file;
        p->line = dwarf_lineno(line, &number) == 0 ? number : 0;
    }
}

static struct place find_place(struct native *n, uint64_t address)
{
    Dwarf_Addr bias;
    struct place p = {.file = ""};
    p.unit = dwfl_module_addrdie(n->module, address, &bias);
    if (p.unit == NULL) {
        p.unit = units_find(&n->units, n->module, address, &bias);
    }
    if (p.unit == NULL) {
        return p;
    }
    p.address = address - bias;
    int line;
    Dwfl_Line *known = dwfl_module_getsrc(n->module, address);
    const char *file = dwfl_lineinfo(known, NULL, &line, NULL, NULL, NULL);
    if (file != NULL) {
        p.file = file;
        p.line = line;
    } else {
        Dwarf_Line *own = dwarf_getsrc_die(p.unit, p.address);
        if (own != NULL) {
            add_line(&p, own);
        }
    }
    return p;
}

static void add_frame(struct answer_writer *w, const char *name, const char *file, int64_t line,
                      int64_t start_line)
{
    char *readable = demangle(name);
    answer_add_frame(w, &(struct symbol_frame){
                            .function = readable != NULL && readable[0] != '\0' ? readable : name,
                            .system_name = name,
                            .file = file,
                            .line = line,
                            .start_line = start_line,
                        });
    free(readable);
}

/* The line of a frame is where the next inner one was inlined. */
static void add_inlines(struct answer_writer *w, const struct place *p, const struct inlined *f,
                        size_t n)
{
    const char *file = p->file;
    int64_t line = p->line;
    for (size_t i = 0; i < n; i++) {
        add_frame(w, f[i].name != NULL ? f[i].name : "??", file, line, f[i].start_line);
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

static void ask(struct native *n, uint64_t address, struct answer_writer *w)
{
    struct inlined functions[INLINES_MAX];
    struct place p = find_place(n, address);
    size_t found = p.unit == NULL ? 0 : inlines_find(p.unit, p.address, functions);
    if (is_named(functions, found)) {
        add_inlines(w, &p, functions, found);
        return;
    }
    const char *symbol = dwfl_module_addrname(n->module, address);
    if (symbol != NULL && symbol[0] != '\0') {
        add_frame(w, symbol, p.file, p.line, 0);
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
