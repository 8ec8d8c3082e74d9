#include "store/changes/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "http/url.h"

#define NS_A_SECOND 1e9
/* Types that an error lists. */
#define TYPES_LISTED 20
#define LIST_BYTES ((size_t)4096)
#define SELECTOR_BYTES ((size_t)64 * 1024)

/* ---- types ----------------------------------------------------------------------------------- */

static bool no_type(const struct query_strings *types, struct sv text, struct err *err)
{
    struct buf list;
    buf_init(&list, LIST_BYTES);
    for (size_t i = 0; i < types->n && i < TYPES_LISTED; i++) {
        buf_printf(&list, "%s%.*s", i > 0 ? ", " : "", SV_ARG(types->at[i]));
    }
    if (types->n == 0) {
        (void)err_set(err, ERR_INPUT,
                      "the service has no profiles in this time: ask for a longer range, or check "
                      "its name");
    } else {
        (void)err_set(err, ERR_INPUT, "type: no profiles of \"%.*s\"; there are %s",
                      (int)(text.n < 80 ? text.n : 80), text.p, list.data);
    }
    buf_done(&list);
    return false;
}

/* Returns how well a type is meant by a word: 3 by its id, 2 by its sample type, 1 by its name. */
static int fits(struct sv id, struct sv word)
{
    struct profile_type t;
    if (sv_eq(id, word)) {
        return 3;
    }
    if (!profile_type_parse(id, &t, NULL)) {
        return 0;
    }
    return sv_eq(t.sample_type, word) ? 2 : sv_eq(t.name, word);
}

bool changes_type(const struct query *q, struct sv service, int64_t from_ms, int64_t until_ms,
                  struct sv text, struct profile_type *ret, struct err *err)
{
    struct query_strings types = {.n = 0};
    struct selector *selector = selector_new(err);
    const struct query_range range = {from_ms, until_ms, selector};
    int best = 0;
    struct sv found = SV("");
    bool ok = selector != NULL &&
              selector_add(selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL, service, err) &&
              query_label_values(q, &range, SV("__profile_type__"), &types, err);
    selector_free(selector);
    for (size_t i = 0; ok && i < types.n; i++) {
        int now = fits(types.at[i], text);
        found = now > best ? types.at[i] : found;
        best = now > best ? now : best;
    }
    return ok && (best > 0 ? profile_type_parse(found, ret, err) : no_type(&types, text, err));
}

struct changes_unit changes_unit(const struct changes *c, const struct profile_type *type)
{
    static const struct {
        const char *unit;
        double by;
        const char *level;
        const char *rate;
    } rows[] = {
        {"nanoseconds", NS_A_SECOND, "seconds", "seconds/s"},
        {"bytes", 1, "bytes", "bytes/s"},
        {"count", 1, "", "/s"},
    };
    if (sv_eq_str(type->sample_type, "cpu") && sv_eq_str(type->sample_unit, "nanoseconds")) {
        return (struct changes_unit){NS_A_SECOND, "cores"};
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (sv_eq_str(type->sample_unit, rows[i].unit)) {
            return (struct changes_unit){rows[i].by, c->is_level ? rows[i].level : rows[i].rate};
        }
    }
    return (struct changes_unit){1, c->is_level ? "" : "/s"};
}

/* ---- words and links ------------------------------------------------------------------------- */

const char *changes_word(const struct changes *c)
{
    static const char *const names[] = {[CHANGES_NO_VERSION] = "no_version",
                                        [CHANGES_ONE_VERSION] = "one_version",
                                        [CHANGES_NO_PROFILES] = "no_profiles"};
    if (c->state != CHANGES_COMPARED) {
        return names[c->state];
    }
    if (!c->verdicts.can_tell || c->verdicts.n_tested == 0) {
        return "no_verdict";
    }
    return c->verdicts.n_changed > 0 ? "changed" : "unchanged";
}

static void put_param(const char *name, struct sv value, struct buf *out)
{
    buf_printf(out, "&%s=", name);
    (void)url_encode(value, out);
}

static void put_side_params(const struct changes_side *side, const char *prefix, struct buf *out)
{
    char name[32];
    struct buf labels;
    buf_init(&labels, SELECTOR_BYTES);
    if (side->label.n > 0) {
        buf_printf(&labels, "%.*s=", SV_ARG(side->label));
        json_quote(side->version, &labels);
        (void)snprintf(name, sizeof(name), "%slabels", prefix);
        put_param(name, (struct sv){labels.data, labels.len}, out);
    }
    buf_printf(out, "&%sfrom=%" PRId64 "&%suntil=%" PRId64, prefix, side->from_ms, prefix,
               side->until_ms);
    buf_done(&labels);
}

void changes_link(const struct changes_question *question, const struct changes *c, struct buf *out)
{
    buf_puts(out, "?compare=1");
    put_param("service", question->service, out);
    put_param("type", question->type.id, out);
    put_side_params(&c->side[SIDE_NEW], "", out);
    put_side_params(&c->side[SIDE_BASE], "base_", out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_number(const char *name, double v, struct buf *out)
{
    buf_puts(out, out->data[out->len - 1] == '{' ? "" : ",");
    buf_printf(out, "\"%s\":", name);
    if (isfinite(v)) {
        buf_printf(out, "%.6g", v);
    } else {
        buf_puts(out, "null");
    }
}

static void put_estimate(const char *name, const struct estimate *e, double by, struct buf *out)
{
    buf_printf(out, "%s\"%s\":{", out->data[out->len - 1] == '{' ? "" : ",", name);
    put_number("base", e->base / by, out);
    put_number("new", e->now / by, out);
    put_number("difference", e->difference / by, out);
    put_number("low", e->low / by, out);
    put_number("high", e->high / by, out);
    buf_putc(out, '}');
}

static void put_time(const char *name, int64_t ms, struct buf *out)
{
    char text[32];
    buf_printf(out, ",\"%s\":", name);
    if (ms == 0) {
        buf_puts(out, "null");
        return;
    }
    clock_format_rfc3339(ms * NS_PER_MS, text, sizeof(text));
    buf_printf(out, "\"%s\"", text);
}

static void put_side(const char *name, const struct changes_side *side, struct buf *out)
{
    buf_printf(out, ",\"%s\":{", name);
    json_member("version", side->version, out);
    json_member("label", side->label, out);
    put_time("from", side->from_ms, out);
    put_time("until", side->until_ms, out);
    buf_printf(out, ",\"instances\":%zu,\"instancesSeen\":%zu,\"profiles\":%zu}", side->instances,
               side->instances_seen, side->profiles);
}

static void put_cost(const char *name, const struct cost_change *c, double by, struct buf *out)
{
    buf_printf(out, ",\"%s\":{\"changed\":%s,\"tested\":%s", name, c->changed ? "true" : "false",
               c->tested ? "true" : "false");
    put_number("effect", c->effect, out);
    put_number("effectLow", c->effect_low, out);
    put_number("effectHigh", c->effect_high, out);
    put_number("p", c->p, out);
    put_estimate("share", &c->share, 1, out);
    put_estimate("rate", &c->rate, by, out);
    buf_putc(out, '}');
}

static void put_functions(const struct changes *c, double by, size_t limit, struct buf *out)
{
    const struct verdicts *v = &c->verdicts;
    buf_puts(out, ",\"functions\":[");
    for (size_t i = 0; i < v->n && i < limit; i++) {
        const struct function_change *f = &v->at[i];
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("name", c->names[f->index], out);
        buf_printf(out, ",\"changed\":%s", verdicts_changed(f) ? "true" : "false");
        put_cost("self", &f->cost[COST_SELF], by, out);
        put_cost("total", &f->cost[COST_TOTAL], by, out);
        buf_putc(out, '}');
    }
    buf_printf(out, "],\"leftOut\":%zu", v->n > limit ? v->n - limit : 0);
}

void changes_put_json(const struct changes_question *question, const struct changes *c,
                      size_t limit, struct buf *out)
{
    struct changes_unit unit = changes_unit(c, &question->type);
    struct arena *arena = arena_new(SELECTOR_BYTES);
    const char *sentence = arena == NULL ? NULL : changes_sentence(c, arena);
    buf_putc(out, '{');
    json_member("state", sv_from(changes_word(c)), out);
    json_member("summary", sv_from(sentence == NULL ? "" : sentence), out);
    json_member("service", question->service, out);
    json_member("type", question->type.id, out);
    json_member("unit", sv_from(unit.name), out);
    put_side("base", &c->side[SIDE_BASE], out);
    put_side("new", &c->side[SIDE_NEW], out);
    if (c->state == CHANGES_COMPARED) {
        struct buf link;
        buf_init(&link, 4 * SELECTOR_BYTES);
        buf_puts(&link, CHANGES_PROFILES_PATH);
        changes_link(question, c, &link);
        json_member("flamegraph", (struct sv){link.data, link.len}, out);
        buf_done(&link);
        put_estimate("total", &c->verdicts.total, unit.by, out);
        put_number("ratio", c->verdicts.ratio, out);
        put_number("shift", c->verdicts.shift, out);
        buf_printf(out, ",\"tests\":%zu,\"changed\":%zu", c->verdicts.n_tested,
                   c->verdicts.n_changed);
        put_functions(c, unit.by, limit, out);
    }
    buf_puts(out, "}\n");
    arena_free(arena);
}

void changes_put_rollouts(const struct changes_rollouts *all, size_t limit, struct buf *out)
{
    buf_puts(out, "{\"services\":[");
    for (size_t i = 0; i < all->n && i < limit; i++) {
        const struct changes_rollout *r = &all->at[i];
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("service", r->service, out);
        json_member("base", r->version[SIDE_BASE], out);
        json_member("new", r->version[SIDE_NEW], out);
        put_time("time", r->time_ms, out);
        buf_putc(out, '}');
    }
    buf_printf(out, "],\"leftOut\":%zu}\n", all->n > limit ? all->n - limit : 0);
}
