#include "symbols/inlines.h"

#include <dwarf.h>

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
    struct inlined f = {.die = dwarf_dieoffset(die), .name = name_of(die)};
    int line;
    if (dwarf_decl_line(die, &line) == 0) {
        f.start_line = line;
    }
    if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
        add_call(unit, die, &f);
    }
    return f;
}

static bool has_scopes(int tag)
{
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
           tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt ||
           tag == DW_TAG_entry_point;
}

/* Moves to the first child with code at the address. Returns false if there is none. */
static bool enter(Dwarf_Die *die, uint64_t address)
{
    Dwarf_Die child;
    int rc = dwarf_child(die, &child);
    while (rc == 0 && !(has_scopes(dwarf_tag(&child)) && dwarf_haspc(&child, address) > 0)) {
        rc = dwarf_siblingof(&child, &child);
    }
    if (rc == 0) {
        *die = child;
    }
    return rc == 0;
}

size_t inlines_find(struct functions *f, Dwarf_Die *unit, uint64_t address,
                    struct inlined ret[INLINES_MAX])
{
    Dwarf_Die functions[INLINES_MAX]; /* the outermost first */
    Dwarf_Die die;
    size_t n = 0;
    if (!functions_find(f, unit, address, &die)) {
        return 0;
    }
    functions[n++] = die;
    while (n < INLINES_MAX && enter(&die, address)) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point) {
            functions[n++] = die;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ret[i] = function_of(unit, &functions[n - 1 - i]);
    }
    return n;
}
