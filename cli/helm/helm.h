/* Reads a file of values of Grafana Alloy's Helm chart, or of a chart that contains it
 * (Pyroscope's, k8s-monitoring), and converts it to values of our chart. Pure.
 *
 * A table has a row for each value, which says how it is converted or why it is ignored. One thread
 * at a time.
 */
#ifndef PROFPULL_CLI_HELM_HELM_H
#define PROFPULL_CLI_HELM_HELM_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* The values of our chart that a file gives. */
struct helm_result {
    json_t *values;    /* owned */
    char *config;      /* the configuration in Alloy's language, owned; NULL: none is inline */
    struct buf report; /* a line for each value: "FILE:3:5: mapped: ..." */
    size_t ignored;    /* lines that say "ignored" */
};

/* Converts a text; name is that of its file. The caller calls helm_done(), also after an error. */
bool helm_convert(const char *name, struct sv text, struct helm_result *ret, struct err *err);
void helm_done(struct helm_result *r);
/* Appends the values as YAML. */
bool helm_write(const struct helm_result *r, const char *name, struct buf *out);

#endif
