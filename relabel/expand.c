/* Parses and expands references to groups: see expand.h. */
#include "relabel/expand.h"

#include <string.h>

#include "base/ascii.h"

/* A longer number is a name, as in Go. */
#define GROUP_NUMBER_MAX 999999999

static size_t word_length(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if ((unsigned char)v.p[i] >= 0x80) {
            return regex_word_length(v);
        }
        if (!ascii_is_word(v.p[i])) {
            return i;
        }
    }
    return v.n;
}

/* Reads a reference at the start of *rest, after the $. False if there is none. */
static bool take_name(struct sv *rest, struct sv *ret_name)
{
    bool brace = sv_starts_with(*rest, SV("{"));
    struct sv t = sv_skip(*rest, brace);
    struct sv name = {t.p, word_length(t)};
    t = sv_skip(t, name.n);
    if (name.n == 0 || (brace && !sv_starts_with(t, SV("}")))) {
        return false;
    }
    *rest = sv_skip(t, brace);
    *ret_name = name;
    return true;
}

static bool group_number(struct sv name, size_t *ret_number)
{
    uint64_t number = 0;
    if (!parse_u64(name, GROUP_NUMBER_MAX, &number) || (name.n > 1 && name.p[0] == '0')) {
        return false;
    }
    *ret_number = (size_t)number;
    return true;
}

/* Returns true if a reference means the group. number is SIZE_MAX if the reference is a name. */
static bool group_is(const struct regex *re, size_t group, struct sv name, size_t number)
{
    return number == SIZE_MAX ? sv_eq(regex_group_name(re, group), name) : group == number;
}

/* Sets the groups that a reference means; a piece without groups and text expands to nothing. */
static bool resolve(struct expansion_piece *piece, struct arena *arena, struct sv name,
                    const struct regex *re)
{
    size_t number = SIZE_MAX;
    if (!group_number(name, &number)) {
        number = SIZE_MAX;
    }
    size_t n = 0;
    for (size_t i = 0; i < regex_groups(re); i++) {
        n += group_is(re, i, name, number);
    }
    if (n == 0) {
        return true;
    }
    size_t *groups = arena_array(arena, n, sizeof(*groups));
    if (groups == NULL) {
        return false;
    }
    for (size_t i = 0; i < regex_groups(re); i++) {
        if (group_is(re, i, name, number)) {
            groups[piece->n_groups++] = i;
        }
    }
    piece->groups = groups;
    return true;
}

/* Reads one piece: text up to the next $, a reference, or a literal $. */
static bool take_piece(struct expansion_piece *piece, struct arena *arena, struct sv *rest,
                       const struct regex *re)
{
    const char *dollar = memchr(rest->p, '$', rest->n);
    size_t n = dollar == NULL ? rest->n : (size_t)(dollar - rest->p);
    if (n > 0) {
        piece->text = (struct sv){rest->p, n};
        *rest = sv_skip(*rest, n);
        return true;
    }
    piece->text = SV("$");
    *rest = sv_skip(*rest, 1);
    if (sv_starts_with(*rest, SV("$"))) {
        *rest = sv_skip(*rest, 1);
        return true;
    }
    struct sv name;
    if (!take_name(rest, &name)) {
        return true;
    }
    piece->text = SV("");
    return resolve(piece, arena, name, re);
}

bool expansion_init(struct expansion *t, struct arena *arena, struct sv text,
                    const struct regex *re)
{
    size_t most = 1;
    for (size_t i = 0; i < text.n; i++) {
        most += text.p[i] == '$' ? 2 : 0;
    }
    struct expansion_piece *pieces = arena_array(arena, most, sizeof(*pieces));
    if (pieces == NULL) {
        return false;
    }
    size_t n = 0;
    while (text.n > 0) {
        if (!take_piece(&pieces[n++], arena, &text, re)) {
            return false;
        }
    }
    t->pieces = pieces;
    t->n = n;
    return true;
}

bool expansion_is_constant(const struct expansion *t, struct sv *ret_text)
{
    if (t->n > 1 || (t->n == 1 && t->pieces[0].n_groups > 0)) {
        return false;
    }
    *ret_text = t->n == 0 ? SV("") : t->pieces[0].text;
    return true;
}

bool expansion_write(const struct expansion *t, const struct regex_scratch *s, struct sv subject,
                     struct buf *out)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct expansion_piece *piece = &t->pieces[i];
        buf_append(out, piece->text.p, piece->text.n);
        for (size_t j = 0; j < piece->n_groups; j++) {
            struct regex_span span = regex_group(s, piece->groups[j]);
            if (span.start != REGEX_UNSET) {
                buf_append(out, subject.p + span.start, span.end - span.start);
                break;
            }
        }
    }
    return buf_ok(out);
}
