#include "api/receive/ingest_name.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

/* Limit of the part of a wrong name that an error shows. */
#define SHOWN_MAX 200

static int shown(struct sv v)
{
    return (int)utf8_prefix(v, SHOWN_MAX);
}

static bool is_app_char(char c)
{
    return ascii_is_word(c) || c == '.' || c == '-' || c == '/';
}

/* Sets the error for the character at i, in the form of a message of Go. */
static bool bad_app(struct sv app, size_t i, struct err *err)
{
    uint32_t rune = 0;
    size_t n = utf8_decode(sv_skip(app, i), &rune);
    return err_set(err, ERR_INPUT,
                   "name: invalid service name: %.*s: character is not allowed: '%.*s'", shown(app),
                   app.p, (int)n, app.p + i);
}

static bool read_app(struct sv text, struct sv *ret_app, struct err *err)
{
    struct sv rest;
    *ret_app = text;
    (void)sv_cut(text, '{', ret_app, &rest);
    *ret_app = sv_trim(*ret_app);
    if (!utf8_valid(*ret_app)) {
        return err_set(err, ERR_INPUT, "name: invalid service name: no UTF-8");
    }
    for (size_t i = 0; i < ret_app->n; i++) {
        if (!is_app_char(ret_app->p[i])) {
            return bad_app(*ret_app, i, err);
        }
    }
    return ret_app->n > 0 || err_set(err, ERR_INPUT, "name: service name is required");
}

/* Checks that a key has no character that ends a key or begins a value. */
static bool check_key(struct sv key, struct err *err)
{
    if (key.n == 0) {
        return err_set(err, ERR_INPUT, "name: label name is required: ");
    }
    if (!utf8_valid(key)) {
        return err_set(err, ERR_INPUT, "name: invalid label name: no UTF-8");
    }
    for (size_t i = 0; i < key.n; i++) {
        if (strchr("{}, ", key.p[i]) != NULL) {
            return err_set(err, ERR_INPUT,
                           "name: invalid label name: %.*s: character is not allowed: '%c'",
                           shown(key), key.p, key.p[i]);
        }
    }
    return true;
}

/* Adds a pair. `__name__` renames the application; other names that begin with `__` are ignored. */
static bool take_pair(struct ingest_name *name, struct sv key, struct sv value, struct err *err)
{
    if (sv_eq_str(key, LABEL_NAME)) {
        name->app = value.n > 0 ? value : name->app;
        return true;
    }
    if (sv_starts_with(key, SV("__"))) {
        return true;
    }
    name->has_profile_id = name->has_profile_id || sv_eq_str(key, "profile_id");
    size_t i = 0;
    while (i < name->n && !sv_eq(name->pairs[i].name, key)) {
        i++;
    }
    if (i == INGEST_PAIRS_MAX) {
        return err_set(err, ERR_LIMIT, "name: more than %d labels", INGEST_PAIRS_MAX);
    }
    name->pairs[i] = (struct label){key, value};
    name->n += i == name->n;
    return true;
}

/* Takes a key up to its "=". If there is a "}" before it, the key begins after that "}", as in the
 * scanner of Pyroscope's server. False if no key is left. */
static bool take_key(struct sv *rest, struct sv *ret_key)
{
    size_t start = 0;
    size_t i = 0;
    while (i < rest->n && rest->p[i] != '=') {
        start = rest->p[i] == '}' ? i + 1 : start;
        i++;
    }
    if (i == rest->n) {
        return false;
    }
    *ret_key = sv_trim((struct sv){rest->p + start, i - start});
    *rest = sv_skip(*rest, i + 1);
    return true;
}

/* Takes a value up to the next "," or "}". If there is neither, returns false, and the pair is
 * ignored. */
static bool take_value(struct sv *rest, struct sv *ret_value)
{
    size_t i = 0;
    while (i < rest->n && rest->p[i] != ',' && rest->p[i] != '}') {
        i++;
    }
    if (i == rest->n) {
        return false;
    }
    *ret_value = sv_trim((struct sv){rest->p, i});
    *rest = sv_skip(*rest, i + 1);
    return true;
}

bool ingest_name_read(struct sv text, struct ingest_name *ret, struct err *err)
{
    struct sv rest = {"", 0};
    struct sv head;
    struct sv key;
    struct sv value;
    ret->n = 0;
    ret->has_profile_id = false;
    if (!read_app(text, &ret->app, err)) {
        return false;
    }
    (void)sv_cut(text, '{', &head, &rest);
    while (take_key(&rest, &key)) {
        if (!check_key(key, err)) {
            return false;
        }
        if (!take_value(&rest, &value)) {
            return true;
        }
        if (!take_pair(ret, key, value, err)) {
            return false;
        }
    }
    return true;
}

struct sv ingest_name_get(const struct ingest_name *name, struct sv key)
{
    for (size_t i = 0; i < name->n; i++) {
        if (sv_eq(name->pairs[i].name, key)) {
            return name->pairs[i].value;
        }
    }
    return (struct sv){"", 0};
}
