/* Inspects a spool's directory from outside, for `profpull spool`: reads only, takes no lock, and
 * may run while a process writes there. One thread; blocks on the disk.
 */
#ifndef PROFPULL_WRITE_SPOOL_SHOW_H
#define PROFPULL_WRITE_SPOOL_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "write/spool/walk.h"

enum spool_finding {
    SPOOL_FINDING_RECORD,  /* a record: head, labels, done */
    SPOOL_FINDING_DAMAGE,  /* a stretch of `size` bytes without a record */
    SPOOL_FINDING_BODY,    /* a record with an intact head and damaged labels or data */
    SPOOL_FINDING_HEADER,  /* a segment with a damaged header; its records are readable */
    SPOOL_FINDING_EMPTY,   /* a segment that was cut off within its header */
    SPOOL_FINDING_NEWER,   /* a segment of a later version; skipped */
    SPOOL_FINDING_SEGMENT, /* a file with the name of a segment that is no segment; skipped */
    SPOOL_FINDING_FOREIGN, /* any other file, which does not belong to the spool */
    SPOOL_FINDING_ACKS,    /* acknowledgements, `size` of which are damaged */
    SPOOL_FINDING_FAILED,  /* a file that could not be read; error */
};
/* Returns "record", "damaged", ... Static storage. */
const char *spool_finding_name(enum spool_finding what);
/* Returns true for damage. */
bool spool_finding_is_bad(enum spool_finding what);
/* Returns true for a segment that is skipped as a whole: profpull neither sends its profiles nor
 * removes it.
 */
bool spool_finding_is_skipped(enum spool_finding what);

struct spool_seen {
    enum spool_finding what;
    const char *name; /* the name of the file */
    uint64_t offset;
    uint64_t size;
    const struct spool_head *head; /* the head of a record */
    const struct labels *labels;   /* the labels of a record; NULL if they were not requested */
    bool done;                     /* acknowledged: will not be sent again */
    const char *error;             /* FAILED */
};

struct spool_show {
    struct intern *intern;
    bool bodies; /* read labels and data as well, and compare their checksums */
    void (*on_seen)(void *arg, const struct spool_seen *seen);
    void *arg;
};

struct spool_shown {
    bool live; /* a process writes there: the end of the newest segment may be incomplete */
    uint64_t segments;
    uint64_t bytes;
    uint64_t records;
    uint64_t done;
    uint64_t waiting_bytes; /* the bytes of the profiles that are not done */
    uint64_t bad;           /* damaged places and files */
    uint64_t skipped;       /* foreign files and skipped segments */
    uint64_t skipped_segments;
};

/* Inspects a directory. Returns false with an error if it cannot be read; *ret_is_spool is false
 * for a directory without segments and without a lock file. */
bool spool_show(const char *directory, const struct spool_show *show, struct spool_shown *ret,
                bool *ret_is_spool, struct err *err);

#endif
