/* Names for stored profiles that have addresses without names.
 *
 * A profile may have been stored before its names were known, or by a profpull without `symbols`.
 * The store gives a way to find them with each body (struct store_names); the stored bytes stay as
 * they are. Profiles with all names cost one pass over their bytes.
 */
#ifndef PROFPULL_STORE_QUERY_NAMED_H
#define PROFPULL_STORE_QUERY_NAMED_H

#include "pprof/scratch.h"
#include "store/store.h"

/* Returns the plain profile with names, in memory of the scratch; or `plain` itself if nothing is
 * to be changed, or if there is no memory for names. plain: the inflated data of the body. */
struct sv named_plain(const struct store_body *body, struct scratch *scratch, struct sv plain);

/* Inflates the data of a body and adds names. Returns the data as it is if nothing is to be
 * changed. */
struct sv named_data(const struct store_body *body, struct scratch *scratch);

#endif
