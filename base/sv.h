/* Views of strings: a pointer to bytes of another owner, and their number. A view need not be
 * NUL-terminated and is passed by value. These functions neither allocate nor lock; any thread may
 * call them. */
#ifndef PROFPULL_BASE_SV_H
#define PROFPULL_BASE_SV_H

#include <stdbool.h>
#include <stddef.h>

struct sv {
    const char *p;
    size_t n;
};

/* A view of a string literal. */
#define SV(literal) ((struct sv){.p = (literal), .n = sizeof(literal) - 1})
/* For printf("%.*s", SV_ARG(v)); views longer than INT_MAX are cut. */
#define SV_ARG(v) ((v).n > 0x7fffffff ? 0x7fffffff : (int)(v).n), (v).p

struct sv sv_from(const char *s);            /* an empty view of NULL */
bool str_same(const char *a, const char *b); /* equal strings, or both NULL */
bool sv_eq(struct sv a, struct sv b);
bool sv_eq_str(struct sv a, const char *s);
bool sv_eq_nocase(struct sv a, const char *s); /* the case of ASCII letters does not matter */
bool sv_in(struct sv v, const char *const *list, size_t n); /* equal to one of n strings */
int sv_cmp(struct sv a, struct sv b);                       /* bytewise, a prefix sorts first */
bool sv_starts_with(struct sv v, struct sv prefix);
bool sv_ends_with(struct sv v, struct sv suffix);
struct sv sv_trim(struct sv v); /* ASCII white space at both ends */

/* Returns v without its first n bytes; n <= v.n. */
static inline struct sv sv_skip(struct sv v, size_t n)
{
    return n == 0 ? v : (struct sv){.p = v.p + n, .n = v.n - n};
}

/* Cuts v at the first c into the parts before and after it. Returns false if v has no c. */
bool sv_cut(struct sv v, char c, struct sv *ret_head, struct sv *ret_tail);

#endif
