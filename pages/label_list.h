/* The labels of the chosen service and type as links. The link of a value narrows the selection to
 * this value (`name="value"`), the link of a chosen value excludes it (`name!="value"`), and the
 * link of an excluded one removes it from the selection. One thread. */
#ifndef PROFPULL_PAGES_LABEL_LIST_H
#define PROFPULL_PAGES_LABEL_LIST_H

#include "pages/view.h"

/* Limits of what is listed, each with a note on the page. */
#define LABEL_LIST_NAMES_MAX 40
#define LABEL_LIST_VALUES_MAX 20
#define LABEL_LIST_BYTES_MAX ((size_t)256 * 1024)

/* Appends the list; a hint if it cannot be made. */
void label_list_put(const struct view *v, struct buf *out);

#endif
