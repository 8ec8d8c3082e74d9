/* A table of keys in other programs' configurations (Prometheus, Grafana Alloy, the Pyroscope
 * agent, Parca), with the names that profpull has for them. Pure. */
#ifndef PROFPULL_CONFIG_FOREIGN_H
#define PROFPULL_CONFIG_FOREIGN_H

#include "config/schema.h"

/* Returns advice for an unknown key of this mapping that another program has there, such as
 * `it is called "write" here`; NULL if no known program has it. Static storage. */
const char *foreign_key(const struct place *mapping, struct sv key);

#endif
