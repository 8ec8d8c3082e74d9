/* Hides the values of request parameters in logs, the API and the output of commands: those whose
 * names look like secrets ("token", "api_key", "sig"; see url_name_is_secret()), or all of them
 * with `global.mask_all_params`. Errors of the HTTP client show even less, see url_redact().
 *
 * Pure functions, any thread. Functions that append return false if the buffer is full or out of
 * memory.
 */
#ifndef PROFPULL_MODEL_MASKING_H
#define PROFPULL_MODEL_MASKING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"

/* Stands for a value that is not shown. */
#define MASK "<secret>"

/* Returns true if the value of a query parameter is hidden. all: hides every value but "seconds".
 */
bool mask_param(struct sv name, bool all);
/* Returns true if the value of a label is hidden: the label `__param_NAME` or the annotation that
 * it may come from (`__meta_..._param_NAME`), if the parameter NAME is hidden. */
bool mask_label(struct sv name, bool all);

/* Appends a URL with the hidden values of its query replaced. Takes any text. */
bool mask_url(struct sv url, bool all, struct buf *out);
/* Appends what is shown of a label's value: MASK, a URL of the configuration (`__meta_url`) as
 * mask_url() shows it, or the value. */
bool mask_value(struct label l, bool all, struct buf *out);
/* Appends a JSON object with the labels, as labels_format_json() does. A label that holds a URL of
 * the configuration (`__meta_url`) is shown as mask_url() shows it. */
bool mask_labels_json(const struct labels *labels, bool all, struct buf *out);
/* Overwrites with "*" what a server has repeated of the hidden values of a URL's query, in text of
 * n bytes. Values of less than 4 bytes are left. */
void mask_echo(struct sv url, bool all, char *text, size_t n);

#endif
