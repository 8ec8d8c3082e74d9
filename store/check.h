/* Reads and checks one file of a store without a store: for tools, also beside a process that
 * writes to the file. Nothing is changed. The functions keep no state; any thread.
 */
#ifndef PROFPULL_STORE_CHECK_H
#define PROFPULL_STORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db.h"

struct check_report {
    enum db_fault fault; /* DB_FINE: nothing is wrong */
    bool sealed;         /* all of it is in the database, and nothing is left to be merged */
    int64_t version;     /* of its format; 0: unknown */
    uint64_t profiles;
    int64_t oldest_ns; /* of its profiles; 0 if there are none */
    int64_t newest_ns;
    uint64_t bytes;        /* of the database, its log and its data file */
    char why[ERR_MSG_MAX]; /* of the fault */
};

/* Reads the numbers of a file; `path` ends with a name of a file of a store. thorough: checks every
 * page, row and profile as well. */
void check_file(const char *path, bool thorough, struct check_report *ret);

#endif
