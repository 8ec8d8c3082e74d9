#include "symbols/service.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

/* ---- the request ----------------------------------------------------------------------------- */

/* Returns true if the path is one of gperftools' profiles. */
static bool is_gperftools(struct sv path)
{
    static const char *const suffixes[] = {"/pprof/heap", "/pprof/growth", "/pprof/profile",
                                           "/pprof/pmuprofile", "/pprof/contention"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (sv_ends_with(path, sv_from(suffixes[i]))) {
            return true;
        }
    }
    return false;
}

static bool contains(struct sv text, const char *part)
{
    return text.n > 0 && memmem(text.p, text.n, part, strlen(part)) != NULL;
}

bool symbol_service_url(struct sv profile_url, struct buf *out)
{
    const char *query = profile_url.n > 0 ? memchr(profile_url.p, '?', profile_url.n) : NULL;
    struct sv url = {profile_url.p,
                     query != NULL ? (size_t)(query - profile_url.p) : profile_url.n};
    const char *host = url.n > 0 ? memmem(url.p, url.n, "://", 3) : NULL;
    size_t from = host != NULL ? (size_t)(host + 3 - url.p) : 0;
    const char *slash = memrchr(url.p + from, '/', url.n - from);
    if (host == NULL || slash == NULL) {
        return false;
    }
    bool named = contains(url, "/debug/pprof/") || is_gperftools(url);
    buf_append(out, url.p, (size_t)(slash + 1 - url.p));
    buf_puts(out, named ? "symbol" : "symbolz");
    return buf_ok(out);
}

bool symbol_service_has_names(struct sv body)
{
    struct sv line;
    struct sv rest = body;
    while (rest.n > 0) {
        struct sv next = SV("");
        if (!sv_cut(rest, '\n', &line, &next)) {
            line = rest;
        }
        rest = next;
        if (sv_starts_with(line, SV("num_symbols:"))) {
            struct sv number = sv_trim(sv_skip(line, sizeof("num_symbols:") - 1));
            return number.n > 0 && number.p[0] >= '0' && number.p[0] <= '9' &&
                   !sv_eq(number, SV("0"));
        }
    }
    return false;
}

bool symbol_service_put_addresses(const uint64_t *addresses, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n && i < SYMBOL_SERVICE_ADDRESSES_MAX; i++) {
        buf_printf(out, "%s0x%" PRIx64, i == 0 ? "" : "+", addresses[i]);
    }
    return buf_ok(out);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the place of the "(" that matches the ")" at the end of a name; name.n if there is
 * none. */
static size_t matching_parenthesis(struct sv name)
{
    size_t depth = 0;
    for (size_t i = name.n; i > 0; i--) {
        depth += name.p[i - 1] == ')';
        if (name.p[i - 1] == '(' && --depth == 0) {
            return i - 1;
        }
    }
    return name.n;
}

struct sv symbol_without_parameters(struct sv name)
{
    struct sv text = name;
    if (sv_ends_with(text, SV(" const"))) {
        text.n -= sizeof(" const") - 1;
    }
    if (!sv_ends_with(text, SV(")"))) {
        return name;
    }
    size_t at = matching_parenthesis(text);
    struct sv head = {text.p, at};
    /* "operator()" without parameters, and a name that consists of parentheses, stay. */
    bool keeps = at == 0 || at == text.n || sv_ends_with(head, SV("operator")) ||
                 sv_ends_with(head, SV("::"));
    return keeps ? name : head;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes "0x" and a number of up to 64 bits from the start of *v. */
static bool take_address(struct sv *v, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 2;
    if (!sv_starts_with(*v, SV("0x"))) {
        return false;
    }
    for (; n < v->n; n++) {
        char c = v->p[n];
        bool digit = c >= '0' && c <= '9';
        char low = (char)(c | 0x20);
        if (!digit && (low < 'a' || low > 'f')) {
            break;
        }
        if (value >> 60 != 0) {
            return false;
        }
        value = value << 4 | (uint64_t)(digit ? c - '0' : low - 'a' + 10);
    }
    *v = sv_skip(*v, n);
    *ret = value;
    return n > 2;
}

/* Returns true for the names that the linker gives to the ends of segments. brpc answers with the
 * last one for all addresses that it does not know. */
static bool is_end(struct sv name)
{
    static const char *const ends[] = {"_end",   "end",   "_edata",      "edata",
                                       "_etext", "etext", "__bss_start", "__end__"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (sv_eq_str(name, ends[i])) {
            return true;
        }
    }
    return false;
}

/* Returns true for a name that is none: it repeats an address, or says that it is unknown. */
static bool is_no_name(struct sv name)
{
    uint64_t address;
    struct sv rest = name;
    return name.n == 0 || sv_eq(name, SV("??")) || is_end(name) ||
           (take_address(&rest, &address) && rest.n == 0);
}

static bool read_line(struct sv line, uint64_t *ret_address, struct sv *ret_name)
{
    struct sv rest = line;
    if (!take_address(&rest, ret_address) || rest.n == 0 || !is_space(rest.p[0])) {
        return false;
    }
    struct sv name = symbol_without_parameters(sv_trim(rest));
    name.n = utf8_prefix(name, SYMBOL_SERVICE_NAME_MAX);
    *ret_name = name;
    return !is_no_name(name);
}

bool symbol_service_next(struct sv *rest, uint64_t *ret_address, struct sv *ret_name)
{
    while (rest->n > 0) {
        struct sv line = *rest;
        struct sv next = SV("");
        (void)sv_cut(*rest, '\n', &line, &next);
        *rest = next;
        if (read_line(line, ret_address, ret_name)) {
            return true;
        }
    }
    return false;
}
