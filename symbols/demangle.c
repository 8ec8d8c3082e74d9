#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* A demangled name as far as it has come. */
struct output {
    struct buf text;
    jmp_buf full; /* leaves libiberty, which has no other way to stop it and holds no memory then */
};

static void demangle_append(const char *part, size_t n, void *arg)
{
    struct output *o = arg;
    size_t room = DEMANGLED_MAX - o->text.len;
    bool ok = buf_append(&o->text, part, n < room ? n : room);
    if (!ok || n > room) {
        longjmp(o->full, 1);
    }
}

/* A name of Rust's old mangling is one of C++, too, whose last part is a hash. So Rust goes first.
 * Returns false if the name is not mangled. */
static bool demangle_into(struct output *o, const char *name)
{
    if (setjmp(o->full) != 0) {
        return buf_ok(&o->text);
    }
    if (rust_demangle_callback(name, DMGL_RUST, demangle_append, o) != 0) {
        return true;
    }
    buf_clear(&o->text);
    return cplus_demangle_v3_callback(name, DMGL_GNU_V3 | DMGL_ANSI | DMGL_VERBOSE, demangle_append,
                                      o) != 0;
}

char *demangle(const char *name)
{
    struct output o;
    char *readable = NULL;
    if (name[0] != '_') {
        return NULL;
    }
    buf_init(&o.text, DEMANGLED_MAX + 1);
    if (demangle_into(&o, name)) {
        readable = buf_take(&o.text, NULL);
    }
    buf_done(&o.text);
    return readable;
}
