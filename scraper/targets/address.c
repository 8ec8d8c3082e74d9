#include "scraper/targets/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"

/* The longest host name, and the longest canonical form of an address. */
#define HOST_MAX 256

/* Writes the canonical spelling of a host: addresses as inet_ntop() writes them (an IPv4-mapped
 * IPv6 address as the IPv4 address that it reaches), names in lower case. Returns false if it is
 * too long, or has colons and is not an IPv6 address. */
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

/* Replaces the port of a text that address_parse() has written, and which so ends in a colon and a
 * port. */
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

bool address_has_host(struct sv canonical_address, const char *host)
{
    char canonical[HOST_MAX];
    struct sv own;
    uint16_t port;
    return split_host_port(canonical_address, &own, &port, NULL) &&
           canonical_host(sv_from(host), canonical) && sv_eq_str(own, canonical);
}

bool address_is_host(const struct address *a, const char *host)
{
    return address_has_host(sv_from(a->canonical), host);
}

/* ---- special addresses ----------------------------------------------------------------------- */

#define METADATA "the metadata service of a cloud"

/* Networks in IPv6; those of IPv4 are written as ::ffff:a.b.c.d. The first that fits counts. */
static const struct network {
    const char *address;
    unsigned bits;
    const char *what;
} networks[] = {
    {"::ffff:169.254.169.254", 128, METADATA},
    {"::ffff:169.254.170.2", 128, METADATA},
    {"::ffff:168.63.129.16", 128, METADATA},
    {"::ffff:100.100.100.200", 128, METADATA},
    {"::ffff:192.0.0.192", 128, METADATA},
    {"fd00:ec2::", 32, METADATA},
    {"fd20:ce::254", 128, METADATA},
    {"::ffff:0.0.0.0", 104, "an unspecified address"},
    {"::ffff:127.0.0.0", 104, "a loopback address"},
    {"::ffff:169.254.0.0", 112, "a link-local address"},
    {"::ffff:224.0.0.0", 100, "a multicast address"},
    {"::ffff:255.255.255.255", 128, "the broadcast address"},
    {"::", 128, "an unspecified address"},
    {"::1", 128, "a loopback address"},
    {"fe80::", 10, "a link-local address"},
    {"ff00::", 8, "a multicast address"},
};

/* IPv6 addresses that stand for the IPv4 address in their bytes from `at` on. */
static const struct {
    struct network prefix;
    unsigned at;
} embedded[] = {
    {{.address = "64:ff9b::", .bits = 96}, 12},
    {{.address = "2002::", .bits = 16}, 2},
    {{.address = "::", .bits = 96}, 12},
};

static bool is_in(const struct in6_addr *a, const struct network *n)
{
    struct in6_addr net;
    if (inet_pton(AF_INET6, n->address, &net) != 1) {
        return false;
    }
    unsigned bytes = n->bits / 8;
    unsigned rest = n->bits % 8;
    return memcmp(a, &net, bytes) == 0 &&
           (rest == 0 || (a->s6_addr[bytes] ^ net.s6_addr[bytes]) >> (8 - rest) == 0);
}

static const char *special_address(const struct in6_addr *a)
{
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        if (is_in(a, &networks[i])) {
            return networks[i].what;
        }
    }
    return NULL;
}

static struct in6_addr mapped(const void *v4)
{
    struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&a.s6_addr[12], v4, 4);
    return a;
}

static const char *special_name(struct sv host)
{
    if (host.n > 0 && host.p[host.n - 1] == '.') {
        host.n--;
    }
    if (sv_eq_str(host, "localhost") || sv_ends_with(host, SV(".localhost"))) {
        return "a loopback address";
    }
    return sv_eq_str(host, "metadata.google.internal") || sv_eq_str(host, "metadata") ||
                   sv_eq_str(host, "instance-data")
               ? METADATA
               : NULL;
}

const char *address_special(const struct address *a)
{
    char text[HOST_MAX];
    struct sv host;
    uint16_t port;
    if (!split_host_port(sv_from(a->canonical), &host, &port, NULL) || host.n >= sizeof(text)) {
        return NULL;
    }
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return address_special_host(text);
}

const char *address_special_host(const char *text)
{
    struct in_addr v4;
    struct in6_addr v6;
    /* libcurl reads numbers such as 127.1, 0x7f000001 and 2130706433 as inet_aton() does. */
    bool numeric = text[strspn(text, "0123456789abcdefx.")] == '\0';
    if (numeric && inet_aton(text, &v4) == 1) {
        v6 = mapped(&v4);
    } else if (inet_pton(AF_INET6, text, &v6) != 1) {
        return special_name(sv_from(text));
    }
    const char *what = special_address(&v6);
    for (size_t i = 0; what == NULL && i < sizeof(embedded) / sizeof(embedded[0]); i++) {
        if (is_in(&v6, &embedded[i].prefix)) {
            const struct in6_addr inner = mapped(&v6.s6_addr[embedded[i].at]);
            what = special_address(&inner);
        }
    }
    return what;
}
