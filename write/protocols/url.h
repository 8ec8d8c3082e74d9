/* From the URL that the user gave to the URL that is posted to.
 *
 * People give base URLs, base URLs with a path of a proxy, with trailing slashes, with a query, and
 * full URLs of the method. The base path and query are always kept, "//" is never made (servers
 * answer it with a redirect), and a URL that already ends in the method's path is taken as it is.
 * Pure; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_URL_H
#define PROFPULL_WRITE_PROTOCOLS_URL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Appends base with the method's path ("/ingest") to out; a fragment is dropped. If query is not
 * empty ("a=b&c=d", already encoded) it follows the query of the base. False only if out is full.
 */
bool url_join(struct sv base, struct sv path, struct sv query, struct buf *out);

/* The directory of a file endpoint: "file:///var/lib/x", percent-encoding decoded, or a bare path
 * that begins with "/". Appends it to out without trailing slashes. */
bool url_to_directory(struct sv url, struct buf *out, struct err *err);

#endif
