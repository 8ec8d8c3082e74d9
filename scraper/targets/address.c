#include "scraper/targets/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"

/* The longest host name, and the longest canonical form of an address. */
#define HOST_MAX 256

/* Writes the canonical spelling of a host: addresses as inet_ntop() writes them (an IPv4-mapped
 * IPv6 address as the IPv4 address that it reaches), names in lower case. False if it is too long,
 * or has colons and is not an IPv6 address. */
static bool canonical_host(struct sv host, char out[HOST_MAX])
{
    char text[HOST_MAX];
    if (host.n == 0 || host.n >= sizeof(text)) {
        return false;
    }
    for (size_t i = 0; i < host.n; i++) {
        text[i] = ascii_lower(host.p[i]);
    }
    text[host.n] = '\0';
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        return inet_ntop(AF_INET, &v4, out, HOST_MAX) != NULL;
    }
    if (inet_pton(AF_INET6, text, &v6) == 1) {
        return IN6_IS_ADDR_V4MAPPED(&v6)
                   ? inet_ntop(AF_INET, &v6.s6_addr[12], out, HOST_MAX) != NULL
                   : inet_ntop(AF_INET6, &v6, out, HOST_MAX) != NULL;
    }
    memcpy(out, text, host.n + 1);
    return memchr(text, ':', host.n) == NULL;
}

static void join(char out[ADDRESS_MAX], struct sv host, uint16_t port)
{
    bool brackets = memchr(host.p, ':', host.n) != NULL;
    snprintf(out, ADDRESS_MAX, "%s%.*s%s:%u", brackets ? "[" : "", SV_ARG(host),
             brackets ? "]" : "", (unsigned)port);
}

bool address_parse(struct sv v, uint16_t default_port, struct address *ret, struct err *err)
{
    if (v.n == 0) {
        return err_set(err, ERR_INPUT, "no address");
    }
    struct sv host;
    uint16_t port;
    if (!split_host_port(v, &host, &port, err)) {
        return err_wrap(err, "invalid address");
    }
    char canonical[HOST_MAX];
    if (memchr(host.p, '%', host.n) != NULL || !canonical_host(host, canonical)) {
        return err_set(err, ERR_INPUT,
                       "invalid address: \"%.*s\" is neither a host name nor an IP address",
                       (int)(host.n < HOST_MAX ? host.n : HOST_MAX), host.p);
    }
    port = port == 0 ? default_port : port;
    join(ret->text, host, port);
    join(ret->canonical, sv_from(canonical), port);
    return true;
}

/* The text was written by address_parse(): it ends in a colon and a port. */
static void replace_port(char text[ADDRESS_MAX], uint16_t port)
{
    char *colon = strrchr(text, ':');
    snprintf(colon, (size_t)(text + ADDRESS_MAX - colon), ":%u", (unsigned)port);
}

void address_set_port(struct address *a, uint16_t port)
{
    replace_port(a->text, port);
    replace_port(a->canonical, port);
}

bool address_is_host(const struct address *a, const char *host)
{
    char canonical[HOST_MAX];
    struct sv own;
    uint16_t port;
    return split_host_port(sv_from(a->canonical), &own, &port, NULL) &&
           canonical_host(sv_from(host), canonical) && sv_eq_str(own, canonical);
}
