/* The protocol store: only its row is in this room. agent/stores.c opens stores and delivers into
 * them. */
#include "base/clock.h"
#include "write/protocols/table.h"

const struct protocol protocol_store = {
    .config = {.name = "store",
               .scheme = "store",
               .max_age_ms = 7 * MS_PER_DAY,
               .max_bytes = UINT64_C(10) << 30,
               .is_store = true},
    .labels = {.names = SERIES_NAMES_ALL, .unlimited = true, .keeps_private = true},
};
