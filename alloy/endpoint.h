/* Converts one `endpoint` block to an element of the list `write`; for alloy/ only. */
#ifndef PROFPULL_ALLOY_ENDPOINT_H
#define PROFPULL_ALLOY_ENDPOINT_H

#include "alloy/profiles.h"

/* Makes the element for the endpoint with this index in a pyroscope.write; NULL if memory ran
 * out. */
struct yaml_node *alloy_endpoint(struct alloy_load *l, const struct alloy_node *write,
                                 const struct yaml_node *endpoints, size_t index);

#endif
