/* What logs, the API and the output of commands show of the parameters of requests: not the values
 * whose names look like secrets ("token", "api_key", "sig"), nor, with `global.mask_all_params`,
 * any value.
 *
 * Which names those are: url_name_is_secret(). Errors of the HTTP client show still less, see
 * url_redact(). Pure functions, any thread.
 * Functions that append return false if the buffer is full or out of memory.
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

/* Whether the value of a query parameter is hidden. all: of every one, except "seconds". */
bool mask_param(struct sv name, bool all);
/* Whether the value of a label is hidden: of `__param_NAME`, and of the annotation that it may come
 * from (`__meta_..._param_NAME`). */
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
