#include "base/sv.h"

#include <string.h>
#include <strings.h>

struct sv sv_from(const char *s)
{
    return s == NULL ? SV("") : (struct sv){.p = s, .n = strlen(s)};
}

bool str_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool sv_eq(struct sv a, struct sv b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool sv_eq_str(struct sv a, const char *s)
{
    return sv_eq(a, sv_from(s));
}

bool sv_eq_nocase(struct sv a, const char *s)
{
    return a.n == strlen(s) && strncasecmp(a.p, s, a.n) == 0;
}

bool sv_in(struct sv v, const char *const *list, size_t n)
{
    size_t i = 0;
    while (i < n && !sv_eq_str(v, list[i])) {
        i++;
    }
    return i < n;
}

int sv_cmp(struct sv a, struct sv b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (order != 0) {
        return order;
    }
    return (a.n > b.n) - (a.n < b.n);
}

bool sv_starts_with(struct sv v, struct sv prefix)
{
    return v.n >= prefix.n && sv_eq((struct sv){.p = v.p, .n = prefix.n}, prefix);
}

bool sv_ends_with(struct sv v, struct sv suffix)
{
    return suffix.n == 0 ||
           (v.n >= suffix.n &&
            sv_eq((struct sv){.p = v.p + (v.n - suffix.n), .n = suffix.n}, suffix));
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct sv sv_trim(struct sv v)
{
    while (v.n > 0 && is_space(v.p[0])) {
        v.p++;
        v.n--;
    }
    while (v.n > 0 && is_space(v.p[v.n - 1])) {
        v.n--;
    }
    return v;
}

bool sv_cut(struct sv v, char c, struct sv *ret_head, struct sv *ret_tail)
{
    const char *at = v.n == 0 ? NULL : memchr(v.p, c, v.n);
    if (at == NULL) {
        return false;
    }
    size_t head = (size_t)(at - v.p);
    *ret_head = (struct sv){.p = v.p, .n = head};
    *ret_tail = (struct sv){.p = at + 1, .n = v.n - head - 1};
    return true;
}
