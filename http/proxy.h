/* Finds the proxy of a request, and so the host to connect to. The rules are libcurl's; they are
 * needed before libcurl has the request. The functions are pure except that they read the
 * environment, which never changes. Any thread may call them.
 */
#ifndef PROFPULL_HTTP_PROXY_H
#define PROFPULL_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "http/http.h"
#include "http/url.h"

/* Returns the proxy for a URL by the settings, or else by the environment if the settings allow it:
 * a URL or host:port, "" if there is none. The string is borrowed. */
const char *proxy_of(const struct url *url, const struct http_settings *s);
/* Returns the list of hosts that are contacted directly, by the settings or the environment. The
 * string is borrowed. */
const char *proxy_exceptions(const struct http_settings *s);
/* Returns true if the list (names with their subdomains, addresses, networks, or "*") has this
 * host. */
bool proxy_is_excepted(const char *list, struct sv host);
/* Parses a proxy into its host, in lower case, which the caller frees, and its port. */
bool proxy_parse(const char *proxy, char **ret_host, uint16_t *ret_port, struct err *err);

#endif
