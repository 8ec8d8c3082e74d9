#include "config/content.h"

#include "base/ascii.h"
#include "config/parts.h"
#include "http/contents.h"

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

static bool is_key(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_word(v.p[i]) && v.p[i] != '-' && v.p[i] != '.') {
            return false;
        }
    }
    return v.n > 0 && v.n <= DNS_SUBDOMAIN_MAX;
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
           sv_cut(rest, '/', &ret->object, &ret->key) && ret->namespace.n > 0 &&
           check_dns_label(ret->namespace) && ret->object.n > 0 &&
           check_dns_subdomain(ret->object) && is_key(ret->key);
}
