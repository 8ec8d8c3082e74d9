#include "relabel/expand.h"

#include <string.h>

/* Numbers of this size are no numbers any more but names (and so nothing). */
#define GROUP_NUMBER_MAX 100000000u

static size_t word_length(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if ((unsigned char)c >= 0x80) {
            return regex_word_length(v);
        }
        if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
              (c >= 'a' && c <= 'z'))) {
            return i;
        }
    }
    return v.n;
}

/* Takes a reference off *rest, which is behind a $. False if there is none. */
static bool take_name(struct sv *rest, struct sv *ret_name)
{
    bool brace = rest->n > 0 && rest->p[0] == '{';
    struct sv t = {rest->p + brace, rest->n - brace};
    struct sv name = {t.p, word_length(t)};
    size_t used = name.n + brace;
    if (name.n == 0) {
        return false;
    }
    if (brace) {
        if (name.n == t.n || t.p[name.n] != '}') {
            return false;
        }
        used++;
    }
    rest->p += used;
    rest->n -= used;
    *ret_name = name;
    return true;
}

static bool group_number(struct sv name, size_t *ret_number)
{
    size_t number = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] < '0' || name.p[i] > '9' || number >= GROUP_NUMBER_MAX) {
            return false;
        }
        number = number * 10 + (size_t)(name.p[i] - '0');
    }
    *ret_number = number;
    return name.n == 1 || name.p[0] != '0';
}

/* Whether a group answers to a reference; number is SIZE_MAX if that is a name. */
static bool group_is(const struct regex *re, size_t group, struct sv name, size_t number)
{
    return number == SIZE_MAX ? sv_eq(regex_group_name(re, group), name) : group == number;
}

/* Sets the groups that a reference means; a piece without groups and text is one that expands to
 * nothing. */
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

/* The piece at the start of *rest: up to the next $, or a reference, or a $ that is one. */
static bool take_piece(struct expansion_piece *piece, struct arena *arena, struct sv *rest,
                       const struct regex *re)
{
    const char *dollar = memchr(rest->p, '$', rest->n);
    size_t n = dollar == NULL ? rest->n : (size_t)(dollar - rest->p);
    if (n > 0) {
        piece->text = (struct sv){rest->p, n};
        rest->p += n;
        rest->n -= n;
        return true;
    }
    piece->text = (struct sv){rest->p, 1};
    rest->p++;
    rest->n--;
    if (rest->n > 0 && rest->p[0] == '$') {
        rest->p++;
        rest->n--;
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
