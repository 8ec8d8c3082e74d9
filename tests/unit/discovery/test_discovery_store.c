/* Which updates of pods change anything: duplicates, heartbeats, lists that lack a pod. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "discovery/kubernetes/store.h"

struct fixture {
    struct intern *intern;
    struct store *store;
    uint64_t key;     /* of the object that is put */
    uint64_t content; /* of the same */
    uint64_t ours;    /* bit k: the key k is ours */
    struct buf out;   /* "key=<label x>@<ip>" or "key gone", one word each */
};

static void on_change(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved)
{
    struct fixture *f = arg;
    buf_printf(&f->out, "%s%s", moved ? "moved " : "", key);
    if (n == 0) {
        assert_null(ip);
        buf_puts(&f->out, ":gone ");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct sv x = labels_get(targets[i], SV("x"));
        buf_printf(&f->out, "%s%.*s", i == 0 ? "=" : "+", SV_ARG(x));
    }
    buf_printf(&f->out, "@%s ", ip);
}

static void fixture_init_for(struct fixture *f, size_t max)
{
    *f = (struct fixture){.intern = intern_new()};
    assert_non_null(f->intern);
    buf_init(&f->out, 1 << 20);
    f->store = store_new(&(struct store_options){.max = max, .on_change = on_change, .arg = f});
    assert_non_null(f->store);
}

static void fixture_init(struct fixture *f)
{
    fixture_init_for(f, 100);
}

static void fixture_done(struct fixture *f)
{
    store_free(f->store);
    buf_done(&f->out);
    intern_free(f->intern);
}
SCOPED_VALUE(fixture, fixture_done)

SETUP_OF(fixture)

static struct object_id make_id(const char *name, const char *uid)
{
    uint64_t hash = uid[0] == '\0' ? 0 : hash_bytes(uid, strlen(uid), 0);
    return (struct object_id){.namespace = SV("ns"), .name = sv_from(name), .uid = hash};
}

/* A pod with a target for each letter of xs. */
static enum store_result put(struct fixture *f, const char *name, const char *uid, const char *xs,
                             const char *ip)
{
    struct labels *at[8];
    struct object_targets t = {.at = at,
                               .n = strlen(xs),
                               .ip = xs[0] == '\0' ? NULL : ip,
                               .key = f->key,
                               .content = f->content};
    for (size_t i = 0; i < t.n; i++) {
        char x[2] = {xs[i], '\0'};
        at[i] = testing_labels(f->intern, "x", x, (char *)NULL);
    }
    struct object_id id = make_id(name, uid);
    enum store_result result = kube_store_put(f->store, &id, &t);
    for (size_t i = 0; i < t.n; i++) {
        labels_unref(at[i]);
    }
    return result;
}

static enum store_result drop(struct fixture *f, const char *name, const char *uid)
{
    struct object_id id = make_id(name, uid);
    return store_remove(f->store, &id);
}

static void check_out(struct fixture *f, const char *want, const char *row)
{
    CHECK_STR(f->out.data, want, row);
    buf_clear(&f->out);
}

TEST_ON(struct fixture *f, test_changes)
{
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_CHANGED, "new");
    check_out(f, "ns/a=p@10.0.0.1 ", "new");
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_UNCHANGED, "a heartbeat");
    check_out(f, "", "a heartbeat");
    CHECK_INT(put(f, "a", "1", "pq", "10.0.0.1"), STORE_CHANGED, "one more target");
    check_out(f, "ns/a=p+q@10.0.0.1 ", "one more target");
    CHECK_INT(put(f, "a", "1", "qp", "10.0.0.1"), STORE_CHANGED, "another order");
    check_out(f, "ns/a=q+p@10.0.0.1 ", "another order");
    CHECK_INT(put(f, "a", "1", "qp", "10.0.0.2"), STORE_CHANGED, "another address");
    check_out(f, "ns/a=q+p@10.0.0.2 ", "another address");
    CHECK_INT(store_counts(f->store).reported, 1, "");
    CHECK_INT(put(f, "a", "1", "", NULL), STORE_CHANGED, "no targets any more");
    check_out(f, "ns/a:gone ", "no targets any more");
    CHECK_INT(put(f, "a", "1", "", NULL), STORE_UNCHANGED, "still none");
    check_out(f, "", "still none");
    CHECK_INT(store_counts(f->store).reported, 0, "");
}

static bool has(struct fixture *f, const char *name, uint64_t content)
{
    struct object_id id = make_id(name, "1");
    return store_has(f->store, &id, content);
}

/* An object of a content that is reported need not be read again, and a list that has it keeps it.
 */
TEST_ON(struct fixture *f, test_contents)
{
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_CHANGED, "");
    CHECK_INT(has(f, "a", 0), false, "its content is not known");
    f->content = 7;
    CHECK_INT(has(f, "a", 7), false, "not put yet");
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_UNCHANGED, "the same labels");
    CHECK_INT(put(f, "b", "1", "p", "10.0.0.2"), STORE_CHANGED, "");
    CHECK_INT(has(f, "a", 7), true, "a heartbeat");
    CHECK_INT(has(f, "a", 8), false, "another content");
    CHECK_INT(has(f, "c", 7), false, "another object");
    buf_clear(&f->out);
    store_list_begin(f->store);
    CHECK_INT(has(f, "a", 7), true, "listed");
    store_list_end(f->store);
    check_out(f, "ns/b:gone ", "only what the list does not have");
    struct object_id a = make_id("a", "1");
    CHECK_INT(store_put_foreign(f->store, &a, 3), STORE_CHANGED, "");
    CHECK_INT(has(f, "a", 7), false, "another replica has it");
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_CHANGED, "it comes back");
    CHECK_INT(has(f, "a", 7), true, "");
    CHECK_INT(put(f, "a", "1", "", NULL), STORE_CHANGED, "no targets any more");
    CHECK_INT(has(f, "a", 7), false, "");
}

/* An object that is deleted, or has lost its targets, is reported once, without targets. */
TEST_ON(struct fixture *f, test_removals)
{
    CHECK_INT(drop(f, "a", "1"), STORE_UNCHANGED, "unknown");
    put(f, "a", "2", "p", "10.0.0.1");
    buf_clear(&f->out);
    CHECK_INT(drop(f, "a", "1"), STORE_UNCHANGED, "its predecessor");
    check_out(f, "", "its predecessor");
    CHECK_INT(drop(f, "a", "2"), STORE_CHANGED, "itself");
    CHECK_INT(drop(f, "a", "2"), STORE_UNCHANGED, "twice");
    check_out(f, "ns/a:gone ", "once");
    put(f, "a", "3", "p", "10.0.0.1");
    /* A new pod with the same labels. */
    CHECK_INT(put(f, "a", "4", "p", "10.0.0.1"), STORE_UNCHANGED, "");
    CHECK_INT(drop(f, "a", "3"), STORE_UNCHANGED, "the uid that was seen last counts");
    CHECK_INT(drop(f, "a", ""), STORE_CHANGED, "without uid the name decides");
}

TEST_ON(struct fixture *f, test_list_replaces)
{
    store_list_begin(f->store);
    put(f, "a", "1", "p", "10.0.0.1");
    put(f, "b", "2", "q", "10.0.0.2");
    store_list_end(f->store);
    check_out(f, "ns/a=p@10.0.0.1 ns/b=q@10.0.0.2 ", "first list");
    put(f, "c", "3", "r", "10.0.0.3");
    check_out(f, "ns/c=r@10.0.0.3 ", "by the watch");
    store_list_begin(f->store);
    put(f, "b", "2", "q", "10.0.0.2");
    check_out(f, "", "half a list removes nothing");
    store_list_begin(f->store);
    put(f, "c", "3", "r", "10.0.0.3");
    put(f, "b", "2", "Q", "10.0.0.2");
    put(f, "d", "4", "", NULL);
    store_list_end(f->store);
    check_out(f, "ns/b=Q@10.0.0.2 ns/a:gone ", "what was missed comes out once");
    store_list_begin(f->store);
    store_list_end(f->store);
    CHECK_INT(store_counts(f->store).reported, 0, "an empty list");
}

TEST(test_full)
{
    SCOPED(fixture) f;
    fixture_init_for(&f, 2);
    put(&f, "a", "1", "p", "10.0.0.1");
    put(&f, "b", "2", "q", "10.0.0.2");
    buf_clear(&f.out);
    CHECK_INT(put(&f, "c", "3", "r", "10.0.0.3"), STORE_FULL, "");
    check_out(&f, "", "");
    CHECK_INT(put(&f, "a", "1", "P", "10.0.0.1"), STORE_CHANGED, "known ones go on");
    drop(&f, "b", "2");
    CHECK_INT(put(&f, "c", "3", "r", "10.0.0.3"), STORE_CHANGED, "there is room again");
    check_out(&f, "ns/a=P@10.0.0.1 ns/b:gone ns/c=r@10.0.0.3 ", "");
}

TEST(test_many)
{
    SCOPED(fixture) f;
    fixture_init_for(&f, 10000);
    char name[16];
    store_list_begin(f.store);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        put(&f, name, name, "x", "10.0.0.1");
    }
    store_list_end(f.store);
    CHECK_INT(store_counts(f.store).reported, 5000, "");
    store_list_begin(f.store);
    for (int i = 0; i < 5000; i += 3) {
        snprintf(name, sizeof(name), "p%d", i);
        put(&f, name, name, "x", "10.0.0.1");
    }
    buf_clear(&f.out);
    store_list_end(f.store);
    CHECK_INT(store_counts(f.store).reported, 1667, "");
    size_t gone = 0;
    for (const char *p = f.out.data; (p = strstr(p, ":gone ")) != NULL; p++) {
        gone++;
    }
    CHECK_INT(gone, 5000 - 1667, "each once");
}

TEST_ON(struct fixture *f, test_longest_names)
{
    char namespace[OBJECT_NAMESPACE_MAX + 1];
    char name[OBJECT_NAME_MAX + 1];
    memset(namespace, 'n', sizeof(namespace));
    memset(name, 'p', sizeof(name));
    struct object_id id = {.namespace = {namespace, OBJECT_NAMESPACE_MAX},
                           .name = {name, OBJECT_NAME_MAX}};
    struct labels *at[1] = {testing_labels(f->intern, "x", "1", (char *)NULL)};
    struct object_targets t = {.at = at, .n = 1, .ip = "10.0.0.1"};
    CHECK_INT(kube_store_put(f->store, &id, &t), STORE_CHANGED, "");
    CHECK_INT(f->out.len, OBJECT_NAMESPACE_MAX + 1 + OBJECT_NAME_MAX + strlen("=1@10.0.0.1 "), "");
    CHECK_INT(store_remove(f->store, &id), STORE_CHANGED, "");
    labels_unref(at[0]);
}

static bool claims(void *arg, uint64_t key)
{
    const struct fixture *f = arg;
    return (f->ours >> key & 1) != 0;
}

static void review(struct fixture *f, uint64_t ours)
{
    f->ours = ours;
    store_reassign(f->store, claims, f);
}

static enum store_result leave(struct fixture *f, const char *name, uint64_t key)
{
    struct object_id id = make_id(name, "1");
    return store_put_foreign(f->store, &id, key);
}

static void check_counts(const struct fixture *f, size_t reported, size_t foreign, size_t pending,
                         const char *row)
{
    CHECK_INT(store_counts(f->store).reported, reported, row);
    CHECK_INT(store_counts(f->store).foreign, foreign, row);
    CHECK_INT(store_counts(f->store).pending, pending, row);
}

/* Foreign objects are known but not reported until they are put as ours. */
TEST_ON(struct fixture *f, test_foreign)
{
    CHECK_INT(leave(f, "a", 3), STORE_UNCHANGED, "new");
    CHECK_INT(leave(f, "a", 3), STORE_UNCHANGED, "a heartbeat");
    check_counts(f, 0, 1, 0, "left");
    review(f, 1 << 3);
    check_counts(f, 0, 0, 1, "ours, but it is not known what it stands for");
    review(f, 0);
    check_counts(f, 0, 1, 0, "taken back");
    review(f, 1 << 3);
    check_out(f, "", "it is not reported");
    f->key = 3;
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_CHANGED, "listed");
    check_out(f, "moved ns/a=p@10.0.0.1 ", "listed");
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_UNCHANGED, "listed again");
    check_counts(f, 1, 0, 0, "reported");
    review(f, 1 << 3);
    check_out(f, "", "still ours");
    review(f, 1 << 4);
    check_out(f, "ns/a:gone ", "lost");
    review(f, 1 << 4);
    check_out(f, "", "reported once");
    check_counts(f, 0, 1, 0, "lost");
    review(f, 1 << 3);
    CHECK_INT(put(f, "a", "1", "p", "10.0.0.1"), STORE_CHANGED, "the same label sets");
    check_out(f, "moved ns/a=p@10.0.0.1 ", "back");
    CHECK_INT(leave(f, "a", 4), STORE_CHANGED, "another address, which is not ours");
    check_out(f, "ns/a:gone ", "another address");
    CHECK_INT(drop(f, "a", "0"), STORE_UNCHANGED, "its predecessor");
    check_counts(f, 0, 1, 0, "its predecessor");
    CHECK_INT(drop(f, "a", "1"), STORE_UNCHANGED, "itself");
    check_out(f, "", "it was not reported");
    check_counts(f, 0, 0, 0, "itself");
}

/* Lists remove foreign objects, too; objects without a key are ours, whoever the members are. */
TEST(test_foreign_and_lists)
{
    SCOPED(fixture) f;
    fixture_init_for(&f, 3);
    put(&f, "keyless", "1", "p", "10.0.0.9");
    leave(&f, "a", 1);
    leave(&f, "b", 2);
    CHECK_INT(leave(&f, "c", 2), STORE_FULL, "the limit is that of all");
    check_out(&f, "ns/keyless=p@10.0.0.9 ", "");
    review(&f, 1 << 1);
    check_counts(&f, 1, 1, 1, "");
    store_list_begin(f.store);
    leave(&f, "b", 2);
    put(&f, "keyless", "1", "p", "10.0.0.9");
    check_counts(&f, 1, 1, 1, "the list is not complete");
    store_list_end(f.store);
    check_counts(&f, 1, 1, 0, "");
    store_list_begin(f.store);
    store_list_end(f.store);
    check_counts(&f, 0, 0, 0, "");
    check_out(&f, "ns/keyless:gone ", "what is left goes in silence");
    f.key = 2;
    leave(&f, "b", 2);
    review(&f, 1 << 2);
    CHECK_INT(put(&f, "b", "1", "", NULL), STORE_UNCHANGED, "it has become ours without targets");
    check_counts(&f, 0, 0, 0, "");
    check_out(&f, "", "");
}
