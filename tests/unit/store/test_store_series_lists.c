/* The series of sealed files in memory: which files a query opens, and that a file which was
 * changed is read again.
 */
#include <stdio.h>
#include <unistd.h>

#include "store/series_lists.h"
#include "tests/unit/lib/store_rig.h"

#define HOUR 3600

static const struct pprof_row rows[] = {{"a main", "", {1}}};

/* ---- lists ----------------------------------------------------------------------------------- */

static const struct series_list *add(struct series_lists *s, const char *path, unsigned n,
                                     uint64_t version)
{
    const struct series_version v = {{version}};
    struct series_list *l = series_list_new();
    for (unsigned i = 0; i < n; i++) {
        char set[128];
        (void)snprintf(set, sizeof(set), "a set of labels that many files have: %u", i);
        assert_true(series_lists_add_row(s, l, i + 1, 1, i, sv_from(set), SV("labels")));
    }
    series_lists_add(s, l, path, &v);
    return l;
}

TEST(lists_share_texts_and_are_found_by_version)
{
    const struct series_version one = {{1}};
    const struct series_version two = {{2}};
    struct series_lists *s = series_lists_new(SERIES_LISTS_BYTES_MAX);
    assert_null(series_lists_get(s, "a", &one));
    const struct series_list *a = add(s, "a", 100, 1);
    size_t first = series_lists_bytes(s);
    const struct series_list *b = add(s, "b", 100, 1);
    size_t second = series_lists_bytes(s) - first;
    assert_true(second < first / 2);
    assert_ptr_equal(a->rows[7].text, b->rows[7].text);
    assert_true(sv_eq_str(a->rows[7].text->set, "a set of labels that many files have: 7"));
    assert_true(sv_eq_str(a->rows[7].text->labels, "labels"));
    series_lists_release(s, b);
    b = series_lists_get(s, "b", &one);
    assert_int_equal(b->n, 100);
    series_lists_release(s, b);
    /* Another version is another file; the old list still belongs to its user. */
    assert_null(series_lists_get(s, "a", &two));
    assert_null(series_lists_get(s, "a", &one));
    assert_int_equal(a->rows[99].id, 100);
    series_lists_release(s, a);
    assert_null(series_lists_free(s));
}

TEST(lists_take_no_more_memory_than_their_limit)
{
    const struct series_version one = {{1}};
    const size_t max = 64 * 1024;
    struct series_lists *s = series_lists_new(max);
    for (unsigned i = 0; i < 200; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "file-%u", i);
        series_lists_release(s, add(s, path, 20, 1));
        assert_true(series_lists_bytes(s) <= max);
        /* The list that is used each time stays. */
        const struct series_list *l = series_lists_get(s, "file-0", &one);
        assert_non_null(l);
        series_lists_release(s, l);
    }
    assert_null(series_lists_get(s, "file-1", &one));
    /* A list that is larger than the limit belongs to its user only. */
    const struct series_list *large = add(s, "large", 5000, 1);
    assert_int_equal(large->n, 5000);
    series_lists_release(s, large);
    assert_null(series_lists_get(s, "large", &one));
    assert_true(series_lists_bytes(s) <= max);
    series_lists_free(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Puts one profile of a service into each of some hours, and seals the files. */
static void put_sealed(struct store_rig *r, const char *const *services, size_t n)
{
    r->options.merge_ms = 5 * 60 * MS_PER_S;
    r->options.merge_cpu = 100;
    store_configure(r->store, &r->options);
    for (size_t i = 0; i < n; i++) {
        char labels[64];
        (void)snprintf(labels, sizeof(labels), "__name__=cpu,service_name=%s", services[i]);
        rig_put(r, labels, RIG_T0 + (int64_t)i * RIG_HOUR + RIG_SECOND, "cpu/ns", rows, 1, NULL);
    }
    store_writers_close(r->store, NULL);
    store_maintain(r->store, RIG_T0 + 100 * RIG_HOUR);
    for (size_t i = 0; i < r->store->n_files; i++) {
        assert_true(r->store->files[i]->sealed);
    }
    store_readers_close(r->store, NULL);
}

static bool on_series(void *arg, const struct store_series *series)
{
    struct buf *out = arg;
    struct sv service = label_value(series->labels, series->n_labels, SV("service_name"));
    buf_printf(out, "%.*s ", SV_ARG(service));
    return true;
}

static void check_services(struct store_rig *r, const char *selector, int64_t from_ns,
                           int64_t until_ns, const char *want, const char *row)
{
    struct err err = ERR_INIT;
    struct selector *s = selector != NULL ? selector_parse(sv_from(selector), &err) : NULL;
    struct store_range range = {from_ns, until_ns, .selector = s};
    SCOPED(buf) out = testing_buf(4096);
    buf_puts(&out, "");
    assert_true(store_each_series(r->store, &range, on_series, &out, &err));
    CHECK_STR(out.data, want, row);
    selector_free(s);
}

static int idle_readers(const struct store *s)
{
    int n = 0;
    for (const struct reader_conn *c = s->idle; c != NULL; c = c->next) {
        n++;
    }
    return n;
}

SETUP_OF(store_rig)

TEST_ON(struct store_rig *r, series_of_sealed_files_need_no_open_file)
{
    static const char *const services[] = {"a", "b", "a", "c"};
    const int64_t until = RIG_T0 + 100 * RIG_HOUR;
    put_sealed(r, services, 4);
    check_services(r, NULL, RIG_T0, until, "a b c ", "read");
    assert_int_equal(idle_readers(r->store), 4);
    store_readers_close(r->store, NULL);
    check_services(r, NULL, RIG_T0, until, "a b c ", "from memory");
    check_services(r, "{service_name=\"b\"}", RIG_T0, until, "b ", "from memory, selected");
    assert_int_equal(idle_readers(r->store), 0);
    /* A file that the range covers in part is opened, if it has the series. */
    check_services(r, "{service_name=\"a\"}", RIG_T0 + 2 * RIG_SECOND, until, "a ", "in part");
    assert_int_equal(idle_readers(r->store), 1);
    /* One service opens only its files. */
    store_readers_close(r->store, NULL);
    struct err err = ERR_INIT;
    struct selector *only_c = selector_parse(SV("{service_name=\"c\"}"), &err);
    struct store_range range = {RIG_T0, until, .selector = only_c};
    struct rig_text t;
    rig_text_init(&t, NULL);
    assert_true(store_each_point(r->store, &range, rig_on_point, &t, &err));
    assert_int_equal(idle_readers(r->store), 1);
    buf_done(&t.out);
    selector_free(only_c);
}

TEST_ON(struct store_rig *r, late_profiles_of_a_sealed_file_are_found)
{
    static const char *const services[] = {"a", "b"};
    const int64_t until = RIG_T0 + 100 * RIG_HOUR;
    put_sealed(r, services, 2);
    check_services(r, NULL, RIG_T0, until, "a b ", "sealed");
    check_services(r, NULL, RIG_T0, until, "a b ", "from memory");
    rig_put(r, "__name__=cpu,service_name=late", RIG_T0 + 9 * RIG_SECOND, "cpu/ns", rows, 1, NULL);
    check_services(r, NULL, RIG_T0, until, "a late b ", "late");
    store_maintain(r->store, RIG_T0 + 100 * RIG_HOUR);
    check_services(r, NULL, RIG_T0, until, "a late b ", "sealed again");
    check_services(r, NULL, RIG_T0, until, "a late b ", "from memory again");
}

TEST_ON(struct store_rig *r, a_file_that_was_replaced_is_read_again)
{
    SCOPED(store_rig) other;
    static const char *const services[] = {"a", "b"};
    static const char *const others[] = {"x"};
    const int64_t until = RIG_T0 + 100 * RIG_HOUR;
    store_rig_init(&other);
    put_sealed(r, services, 2);
    put_sealed(&other, others, 1);
    check_services(r, NULL, RIG_T0, until, "a b ", "before");
    check_services(r, NULL, RIG_T0, until, "a b ", "before, from memory");
    store_readers_close(other.store, NULL);
    assert_int_equal(rename(other.store->files[0]->path, r->store->files[0]->path), 0);
    check_services(r, NULL, RIG_T0, until, "x b ", "after");
}
