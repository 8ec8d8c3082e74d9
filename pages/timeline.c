#include "pages/timeline.h"

#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "pages/chart.h"
#include "pages/html.h"

/* Number of bars; there are fewer if their step would be shorter than STEP_MIN_MS. */
#define BARS 120
#define STEP_MIN_MS 15000
/* How long before the range versions are looked for: one that is there already has not changed. */
#define VERSIONS_BEFORE_MS (INT64_C(3600) * 1000)
/* A longer version is cut. */
#define VERSION_CHARS 60

int64_t timeline_step_ms(int64_t from_ms, int64_t until_ms)
{
    int64_t step_ms = (until_ms - from_ms) / BARS;
    /* Rounds up to whole seconds, so that a bar covers exactly the time that its label says. */
    step_ms = (step_ms + MS_PER_S - 1) / MS_PER_S * MS_PER_S;
    return step_ms < STEP_MIN_MS ? STEP_MIN_MS : step_ms;
}

/* ---- computing ------------------------------------------------------------------------------- */

static bool compute_rates(const struct view *v, struct timeline *t, struct err *err)
{
    const struct profile_type *type = &v->profile_type;
    const struct query_rate_kind kind = {
        .type = type->sample_type, .unit = type->sample_unit, .measure = query_measure_of(type)};
    const struct query_rate_options o = {.kinds = &kind, .n_kinds = 1, .step_ms = t->step_ms};
    struct query_rates rates;
    struct selector *selector = selector_copy(v->now.selector, err);
    const struct query_range range = {
        .start_ms = t->from_ms, .end_ms = t->until_ms, .selector = selector};
    bool ok = selector != NULL &&
              selector_add(selector, SV("__profile_type__"), MATCH_EQUAL, type->id, err) &&
              query_rates(&v->query, &range, &o, &rates, err);
    selector_free(selector);
    if (!ok) {
        return false;
    }
    t->values = rates.n > 0 ? rates.at[0].values[0] : NULL;
    t->n = t->values != NULL ? rates.n_steps : 0;
    double most = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->values[i] *= rate_factor(type);
        most = t->values[i] > most ? t->values[i] : most;
    }
    t->end = rate_axis_end(most, t->unit);
    return true;
}

static bool find_versions(const struct view *v, struct timeline *t, struct err *err)
{
    struct query_versions all;
    const struct query_range range = {.start_ms = t->from_ms - VERSIONS_BEFORE_MS,
                                      .end_ms = t->until_ms,
                                      .selector = v->now.selector};
    if (!query_versions(&v->query, &range, &all, err)) {
        return false;
    }
    /* The selector may match several services: their first versions are no changes either. */
    size_t n = 0;
    for (size_t i = 1; i < all.n; i++) {
        if (sv_eq(all.at[i].service, all.at[i - 1].service) && all.at[i].version.n > 0 &&
            all.at[i].first_ms > t->from_ms) {
            all.at[n++] = all.at[i];
        }
    }
    t->more_versions = n > TIMELINE_VERSIONS_MAX ? n - TIMELINE_VERSIONS_MAX : 0;
    t->versions = all.at + t->more_versions;
    t->n_versions = n - t->more_versions;
    return true;
}

bool timeline_make(const struct view *v, struct timeline *ret, struct err *err)
{
    *ret = (struct timeline){.from_ms = v->now.from_ms,
                             .until_ms = v->now.until_ms,
                             .unit = rate_unit_of(&v->profile_type)};
    if (v->is_diff && v->base.from_ms < ret->from_ms) {
        ret->from_ms = v->base.from_ms;
    }
    if (v->is_diff && v->base.until_ms > ret->until_ms) {
        ret->until_ms = v->base.until_ms;
    }
    ret->step_ms = timeline_step_ms(ret->from_ms, ret->until_ms);
    return compute_rates(v, ret, err) && find_versions(v, ret, err);
}

/* ---- HTML ------------------------------------------------------------------------------------ */

static void put_version(struct buf *out, struct sv version)
{
    buf_puts(out, "<b class=\"mono\">");
    html_cut(out, version, VERSION_CHARS);
    buf_puts(out, "</b>");
}

void timeline_put_versions(const struct timeline *t, struct buf *out)
{
    if (t->n_versions == 0) {
        return;
    }
    buf_puts(out, "<p class=\"versions\"><span class=\"muted\">New versions:</span>");
    for (size_t i = 0; i < t->n_versions; i++) {
        buf_puts(out, i > 0 ? ", " : " ");
        put_version(out, t->versions[i].version);
        buf_puts(out, " since ");
        html_time(out, t->versions[i].first_ms * NS_PER_MS);
    }
    if (t->more_versions > 0) {
        buf_printf(out, " <span class=\"muted\">and %zu earlier ones</span>", t->more_versions);
    }
    buf_puts(out, "</p>\n");
}

void timeline_put(const struct timeline *t, struct buf *out)
{
    struct chart_mark marks[TIMELINE_VERSIONS_MAX];
    double length_ms = (double)t->n * (double)t->step_ms;
    for (size_t i = 0; i < t->n_versions; i++) {
        double at = (double)(t->versions[i].first_ms - t->from_ms) / length_ms;
        marks[i].at = at < 1 ? at : 1;
    }
    buf_puts(out, "<div class=\"axes\"><div class=\"y\"><span>");
    rate_put(out, t->end, t->unit);
    buf_puts(out, "</span><span>");
    rate_put(out, t->end / 2, t->unit);
    buf_puts(out, "</span><span>0</span></div>");
    chart_bars(out, t->values, t->n, t->end, marks, t->n > 0 ? t->n_versions : 0,
               "Totals over time");
    buf_puts(out, "<div class=\"x\">");
    html_time(out, t->from_ms * NS_PER_MS);
    html_time(out, t->until_ms * NS_PER_MS);
    buf_puts(out, "</div></div>\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void timeline_put_json(const struct timeline *t, struct buf *out)
{
    char text[NUM_TEXT_MAX];
    bool any = false;
    json_member("rateUnit", sv_from(rate_unit_name(t->unit)), out);
    buf_puts(out, ",\"rates\":[");
    for (size_t i = 0; i < t->n; i++) {
        if (!isnan(t->values[i])) {
            num_format(t->values[i], text);
            buf_printf(out, "%s[%" PRId64 ",%s]", any ? "," : "",
                       t->from_ms + (int64_t)(i + 1) * t->step_ms, text);
            any = true;
        }
    }
    buf_puts(out, "],\"versions\":[");
    for (size_t i = 0; i < t->n_versions; i++) {
        buf_printf(out, "%s{\"timeMs\":%" PRId64, i > 0 ? "," : "", t->versions[i].first_ms);
        json_member("version", t->versions[i].version, out);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}
