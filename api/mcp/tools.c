#include "api/mcp/tools.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/mcp/units.h"
#include "api/served.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "http/url.h"

#define TEXT_MAX ((size_t)4096)
#define HOST_MAX 256
/* Names that an error lists. */
#define LISTED_MAX 20
#define RANGE_DEFAULT_MS (INT64_C(3600) * 1000)

/* ---- the table ------------------------------------------------------------------------------- */

#define P_SERVICE "\"service\":{\"type\":\"string\",\"description\":\"a service of list_services\"}"
#define P_SELECTOR                                                                                 \
    "\"selector\":{\"type\":\"string\",\"description\":\"more labels that must match, as in "      \
    "Prometheus: {namespace=\\\"shop\\\",pod=~\\\"cart-.*\\\"}\"}"
#define P_RANGE                                                                                    \
    "\"from\":{\"type\":\"string\",\"description\":\"begin of the range: now-1h (default), "       \
    "2026-01-31T12:00:00Z, or seconds since 1970\"},"                                              \
    "\"until\":{\"type\":\"string\",\"description\":\"end of the range, now by default\"}"
#define P_TYPE                                                                                     \
    "\"type\":{\"type\":\"string\",\"description\":\"what is measured: cpu (default), "            \
    "alloc_space, inuse_space, goroutine, delay, ... or a whole profile type\"}"
#define P_BOUNDS                                                                                   \
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500,\"description\":\"rows\"},"     \
    "\"max_bytes\":{\"type\":\"integer\",\"minimum\":1024,\"maximum\":65536,\"description\":"      \
    "\"bytes of the answer, 8192 by default\"}"
#define P_PROFILES P_SERVICE "," P_SELECTOR "," P_TYPE "," P_RANGE "," P_BOUNDS
#define N_PROFILES "service", "selector", "type", "from", "until", "limit", "max_bytes"

static const char *const services_names[] = {"match", "from", "until", "limit", "max_bytes", NULL};
static const char *const top_names[] = {N_PROFILES, "by", "match", NULL};
static const char *const tree_names[] = {N_PROFILES, "function", "direction", "depth", NULL};
static const char *const compare_names[] = {
    N_PROFILES,       "before_from",     "before_until", "version",
    "before_version", "before_selector", "by",           NULL};
static const char *const changed_names[] = {
    "service", "type", "from", "until", "version", "before_version", "limit", "max_bytes", NULL};
static const char *const targets_names[] = {"health", "service", "limit", "max_bytes", NULL};
static const char *const labels_names[] = {"name",  "service", "selector",  "from",
                                           "until", "limit",   "max_bytes", NULL};

static const struct tool tools[] = {
    {"list_services", "Services with profiles",
     "Begin here. Lists the services that have profiles, those that use most CPU first, with the "
     "CPU of the first and the second half of the range, so that a service that has become more "
     "expensive stands out, and the types of profiles of each.",
     "\"match\":{\"type\":\"string\",\"description\":\"part of the names of services\"}," P_RANGE
     "," P_BOUNDS,
     "", services_names, 100, tool_list_services},
    {"top_functions", "Most expensive functions",
     "Lists the functions that use most CPU, memory, ... with their own share (self) and that of "
     "everything they call (total).",
     P_PROFILES ",\"by\":{\"type\":\"string\",\"enum\":[\"self\",\"total\"],\"description\":\"the "
                "order; self by default\"},\"match\":{\"type\":\"string\",\"description\":\"part "
                "of the names of functions\"}",
     "", top_names, 30, tool_top_functions},
    {"call_tree", "Call tree",
     "Shows the hottest paths from the root as an indented tree or, with a function, its callees "
     "or its callers.",
     P_PROFILES
     ",\"function\":{\"type\":\"string\",\"description\":\"the whole name of a function\"},"
     "\"direction\":{\"type\":\"string\",\"enum\":[\"callees\",\"callers\"],\"description\":\"of "
     "function; callees by default\"},\"depth\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
     "200,\"description\":\"levels, 25 by default\"}",
     "", tree_names, 80, tool_call_tree},
    {"compare", "Compare two ranges, versions or selections",
     "Compares functions of two sets of profiles and lists those whose cost differs most. By "
     "default the range is compared with the one of the same length before it. version and "
     "before_version compare two versions of a service in the same range.",
     P_PROFILES
     ",\"before_from\":{\"type\":\"string\",\"description\":\"begin of the range to compare with\"}"
     ",\"before_until\":{\"type\":\"string\",\"description\":\"its end\"},"
     "\"version\":{\"type\":\"string\",\"description\":\"value of the label version\"},"
     "\"before_version\":{\"type\":\"string\",\"description\":\"the version to compare with\"},"
     "\"before_selector\":{\"type\":\"string\",\"description\":\"the labels to compare with\"},"
     "\"by\":{\"type\":\"string\",\"enum\":[\"self\",\"total\"],\"description\":\"self by "
     "default\"}",
     "", compare_names, 20, tool_compare},
    {"what_changed", "What changed after a rollout",
     "Lists the services whose version changed in the last day or, with a service, compares its "
     "last two versions and names the functions that changed by more than chance explains, with "
     "intervals. Ask this first if a service has become slower or more expensive.",
     P_SERVICE
     "," P_TYPE ",\"from\":{\"type\":\"string\",\"description\":\"begin of the range: now-1d "
     "(default), 2026-01-31T12:00:00Z, or seconds since 1970\"},"
     "\"until\":{\"type\":\"string\",\"description\":\"end of the range, now by "
     "default\"},"
     "\"version\":{\"type\":\"string\",\"description\":\"the new version; the last one "
     "by default\"},\"before_version\":{\"type\":\"string\",\"description\":\"the version "
     "to compare with; the one before by default\"}," P_BOUNDS,
     "", changed_names, 20, tool_what_changed},
    {"targets", "Scraped targets",
     "Lists what is scraped and its state: those that fail, with the reason and what to do about "
     "it, before the others.",
     "\"health\":{\"type\":\"string\",\"description\":\"only targets of this state: up, down or "
     "unknown\"},\"service\":{\"type\":\"string\",\"description\":\"only targets of this service\"}"
     "," P_BOUNDS,
     "", targets_names, 50, tool_targets},
    {"labels", "Labels",
     "Lists the names of labels with the number of their values or, with a name, its values.",
     "\"name\":{\"type\":\"string\",\"description\":\"a label, such as version or "
     "namespace\"}," P_SERVICE "," P_SELECTOR "," P_RANGE "," P_BOUNDS,
     "", labels_names, 100, tool_labels},
};
#define TOOLS (sizeof(tools) / sizeof(tools[0]))

const struct tool *tool_at(size_t i)
{
    return i < TOOLS ? &tools[i] : NULL;
}

const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; i < TOOLS; i++) {
        if (strcmp(tools[i].name, name) == 0) {
            return &tools[i];
        }
    }
    return NULL;
}

void tool_describe(const struct tool *t, struct buf *out)
{
    buf_puts(out, "{");
    json_member("name", sv_from(t->name), out);
    json_member("title", sv_from(t->title), out);
    json_member("description", sv_from(t->description), out);
    buf_puts(out, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    buf_puts(out, t->properties);
    buf_printf(out, "},\"required\":[%s],\"additionalProperties\":false}", t->required);
    buf_puts(out, ",\"annotations\":{");
    json_member("title", sv_from(t->title), out);
    buf_puts(out, ",\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"
                  "\"openWorldHint\":false}}");
}

/* ---- running --------------------------------------------------------------------------------- */

/* Says that there is no argument of a name, and which there are. */
static bool no_argument(const struct tool *t, const char *name, struct err *err)
{
    struct buf list;
    size_t n = 0;
    buf_init(&list, TEXT_MAX);
    for (; t->names[n] != NULL; n++) {
        buf_printf(&list, "%s%s", n == 0 ? "" : ", ", t->names[n]);
    }
    const char *meant = suggest(sv_from(name), t->names, n);
    if (meant != NULL) {
        err_set(err, ERR_INPUT,
                "there is no argument \"%.60s\": did you mean \"%s\"?; the arguments are %s", name,
                meant, list.data);
    } else {
        err_set(err, ERR_INPUT, "there is no argument \"%.60s\"; the arguments are %s", name,
                list.data);
    }
    buf_done(&list);
    return false;
}

/* Refuses arguments that the tool does not have: a misspelt one must not be ignored. */
static bool check_names(const struct tool *t, const json_t *args, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)args, name, value)
    {
        size_t i = 0;
        while (t->names[i] != NULL && strcmp(t->names[i], name) != 0) {
            i++;
        }
        if (t->names[i] == NULL) {
            return no_argument(t, name, err);
        }
    }
    return true;
}

static bool read_bounds(const struct tool *t, struct tool_call *call, struct err *err)
{
    call->limit = t->limit;
    call->bytes_max = TOOL_BYTES_DEFAULT;
    return tool_number(call, "limit", 1, TOOL_LIMIT_MAX, &call->limit, err) &&
           tool_number(call, "max_bytes", TOOL_BYTES_MIN, TOOL_BYTES_MAX, &call->bytes_max, err);
}

bool tool_run(const struct tool *t, struct tool_call *call, struct err *err)
{
    /* Some clients send null if a tool needs no arguments. */
    call->args = json_is_null(call->args) ? NULL : call->args;
    if (call->args != NULL && !json_is_object(call->args)) {
        return err_set(err, ERR_INPUT, "arguments must be an object");
    }
    call->now_ns = clock_wall_ns();
    if (!check_names(t, call->args, err) || !read_bounds(t, call, err)) {
        return false;
    }
    bool ok = t->run(call, err);
    if (ok && call->left_out > 0) {
        buf_printf(call->text, "(%zu more left out: raise limit or max_bytes, or ask for less)\n",
                   call->left_out);
    }
    size_t damaged = atomic_load(&call->damaged);
    if (ok && damaged > 0) {
        buf_printf(call->text, "(%zu damaged profiles are left out)\n", damaged);
    }
    return ok && (buf_ok(call->text) || err_memory(err));
}

/* ---- arguments ------------------------------------------------------------------------------- */

bool tool_text(const struct tool_call *call, const char *name, const char **ret, struct err *err)
{
    const json_t *value = json_object_get(call->args, name);
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    const char *text = json_string_value(value);
    if (text == NULL || json_string_length(value) != strlen(text) || strlen(text) > TEXT_MAX) {
        return err_set(err, ERR_INPUT, "%s must be a string of at most %zu bytes", name, TEXT_MAX);
    }
    *ret = text[0] != '\0' ? text : *ret;
    return true;
}

bool tool_number(const struct tool_call *call, const char *name, size_t min, size_t max,
                 size_t *ret, struct err *err)
{
    const json_t *value = json_object_get(call->args, name);
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < (json_int_t)min || n > (json_int_t)max) {
        return err_set(err, ERR_INPUT, "%s must be a whole number from %zu to %zu", name, min, max);
    }
    *ret = (size_t)n;
    return true;
}

/* Reads one time in ms. */
static bool read_time(const char *name, const char *text, int64_t now_ms, int64_t *ret,
                      struct err *err)
{
    struct sv v = sv_trim(sv_from(text));
    struct err ignored = ERR_INIT;
    uint64_t seconds = 0;
    int64_t ns = 0;
    bool past = sv_starts_with(v, SV("now"));
    v = past ? sv_skip(v, 3) : v;
    if (past && v.n == 0) {
        *ret = now_ms;
        return true;
    }
    struct sv ago = past && v.p[0] == '-' ? sv_skip(v, 1) : v;
    if ((!past || ago.n < v.n) && parse_duration_ms(ago, ret, &ignored) && *ret < now_ms) {
        *ret = now_ms - *ret;
        return true;
    }
    if (!past && parse_u64(v, (uint64_t)now_ms * 2, &seconds)) {
        /* Numbers of 13 digits are milliseconds. */
        *ret = seconds > UINT64_C(100000000000) ? (int64_t)seconds : (int64_t)seconds * 1000;
        return true;
    }
    struct sv rest = v;
    if (!past && clock_take_rfc3339(&rest, 9, &ns) && rest.n == 0) {
        *ret = ns / NS_PER_MS;
        return true;
    }
    return err_set(err, ERR_INPUT,
                   "%s: expected a time such as now-1h, 2026-01-31T12:00:00Z or 1795307400, got "
                   "\"%.60s\"",
                   name, text);
}

bool tool_range(const struct tool_call *call, const char *prefix, struct ask *ask, struct err *err)
{
    char names[2][32];
    const char *texts[2] = {NULL, NULL};
    int64_t now_ms = call->now_ns / NS_PER_MS;
    int64_t times[2] = {ask->range.start_ms, ask->range.end_ms};
    if (times[1] == 0) {
        times[1] = now_ms;
    }
    (void)snprintf(names[0], sizeof(names[0]), "%sfrom", prefix);
    (void)snprintf(names[1], sizeof(names[1]), "%suntil", prefix);
    for (size_t i = 0; i < 2; i++) {
        if (!tool_text(call, names[i], &texts[i], err) ||
            (texts[i] != NULL && !read_time(names[i], texts[i], now_ms, &times[i], err))) {
            return false;
        }
    }
    if (times[0] == 0) {
        times[0] = times[1] - RANGE_DEFAULT_MS;
    }
    if (times[0] >= times[1]) {
        return err_set(err, ERR_INPUT, "%s must be before %s", names[0], names[1]);
    }
    return ask_range(ask, times[0], times[1], err);
}

/* Adds a selector, which may lack its braces. */
static bool add_selector(struct ask *ask, const char *name, const char *text, struct err *err)
{
    struct buf braced;
    buf_init(&braced, TEXT_MAX + 4);
    bool bare = strchr(text, '{') == NULL && strpbrk(text, "=!") != NULL;
    buf_printf(&braced, bare ? "{%s}" : "%s", text);
    bool ok = selector_add_parsed(ask->selector, (struct sv){braced.data, braced.len}, err) ||
              err_wrap(err, "%s: expected labels such as {namespace=\"shop\"}", name);
    buf_done(&braced);
    return ok;
}

bool tool_selector(const struct tool_call *call, const char *prefix, struct ask *ask,
                   struct err *err)
{
    char version_name[32];
    char selector_name[32];
    const char *service = NULL;
    const char *version = NULL;
    const char *selector = NULL;
    (void)snprintf(version_name, sizeof(version_name), "%sversion", prefix);
    (void)snprintf(selector_name, sizeof(selector_name), "%sselector", prefix);
    if (!tool_text(call, "service", &service, err) ||
        !tool_text(call, version_name, &version, err) ||
        !tool_text(call, selector_name, &selector, err)) {
        return false;
    }
    ask->selector = selector_new(err);
    ask->range.selector = ask->selector;
    return ask->selector != NULL &&
           (service == NULL || selector_add(ask->selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL,
                                            sv_from(service), err)) &&
           (version == NULL ||
            selector_add(ask->selector, SV("version"), MATCH_EQUAL, sv_from(version), err)) &&
           (selector == NULL || add_selector(ask, selector_name, selector, err));
}

/* Appends names for an error. */
static void list_names(struct tool_call *call, const struct query_strings *names, struct buf *out)
{
    for (size_t i = 0; i < names->n && i < LISTED_MAX; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : ", ", tool_name(call, names->at[i], 100));
    }
    if (names->n > LISTED_MAX) {
        buf_printf(out, " and %zu more", names->n - LISTED_MAX);
    }
}

static bool no_type(struct tool_call *call, const char *wanted, const struct ask *ask,
                    const struct query_strings *types, struct err *err)
{
    struct buf list;
    buf_init(&list, TEXT_MAX);
    list_names(call, types, &list);
    if (types->n == 0) {
        err_set(err, ERR_INPUT,
                "no profile matches between %s and %s: check service and selector with "
                "list_services and labels, or ask for a longer range",
                tool_time(call, ask->range.start_ms), tool_time(call, ask->range.end_ms));
    } else {
        err_set(err, ERR_INPUT, "type: no profiles of \"%.80s\"; there are %s", wanted, list.data);
    }
    buf_done(&list);
    return false;
}

/* Returns how well a type is meant by a word: 2 by its sample type, 1 by its name. */
static unsigned fits(struct sv id, const char *word)
{
    struct profile_type t;
    struct err ignored = ERR_INIT;
    if (!profile_type_parse(id, &t, &ignored)) {
        return 0;
    }
    return sv_eq_str(t.sample_type, word) ? 2 : sv_eq_str(t.name, word) ? 1 : 0;
}

/* Finds the types that a word means best. */
static size_t candidates(const struct query_strings *types, const char *word, struct sv *ret)
{
    unsigned best = 1;
    size_t n = 0;
    for (size_t i = 0; i < types->n; i++) {
        unsigned now = fits(types->at[i], word);
        n = now > best ? 0 : n;
        best = now > best ? now : best;
        if (now == best) {
            *ret = types->at[i];
            n++;
        }
    }
    return n;
}

bool tool_type(struct tool_call *call, const char *fallback, struct ask *ask, struct err *err)
{
    const char *type = fallback;
    struct query q;
    struct query_strings types = {.n = 0};
    struct sv found = SV("");
    if (!tool_text(call, "type", &type, err) || !tool_query(call, &q, err) ||
        !query_label_values(&q, &ask->range, SV("__profile_type__"), &types, err)) {
        return false;
    }
    for (size_t i = 0; i < types.n; i++) {
        if (sv_eq_str(types.at[i], type)) {
            return ask_type(ask, types.at[i], err);
        }
    }
    size_t n = candidates(&types, type, &found);
    if (n > 1) {
        struct buf list;
        buf_init(&list, TEXT_MAX);
        list_names(call, &types, &list);
        err_set(err, ERR_INPUT, "type: \"%.80s\" may mean several; give one of %s", type,
                list.data);
        buf_done(&list);
        return false;
    }
    return n == 1 ? ask_type(ask, found, err) : no_type(call, type, ask, &types, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

bool tool_query(struct tool_call *call, struct query *ret, struct err *err)
{
    return ask_query(call->exchange, call->exchange->deadline_ms, call->arena, &call->damaged, ret,
                     err);
}

bool tool_row(struct tool_call *call, const char *fmt, ...)
{
    /* Room for the lines that say what was left out. */
    size_t max = call->bytes_max - TOOL_BYTES_MIN / 4;
    size_t before = call->text->len;
    va_list ap;
    if (call->left_out > 0) {
        call->left_out++;
        return false;
    }
    va_start(ap, fmt);
    buf_vprintf(call->text, fmt, ap);
    va_end(ap);
    buf_putc(call->text, '\n');
    if (call->text->len > max && before > 0 && buf_ok(call->text)) {
        call->text->len = before;
        call->text->data[before] = '\0';
        call->left_out++;
        return false;
    }
    return true;
}

const char *tool_name(struct tool_call *call, struct sv text, size_t max)
{
    struct buf b;
    buf_init(&b, 6 * max + 8);
    bool cut = text.n > max;
    json_escape(cut ? (struct sv){text.p, max} : text, &b);
    buf_puts(&b, cut ? "..." : "");
    const char *copy = buf_ok(&b) ? arena_strndup(call->arena, b.data, b.len) : NULL;
    buf_done(&b);
    return copy != NULL ? copy : "?";
}

const char *tool_value(struct tool_call *call, double value, struct sv unit)
{
    char text[UNITS_TEXT_MAX];
    units_format(value, unit, text);
    const char *copy = arena_strdup(call->arena, text);
    return copy != NULL ? copy : "?";
}

const char *tool_time(struct tool_call *call, int64_t ms)
{
    char text[32];
    clock_format_rfc3339(ms * NS_PER_MS, text, sizeof(text));
    text[strcspn(text, ".")] = '\0';
    const char *copy = arena_printf(call->arena, "%sZ", text);
    return copy != NULL ? copy : "?";
}

const char *tool_encoded(struct tool_call *call, struct sv text)
{
    struct buf b;
    buf_init(&b, 3 * TEXT_MAX);
    const char *copy = url_encode(text, &b) ? arena_strndup(call->arena, b.data, b.len) : NULL;
    buf_done(&b);
    return copy != NULL ? copy : "";
}

void tool_page(struct tool_call *call, const char *fmt, ...)
{
    const struct exchange *x = call->exchange;
    struct sv host = request_header(x->request, "host");
    const char *prefix = x->options->path_prefix != NULL ? x->options->path_prefix : "";
    va_list ap;
    buf_printf(call->text, "Page: %s%s%s",
               host.n == 0                         ? ""
               : x->options->tls.cert_file != NULL ? "https://"
                                                   : "http://",
               tool_name(call, host, HOST_MAX), prefix);
    va_start(ap, fmt);
    buf_vprintf(call->text, fmt, ap);
    va_end(ap);
    buf_putc(call->text, '\n');
}
