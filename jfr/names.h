/* Replaces the parts of names of classes and libraries that change with each start of a process.
 * Private to jfr.
 *
 * The JVM numbers the classes that it generates, and libraries that a jar brings are unpacked under
 * a random name. Without a common name, the frames of two processes would never match. The rules
 * are those of Pyroscope's server. The function is pure; any thread may call it.
 */
#ifndef PROFPULL_JFR_NAMES_H
#define PROFPULL_JFR_NAMES_H

#include "base/buf.h"
#include "base/str.h"

/* Appends a symbol. If the whole symbol has one of the known forms, its changing part is
 * replaced. */
void jfr_name_put(struct sv symbol, struct buf *out);

#endif
