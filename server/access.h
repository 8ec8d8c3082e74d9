/* Decides whom a server lets in: clients that send the credentials of the configuration in the
 * header Authorization. Credentials in files are re-read when the files change. On the server's
 * thread.
 */
#ifndef PROFPULL_SERVER_ACCESS_H
#define PROFPULL_SERVER_ACCESS_H

#include <stdbool.h>

#include "base/err.h"
#include "http/files.h"
#include "http/http.h"
#include "server/request.h"

enum access {
    ACCESS_GRANTED,
    ACCESS_DENIED,
    ACCESS_UNKNOWN, /* the credentials of the configuration cannot be read */
};

/* Checks a request against the credentials of the settings; no other member of the settings counts.
 * If the settings have no credentials, everybody is let in. */
enum access access_check(const struct http_settings *settings, struct http_files *files,
                         const struct request *r, struct err *err);
/* Returns true if the credentials can be read. */
bool access_is_ready(const struct http_settings *settings, struct http_files *files,
                     struct err *err);
/* Returns the authentication scheme that a client must use: "Basic", "Bearer". */
const char *access_scheme(const struct http_settings *settings);

#endif
