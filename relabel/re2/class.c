#include "relabel/re2/parser.h"

#include <string.h>

/* Named groups of ASCII as pairs of bounds. */
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

/* A class while it is read. */
struct members {
    struct runeset set;
    struct re2_property *properties;
    size_t n_properties;
    size_t cap_properties;
};

static void members_done(struct members *c)
{
    runeset_done(&c->set);
}

static bool add_property(struct re2_parser *p, struct members *c, struct re2_property property)
{
    if (c->n_properties == c->cap_properties) {
        size_t cap = c->cap_properties == 0 ? 4 : 2 * c->cap_properties;
        struct re2_property *bigger = arena_array(p->arena, cap, sizeof(*bigger));
        if (bigger == NULL) {
            return re2_fail_memory(p);
        }
        if (c->n_properties > 0) {
            memcpy(bigger, c->properties, c->n_properties * sizeof(*bigger));
        }
        c->properties = bigger;
        c->cap_properties = cap;
    }
    c->properties[c->n_properties++] = property;
    return true;
}

static void add_range(const struct re2_parser *p, struct runeset *set, uint32_t lo, uint32_t hi)
{
    if (p->flags & RE2_FLAG_FOLD) {
        runeset_add_folded(set, lo, hi);
    } else {
        runeset_add(set, lo, hi);
    }
}

static void add_group(const struct re2_parser *p, struct members *c, const struct group *group,
                      bool negated)
{
    struct runeset set = {0};
    for (size_t i = 0; i + 1 < group->n; i += 2) {
        add_range(p, &set, group->pairs[i], group->pairs[i + 1]);
    }
    runeset_clean(&set);
    if (negated) {
        runeset_negate(&set);
    }
    runeset_add_all(&c->set, &set);
    runeset_done(&set);
}

/* [:name:] and [:^name:]. *ret_is says whether there was one; false with an error. */
static bool posix_class(struct re2_parser *p, struct members *c, bool *ret_is)
{
    *ret_is = false;
    if (!sv_starts_with(p->rest, SV("[:"))) {
        return true;
    }
    const char *end = memmem(p->rest.p + 2, p->rest.n - 2, ":]", 2);
    if (end == NULL) {
        return true;
    }
    struct sv whole = {p->rest.p, (size_t)(end + 2 - p->rest.p)};
    struct sv name = {p->rest.p + 2, whole.n - 4};
    bool negated = name.n > 0 && name.p[0] == '^';
    if (negated) {
        name.p++;
        name.n--;
    }
    for (size_t i = 0; i < GROUP_COUNT(posix_groups); i++) {
        if (sv_eq_str(name, posix_groups[i].name)) {
            add_group(p, c, &posix_groups[i], negated);
            p->rest.p += whole.n;
            p->rest.n -= whole.n;
            *ret_is = true;
            return true;
        }
    }
    return re2_fail(p, "invalid character class range", whole);
}

/* \d \s \w and the complements. */
static bool perl_class(struct re2_parser *p, struct members *c)
{
    if (p->rest.n < 2 || p->rest.p[0] != '\\') {
        return false;
    }
    for (size_t i = 0; i < GROUP_COUNT(perl_groups); i++) {
        char small = perl_groups[i].name[0];
        char big = (char)(small - ('a' - 'A'));
        if (p->rest.p[1] == small || p->rest.p[1] == big) {
            add_group(p, c, &perl_groups[i], p->rest.p[1] == big);
            p->rest.p += 2;
            p->rest.n -= 2;
            return true;
        }
    }
    return false;
}

static void add_ranges(struct members *c, struct runeset *set, bool negated)
{
    runeset_clean(set);
    if (negated) {
        runeset_negate(set);
    }
    runeset_add_all(&c->set, set);
    runeset_done(set);
}

/* The two names of Go's regexp that stand for plain ranges. */
static bool add_plain_property(const struct re2_parser *p, struct members *c, struct sv name,
                               bool negated)
{
    struct runeset set = {0};
    if (name.n == 3 && strncasecmp(name.p, "any", 3) == 0) {
        runeset_add(&set, 0, RUNE_MAX);
    } else if (name.n == 5 && strncasecmp(name.p, "ascii", 5) == 0) {
        add_range(p, &set, 0, 0x7f);
    } else {
        return false;
    }
    add_ranges(c, &set, negated);
    return true;
}

static bool add_named_property(struct re2_parser *p, struct members *c, struct sv name,
                               bool negated, struct sv expr)
{
    if (add_plain_property(p, c, name, negated)) {
        return true;
    }
    bool fold = (p->flags & RE2_FLAG_FOLD) != 0;
    if (name.n == 8 && strncasecmp(name.p, "assigned", 8) == 0) {
        name = SV("Cn");
        negated = !negated;
    }
    const struct unicode_class *def = unicode_class_find(name);
    if (def == NULL) {
        return re2_fail(p, "invalid character class range", expr);
    }
    if (fold && !negated) {
        for (size_t i = 0; i < def->n_fold; i++) {
            const struct fold_range *f = &def->fold[i];
            for (uint32_t rune = f->lo; rune <= f->hi; rune += f->stride) {
                runeset_add(&c->set, rune, rune);
            }
        }
    }
    return add_property(p, c,
                        (struct re2_property){def, negated, fold && def->n_fold > 0 && negated});
}

/* \pN, \p{Greek}, \P{^Greek}. *ret_is says whether there was one; false with an error. */
static bool unicode_class(struct re2_parser *p, struct members *c, bool *ret_is)
{
    *ret_is = false;
    const char *start = p->rest.p;
    if (p->rest.n < 2 || start[0] != '\\' || (start[1] != 'p' && start[1] != 'P')) {
        return true;
    }
    *ret_is = true;
    bool negated = start[1] == 'P';
    p->rest.p += 2;
    p->rest.n -= 2;
    struct sv name;
    if (p->rest.n > 0 && p->rest.p[0] == '{') {
        struct sv tail;
        if (!sv_cut(p->rest, '}', &name, &tail)) {
            return re2_fail(p, "invalid character class range", (struct sv){start, p->rest.n + 2});
        }
        name.p++;
        name.n--;
        p->rest = tail;
    } else {
        const char *at = p->rest.p;
        re2_next(p);
        name = re2_since(p, at);
    }
    if (name.n > 0 && name.p[0] == '^') {
        negated = !negated;
        name.p++;
        name.n--;
    }
    return add_named_property(p, c, name, negated, re2_since(p, start));
}

static int hex_digit(uint32_t rune)
{
    if (rune >= '0' && rune <= '9') {
        return (int)rune - '0';
    }
    uint32_t small = rune | 0x20;
    return rune < 0x80 && small >= 'a' && small <= 'f' ? (int)small - 'a' + 10 : -1;
}

/* Behind `\x{`. */
static bool braced_hex(struct re2_parser *p, uint32_t *ret_rune)
{
    uint32_t rune = 0;
    for (size_t digits = 0; p->rest.n > 0; digits++) {
        uint32_t c = re2_next(p);
        if (c == '}') {
            *ret_rune = rune;
            return digits > 0;
        }
        int v = hex_digit(c);
        if (v < 0) {
            return false;
        }
        rune = rune * 16 + (uint32_t)v;
        if (rune > RUNE_MAX) {
            return false;
        }
    }
    return false;
}

/* Behind `\x`. */
static bool hex(struct re2_parser *p, uint32_t *ret_rune)
{
    if (p->rest.n == 0) {
        return false;
    }
    uint32_t c = re2_next(p);
    if (c == '{') {
        return braced_hex(p, ret_rune);
    }
    int high = hex_digit(c);
    int low = hex_digit(re2_next(p));
    if (high < 0 || low < 0) {
        return false;
    }
    *ret_rune = (uint32_t)(high * 16 + low);
    return true;
}

/* Behind `\` and one octal digit: up to two more. */
static uint32_t octal(struct re2_parser *p, uint32_t first)
{
    uint32_t rune = first - '0';
    for (int i = 0; i < 2 && p->rest.n > 0; i++) {
        char c = p->rest.p[0];
        if (c < '0' || c > '7') {
            break;
        }
        rune = rune * 8 + (uint32_t)(c - '0');
        p->rest.p++;
        p->rest.n--;
    }
    return rune;
}

static bool is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The rune that `\c` stands for; false if there is none. */
static bool escaped_rune(struct re2_parser *p, uint32_t c, uint32_t *ret_rune)
{
    static const char letters[] = "afnrtv";
    static const char values[] = "\a\f\n\r\t\v";
    if (c < 0x80 && !is_alnum(c)) {
        *ret_rune = c;
        return true;
    }
    if (c == 'x') {
        return hex(p, ret_rune);
    }
    /* A digit from 1 on alone would be a reference to a group, which Go does not have. */
    bool more = p->rest.n > 0 && p->rest.p[0] >= '0' && p->rest.p[0] <= '7';
    if (c == '0' || (c >= '1' && c <= '7' && more)) {
        *ret_rune = octal(p, c);
        return true;
    }
    const char *at = c < 0x80 && c != 0 ? strchr(letters, (int)c) : NULL;
    if (at == NULL) {
        return false;
    }
    *ret_rune = (uint32_t)values[at - letters];
    return true;
}

/* p->rest starts with a backslash. */
static bool escape_rune(struct re2_parser *p, uint32_t *ret_rune)
{
    const char *start = p->rest.p;
    p->rest.p++;
    p->rest.n--;
    if (p->rest.n == 0) {
        return re2_fail(p, "trailing backslash at end of expression", (struct sv){p->rest.p, 0});
    }
    uint32_t c = re2_next(p);
    if (escaped_rune(p, c, ret_rune)) {
        return true;
    }
    return re2_fail(p, "invalid escape sequence", re2_since(p, start));
}

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

/* One rune or a range of two. */
static bool class_range(struct re2_parser *p, struct members *c, struct sv whole)
{
    const char *start = p->rest.p;
    uint32_t lo = 0;
    if (!class_rune(p, whole, &lo)) {
        return false;
    }
    uint32_t hi = lo;
    if (p->rest.n >= 2 && p->rest.p[0] == '-' && p->rest.p[1] != ']') {
        p->rest.p++;
        p->rest.n--;
        if (!class_rune(p, whole, &hi)) {
            return false;
        }
        if (hi < lo) {
            return re2_fail(p, "invalid character class range", re2_since(p, start));
        }
    }
    add_range(p, &c->set, lo, hi);
    return true;
}

static bool class_item(struct re2_parser *p, struct members *c, struct sv whole)
{
    bool is = false;
    if (!posix_class(p, c, &is) || (!is && !unicode_class(p, c, &is))) {
        return false;
    }
    return is || perl_class(p, c) || class_range(p, c, whole);
}

/* Surrogates are not in UTF-8: a class is the same without them. */
static void drop_surrogates(struct runeset *set)
{
    runeset_negate(set);
    runeset_add(set, SURROGATE_MIN, SURROGATE_MAX);
    runeset_clean(set);
    runeset_negate(set);
}

static bool is_everything(const struct runeset *set)
{
    return set->n == 2 && set->at[0].lo == 0 && set->at[0].hi == SURROGATE_MIN - 1 &&
           set->at[1].lo == SURROGATE_MAX + 1 && set->at[1].hi == RUNE_MAX;
}

static void fill_class(struct re2_node *node, const struct members *c,
                       const struct rune_range *ranges, bool negated)
{
    if (c->n_properties == 0 && is_everything(&c->set)) {
        node->op = RE2_ANY;
    } else if (c->n_properties == 0 && c->set.n == 1 && ranges[0].lo == ranges[0].hi) {
        node->op = RE2_LITERAL;
        node->rune = ranges[0].lo;
    } else {
        node->set.ranges = ranges;
        node->set.n_ranges = c->set.n;
        node->set.properties = c->properties;
        node->set.n_properties = c->n_properties;
        node->set.negated = negated;
    }
}

/* Makes the node and frees the class. */
static struct re2_node *class_node(struct re2_parser *p, struct members *c, bool negated)
{
    struct re2_node *node = re2_node(p, RE2_CLASS);
    runeset_clean(&c->set);
    if (negated && c->n_properties == 0) {
        runeset_negate(&c->set);
        negated = false;
    }
    drop_surrogates(&c->set);
    struct rune_range *ranges = NULL;
    if (node != NULL && c->set.n > 0) {
        ranges = arena_array(p->arena, c->set.n, sizeof(*ranges));
    }
    if (node == NULL || c->set.failed || (c->set.n > 0 && ranges == NULL)) {
        re2_fail_memory(p);
        members_done(c);
        return NULL;
    }
    if (ranges != NULL) {
        memcpy(ranges, c->set.at, c->set.n * sizeof(*ranges));
    }
    fill_class(node, c, ranges, negated);
    members_done(c);
    return node;
}

struct re2_node *re2_class(struct re2_parser *p)
{
    struct sv whole = p->rest;
    struct members c = {0};
    p->rest.p++;
    p->rest.n--;
    bool negated = p->rest.n > 0 && p->rest.p[0] == '^';
    if (negated) {
        p->rest.p++;
        p->rest.n--;
    }
    /* A ] that comes first is a member. */
    for (bool first = true; first || p->rest.n == 0 || p->rest.p[0] != ']'; first = false) {
        if (!class_item(p, &c, whole)) {
            members_done(&c);
            return NULL;
        }
    }
    p->rest.p++;
    p->rest.n--;
    return class_node(p, &c, negated);
}

struct re2_node *re2_escape(struct re2_parser *p)
{
    struct members c = {0};
    bool is = false;
    if (!unicode_class(p, &c, &is)) {
        members_done(&c);
        return NULL;
    }
    if (is || perl_class(p, &c)) {
        return class_node(p, &c, false);
    }
    uint32_t rune = 0;
    return escape_rune(p, &rune) ? re2_literal(p, rune) : NULL;
}

struct re2_node *re2_literal(struct re2_parser *p, uint32_t rune)
{
    bool fold = (p->flags & RE2_FLAG_FOLD) != 0 && rune_fold(rune) != rune;
    if (fold || (rune >= SURROGATE_MIN && rune <= SURROGATE_MAX)) {
        struct members c = {0};
        add_range(p, &c.set, rune, rune);
        return class_node(p, &c, false);
    }
    struct re2_node *node = re2_node(p, RE2_LITERAL);
    if (node != NULL) {
        node->rune = rune;
    }
    return node;
}
