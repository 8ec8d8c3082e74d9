/* Makes the text of `profpull status` from the response of /api/v1/status. The response comes from
 * outside and is not trusted: characters that a terminal would take for commands are replaced.
 * Pure; any thread.
 */
#ifndef PROFPULL_CLI_STATUS_SHOW_H
#define PROFPULL_CLI_STATUS_SHOW_H

#include <stdbool.h>

#include "base/buf.h"

struct json_t;

struct show_style {
    unsigned width; /* in columns; longer lines are broken */
    bool colours;
};

/* Appends the state as text. False if out of memory. */
bool status_show(const struct json_t *status, const struct show_style *style, struct buf *out);
/* Returns true if no probe, scrape, source or destination fails. */
bool status_is_well(const struct json_t *status);

#endif
