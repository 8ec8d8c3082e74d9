#include "pages/dropped.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/dropped.h"
#include "api/rule_trace.h"
#include "api/served.h"
#include "config/config.h"
#include "model/masking.h"
#include "pages/html.h"
#include "pages/view.h"

/* Limit of the description of a rule; a longer one is cut off. Most rules have a few regexes and
 * names. */
#define DOES_MAX ((size_t)64 * 1024)

static struct sv param(const struct exchange *x, const char *name)
{
    struct sv value = request_param(x->request, name);
    return value.p == NULL ? SV("") : value;
}

static const struct config_job *job_of(const struct exchange *x, const struct dropped_target *t)
{
    return &x->options->served->config->jobs[t->job];
}

static bool masks_all(const struct exchange *x)
{
    return x->options->served->config->global.mask_all_params;
}

static const char *outcome_name(enum relabel_outcome outcome)
{
    static const char *const names[] = {
        [RELABEL_KEPT] = "kept", [RELABEL_DROPPED] = "dropped", [RELABEL_FAILED] = "failed"};
    return names[outcome];
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Appends a description of what a rule does; nothing if rules is NULL. If the rule sets a label
 * whose value is hidden, the description could show the value, so it is hidden as well. */
static void put_does(struct buf *out, const struct config_rule *rule, size_t number,
                     const struct relabel *rules, bool mask_all)
{
    if (rule->target_label != NULL && mask_label(sv_from(rule->target_label), mask_all)) {
        buf_printf(out, "%s -> %s", MASK, rule->target_label);
    } else if (rules != NULL) {
        relabel_describe(rules, number, out);
    }
}

static void put_rule(struct exchange *x, const struct config_job *job, const struct relabel *rules,
                     size_t number)
{
    const struct config_rule *rule = &job->relabel.at[number - 1];
    struct buf *out = &x->reply;
    struct buf does;
    buf_init(&does, DOES_MAX);
    put_does(&does, rule, number, rules, masks_all(x));
    buf_printf(out, "rule %zu <span class=\"hint\">", number);
    html_text(out, sv_from(rule->pos.file));
    buf_printf(out, ":%d</span> <code>", rule->pos.line);
    html_text(out, (struct sv){.p = does.data, .n = does.len});
    buf_puts(out, "</code>");
    buf_done(&does);
}

/* Writes a rule as JSON; number 0 means that no rule has dropped the label set. */
static void put_rule_json(struct exchange *x, const struct config_job *job,
                          const struct relabel *rules, size_t number)
{
    struct buf text;
    buf_printf(&x->reply, ",\"rule\":%zu", number);
    if (number == 0) {
        return;
    }
    const struct config_rule *rule = &job->relabel.at[number - 1];
    buf_init(&text, DOES_MAX);
    buf_printf(&text, "%s:%d", rule->pos.file, rule->pos.line);
    json_member("place", (struct sv){.p = text.data, .n = text.len}, &x->reply);
    buf_clear(&text);
    put_does(&text, rule, number, rules, masks_all(x));
    json_member("does", (struct sv){.p = text.data, .n = text.len}, &x->reply);
    buf_done(&text);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* State of a list of label sets: the function that writes one label set of a job with the given
 * rules, and the number of label sets that were written. */
struct lister {
    void (*put)(struct exchange *x, const struct dropped_target *t, const struct relabel *rules,
                size_t number);
    size_t n;
};

/* Writes the label sets of a job. Returns true if there may be more than are kept. */
static bool list_job(struct exchange *x, struct lister *l, const struct config_job *job)
{
    bool more = false;
    struct dropped_target *all = calloc(DROPPED_MAX, sizeof(*all));
    size_t n = all == NULL
                   ? 0
                   : dropped_list(x->options->served->dropped, job->slot, all, DROPPED_MAX, &more);
    struct relabel *rules = n == 0 ? NULL : relabel_new(&job->relabel, NULL);
    for (size_t i = 0; i < n; i++) {
        l->put(x, &all[i], rules, l->n++);
        dropped_target_done(&all[i]);
    }
    relabel_free(rules);
    free(all);
    return more;
}

/* Writes the label sets of the selected jobs. The quoted names of the jobs that may have more are
 * appended to *ret_more, separated by commas. */
static void list_all(struct exchange *x, struct lister *l, struct buf *ret_more)
{
    const struct config *config = x->options->served->config;
    struct sv job = param(x, "job");
    for (size_t i = 0; x->options->served->dropped != NULL && i < config->n_jobs; i++) {
        bool is_asked = job.n == 0 || sv_eq_str(job, config->jobs[i].name);
        if (is_asked && list_job(x, l, &config->jobs[i])) {
            buf_puts(ret_more, ret_more->len > 0 ? ", " : "");
            json_quote(sv_from(config->jobs[i].name), ret_more);
        }
    }
}

static void put_labels(struct buf *out, const struct labels *labels, bool mask_all)
{
    buf_puts(out, "<div class=\"labels\">");
    for (size_t i = 0; i < labels_count(labels); i++) {
        html_label(out, labels_at(labels, i), mask_all);
    }
    buf_puts(out, "</div>");
}

static void put_row(struct exchange *x, const struct dropped_target *t, const struct relabel *rules,
                    size_t number)
{
    struct buf *out = &x->reply;
    (void)number;
    buf_puts(out, "<tr><td data-name=\"Job\">");
    html_text(out, sv_from(job_of(x, t)->name));
    buf_puts(out, "</td><td data-name=\"Target\"><details><summary class=\"mono\">");
    html_text(out, labels_get(t->labels, SV(LABEL_ADDRESS)));
    buf_puts(out, "<div class=\"hint\">");
    html_text(out, sv_from(t->source));
    buf_puts(out, "</div></summary>");
    put_labels(out, t->labels, masks_all(x));
    buf_puts(out, "</details></td><td data-name=\"Dropped by\">");
    if (t->rule > 0) {
        put_rule(x, job_of(x, t), rules, t->rule);
    }
    if (t->why != NULL) {
        buf_puts(out, "<div class=\"bad\">");
        html_text(out, sv_from(t->why));
        buf_puts(out, "</div>");
    }
    buf_printf(out, "</td><td><a href=\"trace?id=%" PRIu64 "\">each rule</a></td></tr>\n", t->id);
}

static void put_form(struct exchange *x)
{
    struct buf *out = &x->reply;
    const struct config *config = x->options->served->config;
    struct sv chosen = param(x, "job");
    buf_puts(out, "<form class=\"ask\" method=\"get\"><div class=\"fields\"><label>Job <select "
                  "name=\"job\"><option value=\"\">all</option>");
    for (size_t i = 0; i < config->n_jobs; i++) {
        buf_puts(out, sv_eq_str(chosen, config->jobs[i].name) ? "<option selected>" : "<option>");
        html_text(out, sv_from(config->jobs[i].name));
        buf_puts(out, "</option>");
    }
    buf_puts(out, "</select></label><button class=\"main\">Show</button></div></form>\n");
}

void page_dropped(struct exchange *x)
{
    struct lister l = {.put = put_row};
    struct buf *out = &x->reply;
    struct buf more;
    buf_init(&more, DOES_MAX);
    html_begin(x, "Dropped targets", "dropped");
    buf_puts(out, "<h1>Dropped targets</h1><p class=\"hint\">What discovery has found and what has "
                  "not become a target, with the rule that dropped it.</p>\n");
    put_form(x);
    buf_puts(out, "<section class=\"panel\"><div class=\"tablebox\"><table class=\"wrap\" "
                  "id=\"dropped\"><thead><tr><th>Job</th><th>Target</th><th>Dropped by</th>"
                  "<th>Labels after</th></tr></thead><tbody>\n");
    list_all(x, &l, &more);
    buf_puts(out, "</tbody></table></div>");
    if (l.n == 0) {
        buf_puts(out, "<p>No target has been dropped.</p>");
    }
    if (more.len > 0) {
        buf_printf(out,
                   "<p class=\"hint\">At most %d of each job are kept; there may be others of ",
                   DROPPED_MAX);
        html_text(out, (struct sv){.p = more.data, .n = more.len});
        buf_puts(out, ".</p>");
    }
    buf_puts(out, "</section>\n");
    html_end(x);
    buf_done(&more);
}

static void put_json(struct exchange *x, const struct dropped_target *t,
                     const struct relabel *rules, size_t number)
{
    struct buf *out = &x->reply;
    buf_printf(out, "%s{\"id\":%" PRIu64, number > 0 ? ",\n" : "", t->id);
    json_member("job", sv_from(job_of(x, t)->name), out);
    json_member("source", sv_from(t->source), out);
    json_key("labels", out);
    mask_labels_json(t->labels, masks_all(x), out);
    put_rule_json(x, job_of(x, t), rules, t->rule);
    json_member("why", sv_from(t->why), out);
    buf_puts(out, "}");
}

void v1_dropped(struct exchange *x)
{
    struct lister l = {.put = put_json};
    struct buf more;
    buf_init(&more, DOES_MAX);
    x->content_type = "application/json";
    buf_puts(&x->reply, "{\"dropped\":[");
    list_all(x, &l, &more);
    buf_puts(&x->reply, "],\"more\":[");
    buf_append(&x->reply, more.data, more.len);
    buf_puts(&x->reply, "]}\n");
    buf_done(&more);
    exchange_deflate(x);
}

/* ---- one of them, rule by rule --------------------------------------------------------------- */

static bool find_dropped(const struct exchange *x, struct dropped_target *ret, struct err *err)
{
    uint64_t id;
    if (!parse_u64(param(x, "id"), UINT64_MAX, &id)) {
        return err_set(err, ERR_INPUT, "\"id\": expected the number of a dropped target");
    }
    if (x->options->served->dropped == NULL ||
        !dropped_find(x->options->served->dropped, id, ret)) {
        return err_set(err, ERR_REFUSED,
                       "there is no dropped target %" PRIu64 ": it may have been discovered again "
                       "and have another number",
                       id);
    }
    return true;
}

/* Returns the slot of a job; SIZE_MAX if no job has this name. */
static size_t slot_of(const struct config *config, struct sv job)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        if (sv_eq_str(job, config->jobs[i].name)) {
            return config->jobs[i].slot;
        }
    }
    return SIZE_MAX;
}

static bool find_target(const struct exchange *x, struct dropped_target *ret, struct err *err)
{
    struct sv job = param(x, "job");
    struct sv source = param(x, "source");
    struct sv address = param(x, "address");
    if (job.n == 0 || source.n == 0) {
        return err_set(err, ERR_INPUT,
                       "expected \"job\", \"source\" and \"address\" of a target, or the \"id\" of "
                       "a dropped target");
    }
    if (x->options->served->dropped == NULL ||
        !dropped_find_target(x->options->served->dropped, slot_of(x->options->served->config, job),
                             source, address, ret)) {
        return err_set(err, ERR_REFUSED,
                       "the labels with which this target was discovered are not known: the target "
                       "has gone, or is not among the first %d of its job",
                       DROPPED_MAX);
    }
    return true;
}

/* Finds the label set that the parameters select. */
static bool find(const struct exchange *x, struct dropped_target *ret, struct err *err)
{
    return param(x, "address").n > 0 ? find_target(x, ret, err) : find_dropped(x, ret, err);
}

static bool trace(const struct exchange *x, const struct dropped_target *t, struct rule_trace *ret,
                  struct err *err)
{
    return rule_trace_run(ret, &job_of(x, t)->relabel, t->labels, err);
}

static void put_change(struct buf *out, const char *kind, struct label l, bool mask_all)
{
    buf_printf(out, "<div class=\"labels\"><b>%s</b> ", kind);
    html_label(out, l, mask_all);
    buf_puts(out, "</div>");
}

/* Writes the labels that a rule has removed, then those that it has set. */
static void put_changes(struct buf *out, const struct labels *before, const struct labels *after,
                        bool mask_all)
{
    bool any = false;
    for (size_t i = 0; i < labels_count(before); i++) {
        struct label l = labels_at(before, i);
        if (labels_get(after, l.name).n == 0 && l.value.n > 0) {
            put_change(out, "−", l, mask_all);
            any = true;
        }
    }
    for (size_t i = 0; i < labels_count(after); i++) {
        struct label l = labels_at(after, i);
        if (!sv_eq(labels_get(before, l.name), l.value)) {
            put_change(out, "+", l, mask_all);
            any = true;
        }
    }
    if (!any) {
        buf_puts(out, "<span class=\"muted\">no change</span>");
    }
}

static void put_step(struct exchange *x, const struct dropped_target *t,
                     const struct rule_trace *tr, size_t i)
{
    const struct rule_trace_step *s = &tr->steps[i];
    struct buf *out = &x->reply;
    buf_puts(out, "<tr><td data-name=\"Rule\">");
    put_rule(x, job_of(x, t), tr->rules, s->rule);
    buf_puts(out, "</td><td data-name=\"Labels\">");
    if (s->outcome == RELABEL_KEPT) {
        put_changes(out, i == 0 ? t->labels : tr->steps[i - 1].labels, s->labels, masks_all(x));
    } else {
        buf_printf(out, "<b class=\"bad\">%s</b>", outcome_name(s->outcome));
    }
    buf_puts(out, "<details><summary class=\"hint\">all labels</summary>");
    put_labels(out, s->labels, masks_all(x));
    buf_puts(out, "</details></td></tr>\n");
}

static void put_trace(struct exchange *x, const struct dropped_target *t,
                      const struct rule_trace *tr)
{
    struct buf *out = &x->reply;
    buf_puts(out, "<p>Job ");
    html_text(out, sv_from(job_of(x, t)->name));
    buf_puts(out, ", <span class=\"mono\">");
    html_text(out, sv_from(t->source));
    buf_puts(out, "</span></p><section class=\"panel\"><h2>As discovered</h2>");
    put_labels(out, t->labels, masks_all(x));
    buf_puts(out,
             "</section><section class=\"panel\"><div class=\"tablebox\"><table class=\"wrap\" "
             "id=\"trace\"><thead><tr><th>Rule</th><th>Labels after it</th></tr></thead>"
             "<tbody>\n");
    for (size_t i = 0; i < tr->n; i++) {
        put_step(x, t, tr, i);
    }
    buf_puts(out, "</tbody></table></div>");
    if (t->why != NULL) {
        buf_puts(out, "<p class=\"bad\">");
        html_text(out, sv_from(t->why));
        buf_puts(out, "</p>");
    }
    buf_puts(out, "</section>\n");
}

void page_trace(struct exchange *x)
{
    struct dropped_target t = {.id = 0};
    struct rule_trace tr = {.n = 0};
    struct err err = ERR_INIT;
    bool is_target = param(x, "address").n > 0;
    const char *title = is_target ? "A target, rule by rule" : "A dropped target, rule by rule";
    html_begin(x, title, is_target ? "targets" : "dropped");
    buf_printf(&x->reply, "<h1>%s</h1>\n", title);
    if (find(x, &t, &err) && trace(x, &t, &tr, &err)) {
        put_trace(x, &t, &tr);
    } else {
        x->status = view_status(&err);
        buf_puts(&x->reply, "<p class=\"panel bad\" id=\"error\">");
        html_text(&x->reply, sv_from(err.msg));
        buf_puts(&x->reply, "</p>\n");
    }
    rule_trace_done(&tr);
    dropped_target_done(&t);
    html_end(x);
}

static void put_trace_json(struct exchange *x, const struct dropped_target *t,
                           const struct rule_trace *tr)
{
    struct buf *out = &x->reply;
    json_member("job", sv_from(job_of(x, t)->name), out);
    json_member("source", sv_from(t->source), out);
    json_key("labels", out);
    mask_labels_json(t->labels, masks_all(x), out);
    buf_puts(out, ",\"steps\":[");
    for (size_t i = 0; i < tr->n; i++) {
        const struct rule_trace_step *s = &tr->steps[i];
        buf_puts(out, i > 0 ? ",\n{" : "{");
        json_member("outcome", sv_from(outcome_name(s->outcome)), out);
        put_rule_json(x, job_of(x, t), tr->rules, s->rule);
        json_key("labels", out);
        mask_labels_json(s->labels, masks_all(x), out);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
    json_member("why", sv_from(t->why), out);
}

void v1_trace(struct exchange *x)
{
    struct dropped_target t = {.id = 0};
    struct rule_trace tr = {.n = 0};
    struct err err = ERR_INIT;
    x->content_type = "application/json";
    buf_puts(&x->reply, "{");
    if (find(x, &t, &err) && trace(x, &t, &tr, &err)) {
        put_trace_json(x, &t, &tr);
    } else {
        x->status = view_status(&err);
        json_member("error", sv_from(err.msg), &x->reply);
    }
    buf_puts(&x->reply, "}\n");
    rule_trace_done(&tr);
    dropped_target_done(&t);
    exchange_deflate(x);
}
