/* The tree as a pattern for PCRE2: see re2.h. */
#include "base/ascii.h"
#include "regex/re2/re2.h"

static void emit_node(const struct re2_node *node, struct buf *out);

/* A pattern that matches nothing. */
#define NEVER "(?:(?!))"

/* Writes a rune, inside or outside a class, so that it stands for itself. */
static void emit_rune(uint32_t rune, struct buf *out)
{
    if (ascii_is_word((int)rune)) {
        buf_putc(out, (char)rune);
    } else if (rune > ' ' && rune < 0x7f) {
        buf_printf(out, "\\%c", (int)rune);
    } else {
        buf_printf(out, "\\x{%x}", (unsigned)rune);
    }
}

static void emit_range(uint32_t lo, uint32_t hi, struct buf *out)
{
    emit_rune(lo, out);
    if (hi > lo) {
        buf_putc(out, '-');
        emit_rune(hi, out);
    }
}

static void emit_ranges(const struct re2_node *node, struct buf *out)
{
    for (size_t i = 0; i < node->set.n_ranges; i++) {
        emit_range(node->set.ranges[i].lo, node->set.ranges[i].hi, out);
    }
}

/* Writes the runes from lo up to, but not including, end. PCRE2 refuses surrogates, and no class
 * has one, so a gap contains all of them or none. */
static void emit_gap(uint32_t lo, uint32_t end, struct buf *out)
{
    if (lo <= SURROGATE_MIN && end > SURROGATE_MAX) {
        emit_gap(lo, SURROGATE_MIN, out);
        lo = SURROGATE_MAX + 1;
    }
    if (lo < end) {
        emit_range(lo, end - 1, out);
    }
}

/* Writes the gaps between the ranges; the last range ends at RUNE_MAX. */
static void emit_gaps(const struct re2_node *node, struct buf *out)
{
    uint32_t next = 0;
    for (size_t i = 0; i < node->set.n_ranges; i++) {
        emit_gap(next, node->set.ranges[i].lo, out);
        next = node->set.ranges[i].hi + 1;
    }
}

/* Writes a class without properties. If the class reaches up to RUNE_MAX, its complement is
 * written, because that is shorter. */
static void emit_plain_class(const struct re2_node *node, struct buf *out)
{
    size_t n = node->set.n_ranges;
    if (n == 0) {
        buf_puts(out, NEVER);
        return;
    }
    if (node->set.ranges[n - 1].hi == RUNE_MAX) {
        buf_puts(out, "[^");
        emit_gaps(node, out);
    } else {
        buf_putc(out, '[');
        emit_ranges(node, out);
    }
    buf_putc(out, ']');
}

static void emit_property(const struct re2_property *property, bool negated, struct buf *out)
{
    buf_printf(out, "\\%c{%s}", negated ? 'P' : 'p', property->def->pcre);
}

/* Writes all members except the negated properties that are case-insensitive. */
static void emit_members(const struct re2_node *node, struct buf *out)
{
    bool open = node->set.n_ranges > 0;
    buf_puts(out, open ? "[" : "");
    emit_ranges(node, out);
    for (const struct re2_property *m = node->set.properties; m != NULL; m = m->next) {
        if (!m->fold) {
            buf_puts(out, open ? "" : "[");
            open = true;
            emit_property(m, m->negated, out);
        }
    }
    buf_puts(out, open ? "]" : NEVER);
}

/* Writes a property such as (?i)\P{Lu}: neither an upper-case letter nor a rune that equals one
 * when case is ignored. */
static void emit_negated_fold(const struct re2_property *property, struct buf *out)
{
    buf_puts(out, "|[^");
    emit_property(property, false, out);
    for (size_t i = 0; i < property->def->n_fold; i++) {
        const struct fold_range *f = &property->def->fold[i];
        for (uint32_t rune = f->lo; rune <= f->hi; rune += f->stride) {
            emit_rune(rune, out);
        }
    }
    buf_putc(out, ']');
}

void re2_emit_class(const struct re2_node *node, struct buf *out)
{
    if (node->set.properties == NULL) {
        emit_plain_class(node, out);
        return;
    }
    buf_puts(out, node->set.negated ? "(?:(?!" : "(?:");
    emit_members(node, out);
    for (const struct re2_property *m = node->set.properties; m != NULL; m = m->next) {
        if (m->fold) {
            emit_negated_fold(m, out);
        }
    }
    buf_puts(out, node->set.negated ? ").)" : ")");
}

static bool is_atom(const struct re2_node *node)
{
    return node->op == RE2_LITERAL || node->op == RE2_CLASS || node->op == RE2_ANY ||
           node->op == RE2_CAPTURE;
}

static void emit_group(const struct re2_node *node, struct buf *out)
{
    buf_puts(out, "(?:");
    emit_node(node, out);
    buf_putc(out, ')');
}

static void emit_repeat(const struct re2_node *node, struct buf *out)
{
    uint32_t min = node->repeat.min;
    uint32_t max = node->repeat.max;
    if (is_atom(node->first)) {
        emit_node(node->first, out);
    } else {
        emit_group(node->first, out);
    }
    if (max == RE2_UNLIMITED && min <= 1) {
        buf_putc(out, min == 0 ? '*' : '+');
    } else if (max == RE2_UNLIMITED) {
        buf_printf(out, "{%u,}", (unsigned)min);
    } else {
        buf_printf(out, "{%u,%u}", (unsigned)min, (unsigned)max);
    }
    if (node->repeat.lazy) {
        buf_putc(out, '?');
    }
}

static void emit_children(const struct re2_node *node, struct buf *out)
{
    for (const struct re2_node *child = node->first; child != NULL; child = child->next) {
        if (node->op == RE2_ALTERNATE && child != node->first) {
            buf_putc(out, '|');
        }
        if (node->op == RE2_CONCAT && child->op == RE2_ALTERNATE) {
            emit_group(child, out);
        } else {
            emit_node(child, out);
        }
    }
}

/* The leaves without a rune. PCRE2's own ^ and $ for lines are not used, because its ^ does not
 * match after a newline that ends the text. */
static const char *const leaves[] = {
    [RE2_EMPTY] = "",
    [RE2_ANY] = ".",
    [RE2_BEGIN_TEXT] = "\\A",
    [RE2_END_TEXT] = "\\z",
    [RE2_BEGIN_LINE] = "(?<![^\\x{a}])",
    [RE2_END_LINE] = "(?![^\\x{a}])",
    [RE2_WORD_BOUNDARY] = "\\b",
    [RE2_NOT_WORD_BOUNDARY] = "\\B",
};

static void emit_node(const struct re2_node *node, struct buf *out)
{
    switch (node->op) {
    case RE2_LITERAL:
        emit_rune(node->rune, out);
        break;
    case RE2_CLASS:
        re2_emit_class(node, out);
        break;
    case RE2_CAPTURE:
        buf_putc(out, '(');
        emit_node(node->first, out);
        buf_putc(out, ')');
        break;
    case RE2_REPEAT:
        emit_repeat(node, out);
        break;
    case RE2_CONCAT:
    case RE2_ALTERNATE:
        emit_children(node, out);
        break;
    default:
        buf_puts(out, leaves[node->op]);
    }
}

bool re2_emit(const struct re2 *re, struct buf *out)
{
    buf_puts(out, "\\A(?:");
    emit_node(re->root, out);
    buf_puts(out, ")\\z");
    return buf_ok(out);
}
