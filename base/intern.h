/* The table of interned strings behind label sets. Private to base.
 *
 * Equal bytes of one table are one struct istr, so that comparing means comparing pointers. Any
 * thread; an istr lives while somebody holds a reference.
 */
#ifndef PROFPULL_BASE_INTERN_H
#define PROFPULL_BASE_INTERN_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/labels.h"

struct istr {
    struct istr *next; /* in its bucket; the shard's lock guards it */
    uint64_t hash;     /* seeded: differs between tables */
    atomic_uint refs;
    uint32_t len;
    char text[]; /* NUL-terminated */
};

static inline struct sv istr_sv(const struct istr *s)
{
    return (struct sv){.p = s->text, .n = s->len};
}

/* A reference to the one string of these bytes. NULL if out of memory, or longer than
 * LABELS_BYTES_MAX. */
struct istr *intern_get(struct intern *in, struct sv text);
/* One more reference; the caller holds one, so no lock is needed. */
struct istr *istr_ref(struct istr *s);
/* Gives a reference back; s comes from this table. */
void intern_put(struct intern *in, struct istr *s);

#endif
