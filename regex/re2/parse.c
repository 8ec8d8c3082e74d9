/* The structure of a pattern: see re2.h. */
#include "regex/re2/parser.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

/* ---- small helpers --------------------------------------------------------------------------- */

/* Sets an error about expr that is noticed at another place. */
static bool fail_at(struct re2_parser *p, const char *what, struct sv expr, const char *at)
{
    return err_set(p->err, ERR_INPUT, "error parsing regexp: %s: `%.*s` at byte %zu", what,
                   SV_ARG(expr), (size_t)(at - p->whole.p));
}

bool re2_fail(struct re2_parser *p, const char *what, struct sv expr)
{
    return fail_at(p, what, expr, expr.p);
}

bool re2_fail_memory(struct re2_parser *p)
{
    return err_set(p->err, ERR_LIMIT, "error parsing regexp: expression too large");
}

struct sv re2_since(const struct re2_parser *p, const char *from)
{
    return (struct sv){from, (size_t)(p->rest.p - from)};
}

static void skip(struct re2_parser *p, size_t n)
{
    p->rest = sv_skip(p->rest, n);
}

bool re2_take(struct re2_parser *p, struct sv prefix)
{
    bool is = sv_starts_with(p->rest, prefix);
    skip(p, is ? prefix.n : 0);
    return is;
}

uint32_t re2_next(struct re2_parser *p)
{
    uint32_t rune = UTF8_REPLACEMENT_RUNE;
    if (p->rest.n > 0) {
        skip(p, utf8_decode(p->rest, &rune));
    }
    return rune;
}

struct re2_node *re2_node(struct re2_parser *p, enum re2_op op)
{
    struct re2_node *node = arena_alloc(p->arena, sizeof(*node));
    if (node == NULL) {
        re2_fail_memory(p);
        return NULL;
    }
    node->op = op;
    node->height = 1;
    node->nullable = op == RE2_EMPTY || (op >= RE2_BEGIN_TEXT && op <= RE2_NOT_WORD_BOUNDARY);
    return node;
}

static void list_append(struct re2_list *list, struct re2_node *node)
{
    node->next = NULL;
    if (list->tail == NULL) {
        list->head = node;
    } else {
        list->tail->next = node;
    }
    list->tail = node;
    list->n++;
}

/* Sets the members of a node that follow from its children. */
static bool measure(struct re2_parser *p, struct re2_node *node)
{
    bool all = node->op == RE2_CONCAT;
    node->captures = node->op == RE2_CAPTURE;
    node->nullable = all || (node->op == RE2_REPEAT && node->repeat.min == 0);
    for (const struct re2_node *child = node->first; child != NULL; child = child->next) {
        if (child->height >= node->height) {
            node->height = child->height + 1;
        }
        node->captures = node->captures || child->captures;
        node->nullable =
            all ? node->nullable && child->nullable : node->nullable || child->nullable;
    }
    return node->height <= RE2_HEIGHT_MAX || re2_fail(p, "expression nests too deeply", p->whole);
}

/* Makes one node of a list: RE2_EMPTY, the only item, or op over all items. An item that is op
 * itself is replaced by its children, as in (?:ab)c. */
static struct re2_node *join(struct re2_parser *p, enum re2_op op, const struct re2_list *list)
{
    if (list->n == 0) {
        return re2_node(p, RE2_EMPTY);
    }
    if (list->n == 1) {
        return list->head;
    }
    struct re2_node *node = re2_node(p, op);
    if (node == NULL) {
        return NULL;
    }
    node->first = list->head;
    for (struct re2_node **at = &node->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->op == op) {
            struct re2_node *last = (*at)->first;
            while (last->next != NULL) {
                last = last->next;
            }
            last->next = (*at)->next;
            *at = (*at)->first;
        }
    }
    return measure(p, node) ? node : NULL;
}

/* Appends a node to the items of the open group. Accepts NULL, if an error is set already. */
static bool push(struct re2_parser *p, struct re2_node *node)
{
    if (node != NULL) {
        list_append(&p->frame->items, node);
    }
    return node != NULL;
}

static bool push_op(struct re2_parser *p, enum re2_op op, size_t length)
{
    skip(p, length);
    return push(p, re2_node(p, op));
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool open_group(struct re2_parser *p, const char *start, bool captures, struct sv name)
{
    struct re2_frame *frame = arena_alloc(p->arena, sizeof(*frame));
    if (frame == NULL) {
        return re2_fail_memory(p);
    }
    frame->up = p->frame;
    frame->flags = p->flags;
    frame->start = start;
    if (captures) {
        frame->capture = re2_node(p, RE2_CAPTURE);
        if (frame->capture == NULL) {
            return false;
        }
        frame->capture->group = (uint32_t)p->n_groups;
        p->names[p->n_groups++] = name;
    }
    p->frame = frame;
    return true;
}

/* Ends the branch that is being read. */
static bool end_branch(struct re2_parser *p)
{
    struct re2_node *branch = join(p, RE2_CONCAT, &p->frame->items);
    if (branch == NULL) {
        return false;
    }
    list_append(&p->frame->branches, branch);
    p->frame->items = (struct re2_list){0};
    return true;
}

static struct re2_node *end_frame(struct re2_parser *p)
{
    return end_branch(p) ? join(p, RE2_ALTERNATE, &p->frame->branches) : NULL;
}

static bool close_group(struct re2_parser *p)
{
    if (p->frame->up == NULL) {
        return fail_at(p, "unexpected )", p->whole, p->rest.p);
    }
    struct re2_node *node = end_frame(p);
    if (node == NULL) {
        return false;
    }
    struct re2_node *capture = p->frame->capture;
    p->flags = p->frame->flags;
    p->frame = p->frame->up;
    skip(p, 1);
    if (capture == NULL) {
        return push(p, node);
    }
    capture->first = node;
    return measure(p, capture) && push(p, capture);
}

static bool is_name(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (!ascii_is_word(name.p[i])) {
            return false;
        }
    }
    return name.n > 0;
}

/* Reads (?P<name> or (?<name>, with `before` bytes in front of the name. */
static bool named_group(struct re2_parser *p, size_t before)
{
    struct sv group = p->rest;
    struct sv name;
    if (!sv_cut(group, '>', &name, &p->rest)) {
        return re2_fail(p, "invalid named capture", group);
    }
    name = sv_skip(name, before);
    if (!is_name(name)) {
        return re2_fail(p, "invalid named capture", re2_since(p, group.p));
    }
    return open_group(p, group.p, true, name);
}

/* Returns the flag that a letter stands for, or 0. */
static unsigned flag_of(uint32_t c)
{
    static const char letters[] = "imsU";
    const char *at = c > 0 && c < 0x80 ? strchr(letters, (int)c) : NULL;
    return at == NULL ? 0 : 1u << (at - letters);
}

/* Reads the flags of (?i), (?i-s) or (?i: with the character that ends them. Returns this
 * character, ')' or ':', or 0 if the flags are not well-formed. */
static uint32_t read_flags(struct re2_parser *p, unsigned *flags)
{
    bool minus = false;
    bool dangling = false; /* a minus without a flag after it so far */
    while (p->rest.n > 0) {
        uint32_t c = re2_next(p);
        unsigned flag = flag_of(c);
        if (c == '-' && !minus) {
            minus = true;
            dangling = true;
        } else if (flag == 0) {
            return (c == ':' || c == ')') && !dangling ? c : 0;
        } else {
            *flags = minus ? *flags & ~flag : *flags | flag;
            dangling = false;
        }
    }
    return 0;
}

/* Reads (?i), (?i-s), (?i:...) or (?:...). */
static bool flag_group(struct re2_parser *p)
{
    const char *start = p->rest.p;
    unsigned flags = p->flags;
    skip(p, 2);
    uint32_t end = read_flags(p, &flags);
    if (end == 0) {
        return re2_fail(p, "invalid or unsupported Perl syntax", re2_since(p, start));
    }
    /* The group restores the flags that were set before it. */
    if (end == ':' && !open_group(p, start, false, SV(""))) {
        return false;
    }
    p->flags = flags;
    return true;
}

static bool read_paren(struct re2_parser *p)
{
    struct sv t = p->rest;
    if (t.n > 4 && sv_starts_with(t, SV("(?P<"))) {
        return named_group(p, 4);
    }
    if (t.n > 3 && sv_starts_with(t, SV("(?<"))) {
        return named_group(p, 3);
    }
    if (sv_starts_with(t, SV("(?"))) {
        return flag_group(p);
    }
    skip(p, 1);
    return open_group(p, t.p, true, SV(""));
}

/* ---- repetition ------------------------------------------------------------------------------ */

/* Returns true if counted repetitions repeat no piece more than n times. It is called only for
 * counts of at least 2, so n, which is divided by each count, ends a walk after few levels. */
static bool repeat_fits(const struct re2_node *node, uint32_t n)
{
    if (node->op == RE2_REPEAT && node->repeat.counted) {
        uint32_t count = node->repeat.max == RE2_UNLIMITED ? node->repeat.min : node->repeat.max;
        if (node->repeat.max == 0) {
            return true;
        }
        if (count > n) {
            return false;
        }
        n = count > 0 ? n / count : n;
    }
    for (const struct re2_node *child = node->first; child != NULL; child = child->next) {
        if (!repeat_fits(child, n)) {
            return false;
        }
    }
    return true;
}

/* Turns the last item into a repetition of itself, in place. */
static bool wrap_last(struct re2_parser *p, uint32_t min, uint32_t max, bool lazy, bool counted)
{
    struct re2_node *node = p->frame->items.tail;
    struct re2_node *inner = re2_node(p, RE2_EMPTY);
    if (inner == NULL) {
        return false;
    }
    *inner = *node;
    *node = (struct re2_node){.op = RE2_REPEAT, .height = 1, .first = inner};
    node->repeat.min = min;
    node->repeat.max = max;
    node->repeat.lazy = lazy;
    node->repeat.counted = counted;
    p->repeats_empty_captures =
        p->repeats_empty_captures || (max > 1 && inner->nullable && inner->captures);
    return measure(p, node);
}

/* Applies an operator that has been read, from start up to p->rest: it repeats the last item min to
 * max times. */
static bool repeat(struct re2_parser *p, const char *start, uint32_t min, uint32_t max,
                   bool counted)
{
    bool lazy = re2_take(p, SV("?")) != ((p->flags & RE2_FLAG_UNGREEDY) != 0);
    if (p->last_repeat != NULL) {
        return re2_fail(p, "invalid nested repetition operator", re2_since(p, p->last_repeat));
    }
    if (p->frame->items.n == 0) {
        return re2_fail(p, "missing argument to repetition operator", re2_since(p, start));
    }
    if (!wrap_last(p, min, max, lazy, counted)) {
        return false;
    }
    bool several = min >= 2 || (max >= 2 && max != RE2_UNLIMITED);
    if (counted && several && !repeat_fits(p->frame->items.tail, RE2_REPEAT_MAX)) {
        return re2_fail(p, "invalid repeat count", re2_since(p, start));
    }
    return true;
}

/* Reads a decimal number without leading zeros. A value above the limit becomes the limit plus
 * one. */
static bool read_count(struct re2_parser *p, uint32_t *ret_count)
{
    struct sv digits = p->rest;
    uint32_t count = 0;
    size_t n = 0;
    for (; n < digits.n && ascii_is_digit(digits.p[n]); n++) {
        count = count * 10 + (uint32_t)(digits.p[n] - '0');
        if (count > RE2_REPEAT_MAX) {
            count = RE2_REPEAT_MAX + 1;
        }
    }
    skip(p, n);
    *ret_count = count;
    return n == 1 || (n > 1 && digits.p[0] != '0');
}

/* Reads {n}, {n,} or {n,m}. Returns false if the brace does not start a repetition. */
static bool read_counts(struct re2_parser *p, uint32_t *ret_min, uint32_t *ret_max)
{
    if (!re2_take(p, SV("{")) || !read_count(p, ret_min)) {
        return false;
    }
    *ret_max = *ret_min;
    if (re2_take(p, SV(","))) {
        *ret_max = RE2_UNLIMITED;
        if (!sv_starts_with(p->rest, SV("}")) && !read_count(p, ret_max)) {
            return false;
        }
    }
    return re2_take(p, SV("}"));
}

static bool read_brace(struct re2_parser *p, bool *ret_is_repeat)
{
    struct sv start = p->rest;
    uint32_t min = 0;
    uint32_t max = 0;
    *ret_is_repeat = read_counts(p, &min, &max);
    if (!*ret_is_repeat) {
        p->rest = sv_skip(start, 1);
        return push(p, re2_literal(p, '{'));
    }
    if (min > RE2_REPEAT_MAX || (max != RE2_UNLIMITED && (max > RE2_REPEAT_MAX || min > max))) {
        return re2_fail(p, "invalid repeat count", re2_since(p, start.p));
    }
    return repeat(p, start.p, min, max, true);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Reads \Q...\E. The \E is required: without it, the anchors after the pattern would become part of
 * the text. */
static bool read_quoted(struct re2_parser *p)
{
    const char *start = p->rest.p;
    skip(p, 2);
    while (!re2_take(p, SV("\\E"))) {
        if (p->rest.n == 0) {
            return fail_at(p, "missing closing \\E", p->whole, start);
        }
        if (!push(p, re2_literal(p, re2_next(p)))) {
            return false;
        }
    }
    return true;
}

static bool read_backslash(struct re2_parser *p)
{
    switch (p->rest.n >= 2 ? p->rest.p[1] : '\0') {
    case 'A':
        return push_op(p, RE2_BEGIN_TEXT, 2);
    case 'z':
        return push_op(p, RE2_END_TEXT, 2);
    case 'b':
        return push_op(p, RE2_WORD_BOUNDARY, 2);
    case 'B':
        return push_op(p, RE2_NOT_WORD_BOUNDARY, 2);
    case 'Q':
        return read_quoted(p);
    default:
        return push(p, re2_escape(p));
    }
}

/* Reads one item or operator. */
static bool step(struct re2_parser *p, bool *ret_is_repeat)
{
    const char *start = p->rest.p;
    bool multi_line = (p->flags & RE2_FLAG_MULTI_LINE) != 0;
    switch (*start) {
    case '(':
        return read_paren(p);
    case ')':
        return close_group(p);
    case '|':
        skip(p, 1);
        return end_branch(p);
    case '^':
        return push_op(p, multi_line ? RE2_BEGIN_LINE : RE2_BEGIN_TEXT, 1);
    case '$':
        return push_op(p, multi_line ? RE2_END_LINE : RE2_END_TEXT, 1);
    case '.':
        skip(p, 1);
        return push(p, re2_dot(p));
    case '[':
        return push(p, re2_class(p));
    case '\\':
        return read_backslash(p);
    case '{':
        return read_brace(p, ret_is_repeat);
    case '*':
    case '+':
    case '?':
        *ret_is_repeat = true;
        skip(p, 1);
        return repeat(p, start, *start == '+' ? 1 : 0, *start == '?' ? 1 : RE2_UNLIMITED, false);
    default:
        return push(p, re2_literal(p, re2_next(p)));
    }
}

static struct re2_node *parse(struct re2_parser *p)
{
    while (p->rest.n > 0) {
        const char *start = p->rest.p;
        bool is_repeat = false;
        if (!step(p, &is_repeat)) {
            return NULL;
        }
        p->last_repeat = is_repeat ? start : NULL;
    }
    if (p->frame->up != NULL) {
        fail_at(p, "missing closing )", p->whole, p->frame->start);
        return NULL;
    }
    struct re2_node *root = end_frame(p);
    /* The anchors around the pattern add one level, unless the pattern is a sequence, which they
     * join. */
    if (root != NULL && root->op != RE2_CONCAT && root->height >= RE2_HEIGHT_MAX) {
        re2_fail(p, "expression nests too deeply", p->whole);
        return NULL;
    }
    return root;
}

/* ---- surrogates ------------------------------------------------------------------------------
 *
 * No UTF-8 text has a surrogate, so that a class of one matches nothing. Go differs where it
 * compares the start of the text with the literals at the start of the pattern, because it writes
 * those as UTF-8, in which a surrogate becomes U+FFFD. It does so for patterns that never leave a
 * choice (regexp/onepass.go). We do the same for the plain ones of these patterns. */

static bool is_leaf(const struct re2_node *node)
{
    return node->op == RE2_LITERAL || node->op == RE2_CLASS || node->op == RE2_ANY;
}

static bool are_leaves(const struct re2_node *node)
{
    while (node != NULL && is_leaf(node)) {
        node = node->next;
    }
    return node == NULL;
}

/* Returns true if the next rune decides how to match these siblings and their children. is_last:
 * true if the end of the text follows the siblings. */
static bool has_no_choice(const struct re2_node *node, bool is_last)
{
    for (; node != NULL; node = node->next) {
        bool last = is_last && node->next == NULL;
        bool ends = last && node->op == RE2_REPEAT && is_leaf(node->first);
        bool counted = node->op != RE2_REPEAT || node->repeat.min == node->repeat.max;
        bool decided =
            node->op == RE2_ALTERNATE
                ? are_leaves(node->first)
                : ends || (counted && has_no_choice(node->first, last && node->op != RE2_REPEAT));
        if (!decided) {
            return false;
        }
    }
    return true;
}

/* Turns the surrogates among the literals at the start of the pattern into U+FFFD. */
static void replace_surrogates(struct re2_node *root)
{
    struct re2_node *node = root->op == RE2_CONCAT ? root->first : root;
    if (!has_no_choice(root, true)) {
        return;
    }
    while (node != NULL && node->op == RE2_EMPTY) {
        node = node->next;
    }
    for (; node != NULL; node = node->next) {
        if (node->op == RE2_CLASS && node->set.surrogate) {
            node->op = RE2_LITERAL;
            node->rune = UTF8_REPLACEMENT_RUNE;
        } else if (node->op != RE2_LITERAL || node->rune == UTF8_REPLACEMENT_RUNE) {
            return;
        }
    }
}

struct re2 *re2_parse(struct arena *arena, struct sv pattern, struct err *err)
{
    struct re2_frame whole = {0};
    struct re2_parser p = {
        .arena = arena,
        .whole = pattern,
        .rest = pattern,
        .flags = RE2_FLAG_DOT_NEWLINE,
        .frame = &whole,
        .n_groups = 1,
        .err = err,
    };
    if (!utf8_valid(pattern)) {
        re2_fail(&p, "invalid UTF-8", pattern);
        return NULL;
    }
    struct re2 *re = arena_alloc(arena, sizeof(*re));
    p.names = arena_array(arena, pattern.n + 1, sizeof(*p.names)); /* each group has a '(' */
    if (re == NULL || p.names == NULL) {
        re2_fail_memory(&p);
        return NULL;
    }
    struct re2_node *root = parse(&p);
    if (root != NULL) {
        replace_surrogates(root);
    }
    re->root = root;
    runeset_done(&p.set);
    runeset_done(&p.part);
    re->names = p.names;
    re->n_groups = p.n_groups;
    re->n_classes = p.n_classes;
    re->repeats_empty_captures = p.repeats_empty_captures;
    return re->root == NULL ? NULL : re;
}
