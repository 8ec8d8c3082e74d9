/* The subject changes: what changed from one version of a service to the next. A profpull answers
 * at /api/v1/changes; for a directory, this process computes the same. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/query/question.h"
#include "cli/terminal/text.h"
#include "http/url.h"
#include "store/changes/report.h"

#define BYTES_MAX ((size_t)1024 * 1024 * 1024)
#define QUERY_MAX ((size_t)64 * 1024)
#define NAME_COLUMNS ((size_t)64 * 1024)
/* Exit codes with --fail-above. */
#define EXIT_ABOVE 4
#define EXIT_NO_VERDICT 5

/* ---- the question ---------------------------------------------------------------------------- */

/* The selector of --label; "" without any. */
static void put_labels(const struct question *q, struct buf *out)
{
    for (size_t i = 0; i < q->ask.labels->n; i++) {
        const struct flag_pair *label = &q->ask.labels->at[i];
        buf_puts(out, i == 0 ? "{" : ",");
        json_quote(label->name, out);
        buf_putc(out, '=');
        json_quote(sv_from(label->value), out);
    }
    buf_puts(out, q->ask.labels->n > 0 ? "}" : "");
}

/* Finds the id of the type. Appends nothing if there are no profiles. */
static bool put_type(struct question *q, struct buf *out, struct err *err)
{
    json_t *ids = q->source->types(&q->peer, &q->ask, err);
    bool ok = ids != NULL;
    if (ok && json_array_size(ids) == 0) {
        ok = err_set(err, ERR_REFUSED, "%s has no profiles of the service \"%s\" in this time",
                     q->peer.name, q->ask.service);
    }
    ok = ok && query_choose_type(ids, q->ask.type, out, err);
    json_decref(ids);
    return ok;
}

/* Sets the range of the base; false if none is given. */
static bool base_range(const struct question *q, int64_t *ret_from_ns, int64_t *ret_until_ns)
{
    const struct query_base *b = &q->args->base;
    int64_t back = b->before_ms * NS_PER_MS;
    int64_t length = q->ask.until_ns - q->ask.from_ns;
    *ret_until_ns = b->until_ns != QUERY_NO_TIME ? b->until_ns : q->ask.until_ns - back;
    *ret_from_ns = b->from_ns != QUERY_NO_TIME ? b->from_ns : *ret_until_ns - length;
    return b->from_ns != QUERY_NO_TIME || b->until_ns != QUERY_NO_TIME || back > 0;
}

static size_t limit_of(const struct question *q)
{
    uint64_t limit = q->args->limit;
    return limit == 0 || limit > REPORT_LIMIT_MAX ? REPORT_LIMIT_MAX : (size_t)limit;
}

/* ---- a server -------------------------------------------------------------------------------- */

static void put_param(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, "&%s=", name);
    (void)url_encode(sv_from(value), out);
}

static json_t *fetch(struct question *q, struct err *err)
{
    struct buf query;
    struct buf text;
    int64_t from_ns;
    int64_t until_ns;
    buf_init(&query, QUERY_MAX);
    buf_init(&text, QUERY_MAX);
    buf_printf(&query, "from=%" PRId64 "&until=%" PRId64 "&limit=%zu", q->ask.from_ns / NS_PER_MS,
               q->ask.until_ns / NS_PER_MS, limit_of(q));
    bool ok = true;
    if (q->ask.service != NULL) {
        put_param("service", q->ask.service, &query);
        ok = put_type(q, &text, err);
        put_param("type", text.data, &query);
        buf_clear(&text);
    }
    put_labels(q, &text);
    put_param("labels", text.data, &query);
    if (q->args->base_version != NULL) {
        put_param("base", q->args->base_version, &query);
    }
    if (q->args->new_version != NULL) {
        put_param("new", q->args->new_version, &query);
    }
    if (base_range(q, &from_ns, &until_ns)) {
        buf_printf(&query, "&base_from=%" PRId64 "&base_until=%" PRId64, from_ns / NS_PER_MS,
                   until_ns / NS_PER_MS);
    }
    struct remote_request request = {.path = "/api/v1/changes", .query = {query.data, query.len}};
    json_t *root = ok ? remote_fetch_json(q->peer.remote, &request, err) : NULL;
    buf_done(&query);
    buf_done(&text);
    return root;
}

/* ---- a directory ----------------------------------------------------------------------------- */

static bool compute(struct question *q, const struct query *query, struct buf *out, struct err *err)
{
    struct changes_question asked = {.service = sv_from(q->ask.service),
                                     .from_ms = q->ask.from_ns / NS_PER_MS,
                                     .until_ms = q->ask.until_ns / NS_PER_MS};
    struct buf text;
    struct buf id;
    struct selector *selector = NULL;
    struct changes result;
    buf_init(&text, QUERY_MAX);
    buf_init(&id, QUERY_MAX);
    asked.ranges = base_range(q, &asked.base_from_ms, &asked.base_until_ms);
    asked.base_from_ms /= NS_PER_MS;
    asked.base_until_ms /= NS_PER_MS;
    if (q->args->base_version != NULL) {
        asked.version[SIDE_BASE] = sv_from(q->args->base_version);
    }
    if (q->args->new_version != NULL) {
        asked.version[SIDE_NEW] = sv_from(q->args->new_version);
    }
    put_labels(q, &text);
    bool ok =
        put_type(q, &id, err) && profile_type_parse((struct sv){id.data, id.len}, &asked.type, err);
    if (ok && text.len > 0) {
        selector = selector_parse((struct sv){text.data, text.len}, err);
        asked.selector = selector;
        ok = selector != NULL;
    }
    ok = ok && changes_find(query, &asked, &result, err);
    if (ok) {
        changes_put_json(&asked, &result, limit_of(q), out);
    }
    selector_free(selector);
    buf_done(&text);
    buf_done(&id);
    return ok;
}

static json_t *compute_json(struct question *q, struct err *err)
{
    struct buf text;
    struct changes_rollouts all;
    json_t *root = NULL;
    struct query query = {
        .store = q->peer.store, .bytes_max = BYTES_MAX, .arena = arena_new(BYTES_MAX)};
    buf_init(&text, REMOTE_BODY_MAX);
    bool ok = query.arena != NULL || err_memory(err);
    if (ok && q->ask.service != NULL) {
        ok = compute(q, &query, &text, err);
    } else if (ok) {
        ok = changes_rollouts(&query, q->ask.from_ns / NS_PER_MS, q->ask.until_ns / NS_PER_MS, &all,
                              err);
        if (ok) {
            changes_put_rollouts(&all, limit_of(q), &text);
        }
    }
    if (ok) {
        root = json_loadb(text.data, text.len, 0, NULL);
        (void)(root != NULL || err_memory(err));
    }
    buf_done(&text);
    arena_free(query.arena);
    return root;
}

/* ---- printing -------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text == NULL ? "" : text;
}

static double number_of(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    bool is_missing = v == NULL || json_typeof(v) == JSON_NULL;
    return is_missing ? (double)NAN : json_number_value(v);
}

static void put_name(const char *name, struct buf *out)
{
    (void)terminal_put(sv_from(name), NAME_COLUMNS, true, out);
}

static void print_side(const json_t *root, const char *name, struct buf *out)
{
    const json_t *side = json_object_get(root, name);
    const char *version = text_of(side, "version");
    buf_printf(out, "%-5s", name);
    put_name(version[0] != '\0' ? version : "(all versions)", out);
    buf_printf(out, "  %s to %s, %.0f instances, %.0f profiles\n", text_of(side, "from"),
               text_of(side, "until"), number_of(side, "instances"), number_of(side, "profiles"));
}

static void put_interval(double low, double high, double by, struct buf *out)
{
    if (isnan(low) || isnan(high)) {
        buf_printf(out, " %20s", "");
    } else {
        char text[64];
        (void)snprintf(text, sizeof(text), "[%+.2f, %+.2f]", low * by, high * by);
        buf_printf(out, " %20s", text);
    }
}

static void print_function(const json_t *f, struct buf *out)
{
    const json_t *self = json_object_get(f, "self");
    const json_t *total = json_object_get(f, "total");
    const json_t *share = json_object_get(self, "share");
    const json_t *rate = json_object_get(self, "rate");
    bool own = json_is_true(json_object_get(self, "changed"));
    bool changed = json_is_true(json_object_get(f, "changed"));
    /* A function whose total alone has changed is shown by its total. */
    if (changed && !own) {
        share = json_object_get(total, "share");
        rate = json_object_get(total, "rate");
        self = total;
    }
    buf_printf(out, "%c %+8.2f%%", changed ? '*' : ' ', 100 * number_of(self, "effect"));
    put_interval(number_of(self, "effectLow"), number_of(self, "effectHigh"), 100, out);
    buf_printf(out, " %7.2f%% %7.2f%% %10.4g %10.4g  %-5s ", 100 * number_of(share, "base"),
               100 * number_of(share, "new"), number_of(rate, "base"), number_of(rate, "new"),
               self == total ? "total" : "self");
    put_name(text_of(f, "name"), out);
    buf_putc(out, '\n');
}

static void print_comparison(const struct question *q, const json_t *root, struct buf *out)
{
    size_t i;
    const json_t *f;
    const json_t *total = json_object_get(root, "total");
    put_name(text_of(root, "service"), out);
    buf_printf(out, ", %s\n", text_of(root, "type"));
    if (total == NULL) {
        buf_printf(out, "%s\n", text_of(root, "summary"));
        return;
    }
    print_side(root, "base", out);
    print_side(root, "new", out);
    buf_printf(out, "%s\n", text_of(root, "summary"));
    buf_printf(out, "all functions: %.4g, now %.4g %s an instance, a difference of %+.4g",
               number_of(total, "base"), number_of(total, "new"), text_of(root, "unit"),
               number_of(total, "difference"));
    put_interval(number_of(total, "low"), number_of(total, "high"), 1, out);
    buf_printf(out, "\n\n  %9s %20s %8s %8s %10s %10s  %s\n", "change", "95 % interval", "base",
               "new", text_of(root, "unit"), "new", "function");
    json_array_foreach(json_object_get(root, "functions"), i, f)
    {
        print_function(f, out);
    }
    buf_puts(out, "* changed by more than chance explains. change: part of the base's total, at "
                  "the same load\n");
    if (q->peer.remote != NULL) {
        buf_printf(out, "flame graph: %s%s\n", remote_url(q->peer.remote),
                   text_of(root, "flamegraph"));
    }
}

static void print_rollouts(const json_t *list, struct buf *out)
{
    size_t i;
    const json_t *r;
    if (json_array_size(list) == 0) {
        buf_puts(out, "No service has changed its version in this time.\n");
    }
    json_array_foreach(list, i, r)
    {
        buf_printf(out, "%s  ", text_of(r, "time"));
        put_name(text_of(r, "service"), out);
        buf_puts(out, ": ");
        put_name(text_of(r, "base"), out);
        buf_puts(out, " -> ");
        put_name(text_of(r, "new"), out);
        buf_putc(out, '\n');
    }
}

/* ---- the exit code --------------------------------------------------------------------------- */

/* Reads "5%" or "0.5". False if it is no such number. */
static bool read_percent(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    end += *end == '%';
    return end != text && *end == '\0' && isfinite(*ret) && *ret >= 0;
}

/* Returns the exit code of --fail-above. */
static int judge(const struct question *q, const json_t *root, double percent)
{
    const char *state = text_of(root, "state");
    if (q->args->fail_above == NULL || strcmp(state, "unchanged") == 0) {
        return EXIT_DONE;
    }
    if (strcmp(state, "changed") != 0) {
        return EXIT_NO_VERDICT;
    }
    return 100 * (number_of(root, "ratio") - 1) > percent ? EXIT_ABOVE : EXIT_DONE;
}

static int print_answer(const struct question *q, json_t *root, double percent)
{
    struct err err = ERR_INIT;
    struct buf text;
    const json_t *list = json_object_get(root, "services");
    buf_init(&text, REMOTE_BODY_MAX);
    if (q->args->json) {
        char *json = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        buf_printf(&text, "%s\n", json == NULL ? "" : json);
        free(json);
    } else if (list != NULL) {
        print_rollouts(list, &text);
    } else {
        print_comparison(q, root, &text);
    }
    int code = question_print(q, buf_ok(&text) || err_memory(&err), &text, &err);
    return code == EXIT_DONE && list == NULL ? judge(q, root, percent) : code;
}

int show_changes(struct question *q)
{
    struct err err = ERR_INIT;
    double percent = 0;
    if (q->args->fail_above != NULL && !read_percent(q->args->fail_above, &percent)) {
        return cmd_usage_error("query", "--fail-above: expected a percentage such as 5%%, got %s",
                               q->args->fail_above);
    }
    if (q->args->fail_above != NULL && q->ask.service == NULL) {
        return cmd_usage_error("query", "--fail-above needs --service");
    }
    if (q->source != &query_pyroscope && q->source != &query_stored) {
        return question_missing(q, "changes");
    }
    json_t *root = q->peer.store != NULL ? compute_json(q, &err) : fetch(q, &err);
    if (root == NULL) {
        return query_fail(&err);
    }
    int code = print_answer(q, root, percent);
    json_decref(root);
    return code;
}
