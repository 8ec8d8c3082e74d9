/* Labels, merged stacks, timelines and heatmaps of three small profiles: what Pyroscope answered
 * when it had the same ones. */
#include "tests/unit/lib/testing.h"

#include <unistd.h>

#include "tests/unit/lib/recording.h"
#include "tests/unit/store/query_rig.h"

static const struct query_stacks all;

/* ---- labels ---------------------------------------------------------------------------------- */

static void check_strings(const struct query_strings *s, const char *want, const char *row)
{
    SCOPED(buf) b = testing_buf(QUERY_TEXT_MAX);
    for (size_t i = 0; i < s->n; i++) {
        buf_printf(&b, "%s%.*s", i > 0 ? " " : "", SV_ARG(s->at[i]));
    }
    CHECK_STR(b.data, want, row);
}

SETUP_OF(query_rig)

TEST_ON(struct query_rig *r, test_label_names)
{
    struct err err = ERR_INIT;
    struct query_strings names;
    assert_true(query_label_names(&r->q, &r->range, &names, &err));
    check_strings(&names,
                  "__name__ __period_type__ __period_unit__ __profile_type__ __service_name__ "
                  "__type__ __unit__ pod service_name thread",
                  "all");
    query_rig_range(r, "{service_name='none'}", QUERY_S, QUERY_E);
    assert_true(query_label_names(&r->q, &r->range, &names, &err));
    check_strings(&names, "", "none");
}

TEST_ON(struct query_rig *r, test_label_values)
{
    static const struct {
        const char *name, *selector, *want;
    } cases[] = {
        {"pod", "{service_name=\"vecdemo\"}", "a b"},
        {"pod", NULL, "a b c"},
        {"nope", "{}", ""},
        {"service_name", "{pod=\"\"}", ""},
        {"service_name", "{service_name=~\"vec(demo|x)\",pod=~\".+\"}", "vecdemo"},
        {"thread", "{}", "worker"},
        {"__profile_type__", NULL, QUERY_CPU " process_cpu:samples:count:cpu:nanoseconds"},
    };
    struct err err = ERR_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct query_strings values;
        query_rig_range(r, cases[i].selector, QUERY_S, QUERY_E);
        assert_true(query_label_values(&r->q, &r->range, sv_from(cases[i].name), &values, &err));
        check_strings(&values, cases[i].want, cases[i].name);
    }
}

static void check_series(struct query_rig *r, const struct sv *names, size_t n, const char *want)
{
    struct err err = ERR_INIT;
    struct query_label_sets sets;
    SCOPED(buf) b = testing_buf(QUERY_TEXT_MAX);
    assert_true(query_series(&r->q, &r->range, names, n, &sets, &err));
    for (size_t i = 0; i < sets.n; i++) {
        query_text_labels(&b, &sets.at[i]);
    }
    CHECK_STR(b.data, want, "");
}

TEST_ON(struct query_rig *r, test_series)
{
    const struct sv start_page[] = {SV("service_name"), SV("__profile_type__")};
    const struct sv pod[] = {SV("pod")};
    const struct sv thread[] = {SV("thread")};
    const struct sv nope[] = {SV("nope")};
    check_series(r, start_page, 2,
                 "{__profile_type__=" QUERY_CPU ",service_name=vecdemo}"
                 "{__profile_type__=" QUERY_CPU ",service_name=vecdemo3}"
                 "{__profile_type__=process_cpu:samples:count:cpu:nanoseconds,service_name=vecdemo}"
                 "{__profile_type__=process_cpu:samples:count:cpu:nanoseconds,"
                 "service_name=vecdemo3}");
    check_series(r, thread, 1, "{}{thread=worker}");
    check_series(r, nope, 1, "");
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    check_series(r, pod, 1, "{pod=a}{pod=b}");
    query_rig_range(r, "{pod=\"a\",__type__=\"cpu\"}", QUERY_S, QUERY_E);
    check_series(r, NULL, 0,
                 "{__name__=process_cpu,__period_type__=cpu,__period_unit__=nanoseconds,"
                 "__profile_type__=" QUERY_CPU ",__service_name__=vecdemo,__type__=cpu,"
                 "__unit__=nanoseconds,pod=a,service_name=vecdemo}");
    query_rig_range(r, "{pod=\"none\"}", QUERY_S, QUERY_E);
    check_series(r, pod, 1, "");
}

/* ---- profile types --------------------------------------------------------------------------- */

TEST(test_profile_types)
{
    static const char form[] = "profile-type selection must be of the form <name>:<sample-type>:"
                               "<sample-unit>:<period-type>:<period-unit>(:delta), got(";
    static const struct {
        const char *text;
        const char *want; /* the parts, or the end of the error */
    } cases[] = {
        {QUERY_CPU, "process_cpu|cpu|nanoseconds|cpu|nanoseconds"},
        {"memory:inuse_space:bytes::", "memory|inuse_space|bytes||"},
        {"memory:inuse_space:bytes:space:bytes:delta", "memory|inuse_space|bytes|space|bytes"},
        {"::::", "||||"},
        {"process_cpu", "1): \"process_cpu\""},
        {"", "1): \"\""},
        {"a:b:c:d", "4): \"a:b:c:d\""},
        {"a:b:c:d:e:delta:g", "7): \"a:b:c:d:e:delta:g\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct profile_type t;
        char text[400];
        if (profile_type_parse(sv_from(cases[i].text), &t, &err)) {
            (void)snprintf(text, sizeof(text), "%.*s|%.*s|%.*s|%.*s|%.*s", SV_ARG(t.name),
                           SV_ARG(t.sample_type), SV_ARG(t.sample_unit), SV_ARG(t.period_type),
                           SV_ARG(t.period_unit));
            CHECK_STR(text, cases[i].want, cases[i].text);
            size_t n = strlen(cases[i].text) - (strstr(cases[i].text, ":delta") != NULL ? 6 : 0);
            CHECK_INT(t.id.n, n, cases[i].text);
        } else {
            (void)snprintf(text, sizeof(text), "%s%s", form, cases[i].want);
            CHECK_STR(err.msg, text, cases[i].text);
            CHECK_INT(err.kind, ERR_INPUT, cases[i].text);
        }
    }
}

/* ---- stacks ---------------------------------------------------------------------------------- */

#define P1_ALONE                                                                                   \
    "total main.main main.work runtime.mallocgc main.hash | [0 50000000 0 0] "                     \
    "[0 50000000 10000000 1] [10000000 40000000 0 2] "                                             \
    "[10000000 30000000 30000000 4, 0 10000000 10000000 3] | total 50000000 self 30000000"
#define NOTHING "total | [0 0 0 0] | total 0 self 0"

static void check_tree(struct query_rig *r, const struct query_stacks *which, const char *want,
                       const char *row)
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    char text[QUERY_TEXT_MAX];
    SCOPED(tree) *t = query_tree(&r->q, &r->range, &r->type, which, &err);
    CHECK_STR(err.msg, "", row);
    assert_non_null(t);
    assert_true(tree_flamegraph(t, 0, r->q.arena, &fg, &err));
    flamegraph_text(&fg, 4, text, sizeof(text));
    CHECK_STR(text, want, row);
}

TEST_ON(struct query_rig *r, test_trees)
{
    struct err err = ERR_INIT;
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    check_tree(r, &all,
               "total main.main main.work runtime.mallocgc main.hash main.idle | [0 110000000 0 0] "
               "[0 110000000 10000000 1] [10000000 40000000 40000000 5, 0 60000000 0 2] "
               "[50000000 50000000 50000000 4, 0 10000000 10000000 3] | total 110000000 self "
               "50000000",
               "vecdemo");
    query_rig_range(r, "{service_name=\"vecdemo3\"}", QUERY_S, QUERY_E);
    check_tree(r, &all,
               "total main.main main.work 700123 | [0 70000000 0 0] [0 70000000 0 1] "
               "[0 50000000 50000000 3, 0 20000000 0 2] [50000000 20000000 20000000 2] | total "
               "70000000 self 50000000",
               "vecdemo3: a frame without a name stays");
    query_rig_range(r, "{thread=\"worker\"}", QUERY_S, QUERY_E);
    check_tree(r, &all,
               "total main.main main.work | [0 20000000 0 0] [0 20000000 0 1] [0 20000000 0 2] "
               "[0 20000000 20000000 2] | total 20000000 self 20000000",
               "the samples of a series");
    query_rig_range(r, "{service_name=\"none\"}", QUERY_S, QUERY_E);
    check_tree(r, &all, NOTHING, "no such service");
    assert_true(profile_type_parse(SV("nope:nope:nope:nope:nope"), &r->type, &err));
    query_rig_range(r, NULL, QUERY_S, QUERY_E);
    check_tree(r, &all, NOTHING, "no such type");
}

TEST_ON(struct query_rig *r, test_both_ends_count)
{
    query_rig_range(r, NULL, QUERY_T0, QUERY_T0);
    check_tree(r, &all, P1_ALONE, "at the start");
    query_rig_range(r, NULL, QUERY_T0 - 1000, QUERY_T0);
    check_tree(r, &all, P1_ALONE, "at the end");
    query_rig_range(r, NULL, QUERY_T0 + 1, QUERY_T0 + 14999);
    check_tree(r, &all, NOTHING, "between");
    query_rig_range(r, NULL, 1000, 4000);
    check_tree(r, &all, NOTHING, "1970");
    query_rig_range(r, "{pod=\"a\"}", INT64_MIN, INT64_MAX);
    check_tree(r, &all, P1_ALONE, "all times");
}

TEST_ON(struct query_rig *r, test_listed_profiles)
{
    const struct sv ids[] = {sv_from(r->ids[0]), SV("00000000-0000-4000-8000-000000000000"),
                             sv_from(r->ids[0]), SV("no id")};
    const struct query_stacks which = {.profile_ids = ids, .n_profile_ids = 4};
    check_tree(r, &which, P1_ALONE, "one of them");
    query_rig_range(r, "{pod=\"b\"}", QUERY_S, QUERY_E);
    check_tree(r, &which, NOTHING, "of another pod");
    query_rig_range(r, NULL, QUERY_T0 + 15001, QUERY_E);
    check_tree(r, &which, NOTHING, "of another time");
    const struct sv third[] = {sv_from(r->ids[2])};
    const struct query_stacks part = {.profile_ids = third, .n_profile_ids = 1};
    query_rig_range(r, "{thread=\"worker\"}", QUERY_S, QUERY_E);
    check_tree(r, &part,
               "total main.main main.work | [0 20000000 0 0] [0 20000000 0 1] [0 20000000 0 2] "
               "[0 20000000 20000000 2] | total 20000000 self 20000000",
               "a part of one");
}

TEST_ON(struct query_rig *r, test_ends)
{
    struct err err = ERR_INIT;
    atomic_bool cancelled = true;
    struct query_strings names;
    struct query_time_series_list list;
    const struct query_steps steps = {.step_s = 15};
    r->q.cancelled = &cancelled;
    assert_null(query_tree(&r->q, &r->range, &r->type, &all, &err));
    CHECK_STR(err.msg, "the query was cancelled", "");
    CHECK_INT(err.kind, ERR_TIMEOUT, "");
    r->q.cancelled = NULL;
    r->q.deadline_ms = 1;
    assert_null(query_tree(&r->q, &r->range, &r->type, &all, &err));
    CHECK_STR(err.msg, "the query has taken longer than it may", "");
    CHECK_INT(err.kind, ERR_TIMEOUT, "");
    err_clear(&err);
    assert_false(query_label_names(&r->q, &r->range, &names, &err));
    CHECK_INT(err.kind, ERR_TIMEOUT, "names");
    err_clear(&err);
    assert_false(query_time_series(&r->q, &r->range, &r->type, &steps, &all, &list, &err));
    CHECK_INT(err.kind, ERR_TIMEOUT, "series");
    r->q.deadline_ms = 0;
    r->q.bytes_max = 1000;
    err_clear(&err);
    assert_null(query_tree(&r->q, &r->range, &r->type, &all, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "memory");
}

/* ---- timelines ------------------------------------------------------------------------------- */

static void check_timeline(struct query_rig *r, const struct query_steps *o,
                           const struct query_stacks *which, const char *want, const char *row)
{
    struct err err = ERR_INIT;
    struct query_time_series_list list;
    SCOPED(buf) b = testing_buf(QUERY_TEXT_MAX);
    if (!query_time_series(&r->q, &r->range, &r->type, o, which, &list, &err)) {
        buf_puts(&b, err.msg);
    }
    for (size_t i = 0; err.kind == ERR_NONE && i < list.n; i++) {
        query_text_labels(&b, &list.at[i].labels);
        for (size_t j = 0; j < list.at[i].n_points; j++) {
            const struct query_point *p = &list.at[i].points[j];
            buf_printf(&b, " %+lld:%g", (long long)(p->time_ms - QUERY_T0), p->value);
            if (p->exemplar != NULL) {
                buf_printf(&b, "(%+lld %lld ", (long long)(p->exemplar->time_ms - QUERY_T0),
                           (long long)p->exemplar->value);
                query_text_labels(&b, &p->exemplar->labels);
                buf_putc(&b, ')');
            }
        }
        buf_putc(&b, '\n');
    }
    CHECK_STR(b.data, want, row);
}

TEST_ON(struct query_rig *r, test_timelines)
{
    static const struct sv pod[] = {{"pod", 3}};
    static const struct sv nope[] = {{"nope", 4}};
    static const struct {
        const char *name;
        int64_t start, end;
        struct query_steps o;
        const char *want;
    } cases[] = {
        {"15", -60000, 60000, {.step_s = 15}, "{} +0:5e+07 +15000:6e+07\n"},
        {"by pod",
         -60000,
         60000,
         {.step_s = 15, .group_by = pod, .n_group_by = 1},
         "{pod=b} +15000:6e+07\n{pod=a} +0:5e+07\n"},
        {"60", -60000, 60000, {.step_s = 60}, "{} +0:5e+07 +60000:6e+07\n"},
        {"off grid",
         -59123,
         60000,
         {.step_s = 10, .group_by = pod, .n_group_by = 1},
         "{pod=b} +20877:6e+07\n{pod=a} +877:5e+07\n"},
        {"limit",
         -60000,
         60000,
         {.step_s = 15, .group_by = pod, .n_group_by = 1, .limit = 1},
         "{pod=b} +15000:6e+07\n"},
        {"no such label",
         -60000,
         60000,
         {.step_s = 15, .group_by = nope, .n_group_by = 1},
         "{} +0:5e+07 +15000:6e+07\n"},
        {"start on T0", 0, 15000, {.step_s = 15}, "{} +0:5e+07 +15000:6e+07\n"},
        {"before", 5000, 20000, {.step_s = 15}, "{} +5000:5e+07 +20000:6e+07\n"},
        {"end before last", -10000, 20000, {.step_s = 7}, "{} +4000:5e+07 +18000:6e+07\n"},
        {"tail lost", -10000, 16000, {.step_s = 7}, "{} +4000:5e+07\n"},
        {"first bucket", 15000, 30000, {.step_s = 15}, "{} +15000:1.1e+08\n"},
        {"average",
         15000,
         30000,
         {.step_s = 15, .aggregation = QUERY_AVERAGE},
         "{} +15000:5.5e+07\n"},
        {"a step longer than all", 0, 60000, {.step_s = 1e300}, "{} +0:5e+07\n"},
        {"no step", 0, 60000, {.step_s = 0}, "step must be >= 1ms"},
        {"a step below a millisecond", 0, 60000, {.step_s = 0.0009}, "step must be >= 1ms"},
        {"not a number", 0, 60000, {.step_s = __builtin_nan("")}, "step must be >= 1ms"},
        {"nothing", 100000, 200000, {.step_s = 1}, ""},
        {"exemplars",
         0,
         30000,
         {.step_s = 15, .exemplars = QUERY_WITH_EXEMPLARS, .group_by = pod, .n_group_by = 1},
         "{pod=b} +15000:6e+07(+15000 60000000 {__name__=process_cpu,__period_type__=cpu,"
         "__period_unit__=nanoseconds,__profile_type__=" QUERY_CPU ",__service_name__=vecdemo,"
         "__type__=cpu,__unit__=nanoseconds,service_name=vecdemo})\n"
         "{pod=a} +0:5e+07(+0 50000000 {__name__=process_cpu,__period_type__=cpu,"
         "__period_unit__=nanoseconds,__profile_type__=" QUERY_CPU ",__service_name__=vecdemo,"
         "__type__=cpu,__unit__=nanoseconds,service_name=vecdemo})\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_T0 + cases[i].start,
                        QUERY_T0 + cases[i].end);
        check_timeline(r, &cases[i].o, &all, cases[i].want, cases[i].name);
    }
    query_rig_range(r, "{service_name=\"vecdemo\"}", INT64_MIN, INT64_MAX);
    const struct query_steps o = {.step_s = 3600};
    check_timeline(r, &o, &all, "{} +1800000:1.1e+08\n", "all times");
}

TEST_ON(struct query_rig *r, test_timeline_of_a_call_site)
{
    const struct sv site[] = {SV("main.main"), SV("main.work")};
    const struct sv pod[] = {SV("pod")};
    const struct sv thread[] = {SV("thread")};
    const struct query_stacks which = {.call_site = site, .n_call_site = 2};
    const struct query_steps steps = {.step_s = 15, .group_by = pod, .n_group_by = 1};
    check_timeline(r, &steps, &which,
                   "{pod=a} +0:4e+07\n{pod=b} +15000:2e+07\n{pod=c} +30000:2e+07\n", "by pod");
    query_rig_range(r, "{pod=\"c\"}", QUERY_S, QUERY_E);
    const struct query_steps by_thread = {.step_s = 15, .group_by = thread, .n_group_by = 1};
    check_timeline(r, &by_thread, &which, "{thread=worker} +30000:2e+07\n", "by thread");
    check_timeline(r, &by_thread, &all, "{} +30000:5e+07\n{thread=worker} +30000:2e+07\n",
                   "without a call site");
}

/* ---- heatmaps -------------------------------------------------------------------------------- */

static void check_counted(struct query_rig *r, const struct query_steps *o,
                          enum query_counted counted, const char *want, const char *row)
{
    struct err err = ERR_INIT;
    struct query_heatmap map;
    SCOPED(buf) b = testing_buf(QUERY_TEXT_MAX);
    if (!query_heatmap(&r->q, &r->range, &r->type, o, counted, &map, &err)) {
        buf_puts(&b, err.msg);
    }
    for (size_t i = 0; err.kind == ERR_NONE && i < map.n; i++) {
        query_text_labels(&b, &map.at[i].labels);
        for (size_t j = 0; j < map.at[i].n_slots; j++) {
            const struct query_slot *slot = &map.at[i].slots[j];
            buf_printf(&b, " %+lld", (long long)(slot->time_ms - QUERY_T0));
            for (size_t k = 0; k < QUERY_HEATMAP_ROWS; k++) {
                if (slot->counts[k] > 0) {
                    buf_printf(&b, " %zu:%g:%d", k, slot->y_min[k], (int)slot->counts[k]);
                }
            }
            for (size_t k = 0; k < slot->n_exemplars; k++) {
                const struct query_exemplar *e = &slot->exemplars[k];
                buf_printf(&b, " (%+lld %lld%s%s%s%s %zu labels)",
                           (long long)(e->time_ms - QUERY_T0), (long long)e->value,
                           e->span_id[0] != '\0' ? " " : "", e->span_id,
                           e->trace_id[0] != '\0' ? "/" : "", e->trace_id, e->labels.n);
                CHECK_INT(e->id[0] == '\0', counted == QUERY_SPANS, row);
            }
        }
        buf_putc(&b, '\n');
    }
    CHECK_STR(b.data, want, row);
}

static void check_heatmap(struct query_rig *r, const struct query_steps *o, const char *want,
                          const char *row)
{
    check_counted(r, o, QUERY_PROFILES, want, row);
}

/* Three profiles whose samples have three different label sets each. */
static void put_split(struct query_rig *r)
{
    for (int64_t i = 0; i < 3; i++) {
        const struct pprof_row rows[] = {
            {"a",
             "thread=x,span_id=A0000000000000AA,trace_id=b00000000000000000000000000000bb",
             {10 + i}},
            {"b",
             "thread=y,span_id=a0000000000000aa,trace_id=b00000000000000000000000000000bb",
             {20 + i}},
            {"c", "thread=y,profile_id=c0000000000000cc", {30}},
            {"d", "span_id=a0000000000000g", {300}},
            {"e", "span_id=notaspan", {300}},
        };
        rig_put(&r->store, "__name__=split,pod=a,service_name=split",
                (QUERY_T0 + i * 1000) * NS_PER_MS, "cpu/nanoseconds", rows, 5, NULL);
    }
    struct err err = ERR_INIT;
    assert_true(profile_type_parse(SV("split:cpu:nanoseconds::"), &r->type, &err));
    query_rig_range(r, NULL, QUERY_S, QUERY_E);
}

/* A profile is one, whatever labels its samples have: in its group, if they are grouped by. */
TEST_ON(struct query_rig *r, test_the_pieces_of_a_profile_are_one_profile)
{
    const struct sv pod[] = {SV("pod")};
    const struct sv thread[] = {SV("thread")};
    const struct sv site[] = {SV("b")};
    const struct query_stacks at_b = {.call_site = site, .n_call_site = 1};
    put_split(r);
    struct query_steps o = {.step_s = 60, .exemplars = QUERY_WITH_EXEMPLARS};
    check_heatmap(r, &o,
                  "{} +0 4:660:1 (+0 660 7 labels)"
                  " +60000 14:662:1 19:663:1 (+1000 662 7 labels) (+2000 664 7 labels)\n",
                  "heatmap");
    o = (struct query_steps){.step_s = 60, .group_by = thread, .n_group_by = 1};
    check_heatmap(r, &o,
                  "{} +0 19:570:1 +60000 19:570:2\n"
                  "{thread=x} +0 0:10:1 +60000 0:10:2\n"
                  "{thread=y} +0 1:39:1 +60000 1:39:2\n",
                  "heatmap by thread");
    o = (struct query_steps){
        .step_s = 60, .group_by = pod, .n_group_by = 1, .aggregation = QUERY_AVERAGE};
    check_timeline(r, &o, &all, "{pod=a} +0:660 +60000:663\n", "average");
    check_timeline(r, &o, &at_b, "{pod=a} +0:20 +60000:21.5\n", "average of a call site");
    o.exemplars = QUERY_WITH_EXEMPLARS;
    check_timeline(r, &o, &all,
                   "{pod=a} +0:660(+0 660 {__name__=split,__profile_type__=split:cpu:nanoseconds::,"
                   "__service_name__=split,__type__=cpu,__unit__=nanoseconds,service_name=split}) "
                   "+60000:663(+2000 664 {__name__=split,__profile_type__=split:cpu:nanoseconds::,"
                   "__service_name__=split,__type__=cpu,__unit__=nanoseconds,service_name=split})"
                   "\n",
                   "exemplars");
}

TEST_ON(struct query_rig *r, test_heatmaps_of_spans)
{
    const struct sv thread[] = {SV("thread")};
    put_split(r);
    struct query_steps o = {.step_s = 60, .exemplars = QUERY_WITH_EXEMPLARS};
    check_counted(r, &o, QUERY_SPANS,
                  "{} +0 4:30:2 (+0 30 a0000000000000aa/b00000000000000000000000000000bb 7 labels)"
                  " +60000 4:30:2 14:32:1 19:33:1"
                  " (+1000 30 c0000000000000cc 8 labels)"
                  " (+1000 32 a0000000000000aa/b00000000000000000000000000000bb 7 labels)"
                  " (+2000 34 a0000000000000aa/b00000000000000000000000000000bb 7 labels)\n",
                  "all");
    o = (struct query_steps){.step_s = 60, .group_by = thread, .n_group_by = 1};
    check_counted(r, &o, QUERY_SPANS,
                  "{thread=y} +0 10:20:1 19:29:1 +60000 11:21:1 12:22:1 19:29:2\n"
                  "{thread=x} +0 0:10:1 +60000 1:11:1 2:12:1\n",
                  "by thread");
    query_rig_range(r, "{thread=\"x\"}", QUERY_S, QUERY_E);
    check_counted(r, &o, QUERY_SPANS, "{thread=x} +0 9:10:1 +60000 19:11:2\n", "x");
    query_rig_range(r, "{pod=\"c\"}", QUERY_S, QUERY_E);
    check_counted(r, &o, QUERY_SPANS, "", "profiles without spans");
}

TEST_ON(struct query_rig *r, test_heatmaps)
{
    const struct sv pod[] = {SV("pod")};
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    struct query_steps o = {.step_s = 15};
    check_heatmap(r, &o, "{} +0 0:5e+07:1 +15000 19:5.95e+07:1\n", "15");
    o = (struct query_steps){
        .step_s = 60, .group_by = pod, .n_group_by = 1, .exemplars = QUERY_WITH_EXEMPLARS};
    check_heatmap(r, &o,
                  "{pod=a} +0 0:5e+07:1 (+0 50000000 8 labels)\n"
                  "{pod=b} +60000 19:5.95e+07:1 (+15000 60000000 8 labels)\n",
                  "by pod");
    o.limit = 1;
    check_heatmap(r, &o, "{pod=a} +0 0:5e+07:1 (+0 50000000 8 labels)\n", "limit");
    o = (struct query_steps){.step_s = 20};
    query_rig_range(r, "{pod=\"b\"}", QUERY_T0, QUERY_T0 + 16000);
    check_heatmap(r, &o, "{} +20000 19:6e+07:1\n", "one value, and a slot beyond the end");
    query_rig_range(r, "{pod=\"b\"}", QUERY_T0 + 30000, QUERY_T0 + 60000);
    check_heatmap(r, &o, "{} +30000 19:6e+07:1\n", "the first step reaches back");
    query_rig_range(r, "{pod=\"none\"}", QUERY_S, QUERY_E);
    check_heatmap(r, &o, "", "nothing");
    o.step_s = 0;
    check_heatmap(r, &o, "step must be >= 1ms", "no step");
}

/* ---- profiles without stacks ----------------------------------------------------------------- */

TEST_ON(struct query_rig *r, test_recordings_have_no_stacks)
{
    char jfr[JFR_CHUNK_HEADER_SIZE] = JFR_MAGIC;
    rig_put_bytes(&r->store, "__name__=process_cpu,service_name=java", QUERY_T0 * NS_PER_MS,
                  (struct sv){jfr, sizeof(jfr)}, PROFILE_JFR, NULL);
    query_rig_range(r, "{service_name=\"java\"}", QUERY_S, QUERY_E);
    check_tree(r, &all, NOTHING, "");
    CHECK_INT(atomic_load(&r->damaged), 0, "");
}

/* A store of an earlier version has recordings: the first start makes profiles of them. */
TEST(test_stored_recordings_are_converted)
{
    SCOPED(query_rig) r;
    SCOPED(recording) java;
    char path[4096];
    query_rig_init(&r);
    recording_init(&java, 1000000000);
    java.start_ns = QUERY_T0 * NS_PER_MS;
    recording_method(&java, 1, "a/Main", "main");
    recording_method(&java, 2, "a/B", "run");
    recording_stack(&java, 1, false, (const uint64_t[]){2, 10, 1, 20}, 2);
    recording_setting(&java, 0, "event", "itimer");
    EVENT(&java, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    recording_end_chunk(&java);
    rig_put_bytes(&r.store, "__name__=jfr,service_name=java", QUERY_T0 * NS_PER_MS,
                  recording_bytes(&java), PROFILE_JFR, NULL);
    query_rig_range(&r, "{service_name=\"java\"}", QUERY_S, QUERY_E);
    check_tree(&r, &all, NOTHING, "not yet");
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/recordings.converted",
                       store_directory(r.store.store));
        CHECK_INT(unlink(path), 0, "each start notes that it is done");
        store_rig_reopen(&r.store);
        r.q.store = r.store.store;
        query_rig_range(&r,
                        "{service_name=\"java\", jfr_event=\"itimer\", "
                        "__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}",
                        QUERY_S, QUERY_E);
        check_tree(&r, &all,
                   "total a/Main.main a/B.run | [0 10000000 0 0] [0 10000000 0 1] "
                   "[0 10000000 10000000 2] | total 10000000 self 10000000",
                   i == 0 ? "converted" : "and once only");
    }
}

/* Two locations have the same id, which is not seen when the profile is stored. */
TEST(test_a_profile_that_cannot_be_read_costs_itself_alone)
{
    SCOPED(query_rig) r;
    SCOPED(buf) b = stored_file("p1");
    char *second = memmem(b.data, b.len, "\x22\x15\x08\x02", 4);
    assert_non_null(second);
    second[3] = 1;
    query_rig_init(&r);
    rig_put_bytes(&r.store, "__name__=process_cpu,pod=a,service_name=vecdemo",
                  (QUERY_T0 + 1) * NS_PER_MS, (struct sv){b.data, b.len}, PROFILE_PPROF, NULL);
    query_rig_range(&r, "{pod=\"a\"}", QUERY_S, QUERY_E);
    check_tree(&r, &all, P1_ALONE, "");
    CHECK_INT(atomic_load(&r.damaged), 1, "");
}
