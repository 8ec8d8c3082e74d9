/* static_configs: targets that the operator wrote down. They are told once and never change. */
#ifndef PROFPULL_DISCOVERY_STATIC_H
#define PROFPULL_DISCOVERY_STATIC_H

#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

struct static_group {
    struct labels **at; /* references */
    size_t n;
};

/* One label set for each address: the labels of the configuration, and the address, which wins.
 * False if out of memory or if the labels are over their limits; *ret is empty then. */
bool static_group_make(const struct config_static *config, struct intern *intern,
                       struct static_group *ret, struct err *err);
void static_group_done(struct static_group *g);

#endif
