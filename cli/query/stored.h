/* Opens a directory in which profpull has stored profiles. */
#ifndef PROFPULL_CLI_QUERY_STORED_H
#define PROFPULL_CLI_QUERY_STORED_H

#include "base/err.h"
#include "store/store.h"

/* Opens a store that exists; nothing in it is merged or removed. The caller closes it. NULL with an
 * error that names --store, for example if a running process holds its lock. */
struct store *query_open_store(const char *directory, struct err *err);

#endif
