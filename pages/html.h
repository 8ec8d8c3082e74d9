/* The frame of every page, and text in HTML.
 *
 * Names of functions, labels and errors come from outside. They are written to a page by
 * html_text() only. As a second defence, the Content-Security-Policy allows only the program's own
 * scripts and styles, and none inside a page. Any thread.
 */
#ifndef PROFPULL_PAGES_HTML_H
#define PROFPULL_PAGES_HTML_H

#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"
#include "server/exchange.h"

/* Appends a text, escaped for elements and for attributes in double quotes. */
void html_text(struct buf *out, struct sv text);
/* Appends the beginning of a text, escaped: at most so many characters, and "…" if there are more.
 */
void html_cut(struct buf *out, struct sv text, size_t chars);
/* Appends a text as the value of a parameter of a URL. The result needs no further escaping. */
void html_param(struct buf *out, struct sv text);
/* Returns the bytes that html_param() appends. */
size_t html_param_size(struct sv text);
/* Appends a label of a target. Its value is hidden if it may be a secret. */
void html_label(struct buf *out, struct label label, bool mask_all);
/* Appends the advice for the failure above it; nothing if there is no advice. */
void html_advice(struct buf *out, struct sv advice);
/* Appends a time in UTC in a form for people; "never" for 0. */
void html_time(struct buf *out, int64_t wall_ns);

/* Adds the headers that restrict what a browser may do with a response. */
void html_security(struct exchange *x);
/* Begins a page: status 200, the head, and the links to the other pages. active is the path of this
 * page. */
void html_begin(struct exchange *x, const char *title, const char *active);
/* Ends a page and compresses it. */
void html_end(struct exchange *x);
/* Appends the name of a function, in which lines may break after '/' and '.' and before '('. */
void html_name(struct buf *out, struct sv name);

#endif
