#include "config/content.h"

#include "base/ascii.h"
#include "http/contents.h"

/* Longest parts, as Kubernetes has them. */
#define NAMESPACE_MAX 63
#define NAME_MAX_LEN 253

static const struct {
    const char *word;
    const char *title;
} kinds[CONTENT_KINDS] = {
    [CONTENT_SECRET] = {"secret", "Secret"},
    [CONTENT_CONFIGMAP] = {"configmap", "ConfigMap"},
};

const char *content_kind_word(enum content_kind kind)
{
    return kinds[kind].word;
}

const char *content_kind_title(enum content_kind kind)
{
    return kinds[kind].title;
}

bool content_is_named(struct sv text)
{
    return sv_starts_with(text, SV(HTTP_CONTENT_PREFIX));
}

static bool is_lower_name(struct sv v, size_t max, bool dots)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '-' && !(dots && c == '.')) {
            return false;
        }
    }
    return v.n > 0 && v.n <= max && v.p[0] != '.' && v.p[0] != '-';
}

static bool is_key(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_word(v.p[i]) && v.p[i] != '-' && v.p[i] != '.') {
            return false;
        }
    }
    return v.n > 0 && v.n <= NAME_MAX_LEN;
}

static bool find_kind(struct sv word, enum content_kind *ret)
{
    for (unsigned i = 0; i < CONTENT_KINDS; i++) {
        if (sv_eq_str(word, kinds[i].word)) {
            *ret = (enum content_kind)i;
            return true;
        }
    }
    return false;
}

bool content_name_parse(struct sv text, struct content_name *ret)
{
    struct sv word;
    struct sv rest = sv_skip(text, sizeof(HTTP_CONTENT_PREFIX) - 1);
    return content_is_named(text) && sv_cut(rest, '/', &word, &rest) &&
           find_kind(word, &ret->kind) && sv_cut(rest, '/', &ret->namespace, &rest) &&
           sv_cut(rest, '/', &ret->object, &ret->key) &&
           is_lower_name(ret->namespace, NAMESPACE_MAX, false) &&
           is_lower_name(ret->object, NAME_MAX_LEN, true) && is_key(ret->key);
}
