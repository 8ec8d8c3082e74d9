/* The frame of every page, and text in HTML.
 *
 * Names of functions, labels and errors come from outside: they reach a page by html_text() only.
 * Also, the Content-Security-Policy allows scripts and styles from the program alone, none
 * inside a page. Any thread.
 */
#ifndef PROFPULL_PAGES_HTML_H
#define PROFPULL_PAGES_HTML_H

#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"
#include "server/exchange.h"

/* Appends a text, escaped for elements and for attributes in double quotes. */
void html_text(struct buf *out, struct sv text);
/* Appends a text as the value of a parameter of a URL; needs no further escaping. */
void html_param(struct buf *out, struct sv text);
/* A label of a target, its value hidden if it may be a secret. */
void html_label(struct buf *out, struct label label, bool mask_all);
/* Writes the advice for the failure above it; nothing if there is no advice. */
void html_advice(struct buf *out, struct sv advice);
/* A time as people read it, in UTC; "never" for 0. */
void html_time(struct buf *out, int64_t wall_ns);

/* Adds the headers that restrict what a browser may do with an answer. */
void html_security(struct exchange *x);
/* Begins a page: status 200, its head, the links to the other pages. active: the path of this page.
 */
void html_begin(struct exchange *x, const char *title, const char *active);
/* Ends a page and compresses it. */
void html_end(struct exchange *x);

#endif
