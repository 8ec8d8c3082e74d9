#include "http/proxy.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"

#define PORT_HTTPS 443
#define PORT_OTHER 1080
#define ADDRESS_TEXT_MAX 64

/* ---- settings and environment ---------------------------------------------------------------- */

/* Returns the first variable that is set and not empty, or "". */
static const char *first_variable(const char *const names[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): never changed */
        if (value != NULL && *value != '\0') {
            return value;
        }
    }
    return "";
}

/* Returns the proxy for a URL. HTTP_PROXY in upper case counts for http as well: Prometheus follows
 * this rule of Go, libcurl does not. */
const char *proxy_of(const struct url *url, const struct http_settings *s)
{
    static const char *const plain[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    if (s->proxy_url != NULL && *s->proxy_url != '\0') {
        return s->proxy_url;
    }
    return s->proxy_from_environment ? first_variable(url->https ? tls : plain, 4) : "";
}

const char *proxy_exceptions(const struct http_settings *s)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY"};
    if (s->no_proxy != NULL) {
        return s->no_proxy;
    }
    return s->proxy_from_environment ? first_variable(names, 2) : "";
}

/* ---- exceptions ------------------------------------------------------------------------------ */

/* Parses an address. Returns the number of its bytes, or 0 if the text is no address. */
static size_t to_address(struct sv text, unsigned char out[16])
{
    char copy[ADDRESS_TEXT_MAX];
    if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']') {
        text = (struct sv){text.p + 1, text.n - 2};
    }
    if (text.n >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return inet_pton(AF_INET, copy, out) == 1 ? 4 : inet_pton(AF_INET6, copy, out) == 1 ? 16 : 0;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, size_t bits)
{
    size_t whole = bits / 8, rest = bits % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* Returns true if an item of the list, "10.0.0.0/8" or an address, contains the address. */
static bool is_in_network(struct sv item, const unsigned char *address, size_t size)
{
    struct sv text = item, width = SV("");
    unsigned char network[16];
    uint64_t bits = size * 8;
    bool cut = sv_cut(item, '/', &text, &width);
    if (cut && !parse_u64(width, size * 8, &bits)) {
        return false;
    }
    return to_address(text, network) == size && same_bits(network, address, (size_t)bits);
}

static bool is_in_domain(struct sv item, struct sv host)
{
    if (item.n > 0 && item.p[0] == '.') {
        item = (struct sv){item.p + 1, item.n - 1};
    }
    if (item.n > 0 && item.p[item.n - 1] == '.') {
        item.n--;
    }
    if (host.n > 0 && host.p[host.n - 1] == '.') {
        host.n--;
    }
    size_t before = host.n - item.n;
    return item.n > 0 && item.n <= host.n && strncasecmp(host.p + before, item.p, item.n) == 0 &&
           (before == 0 || host.p[before - 1] == '.');
}

bool proxy_is_excepted(const char *list, struct sv host)
{
    unsigned char address[16];
    size_t size = to_address(host, address);
    bool found = strcmp(list, "*") == 0;
    while (!found && *list != '\0') {
        struct sv item = {list, strcspn(list, ", ")};
        found = size > 0 ? is_in_network(item, address, size) : is_in_domain(item, host);
        list += item.n + strspn(list + item.n, ", ");
    }
    return found;
}

/* ---- the proxy's address --------------------------------------------------------------------- */

bool proxy_parse(const char *proxy, char **ret_host, uint16_t *ret_port, struct err *err)
{
    CURLU *u = curl_url();
    char *host = NULL, *port = NULL, *scheme = NULL;
    uint64_t number = PORT_OTHER;
    CURLUcode code = u == NULL ? CURLUE_OUT_OF_MEMORY
                               : curl_url_set(u, CURLUPART_URL, proxy,
                                              CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME);
    code = code != CURLUE_OK ? code : curl_url_get(u, CURLUPART_HOST, &host, 0);
    *ret_host = code == CURLUE_OK ? strdup(host) : NULL;
    for (char *p = *ret_host; p != NULL && *p != '\0'; p++) {
        *p = ascii_lower(*p);
    }
    if (code == CURLUE_OK && curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK) {
        (void)parse_u64(sv_from(port), UINT16_MAX, &number);
    } else if (code == CURLUE_OK && curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
               strcasecmp(scheme, "https") == 0) {
        number = PORT_HTTPS;
    }
    *ret_port = (uint16_t)number;
    curl_free(host);
    curl_free(port);
    curl_free(scheme);
    curl_url_cleanup(u);
    if (code != CURLUE_OK && code != CURLUE_OUT_OF_MEMORY) {
        /* The message does not show the URL, which may contain a password. */
        return err_set(err, ERR_INPUT, "expected a proxy URL: %s", curl_url_strerror(code));
    }
    return *ret_host != NULL || err_memory(err);
}
