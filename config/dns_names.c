/* Names of objects in Kubernetes. */
#include "base/ascii.h"
#include "config/parts.h"

/* Returns true for the characters of an RFC 1123 label, or with dots of a subdomain. */
static bool is_dns_name(struct sv v, bool dots)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool inner = i > 0 && i + 1 < v.n && (c == '-' || (dots && c == '.'));
        if (!ascii_is_lower(c) && !ascii_is_digit(c) && !inner) {
            return false;
        }
    }
    return true;
}

bool check_dns_label(struct sv v)
{
    return is_dns_name(v, false);
}

bool check_dns_subdomain(struct sv v)
{
    return is_dns_name(v, true);
}
