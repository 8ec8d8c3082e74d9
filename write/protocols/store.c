/* The protocol store: only its row is in this room. agent/stores.c opens stores and delivers into
 * them. */
#include "write/protocols/table.h"

#define DAY_MS INT64_C(86400000)

const struct protocol protocol_store = {
    .config = {.name = "store",
               .scheme = "store",
               .max_age_ms = 7 * DAY_MS,
               .max_bytes = UINT64_C(10) << 30,
               .is_store = true},
    .labels = {.names = SERIES_NAMES_ALL, .unlimited = true, .keeps_private = true},
};
