/* The text of `profpull status`, from the answer of /api/v1/status. It comes from outside and is
 * not trusted: what a terminal would take for commands is replaced. Pure; any thread.
 */
#ifndef PROFPULL_CLI_STATUS_SHOW_H
#define PROFPULL_CLI_STATUS_SHOW_H

#include <stdbool.h>

#include "base/buf.h"

struct json_t;

struct show_style {
    unsigned width; /* columns; longer lines are broken */
    bool colours;
};

/* Appends the text. False if out of memory. */
bool status_show(const struct json_t *status, const struct show_style *style, struct buf *out);
/* Returns true if nothing fails: probes, scrapes, sources and destinations. */
bool status_is_well(const struct json_t *status);

#endif
