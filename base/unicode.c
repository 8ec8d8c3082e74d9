/* Case mapping and class names: see unicode.h. */
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

#define CLASS_NAME_MAX 64

static int case_range_cmp(const void *key, const void *element)
{
    uint32_t rune = *(const uint32_t *)key;
    const struct case_range *r = element;
    return rune < r->lo ? -1 : rune > r->hi;
}

uint32_t rune_to_case(uint32_t rune, bool upper)
{
    const struct case_range *r = bsearch(&rune, unicode_case_ranges, unicode_n_case_ranges,
                                         sizeof(unicode_case_ranges[0]), case_range_cmp);
    if (r == NULL) {
        return rune;
    }
    int32_t distance = upper ? r->to_upper : r->to_lower;
    if (distance == CASE_PAIRS) {
        uint32_t pair = (rune - r->lo) & ~1u;
        return r->lo + (upper ? pair : pair + 1);
    }
    return (uint32_t)((int32_t)rune + distance);
}

static int orbit_cmp(const void *key, const void *element)
{
    uint32_t rune = *(const uint32_t *)key;
    const struct case_orbit *o = element;
    return rune < o->rune ? -1 : rune > o->rune;
}

uint32_t rune_fold(uint32_t rune)
{
    const struct case_orbit *o =
        bsearch(&rune, unicode_orbits, unicode_n_orbits, sizeof(unicode_orbits[0]), orbit_cmp);
    if (o != NULL) {
        return o->next;
    }
    uint32_t lower = rune_to_case(rune, false);
    return lower != rune ? lower : rune_to_case(rune, true);
}

bool append_in_case(struct sv v, bool upper, struct buf *out)
{
    while (v.n > 0) {
        uint32_t rune = 0;
        char bytes[UTF8_BYTES_MAX];
        v = sv_skip(v, utf8_decode(v, &rune));
        buf_append(out, bytes, utf8_encode(rune_to_case(rune, upper), bytes));
    }
    return buf_ok(out);
}

static int class_cmp(const void *key, const void *element)
{
    return strcmp(key, ((const struct unicode_class *)element)->key);
}

const struct unicode_class *unicode_class_find(struct sv name)
{
    char key[CLASS_NAME_MAX];
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '_' || c == '-' || c == ' ') {
            continue;
        }
        if (n + 1 == sizeof(key)) {
            return NULL;
        }
        key[n++] = ascii_lower(c);
    }
    key[n] = '\0';
    return bsearch(key, unicode_classes, unicode_n_classes, sizeof(unicode_classes[0]), class_cmp);
}
