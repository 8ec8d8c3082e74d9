/* Adds the files of peers to the files that a scan reads.
 *
 * A scan lists the files of its own disk and of the archive first. Then it asks its peers which
 * files they have. A file that the list has already, known by its writer and the hash of its bytes,
 * is left out: the archive wins. If a peer no longer has a file on its disk, and the list does not
 * have its object, the archive lists its objects again before anything is read. So no profile is
 * missing or counts twice while files move from disks to the bucket.
 *
 * The rest is read in slices (slice.h). The first slices of all files are asked for at the same
 * time; they may take half of the memory that a scan has for them. A peer or a file that cannot be
 * read is left out, and the answer of the scan is partial.
 */
#ifndef PROFPULL_STORE_PEERING_GATHER_H
#define PROFPULL_STORE_PEERING_GATHER_H

#include "base/partial.h"
#include "store/peering/slice.h"
#include "store/store.h"

struct store_file;

/* The rows that a scan needs. */
struct peering_scan {
    enum slice_kind kind;
    int64_t from_ns;
    int64_t until_ns;
    const struct selector *selector; /* NULL: all series */
    int64_t profile;                 /* SLICE_PROFILE: see struct slice_options */
    int64_t profile_ms;
    uint64_t profile_hash;
};

/* Replaces the list of files of a scan by one that has the files of peers as well, in order of
 * names. Their member `slices` is set. False with err if memory is short, or if the store is not
 * open. */
bool peering_add_files(const struct store_peers *peers, struct store *s,
                       const struct peering_scan *scan, struct store_file ***files, size_t *n,
                       struct partial *partial, struct err *err);

/* Opens the next slice of a file of a peer; asks for it, unless it has been received. *ret_more is
 * true if further slices follow. False with err, which names the peer. */
bool peering_next_slice(struct store_file *f, struct db *db, bool *ret_more, struct err *err);
/* Notes that a slice was damaged. */
void peering_slice_bad(struct store_file *f, const struct err *err);

struct peering_slices;
void peering_slices_free(struct peering_slices *s); /* accepts NULL */

#endif
