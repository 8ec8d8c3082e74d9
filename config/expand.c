#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "config/expand.h"

#define NAME_MAX_LEN 255

static bool at_text(struct sv text, size_t i, const char *what)
{
    size_t n = strlen(what);
    return text.n - i >= n && memcmp(text.p + i, what, n) == 0;
}

bool expand_needed(struct sv text)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (text.p[i] == '$' && text.p[i + 1] == '{') {
            return true;
        }
    }
    return false;
}

/* Returns the length of a variable's name at the start of v: letters, digits and underscores, not
 * beginning with a digit. */
static size_t name_length(struct sv v)
{
    size_t n = 0;
    while (n < v.n && ascii_is_word(v.p[n]) && !(n == 0 && ascii_is_digit(v.p[n]))) {
        n++;
    }
    return n;
}

const char *expand_lookup(const struct config_options *options, const char *name)
{
    if (options != NULL && options->env != NULL) {
        return options->env(options->env_arg, name);
    }
    return getenv(name);
}

/* Appends the value of one reference. inside: the text between the braces. */
static bool expand_one(struct sv inside, const struct config_options *options, struct buf *out,
                       struct err *err)
{
    size_t n = name_length(inside);
    struct sv rest = {inside.p + n, inside.n - n};
    bool has_default = sv_starts_with(rest, SV(":-"));
    if (n == 0 || n > NAME_MAX_LEN || (rest.n > 0 && !has_default)) {
        return err_set(err, ERR_INPUT,
                       "expected ${NAME} or ${NAME:-default}; a literal \"${\" is written $${");
    }
    char name[NAME_MAX_LEN + 1];
    memcpy(name, inside.p, n);
    name[n] = '\0';
    const char *value = expand_lookup(options, name);
    if (has_default && (value == NULL || value[0] == '\0')) {
        buf_append(out, rest.p + 2, rest.n - 2);
    } else if (value != NULL) {
        buf_puts(out, value);
    } else {
        return err_set(err, ERR_INPUT,
                       "the environment variable %s is not set (${%s:-...} gives a default)", name,
                       name);
    }
    return true;
}

bool expand_env(struct sv text, const struct config_options *options, struct buf *out,
                struct err *err)
{
    for (size_t i = 0; i < text.n;) {
        if (at_text(text, i, "$${")) {
            buf_puts(out, "${");
            i += 3;
        } else if (at_text(text, i, "${")) {
            const char *end = memchr(text.p + i, '}', text.n - i);
            if (end == NULL) {
                return err_set(err, ERR_INPUT,
                               "\"${\" without \"}\"; a literal one is written $${");
            }
            size_t stop = (size_t)(end - text.p);
            if (!expand_one((struct sv){text.p + i + 2, stop - i - 2}, options, out, err)) {
                return false;
            }
            i = stop + 1;
        } else {
            buf_putc(out, text.p[i]);
            i++;
        }
    }
    if (!buf_ok(out)) {
        return err_set(err, buf_too_big(out) ? ERR_LIMIT : ERR_MEMORY,
                       "too long with its environment variables filled in");
    }
    return true;
}
