/* Character classes, escapes and single runes: see parser.h. */
#include "regex/re2/parser.h"

#include <string.h>

#include "base/ascii.h"

#define BAD_RANGE "invalid character class range"

/* A named set of ASCII characters as pairs of bounds. */
struct group {
    const char *name;
    unsigned char pairs[8];
    size_t n;
};

static const struct group perl_groups[] = {
    {"d", {'0', '9'}, 2},
    {"s", {'\t', '\n', '\f', '\r', ' ', ' '}, 6},
    {"w", {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}, 8},
};

static const struct group posix_groups[] = {
    {"alnum", {'0', '9', 'A', 'Z', 'a', 'z'}, 6},
    {"alpha", {'A', 'Z', 'a', 'z'}, 4},
    {"ascii", {0x00, 0x7f}, 2},
    {"blank", {'\t', '\t', ' ', ' '}, 4},
    {"cntrl", {0x00, 0x1f, 0x7f, 0x7f}, 4},
    {"digit", {'0', '9'}, 2},
    {"graph", {'!', '~'}, 2},
    {"lower", {'a', 'z'}, 2},
    {"print", {' ', '~'}, 2},
    {"punct", {'!', '/', ':', '@', '[', '`', '{', '~'}, 8},
    {"space", {'\t', '\r', ' ', ' '}, 4},
    {"upper", {'A', 'Z'}, 2},
    {"word", {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}, 8},
    {"xdigit", {'0', '9', 'A', 'F', 'a', 'f'}, 6},
};

#define GROUP_COUNT(groups) (sizeof(groups) / sizeof((groups)[0]))

/* ---- members --------------------------------------------------------------------------------- */

static void add_range(const struct re2_parser *p, struct runeset *set, uint32_t lo, uint32_t hi)
{
    if (p->flags & RE2_FLAG_FOLD) {
        runeset_add_folded(set, lo, hi);
    } else {
        runeset_add(set, lo, hi);
    }
}

/* Adds p->part, or all runes that are not in it, to the class and empties it. */
static void add_part(struct re2_parser *p, bool negated)
{
    runeset_clean(&p->part);
    if (negated) {
        runeset_negate(&p->part);
    }
    runeset_add_all(&p->set, &p->part);
    p->part.n = 0;
}

static void add_group(struct re2_parser *p, const struct group *group, bool negated)
{
    for (size_t i = 0; i + 1 < group->n; i += 2) {
        add_range(p, &p->part, group->pairs[i], group->pairs[i + 1]);
    }
    add_part(p, negated);
}

/* Reads [:name:] or [:^name:]. *ret_is is true if there was one. Returns false with an error. */
static bool posix_class(struct re2_parser *p, bool *ret_is)
{
    const char *end = NULL;
    if (sv_starts_with(p->rest, SV("[:"))) {
        end = memmem(p->rest.p + 2, p->rest.n - 2, ":]", 2);
    }
    *ret_is = end != NULL;
    if (end == NULL) {
        return true;
    }
    struct sv whole = {p->rest.p, (size_t)(end + 2 - p->rest.p)};
    struct sv name = {p->rest.p + 2, whole.n - 4};
    bool negated = sv_starts_with(name, SV("^"));
    name = sv_skip(name, negated);
    for (size_t i = 0; i < GROUP_COUNT(posix_groups); i++) {
        if (sv_eq_str(name, posix_groups[i].name)) {
            add_group(p, &posix_groups[i], negated);
            p->rest = sv_skip(p->rest, whole.n);
            return true;
        }
    }
    return re2_fail(p, BAD_RANGE, whole);
}

/* Reads \d \s \w, or their complements \D \S \W. Returns false if none of them is next. */
static bool perl_class(struct re2_parser *p)
{
    if (p->rest.n < 2 || p->rest.p[0] != '\\') {
        return false;
    }
    char letter = p->rest.p[1];
    for (size_t i = 0; i < GROUP_COUNT(perl_groups); i++) {
        if (ascii_lower(letter) == perl_groups[i].name[0]) {
            add_group(p, &perl_groups[i], ascii_is_upper(letter));
            p->rest = sv_skip(p->rest, 2);
            return true;
        }
    }
    return false;
}

static bool add_named_property(struct re2_parser *p, struct sv name, bool negated, struct sv expr)
{
    /* Two names of Go's regexp stand for plain ranges. */
    bool any = sv_eq_nocase(name, "any");
    if (any || sv_eq_nocase(name, "ascii")) {
        add_range(p, &p->part, 0, any ? RUNE_MAX : 0x7f);
        add_part(p, negated);
        return true;
    }
    if (sv_eq_nocase(name, "assigned")) {
        name = SV("Cn");
        negated = !negated;
    }
    const struct unicode_class *def = unicode_class_find(name);
    if (def == NULL) {
        return re2_fail(p, BAD_RANGE, expr);
    }
    bool fold = (p->flags & RE2_FLAG_FOLD) != 0 && def->n_fold > 0;
    for (size_t i = 0; fold && !negated && i < def->n_fold; i++) {
        const struct fold_range *f = &def->fold[i];
        for (uint32_t rune = f->lo; rune <= f->hi; rune += f->stride) {
            runeset_add(&p->set, rune, rune);
        }
    }
    struct re2_property *property = arena_alloc(p->arena, sizeof(*property));
    if (property == NULL) {
        return re2_fail_memory(p);
    }
    *property = (struct re2_property){p->properties, def, negated, fold && negated};
    p->properties = property;
    return true;
}

/* Reads \pN, \p{Greek} or \P{^Greek}. *ret_is is true if there was one. Returns false with an
 * error. */
static bool unicode_class(struct re2_parser *p, bool *ret_is)
{
    struct sv start = p->rest;
    bool negated = sv_starts_with(start, SV("\\P"));
    *ret_is = negated || sv_starts_with(start, SV("\\p"));
    if (!*ret_is) {
        return true;
    }
    p->rest = sv_skip(p->rest, 2);
    struct sv name;
    if (re2_take(p, SV("{"))) {
        if (!sv_cut(p->rest, '}', &name, &p->rest)) {
            return re2_fail(p, BAD_RANGE, start);
        }
    } else {
        const char *at = p->rest.p;
        re2_next(p);
        name = re2_since(p, at);
    }
    if (sv_starts_with(name, SV("^"))) {
        negated = !negated;
        name = sv_skip(name, 1);
    }
    return add_named_property(p, name, negated, re2_since(p, start.p));
}

/* ---- escapes --------------------------------------------------------------------------------- */

/* Reads the digits after `\x{` and the closing brace. */
static bool braced_hex(struct re2_parser *p, uint32_t *ret_rune)
{
    *ret_rune = 0;
    for (size_t digits = 0;; digits++) {
        uint32_t c = re2_next(p);
        if (c == '}') {
            return digits > 0;
        }
        int v = ascii_hex_value((int)c);
        if (v < 0) {
            return false;
        }
        *ret_rune = *ret_rune * 16 + (uint32_t)v;
        if (*ret_rune > RUNE_MAX) {
            return false;
        }
    }
}

/* Reads the digits after `\x`. */
static bool hex(struct re2_parser *p, uint32_t *ret_rune)
{
    if (re2_take(p, SV("{"))) {
        return braced_hex(p, ret_rune);
    }
    int high = ascii_hex_value((int)re2_next(p));
    int low = ascii_hex_value((int)re2_next(p));
    *ret_rune = (uint32_t)(high * 16 + low);
    return high >= 0 && low >= 0;
}

static bool at_octal_digit(const struct re2_parser *p)
{
    return p->rest.n > 0 && p->rest.p[0] >= '0' && p->rest.p[0] <= '7';
}

/* Reads up to two more digits after `\` and one octal digit. */
static uint32_t octal(struct re2_parser *p, uint32_t first)
{
    uint32_t rune = first - '0';
    for (int i = 0; i < 2 && at_octal_digit(p); i++) {
        rune = rune * 8 + (re2_next(p) - '0');
    }
    return rune;
}

/* Finds the rune that `\c` stands for. Returns false if it stands for none. */
static bool escaped_rune(struct re2_parser *p, uint32_t c, uint32_t *ret_rune)
{
    static const char letters[] = "afnrtv";
    static const char values[] = "\a\f\n\r\t\v";
    if (c < 0x80 && !ascii_is_alnum((int)c)) {
        *ret_rune = c;
        return true;
    }
    if (c == 'x') {
        return hex(p, ret_rune);
    }
    /* A single digit other than 0 would be a back-reference, which Go does not have. */
    if (c == '0' || (c >= '1' && c <= '7' && at_octal_digit(p))) {
        *ret_rune = octal(p, c);
        return true;
    }
    const char *at = c < 0x80 ? strchr(letters, (int)c) : NULL;
    if (at == NULL) {
        return false;
    }
    *ret_rune = (uint32_t)values[at - letters];
    return true;
}

/* Reads an escape that stands for one rune. p->rest starts with the backslash. */
static bool escape_rune(struct re2_parser *p, uint32_t *ret_rune)
{
    const char *start = p->rest.p;
    p->rest = sv_skip(p->rest, 1);
    if (p->rest.n == 0) {
        return re2_fail(p, "trailing backslash at end of expression", p->rest);
    }
    return escaped_rune(p, re2_next(p), ret_rune) ||
           re2_fail(p, "invalid escape sequence", re2_since(p, start));
}

/* ---- classes --------------------------------------------------------------------------------- */

static bool class_rune(struct re2_parser *p, struct sv whole, uint32_t *ret_rune)
{
    if (p->rest.n == 0) {
        return re2_fail(p, "missing closing ]", whole);
    }
    if (p->rest.p[0] == '\\') {
        return escape_rune(p, ret_rune);
    }
    *ret_rune = re2_next(p);
    return true;
}

/* Reads one rune or a range between two. */
static bool class_range(struct re2_parser *p, struct sv whole)
{
    const char *start = p->rest.p;
    uint32_t lo = 0;
    if (!class_rune(p, whole, &lo)) {
        return false;
    }
    uint32_t hi = lo;
    if (p->rest.n >= 2 && p->rest.p[0] == '-' && p->rest.p[1] != ']') {
        p->rest = sv_skip(p->rest, 1);
        if (!class_rune(p, whole, &hi)) {
            return false;
        }
        if (hi < lo) {
            return re2_fail(p, BAD_RANGE, re2_since(p, start));
        }
    }
    add_range(p, &p->set, lo, hi);
    return true;
}

static bool class_item(struct re2_parser *p, struct sv whole)
{
    bool is = false;
    if (!posix_class(p, &is) || (!is && !unicode_class(p, &is))) {
        return false;
    }
    return is || perl_class(p) || class_range(p, whole);
}

/* Removes surrogates from a class. UTF-8 has none, so the class matches the same texts without
 * them. */
static void drop_surrogates(struct runeset *set)
{
    runeset_negate(set);
    runeset_add(set, SURROGATE_MIN, SURROGATE_MAX);
    runeset_clean(set);
    runeset_negate(set);
}

static bool is_surrogate(const struct runeset *set)
{
    return set->n == 1 && set->at[0].lo == set->at[0].hi && set->at[0].lo >= SURROGATE_MIN &&
           set->at[0].lo <= SURROGATE_MAX;
}

static bool is_everything(const struct runeset *set)
{
    return set->n == 2 && set->at[0].lo == 0 && set->at[0].hi == SURROGATE_MIN - 1 &&
           set->at[1].lo == SURROGATE_MAX + 1 && set->at[1].hi == RUNE_MAX;
}

/* Turns what was added since begin_class() into a node. */
static struct re2_node *end_class(struct re2_parser *p, bool negated)
{
    struct runeset *set = &p->set;
    runeset_clean(set);
    if (negated && p->properties == NULL) {
        runeset_negate(set);
        negated = false;
    }
    bool surrogate = p->properties == NULL && is_surrogate(set);
    drop_surrogates(set);
    struct re2_node *node = re2_node(p, RE2_CLASS);
    struct rune_range *ranges = arena_array(p->arena, set->n, sizeof(*ranges));
    if (node == NULL || ranges == NULL || set->failed || p->part.failed) {
        re2_fail_memory(p);
        return NULL;
    }
    memcpy(ranges, set->at, set->n * sizeof(*ranges));
    if (p->properties == NULL && is_everything(set)) {
        node->op = RE2_ANY;
    } else if (p->properties == NULL && set->n == 1 && ranges[0].lo == ranges[0].hi) {
        node->op = RE2_LITERAL;
        node->rune = ranges[0].lo;
    } else {
        node->set.ranges = ranges;
        node->set.n_ranges = set->n;
        node->set.properties = p->properties;
        node->set.negated = negated;
        node->set.surrogate = surrogate;
        node->set.index = p->n_classes++;
    }
    return node;
}

static void begin_class(struct re2_parser *p)
{
    p->set.n = 0;
    p->properties = NULL;
}

struct re2_node *re2_class(struct re2_parser *p)
{
    struct sv whole = p->rest;
    begin_class(p);
    p->rest = sv_skip(p->rest, 1);
    bool negated = re2_take(p, SV("^"));
    /* A ] that comes first is a member. */
    do {
        if (!class_item(p, whole)) {
            return NULL;
        }
    } while (!re2_take(p, SV("]")));
    return end_class(p, negated);
}

struct re2_node *re2_escape(struct re2_parser *p)
{
    bool is = false;
    begin_class(p);
    if (!unicode_class(p, &is)) {
        return NULL;
    }
    if (is || perl_class(p)) {
        return end_class(p, false);
    }
    uint32_t rune = 0;
    return escape_rune(p, &rune) ? re2_literal(p, rune) : NULL;
}

struct re2_node *re2_literal(struct re2_parser *p, uint32_t rune)
{
    begin_class(p);
    add_range(p, &p->set, rune, rune);
    return end_class(p, false);
}

struct re2_node *re2_dot(struct re2_parser *p)
{
    begin_class(p);
    if ((p->flags & RE2_FLAG_DOT_NEWLINE) == 0) {
        runeset_add(&p->set, '\n', '\n');
    }
    return end_class(p, true);
}
