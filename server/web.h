/* The web configuration file of a server (config/web_config.h). It is read again when it changes:
 * new users and headers apply to the next request, certificates and other TLS settings to the next
 * connection. If the new file cannot be used, the settings in use stay. Only the start decides
 * whether the server uses TLS at all. On the server's thread.
 */
#ifndef PROFPULL_SERVER_WEB_H
#define PROFPULL_SERVER_WEB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/web_config.h"
#include "http/files.h"
#include "server/request.h"

struct web;
/* Fails if the file cannot be used now; `failures` counts later failures. All arguments must
 * outlive the object. */
struct web *web_new(const char *file, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err);
struct web *web_free(struct web *w); /* accepts NULL, returns NULL */

/* Reads the file if it has changed, at most once a second. */
void web_renew(struct web *w);
/* Returns the content of the file; its texts stay until the next web_renew(). */
const struct web_config *web_settings(const struct web *w);
/* Returns a number that differs after each change of the file. */
unsigned web_version(const struct web *w);
/* Returns the headers of the file, "Name: value\r\n" each. */
struct sv web_headers(const struct web *w);

enum web_user {
    WEB_USER_ANY,     /* the file has no users: everybody is let in */
    WEB_USER_NONE,    /* the client sends no name and password */
    WEB_USER_UNKNOWN, /* the file has no user of this name */
    WEB_USER_KNOWN,
};
/* Finds the user of a request: *ret_hash is the hash of this user, and *ret_password gets the
 * password that the client sends. The caller frees the password with buf_wipe(). */
enum web_user web_user(const struct web_config *config, const struct request *r,
                       const char **ret_hash, struct buf *ret_password);

#endif
