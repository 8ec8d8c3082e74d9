/* The web configuration file of a server (config/web_config.h), read again when it changes: users
 * and headers count from the next request on, certificates and the rest of TLS from the next
 * connection on. A file that cannot be used leaves the last one in use. Whether there is TLS at all
 * is decided at the start. On the server's thread.
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
/* The file must be usable now. failures counts later ones. All outlive it. */
struct web *web_new(const char *file, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err);
struct web *web_free(struct web *w); /* accepts NULL, returns NULL */

/* Reads the file if it has changed, at most once a second. */
void web_renew(struct web *w);
/* Returns the content of the file; its texts stay until the next web_renew(). */
const struct web_config *web_settings(const struct web *w);
/* Another number after each change. */
unsigned web_version(const struct web *w);
/* "Name: value\r\n" for each header of the file. */
struct sv web_headers(const struct web *w);

enum web_user {
    WEB_USER_ANY,     /* the file has no users: everybody is let in */
    WEB_USER_NONE,    /* the client sends no name and password */
    WEB_USER_UNKNOWN, /* nobody of this name */
    WEB_USER_KNOWN,
};
/* Whom a client says it is: the hash of the user, and the password that it sends, in a buffer that
 * the caller frees with buf_wipe(). */
enum web_user web_user(const struct web_config *config, const struct request *r,
                       const char **ret_hash, struct buf *ret_password);

#endif
