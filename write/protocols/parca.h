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
/* Far beyond what any server takes: 4 MiB in the first versions, 64 MiB later. */
#define PARCA_PROFILE_MAX ((size_t)1 << 30)
/* Most bytes that a profile is inflated to in order to look at it, and memory for one that is
 * written again. Beyond it goes as it is. */
#define PARCA_INFLATED_MAX ((size_t)32 * 1024 * 1024)
#define PARCA_WORK_MAX ((size_t)128 * 1024 * 1024)

/* What a profile needs to be taken. */
struct parca_repair {
    char *data; /* the profile with other ids, which the caller frees; NULL: as it is */
    size_t size;
    struct sv suffix; /* what follows it: a period type without names; static storage */
};

/* False with ERR_INPUT for one that cannot be read, or ERR_MEMORY. */
bool parca_repair(struct sv body, struct parca_repair *ret, struct err *err);

/* The request is prefix + profile_size bytes + suffix, with the frame of gRPC. False if a buffer is
 * full. Labels that begin with `__` are left out, except `__name__`. */
bool parca_encode(const struct series *s, size_t profile_size, struct sv suffix, struct buf *head,
                  struct buf *tail);

#endif
