#include "pages/label_list.h"

#include <inttypes.h>

#include "pages/html.h"
#include "server/request.h"
#include "store/query/label_counts.h"

#define VALUE_CHARS 300
#define NAME_CHARS 100
/* A longer address does not fit into the head of a request. */
#define LINK_MAX (REQUEST_HEAD_MAX * 3 / 4)

/* The state of a value in the selection. */
enum choice { CHOICE_NONE, CHOICE_ONLY, CHOICE_NOT };

struct list {
    const struct view *v;
    struct buf *out;
    struct buf labels; /* the selection that a link leads to */
    struct buf link;
    bool is_long; /* some value has no link */
};

/* Returns the i-th matcher that the parameter `labels` has: the service comes before these. */
static bool matcher_at(const struct view *v, size_t i, struct selector_matcher *ret)
{
    return selector_at(v->now.selector, i + (v->now.service.n > 0 ? 1 : 0), ret);
}

static enum choice choice_of(const struct view *v, struct sv name, struct sv value)
{
    enum choice choice = CHOICE_NONE;
    struct selector_matcher m;
    for (size_t i = 0; matcher_at(v, i, &m); i++) {
        if (sv_eq(m.name, name) && sv_eq(m.value, value)) {
            choice = m.op == MATCH_EQUAL       ? CHOICE_ONLY
                     : m.op == MATCH_NOT_EQUAL ? CHOICE_NOT
                                               : choice;
        }
    }
    return choice;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Makes the selection after a click. Another value of the same name is replaced: no series has
 * both. */
static void select_next(struct list *l, struct sv name, struct sv value, enum choice choice)
{
    struct selector_matcher m;
    buf_clear(&l->labels);
    for (size_t i = 0; matcher_at(l->v, i, &m); i++) {
        bool is_same = sv_eq(m.name, name) && sv_eq(m.value, value) &&
                       (m.op == MATCH_EQUAL || m.op == MATCH_NOT_EQUAL);
        bool is_other = choice == CHOICE_NONE && sv_eq(m.name, name) && m.op == MATCH_EQUAL;
        if (!is_same && !is_other) {
            buf_puts(&l->labels, l->labels.len > 0 ? ", " : "");
            selector_put(&m, &l->labels);
        }
    }
    if (choice != CHOICE_NOT) {
        m = (struct selector_matcher){name, choice == CHOICE_NONE ? MATCH_EQUAL : MATCH_NOT_EQUAL,
                                      value};
        buf_puts(&l->labels, l->labels.len > 0 ? ", " : "");
        selector_put(&m, &l->labels);
    }
}

static void put_param(struct buf *out, const char *name, struct sv value)
{
    if (value.n > 0) {
        buf_printf(out, "%s%s=", out->len > 0 ? "&amp;" : "?", name);
        html_param(out, value);
    }
}

/* Makes the address of the view with the other selection. Returns false if it is too long. */
static bool make_link(struct list *l)
{
    const struct view *v = l->v;
    buf_clear(&l->link);
    put_param(&l->link, "service", v->now.service);
    put_param(&l->link, "type", v->type);
    put_param(&l->link, "labels", (struct sv){l->labels.data, l->labels.len});
    put_param(&l->link, "from", v->now.from);
    put_param(&l->link, "until", v->now.until);
    if (v->is_diff) {
        put_param(&l->link, "compare", SV("1"));
        put_param(&l->link, "base_from", v->base.from);
        put_param(&l->link, "base_until", v->base.until);
        put_param(&l->link, "base_labels",
                  sv_eq(v->base.labels, v->now.labels) ? SV("") : v->base.labels);
    }
    return buf_ok(&l->labels) && buf_ok(&l->link);
}

/* series: 0 if no series of the range has the value. */
static void put_value(struct list *l, struct sv name, struct sv value, uint64_t series)
{
    static const struct {
        const char *attributes;
        const char *sign;
        const char *click;
    } looks[] = {
        [CHOICE_NONE] = {" class=\"chip\"", "", "Show only this value"},
        [CHOICE_ONLY] = {" class=\"chip only\" aria-current=\"true\"", "= ", "Exclude this value"},
        [CHOICE_NOT] = {" class=\"chip not\"", "≠ ", "Do not exclude this value"},
    };
    enum choice choice = choice_of(l->v, name, value);
    select_next(l, name, value, choice);
    bool is_link = make_link(l);
    l->is_long = l->is_long || !is_link;
    buf_printf(l->out, "<%s%s", is_link ? "a" : "span", looks[choice].attributes);
    if (is_link) {
        buf_printf(l->out, " title=\"%s\" rel=\"nofollow\" href=\"%s\"", looks[choice].click,
                   l->link.data);
    }
    buf_printf(l->out, ">%s", looks[choice].sign);
    html_cut(l->out, value, VALUE_CHARS);
    buf_printf(l->out, " <small>%" PRIu64 "</small></%s> ", series, is_link ? "a" : "span");
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Appends the values that the selection names and that are not among the listed ones, so that they
 * can be removed. */
static void put_others(struct list *l, const struct query_label_count *count)
{
    struct selector_matcher m;
    for (size_t i = 0; matcher_at(l->v, i, &m); i++) {
        bool is_listed = !sv_eq(m.name, count->name) || m.value.n == 0 ||
                         (m.op != MATCH_EQUAL && m.op != MATCH_NOT_EQUAL);
        for (size_t k = 0; !is_listed && k < count->n; k++) {
            is_listed = sv_eq(count->at[k].value, m.value);
        }
        if (!is_listed) {
            put_value(l, m.name, m.value, 0);
        }
    }
}

static void put_name(struct list *l, const struct query_label_count *count)
{
    buf_puts(l->out, "<dt>");
    html_cut(l->out, count->name, NAME_CHARS);
    buf_puts(l->out, "</dt><dd>");
    for (size_t i = 0; i < count->n; i++) {
        put_value(l, count->name, count->at[i].value, count->at[i].series);
    }
    put_others(l, count);
    if (count->n_all > count->n) {
        buf_printf(l->out, "<span class=\"hint\">and %zu other values</span>",
                   count->n_all - count->n);
    }
    buf_puts(l->out, "</dd>\n");
}

static void put_names(struct list *l, const struct query_label_counts *counts)
{
    size_t begin = l->out->len;
    size_t i = 0;
    buf_puts(l->out, "<dl>");
    while (i < counts->n && i < LABEL_LIST_NAMES_MAX &&
           l->out->len - begin < LABEL_LIST_BYTES_MAX) {
        put_name(l, &counts->at[i++]);
    }
    buf_puts(l->out, "</dl>\n");
    if (i < counts->n) {
        buf_printf(l->out,
                   "<p class=\"hint\">%zu other labels are not listed; write them into the "
                   "field.</p>\n",
                   counts->n - i);
    }
    if (counts->is_cut) {
        buf_printf(l->out, "<p class=\"hint\">Only %d different values were counted.</p>\n",
                   QUERY_LABEL_PAIRS_MAX);
    }
    if (l->is_long) {
        buf_puts(l->out, "<p class=\"hint\">Values that are too long for an address are no "
                         "links.</p>\n");
    }
}

static bool count_labels(const struct view *v, struct query_label_counts *ret, struct err *err)
{
    struct selector *s = selector_new(err);
    struct query_range range = view_range(&v->now);
    range.selector = s;
    bool ok = s != NULL &&
              (v->now.service.n == 0 ||
               selector_add(s, SV("service_name"), MATCH_EQUAL, v->now.service, err)) &&
              (v->type.n == 0 ||
               selector_add(s, SV("__profile_type__"), MATCH_EQUAL, v->profile_type.id, err)) &&
              query_label_counts(&v->query, &range, LABEL_LIST_VALUES_MAX, ret, err);
    selector_free(s);
    return ok;
}

void label_list_put(const struct view *v, struct buf *out)
{
    struct err err = ERR_INIT;
    struct query_label_counts counts;
    struct list l = {.v = v, .out = out};
    if (!count_labels(v, &counts, &err)) {
        buf_puts(out, "<p class=\"hint\">The labels cannot be listed: ");
        html_text(out, sv_from(err.msg));
        buf_puts(out, "</p>\n");
        return;
    }
    if (counts.n == 0) {
        return;
    }
    buf_init(&l.labels, SELECTOR_BYTES_MAX);
    buf_init(&l.link, LINK_MAX);
    buf_printf(out,
               "<details class=\"panel choose\"%s><summary>Labels of these profiles, with their "
               "number of series</summary><p class=\"hint\">A click shows only a value, a second "
               "one excludes it, a third one forgets it.</p>\n",
               v->now.labels.n > 0 ? " open" : "");
    put_names(&l, &counts);
    buf_puts(out, "</details>\n");
    buf_done(&l.labels);
    buf_done(&l.link);
}
