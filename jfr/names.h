/* Names of classes and libraries that change with each start of a process. Private to jfr.
 *
 * The JVM numbers the classes that it generates, and libraries that a jar brings are unpacked under
 * a random name. Without a common name each process would have a flame graph of its own. The rules
 * are those of Pyroscope's server. Pure, any thread.
 */
#ifndef PROFPULL_JFR_NAMES_H
#define PROFPULL_JFR_NAMES_H

#include "base/buf.h"
#include "base/str.h"

/* Appends a symbol, with the part that changes replaced if the whole symbol has such a form. */
void jfr_name_put(struct sv symbol, struct buf *out);

#endif
