/* Case mapping and class names: see unicode.h. */
#include "relabel/re2/unicode.h"

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

static const struct case_range *case_range_find(uint32_t rune)
{
    return bsearch(&rune, unicode_case_ranges, unicode_n_case_ranges,
                   sizeof(unicode_case_ranges[0]), case_range_cmp);
}

uint32_t rune_lower(uint32_t rune)
{
    const struct case_range *r = case_range_find(rune);
    if (r == NULL) {
        return rune;
    }
    if (r->to_lower == CASE_PAIRS) {
        return r->lo + ((rune - r->lo) | 1u);
    }
    return (uint32_t)((int32_t)rune + r->to_lower);
}

uint32_t rune_upper(uint32_t rune)
{
    const struct case_range *r = case_range_find(rune);
    if (r == NULL) {
        return rune;
    }
    if (r->to_upper == CASE_PAIRS) {
        return r->lo + ((rune - r->lo) & ~1u);
    }
    return (uint32_t)((int32_t)rune + r->to_upper);
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
    uint32_t lower = rune_lower(rune);
    return lower != rune ? lower : rune_upper(rune);
}

static bool map_append(struct sv v, uint32_t (*map)(uint32_t), struct buf *out)
{
    while (v.n > 0) {
        uint32_t rune = 0;
        size_t n = utf8_decode(v, &rune);
        char bytes[UTF8_BYTES_MAX];
        buf_append(out, bytes, utf8_encode(map(rune), bytes));
        v.p += n;
        v.n -= n;
    }
    return buf_ok(out);
}

bool lower_append(struct sv v, struct buf *out)
{
    return map_append(v, rune_lower, out);
}

bool upper_append(struct sv v, struct buf *out)
{
    return map_append(v, rune_upper, out);
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
