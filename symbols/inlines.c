#include "symbols/inlines.h"

#include <dwarf.h>
#include <stdlib.h>

static const char *name_of(Dwarf_Die *die)
{
    static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Dwarf_Attribute attribute;
        const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));
        if (name != NULL && name[0] != '\0') {
            return name;
        }
    }
    return NULL;
}

static bool number_of(Dwarf_Die *die, unsigned name, Dwarf_Word *ret)
{
    Dwarf_Attribute attribute;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), ret) == 0;
}

static void add_call(Dwarf_Die *unit, Dwarf_Die *die, struct inlined *f)
{
    Dwarf_Files *files;
    Dwarf_Word number;
    if (number_of(die, DW_AT_call_file, &number) && dwarf_getsrcfiles(unit, &files, NULL) == 0) {
        f->call_file = dwarf_filesrc(files, number, NULL, NULL);
    }
    if (number_of(die, DW_AT_call_line, &number) && number <= INT64_MAX) {
        f->call_line = (int64_t)number;
    }
}

static struct inlined function_of(Dwarf_Die *unit, Dwarf_Die *die)
{
    struct inlined f = {.name = name_of(die)};
    int line;
    if (dwarf_decl_line(die, &line) == 0) {
        f.start_line = line;
    }
    if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
        add_call(unit, die, &f);
    }
    return f;
}

/* Reads scopes, the innermost first, up to the function that is no inlined one. */
static size_t read_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int n, struct inlined *ret)
{
    size_t found = 0;
    for (int i = 0; i < n && found < INLINES_MAX; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
            tag == DW_TAG_entry_point) {
            ret[found++] = function_of(unit, &scopes[i]);
        }
        if (tag == DW_TAG_subprogram) {
            break;
        }
    }
    return found;
}

size_t inlines_find(Dwarf_Die *unit, uint64_t address, struct inlined ret[INLINES_MAX])
{
    Dwarf_Die *at = NULL;
    Dwarf_Die *scopes = NULL;
    size_t found = 0;
    /* The outer scopes of an inlined function are those of its source. The ones that surround the
     * code are asked for with the innermost one. */
    if (dwarf_getscopes(unit, address, &at) > 0) {
        int n = dwarf_getscopes_die(&at[0], &scopes);
        found = n > 0 ? read_scopes(unit, scopes, n, ret) : 0;
    }
    free(scopes);
    free(at);
    return found;
}
