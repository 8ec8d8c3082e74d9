/* The table of interned strings that label sets refer to. Private to base/.
 *
 * A table has one struct istr for each string, so strings are compared by comparing pointers. An
 * istr lives as long as it has references. Any thread may call these functions.
 */
#ifndef PROFPULL_BASE_INTERN_H
#define PROFPULL_BASE_INTERN_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/labels.h"

struct istr {
    struct istr *next; /* next string of the bucket; guarded by the lock of the shard */
    uint64_t hash;     /* seeded: differs between tables */
    atomic_uint refs;
    uint32_t len;
    char text[]; /* NUL-terminated */
};

static inline struct sv istr_sv(const struct istr *s)
{
    return (struct sv){.p = s->text, .n = s->len};
}

/* Returns a reference to the string with these bytes. Returns NULL if out of memory, or if the text
 * is longer than LABELS_BYTES_MAX. */
struct istr *intern_get(struct intern *in, struct sv text);
/* Adds a reference. The caller holds one already, so no lock is needed. */
struct istr *istr_ref(struct istr *s);
/* Releases a reference to a string of this table. */
void intern_put(struct intern *in, struct istr *s);

/* A label set, in one allocation: this header and two pointers for each label. */
struct labels {
    atomic_uint refs;
    uint32_t count;
    struct intern *in;
    struct istr *strings[]; /* name, value, name, value, ..., sorted by name */
};

#endif
