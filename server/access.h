/* Whom a server lets in: clients that send the credentials of the configuration in the header
 * Authorization. Those in files are re-read when the files change. On the server's thread.
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

/* Only the credentials of the settings are looked at; without any, everybody is let in. */
enum access access_check(const struct http_settings *settings, struct http_files *files,
                         const struct request *r, struct err *err);
/* Can the credentials be read? */
bool access_is_ready(const struct http_settings *settings, struct http_files *files,
                     struct err *err);
/* The scheme that a client must use: "Basic", "Bearer". */
const char *access_scheme(const struct http_settings *settings);

#endif
