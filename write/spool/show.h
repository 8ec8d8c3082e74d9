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
    SPOOL_FINDING_RECORD,  /* head, labels, done */
    SPOOL_FINDING_DAMAGE,  /* size bytes are no record */
    SPOOL_FINDING_BODY,    /* a record whose head is right, but not what follows */
    SPOOL_FINDING_HEADER,  /* the segment's header is damaged; its records are readable */
    SPOOL_FINDING_EMPTY,   /* a segment that was cut off in its header */
    SPOOL_FINDING_NEWER,   /* a segment of a later version */
    SPOOL_FINDING_FOREIGN, /* not a file of a spool; name */
    SPOOL_FINDING_ACKS,    /* size damaged acknowledgements */
    SPOOL_FINDING_FAILED,  /* could not be read; err */
};
/* "record", "damage", ... */
const char *spool_finding_name(enum spool_finding what);
/* True for what verify calls damage. */
bool spool_finding_is_bad(enum spool_finding what);

struct spool_seen {
    enum spool_finding what;
    const char *name; /* of the file */
    uint64_t offset;
    uint64_t size;
    const struct spool_head *head; /* of records */
    const struct labels *labels;   /* of a record; NULL if they were not asked for */
    bool done;                     /* acknowledged: will not be sent again */
    const char *error;             /* FAILED */
};

struct spool_show {
    struct intern *intern;
    bool bodies; /* read them too: labels, check sums */
    void (*on_seen)(void *arg, const struct spool_seen *seen);
    void *arg;
};

struct spool_shown {
    bool live; /* a process writes there: the end of the newest segment may be incomplete */
    uint64_t segments;
    uint64_t bytes;
    uint64_t records;
    uint64_t done;
    uint64_t waiting_bytes; /* of the profiles that are not done */
    uint64_t bad;           /* damaged places and files */
    uint64_t skipped;       /* foreign and newer files */
};

/* A directory that holds segments or a lock file. False with an error if it cannot be read;
 * *ret_is_spool is false for other directories. */
bool spool_show(const char *directory, const struct spool_show *show, struct spool_shown *ret,
                bool *ret_is_spool, struct err *err);

#endif
