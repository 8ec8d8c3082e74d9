#include "write/advice.h"

#include <string.h>

#include "write/protocol.h"

bool advice_is_final(enum http_result result, long status)
{
    if (status != 0) {
        return status == 401 || status == 403 || status == 404 || status == 405 ||
               (status >= 300 && status < 400);
    }
    return result == HTTP_ERR_RESOLVE || result == HTTP_ERR_TLS || result == HTTP_ERR_CONFIG ||
           result == HTTP_ERR_REDIRECT;
}

static const char *for_status(const struct config_endpoint *e, long status)
{
    const char *not_found = protocol_of(e)->advice_not_found;
    if (status == 401) {
        return e->http.auth == HTTP_AUTH_NONE
                   ? "the server wants credentials: set basic_auth, authorization or tenant_id"
                   : "the server does not accept these credentials: check user, password or token "
                     "(and tenant_id, if it has tenants)";
    }
    if (status == 403) {
        return "the credentials are known but may not write: check the token's scope and tenant_id";
    }
    if (status == 404 || status == 405) {
        return not_found != NULL
                   ? not_found
                   : "nothing takes profiles at this path: is url the server's base URL, and "
                     "protocol the one that it speaks?";
    }
    if (status >= 300 && status < 400) {
        return "redirects are not followed: set url to where it leads (https instead of http?)";
    }
    if (status == 429) {
        return "the server limits how much it takes: see its limits for this tenant";
    }
    return "";
}

const char *advice_for(const struct config_endpoint *endpoint, enum http_result result, long status)
{
    if (status != 0) {
        return for_status(endpoint, status);
    }
    switch (result) {
    case HTTP_ERR_RESOLVE:
        return "no such host name: check url, and whether this machine's DNS knows it";
    case HTTP_ERR_CONNECT:
        return "nothing listens there, or a firewall is in between: check host and port";
    case HTTP_ERR_TLS:
        return "check that the server speaks TLS on this port, and tls_config: ca_file for a "
               "private authority, server_name if the certificate is for another name";
    case HTTP_ERR_TIMEOUT:
        return "no answer in time: a firewall that drops, or a server under load (remote_timeout)";
    case HTTP_ERR_CUT:
    case HTTP_ERR_PROTOCOL:
        return "the server there does not speak HTTP as expected: http or https?";
    default:
        return "";
    }
}
