/* The protocol `parca`: WriteRaw of Parca's profile store over gRPC, one profile a request.
 *
 * The server reads profiles more strictly than others do: one whose period type is missing makes it
 * fail (in some versions the whole process), and ids have to count up from 1. Such profiles are
 * sent with what they lack; all others byte for byte. Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_PARCA_H
#define PROFPULL_WRITE_PROTOCOLS_PARCA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "write/series.h"

#define PARCA_PATH "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
/* The most bytes of a profile, far more than any server accepts (4 MiB in the first versions, 64
 * MiB later). */
#define PARCA_PROFILE_MAX ((size_t)1 << 30)
/* A profile that inflates to more is not examined, and one that takes more memory to be written
 * again is not repaired: both are sent as they are. */
#define PARCA_INFLATED_MAX ((size_t)32 * 1024 * 1024)
#define PARCA_WORK_MAX ((size_t)128 * 1024 * 1024)

/* The changes that a server needs to take a profile. */
struct parca_repair {
    char *data; /* the profile with other ids, or without some labels; free() it. NULL: unchanged */
    size_t size;
    struct sv suffix; /* bytes after it, which add a period type without names; static storage */
};

/* Determines the changes. Returns false with ERR_INPUT for a profile that cannot be read, or with
 * ERR_MEMORY. */
bool parca_repair(struct sv body, struct parca_repair *ret, struct err *err);

/* The request is prefix + profile_size bytes + suffix, with the frame of gRPC. Returns false if a
 * buffer is full. Labels that begin with `__` are left out, except `__name__`. */
bool parca_encode(const struct series *s, size_t profile_size, struct sv suffix, struct buf *head,
                  struct buf *tail);

#endif
