#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <stddef.h>

char *demangle(const char *name)
{
    if (name[0] != '_') {
        return NULL;
    }
    /* A name of Rust's old mangling is one of C++, too, whose last part is a hash. */
    char *rust = cplus_demangle(name, DMGL_RUST);
    return rust != NULL ? rust : cplus_demangle(name, DMGL_GNU_V3 | DMGL_ANSI | DMGL_VERBOSE);
}
