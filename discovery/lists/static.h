/* Label sets of targets that are listed as addresses with labels: in static_configs, in files and
 * in responses of http_sd_configs. */
#ifndef PROFPULL_DISCOVERY_LISTS_STATIC_H
#define PROFPULL_DISCOVERY_LISTS_STATIC_H

#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

struct static_group {
    struct labels **at; /* references */
    size_t n;
};

/* Makes one label set for each address. It has the labels of the address's group, `extra` (may be
 * NULL), which overrides them, and the address, which overrides both. False if out of memory or if
 * the labels exceed their limits; *ret is empty then. */
bool static_group_make(const struct config_static *groups, size_t n,
                       const struct config_pair *extra, struct intern *intern,
                       struct static_group *ret, struct err *err);
void static_group_done(struct static_group *g);

#endif
