/* Private to the comparison: reads the profiles of two sides into observations. One thread. */
#ifndef PROFPULL_STORE_CHANGES_OBSERVE_H
#define PROFPULL_STORE_CHANGES_OBSERVE_H

#include "store/changes/changes.h"

/* Reads the profiles of both sides, whose labels, versions and times are set: the times limit what
 * is read. Fills in the rest of the sides, and the names of the functions. The observations are in
 * the arena of the query. */
bool observe(const struct query *q, const struct changes_question *question, struct changes *ret,
             struct observations *o, struct err *err);

#endif
