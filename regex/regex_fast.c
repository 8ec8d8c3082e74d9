/* Regexes that run without an engine: see regex_fast.h. */
#include "regex/regex_fast.h"

#include <string.h>

#include "base/utf8.h"

/* The items of a sequence: the children of an RE2_CONCAT, or a single node. Anchors at its ends are
 * redundant, as a regex always spans the whole text. */
struct items {
    const struct re2_node *first;
    const struct re2_node *end; /* not included */
};

static struct items items_of(const struct re2_node *node)
{
    struct items items = {node, node->next};
    if (node->op == RE2_CONCAT) {
        items = (struct items){node->first, NULL};
    }
    while (items.first != items.end && items.first->op == RE2_BEGIN_TEXT) {
        items.first = items.first->next;
    }
    return items;
}

/* Appends the literals that start at *node and moves *node past them. */
static void take_literals(const struct re2_node **node, const struct re2_node *end, struct buf *out)
{
    for (; *node != end && (*node)->op == RE2_LITERAL; *node = (*node)->next) {
        char bytes[UTF8_BYTES_MAX];
        buf_append(out, bytes, utf8_encode((*node)->rune, bytes));
    }
}

/* Returns true if only anchors to the end of the text are left. */
static bool at_end(const struct re2_node *node, const struct re2_node *end)
{
    while (node != end && node->op == RE2_END_TEXT) {
        node = node->next;
    }
    return node == end;
}

static bool keep(struct buf *text, struct arena *arena, struct sv *ret)
{
    char *copy = buf_ok(text) ? arena_strndup(arena, text->data, text->len) : NULL;
    *ret = (struct sv){copy, text->len};
    buf_clear(text);
    return copy != NULL;
}

static bool literal_text(const struct re2_node *node, struct arena *arena, struct buf *text,
                         struct sv *ret)
{
    struct items items = items_of(node);
    if (items.first != items.end && items.first->op == RE2_EMPTY) {
        items.first = items.first->next;
    }
    take_literals(&items.first, items.end, text);
    return keep(text, arena, ret) && at_end(items.first, items.end);
}

static bool is_literals(const struct re2_node *node, struct arena *arena, struct buf *text,
                        struct regex_fast *fast)
{
    bool several = node->op == RE2_ALTERNATE;
    const struct re2_node *branch = several ? node->first : node;
    size_t n = 1;
    for (const struct re2_node *b = branch->next; several && b != NULL; b = b->next) {
        n++;
    }
    struct sv *literals = arena_array(arena, n, sizeof(*literals));
    if (literals == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!literal_text(branch, arena, text, &literals[i])) {
            return false;
        }
        branch = branch->next;
    }
    fast->kind = REGEX_FAST_LITERALS;
    fast->literals = literals;
    fast->n_literals = n;
    return true;
}

/* Returns true for .* and .+. They may be lazy: this makes no difference, because the text after
 * them is fixed. */
static bool is_anything(const struct re2_node *node, size_t *ret_least)
{
    if (node->op != RE2_REPEAT || node->first->op != RE2_ANY || node->repeat.max != RE2_UNLIMITED ||
        node->repeat.min > 1) {
        return false;
    }
    *ret_least = node->repeat.min;
    return true;
}

static bool is_affixes(const struct re2_node *node, struct arena *arena, struct buf *text,
                       struct regex_fast *fast)
{
    struct items items = items_of(node);
    const struct re2_node *at = items.first;
    take_literals(&at, items.end, text);
    if (!keep(text, arena, &fast->prefix) || at == items.end) {
        return false;
    }
    bool captures = at->op == RE2_CAPTURE;
    if (!is_anything(captures ? at->first : at, &fast->least)) {
        return false;
    }
    if (captures) {
        fast->group_is_middle[fast->n_groups++] = true;
    }
    at = at->next;
    take_literals(&at, items.end, text);
    if (!keep(text, arena, &fast->suffix) || !at_end(at, items.end)) {
        return false;
    }
    fast->kind = REGEX_FAST_AFFIXES;
    return true;
}

struct regex_fast regex_fast_new(const struct re2 *re, struct arena *arena)
{
    struct regex_fast fast = {0};
    const struct re2_node *node = re->root;
    if (node->op == RE2_CAPTURE) {
        node = node->first;
        fast.n_groups = 1; /* the whole */
    }
    struct buf text;
    buf_init(&text, REGEX_EMITTED_MAX);
    if (!is_literals(node, arena, &text, &fast)) {
        buf_clear(&text);
        if (!is_affixes(node, arena, &text, &fast)) {
            fast = (struct regex_fast){0};
        }
    }
    buf_done(&text);
    return fast;
}

static bool match_literals(const struct regex_fast *fast, struct sv subject)
{
    for (size_t i = 0; i < fast->n_literals; i++) {
        if (sv_eq(fast->literals[i], subject)) {
            return true;
        }
    }
    return false;
}

static bool match_affixes(const struct regex_fast *fast, struct sv subject)
{
    return subject.n >= fast->prefix.n + fast->suffix.n + fast->least &&
           sv_starts_with(subject, fast->prefix) && sv_ends_with(subject, fast->suffix);
}

bool regex_fast_match(const struct regex_fast *fast, struct sv subject, struct regex_span *spans)
{
    bool matches = fast->kind == REGEX_FAST_LITERALS ? match_literals(fast, subject)
                                                     : match_affixes(fast, subject);
    if (!matches) {
        return false;
    }
    spans[0] = (struct regex_span){0, subject.n};
    for (size_t i = 0; i < fast->n_groups; i++) {
        spans[i + 1] = spans[0];
        if (fast->group_is_middle[i]) {
            spans[i + 1] = (struct regex_span){fast->prefix.n, subject.n - fast->suffix.n};
        }
    }
    return true;
}
