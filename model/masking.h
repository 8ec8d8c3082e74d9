/* Hides the values of request parameters in logs, the API and the output of commands. A value is
 * hidden if the name of the parameter looks like a secret ("token", "api_key", "sig"; see
 * url_name_is_secret()); with `global.mask_all_params`, all values are. Errors of the HTTP client
 * show even less: see url_redact().
 *
 * The functions are pure; any thread may call them. Functions that append return false if the
 * buffer is full or out of memory.
 */
#ifndef PROFPULL_MODEL_MASKING_H
#define PROFPULL_MODEL_MASKING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"

/* The text that replaces a hidden value. */
#define MASK "<secret>"

/* Returns true if the value of a query parameter is hidden. all: hides every value but "seconds".
 */
bool mask_param(struct sv name, bool all);
/* Returns true if the value of a label is hidden: the label `__param_NAME` or the annotation that
 * it may come from (`__meta_..._param_NAME`), if the parameter NAME is hidden. */
bool mask_label(struct sv name, bool all);

/* Appends a URL with the hidden values of its query replaced. Takes any text. */
bool mask_url(struct sv url, bool all, struct buf *out);
/* Appends the value of a label in the form that is shown: MASK if it is hidden, mask_url() of a URL
 * of the configuration (`__meta_url`), or else the value itself. */
bool mask_value(struct label l, bool all, struct buf *out);
/* Appends a JSON object with the labels, as labels_format_json() does. A label that holds a URL of
 * the configuration (`__meta_url`) is shown as mask_url() shows it. */
bool mask_labels_json(const struct labels *labels, bool all, struct buf *out);
/* Overwrites with "*" the hidden values of a URL's query that a server has repeated in a text of n
 * bytes. Values of less than 4 bytes are not overwritten, because they occur by chance. */
void mask_echo(struct sv url, bool all, char *text, size_t n);

#endif
