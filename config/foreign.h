/* Keys of other programs' configurations (Prometheus, Grafana Alloy, the Pyroscope agent, Parca),
 * and what they are called here. A pure table. */
#ifndef PROFPULL_CONFIG_FOREIGN_H
#define PROFPULL_CONFIG_FOREIGN_H

#include "config/schema.h"

/* What to write instead of an unknown key in this mapping, such as `it is called "write" here`; it
 * depends on where the key stands. NULL if no program that we know has the key there. Static
 * storage. */
const char *foreign_key(const struct place *mapping, struct sv key);

#endif
