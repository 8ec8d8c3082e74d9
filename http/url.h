/* URLs: percent-encoding, paths and queries, joining, parsing, redaction.
 *
 * The functions are pure, and work on text that users, pods and servers may have written. Any
 * thread may call them. Functions that append to a struct buf return false if it is full or out of
 * memory.
 */
#ifndef PROFPULL_HTTP_URL_H
#define PROFPULL_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* ---- percent-encoding ------------------------------------------------------------------------ */

/* Returns true for a character that needs no encoding anywhere in a URL (RFC 3986, section 2.3):
 * [A-Za-z0-9-._~]. */
bool url_is_unreserved(char c);
/* Returns the byte that the %XX at the start of v stands for, or -1. */
int url_decode_byte(struct sv v);
/* Appends v with every other byte as %XX. */
bool url_encode(struct sv v, struct buf *out);
/* Appends "name=value", both encoded. */
bool url_encode_pair(struct sv name, struct sv value, struct buf *out);

/* ---- paths and queries ----------------------------------------------------------------------- */

/* The most bytes of a prefix and a path together, and of an encoded path with its query. */
#define URL_PATH_MAX 1024
#define URL_TARGET_MAX 8192

/* Appends prefix and path as one absolute, clean path, as Go's url.JoinPath makes it: doubled
 * slashes and "." vanish, ".." goes up but never above the root, a slash at the end stays. "?" and
 * "#" are encoded (a query has its own place); %XX stays as it is. Both empty give "/". Control
 * characters and spaces are errors. */
bool url_append_path(struct buf *out, struct sv prefix, struct sv path, struct err *err);

struct url_param {
    struct sv name;
    struct sv value;
};

/* The parameters of a query, sorted by name; values of one name are in the order in which they were
 * added. The caller owns names and values. A zeroed struct is an empty query. */
struct url_query {
    struct url_param *at;
    size_t n;
    size_t cap;
};
void url_query_done(struct url_query *q);
/* Removes all parameters and keeps the storage. */
void url_query_clear(struct url_query *q);
/* Adds a parameter. Returns false if out of memory. */
bool url_query_add(struct url_query *q, struct sv name, struct sv value);
/* Replaces the first value of a name, or adds it. Returns false if out of memory. */
bool url_query_set(struct url_query *q, struct sv name, struct sv value);
/* Removes all values of a name. */
void url_query_del(struct url_query *q, struct sv name);
/* Appends "?a=1&b=2", encoded; nothing if there are no parameters. */
bool url_append_query(struct buf *out, const struct url_query *q);

/* Appends base with path ("/ingest") and query ("a=b&c=d", encoded; may be empty).
 *
 * Users configure base URLs, base URLs with a proxy's path, with trailing slashes or with a query,
 * and full URLs of the API method. The path and the query of the base are kept, "//" is never made
 * (servers answer it with a redirect), a base that already ends in path is taken as it is, and its
 * fragment is dropped. */
bool url_join(struct sv base, struct sv path, struct sv query, struct buf *out);

/* Appends the directory of a file or store URL without trailing slashes: "file:///var/lib/x",
 * decoded, or a bare path that begins with "/". */
bool url_to_directory(struct sv url, struct buf *out, struct err *err);

/* ---- parsing --------------------------------------------------------------------------------- */

/* The parts of a URL. Strings are owned; user and password are decoded, NULL if absent. */
struct url {
    char *text; /* the URL for libcurl, without userinfo and fragment */
    char *host; /* lower case, IPv6 without brackets */
    char *user;
    char *password;
    uint16_t port; /* with the default filled in */
    bool https;
};

/* Parses an absolute http or https URL. On failure *ret_url is empty, and err has the reason
 * (ERR_INPUT or ERR_MEMORY) without the URL. */
bool url_parse(const char *text, struct url *ret_url, struct err *err);
void url_done(struct url *url);
/* Returns a hash that is equal for all URLs with the same scheme, host and port. */
uint64_t url_origin_hash(const struct url *url);
/* Returns the target of a Location header: an absolute URL without userinfo, which the caller
 * frees. Returns NULL if it is not a usable http or https URL, or if out of memory. */
char *url_resolve(const char *base, const char *location, bool *ret_same_origin);

/* Returns true if the name of a parameter or variable looks like a secret's: "token", "apiKey". */
bool url_name_is_secret(struct sv name);
/* Writes a URL in a form fit for errors and logs: without userinfo and fragment, and with query
 * values only if they are short numbers whose names do not look like secrets. Accepts any text. */
void url_redact(const char *text, char *out, size_t size);
#define URL_REDACTED_MAX 512

#endif
