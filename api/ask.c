#include "api/ask.h"

#include "api/served.h"
#include "store/peering/peering.h"
#include "store/query/tree.h"

/* Limit of the text of a selector that an error quotes. */
#define QUOTED_MAX 768
#define STEP_MIN_S 0.001

void ask_done(struct ask *a)
{
    a->selector = selector_free(a->selector);
    a->range.selector = NULL;
}

bool ask_range(struct ask *a, int64_t start_ms, int64_t end_ms, struct err *err)
{
    if (start_ms == 0 || end_ms == 0) {
        return err_set(err, ERR_INPUT, "missing time range in the query");
    }
    if (start_ms > end_ms) {
        return err_set(err, ERR_INPUT, "query start time is after end time");
    }
    a->range.start_ms = start_ms;
    a->range.end_ms = end_ms;
    return true;
}

bool ask_type(struct ask *a, struct sv id, struct err *err)
{
    return profile_type_parse(id, &a->type, err);
}

/* Puts `context "text": ` in front of the error of a selector. */
static bool wrap_selector(struct err *err, const char *context, struct sv text)
{
    struct buf quoted;
    buf_init(&quoted, 6 * QUOTED_MAX);
    json_quote(text.n > QUOTED_MAX ? (struct sv){text.p, QUOTED_MAX} : text, &quoted);
    err_wrap(err, "%s %s", context, quoted.data);
    buf_done(&quoted);
    return false;
}

bool ask_selector(struct ask *a, struct sv text, struct err *err)
{
    a->selector = selector_parse(text, err);
    a->range.selector = a->selector;
    return a->selector != NULL || wrap_selector(err, "parsing label selector", text);
}

bool ask_matchers(struct ask *a, char *const *texts, size_t n, struct err *err)
{
    a->selector = selector_new(err);
    a->range.selector = a->selector;
    if (a->selector == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct sv text = sv_from(texts[i]);
        if (!selector_add_parsed(a->selector, text, err)) {
            return wrap_selector(err, "parsing label selector: failed to parse label selector",
                                 text);
        }
    }
    return true;
}

bool ask_nodes(int64_t asked, int64_t *ret, struct err *err)
{
    if (asked < 0) {
        return err_set(err, ERR_INPUT, "max flamegraph nodes limit must be set (max allowed %d)",
                       TREE_NODES_MAX);
    }
    if (asked > TREE_NODES_MAX) {
        return err_set(err, ERR_INPUT, "max flamegraph nodes limit %lld is greater than allowed %d",
                       (long long)asked, TREE_NODES_MAX);
    }
    *ret = asked == 0 ? TREE_NODES_DEFAULT : asked;
    return true;
}

bool ask_step(double step_s, struct err *err)
{
    /* Written so that NaN is refused, too. */
    return step_s >= STEP_MIN_S || err_set(err, ERR_INPUT, "step must be >= 1ms");
}

bool ask_as_recorded(const struct request *r)
{
    return sv_eq_str(request_param(r, "repair"), "false");
}

/* Returns the counter of damaged profiles. It is made by the first query, so that it starts at 0.
 */
static struct metric_cell *damaged_cell(const struct exchange *x)
{
    return metrics_single(x->options->metrics, METRIC_COUNTER,
                          "profpull_query_damaged_profiles_total",
                          "Stored profiles that queries have left out because they are damaged.");
}

struct store_peers ask_peers(const struct exchange *x, int64_t deadline_ms)
{
    struct peering *peering = x->options->served->peering;
    bool used = peering != NULL && peering_is_used(peering);
    return (struct store_peers){.peering = used ? peering : NULL,
                                .deadline_ms = deadline_ms,
                                .bytes_max = x->bytes_max / 4};
}

bool ask_query(const struct exchange *x, int64_t deadline_ms, struct arena *arena,
               atomic_size_t *damaged, struct query *ret, struct err *err)
{
    const struct store_peers peers = ask_peers(x, deadline_ms);
    *ret = (struct query){
        .store = x->options->served->store,
        .deadline_ms = deadline_ms,
        .cancelled = x->cancelled,
        .bytes_max = x->bytes_max / (peers.peering != NULL ? 4 : 2),
        .arena = arena,
        .damaged = damaged,
        .partial = x->partial,
        .peers = peers,
        .helpers = x->options->served->helpers,
    };
    (void)damaged_cell(x);
    return ret->store != NULL || err_set(err, ERR_REFUSED,
                                         "no profiles are stored here: there is "
                                         "no destination with protocol store");
}

void ask_count_damaged(const struct exchange *x, const atomic_size_t *damaged)
{
    size_t n = atomic_load(damaged);
    if (n > 0) {
        metric_add(damaged_cell(x), n);
    }
}
