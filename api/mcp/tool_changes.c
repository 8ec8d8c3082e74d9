/* The tool what_changed: services whose version changed, or the functions that changed in one. */
#include <math.h>
#include <string.h>

#include "api/mcp/stacks.h"
#include "base/clock.h"
#include "store/changes/report.h"

#define RANGE_MS (INT64_C(24) * 3600 * 1000)
#define VERSION_MAX 60

/* ---- services -------------------------------------------------------------------------------- */

static bool list_rollouts(struct tool_call *call, const struct query *q, const struct ask *ask,
                          struct err *err)
{
    struct changes_rollouts all;
    if (!changes_rollouts(q, ask->range.start_ms, ask->range.end_ms, &all, err)) {
        return false;
    }
    (void)tool_row(call, "%zu services changed their version from %s to %s, newest first:", all.n,
                   tool_time(call, ask->range.start_ms), tool_time(call, ask->range.end_ms));
    for (size_t i = 0; i < all.n; i++) {
        const struct changes_rollout *r = &all.at[i];
        if (i >= call->limit) {
            call->left_out++;
            continue;
        }
        (void)tool_row(call, "%s: %s -> %s since %s", tool_name(call, r->service, STACKS_NAME_MAX),
                       tool_name(call, r->version[SIDE_BASE], VERSION_MAX),
                       tool_name(call, r->version[SIDE_NEW], VERSION_MAX),
                       tool_time(call, r->time_ms));
    }
    tool_page(call, "/changes?from=%lld&until=%lld", (long long)ask->range.start_ms / 1000,
              (long long)ask->range.end_ms / 1000);
    return true;
}

/* ---- one service ----------------------------------------------------------------------------- */

static void print_side(struct tool_call *call, const char *name, const struct changes_side *side)
{
    (void)tool_row(call, "%s: version %s, %s to %s, %zu instances, %zu profiles", name,
                   tool_name(call, side->version, VERSION_MAX), tool_time(call, side->from_ms),
                   tool_time(call, side->until_ms), side->instances, side->profiles);
}

static void print_function(struct tool_call *call, const struct changes *c,
                           const struct changes_question *question, const struct function_change *f)
{
    struct changes_unit unit = changes_unit(c, &question->type);
    const struct cost_change *self = &f->cost[COST_SELF];
    const struct cost_change *total = &f->cost[COST_TOTAL];
    const struct cost_change *of = total->changed && !self->changed ? total : self;
    char interval[64] = "unknown";
    if (isfinite(of->effect_low)) {
        (void)snprintf(interval, sizeof(interval), "%+.2f%% to %+.2f%%", 100 * of->effect_low,
                       100 * of->effect_high);
    }
    (void)tool_row(
        call, "%s%+.2f%% (interval %s) %s, share %.2f%% -> %.2f%%, rate %.4g -> %.4g %s: %s",
        of->changed ? "CHANGED " : "", 100 * of->effect, interval, of == total ? "total" : "self",
        100 * of->share.base, 100 * of->share.now, of->rate.base / unit.by, of->rate.now / unit.by,
        unit.name, tool_name(call, c->names[f->index], STACKS_NAME_MAX));
}

static void print_changes(struct tool_call *call, const struct changes *c,
                          const struct changes_question *question)
{
    const struct verdicts *v = &c->verdicts;
    const char *sentence = changes_sentence(c, call->arena);
    (void)tool_row(call, "%s", sentence == NULL ? "" : sentence);
    if (c->state != CHANGES_COMPARED) {
        return;
    }
    print_side(call, "before", &c->side[SIDE_BASE]);
    print_side(call, "after", &c->side[SIDE_NEW]);
    (void)tool_row(call, "Functions, those that CHANGED by more than chance explains first. A "
                         "percentage is the change of cost at the same load, as a part of the "
                         "service's total before; the interval holds with 95%%. Rates are of an "
                         "instance.");
    for (size_t i = 0; i < v->n; i++) {
        if (i >= call->limit) {
            call->left_out++;
        } else {
            print_function(call, c, question, &v->at[i]);
        }
    }
}

static bool compare(struct tool_call *call, const struct query *q, const struct ask *ask,
                    const char *service, struct err *err)
{
    const char *type = REPORT_TYPE_DEFAULT;
    const char *base = NULL;
    const char *now = NULL;
    struct changes c;
    struct changes_question question = {
        .service = sv_from(service), .from_ms = ask->range.start_ms, .until_ms = ask->range.end_ms};
    if (!tool_text(call, "type", &type, err) || !tool_text(call, "before_version", &base, err) ||
        !tool_text(call, "version", &now, err) ||
        !changes_type(q, question.service, question.from_ms, question.until_ms, sv_from(type),
                      &question.type, err)) {
        return false;
    }
    question.version[SIDE_BASE] = base != NULL ? sv_from(base) : SV("");
    question.version[SIDE_NEW] = now != NULL ? sv_from(now) : SV("");
    if (!changes_find(q, &question, &c, err)) {
        return false;
    }
    print_changes(call, &c, &question);
    tool_page(call, "/changes?service=%s&type=%s&from=%lld&until=%lld",
              tool_encoded(call, question.service), tool_encoded(call, question.type.id),
              (long long)question.from_ms / 1000, (long long)question.until_ms / 1000);
    return true;
}

bool tool_what_changed(struct tool_call *call, struct err *err)
{
    struct ask ask = {.selector = NULL};
    struct query q;
    const char *service = NULL;
    /* A day, where other tools take an hour. */
    ask.range.start_ms = call->now_ns / NS_PER_MS - RANGE_MS;
    bool ok = tool_text(call, "service", &service, err) && tool_range(call, "", &ask, err) &&
              tool_query(call, &q, err) &&
              (service != NULL ? compare(call, &q, &ask, service, err)
                               : list_rollouts(call, &q, &ask, err));
    ask_done(&ask);
    return ok;
}
