/* Labels that no rule reads are not built, and an update that changes only them is not reported. */
#include <stdlib.h>

#include "discovery/kubernetes/json_stream.h"
#include "discovery/kubernetes/label_filter.h"
#include "discovery/kubernetes/roles.h"
#include "discovery/kubernetes/store.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(label_filter, label_filter_free)

struct question {
    size_t asked;
    const char *wanted[8];
};

static bool asks(void *arg, struct sv name)
{
    struct question *q = arg;
    q->asked++;
    for (size_t i = 0; i < 8 && q->wanted[i] != NULL; i++) {
        if (sv_eq_str(name, q->wanted[i])) {
            return true;
        }
    }
    return false;
}

TEST(test_asks_once)
{
    struct question q = {.wanted = {"a"}};
    struct label_filter *w =
        label_filter_new(&(struct label_filter_options){.wants_label = asks, .arg = &q});
    for (int i = 0; i < 3; i++) {
        assert_true(label_filter_passes(w, SV("a")));
        assert_true(label_filter_passes_metadata(w, SV("a")));
        assert_false(label_filter_passes(w, SV("b")));
        assert_false(label_filter_passes_metadata(w, SV("b")));
    }
    assert_int_equal(q.asked, 2);
    label_filter_free(w);
    assert_true(label_filter_passes(NULL, SV("b")));
    assert_true(label_filter_passes_metadata(NULL, SV("b")));
}

TEST(test_metadata_only)
{
    struct question q = {.wanted = {"a"}};
    SCOPED(label_filter) *w = label_filter_new(
        &(struct label_filter_options){.wants_label = asks, .arg = &q, .metadata_only = true});
    assert_true(label_filter_passes(w, SV("b")));
    assert_false(label_filter_passes_metadata(w, SV("b")));
}

/* Names come from pods: the number of remembered ones is limited. */
TEST(test_many_names)
{
    struct question q = {.wanted = {"name-5"}};
    SCOPED(label_filter) *w =
        label_filter_new(&(struct label_filter_options){.wants_label = asks, .arg = &q});
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LABEL_FILTER_NAMES_MAX + 10; i++) {
            snprintf(name, sizeof(name), "name-%d", i);
            assert_int_equal(label_filter_passes_metadata(w, sv_from(name)), i == 5);
        }
    }
    assert_int_equal(q.asked, LABEL_FILTER_NAMES_MAX + 20);
}

#define POD(annotations, ready)                                                                    \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u\",\"labels\":{\"app\":"    \
    "\"web\",\"x/y\":\"1\"},\"annotations\":{" annotations "}},\"spec\":{\"nodeName\":\"n\","      \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"ports\":[{\"name\":\"p\","                \
    "\"containerPort\":80}]}]},\"status\":{\"podIP\":\"10.0.0.1\",\"phase\":\"Running\","          \
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"

struct reader {
    struct labels_builder *builder;
    struct object_targets targets;
    struct store *store;
    enum store_result result;
    size_t reported;
};

static void on_change(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved)
{
    (void)moved;
    struct reader *r = arg;
    (void)key;
    (void)targets;
    (void)n;
    (void)ip;
    r->reported++;
}

/* Takes an object as it comes out of the stream, without the members dropped there. */
static void on_object(void *arg, const json_t *json)
{
    struct reader *r = arg;
    struct object_id id;
    struct kube_object pod = {.kind = SV("")};
    SCOPED(arena) *arena = schema_arena_new();
    assert_int_equal(schema_read_json(kube_pods.resource.rows, json, arena, &pod), SKIP_NONE);
    assert_true(object_identify(&pod, "Pod", true, &id));
    assert_int_equal(kube_pods.read(&pod, r->builder, &r->targets), OBJECT_OK);
    r->result = kube_store_put(r->store, &id, &r->targets);
}

static void on_metadata(void *arg, const json_t *json)
{
    (void)arg;
    (void)json;
    fail();
}

static void on_skip(void *arg, enum discovery_skip why)
{
    (void)arg;
    (void)why;
    fail();
}

static enum store_result read_pod(struct reader *r, const char *pod, struct buf *out)
{
    struct err err = ERR_INIT;
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = 1 << 20,
        .depth_max = 64,
        .members = kube_pods.resource.rows,
        .on_object = on_object,
        .on_metadata = on_metadata,
        .on_skip = on_skip,
        .arg = r,
    });
    json_stream_begin(s, JSON_STREAM_LIST);
    assert_true(json_stream_feed(s, "{\"items\":[", 10, &err));
    assert_true(json_stream_feed(s, pod, strlen(pod), &err));
    json_stream_free(s);
    buf_clear(out);
    for (size_t i = 0; i < r->targets.n; i++) {
        testing_labels_format(r->targets.at[i], out);
    }
    return r->result;
}

TEST(test_only_wanted_labels)
{
    struct question q = {.wanted = {LABEL_ADDRESS, META "namespace", META "pod_label_app",
                                    META "pod_annotationpresent_on", META "pod_container_name"}};
    SCOPED(intern) *in = intern_new();
    struct reader r = {.builder = labels_builder_new(in)};
    SCOPED(buf) out = testing_buf(1 << 16);
    r.targets = (struct object_targets){0};
    r.targets.filter =
        label_filter_new(&(struct label_filter_options){.wants_label = asks, .arg = &q});
    r.store = store_new(&(struct store_options){.max = 10, .on_change = on_change, .arg = &r});
    assert_int_equal(read_pod(&r, POD("\"on\":\"1\"", "True"), &out), STORE_CHANGED);
    CHECK_STR(
        out.data,
        "{__address__=\"10.0.0.1:80\", __meta_kubernetes_namespace=\"shop\", "
        "__meta_kubernetes_pod_annotationpresent_on=\"true\", "
        "__meta_kubernetes_pod_container_name=\"c\", __meta_kubernetes_pod_label_app=\"web\"}",
        "");
    /* The value of an annotation, another annotation, readiness: no rule reads them. */
    static const char *const same[] = {POD("\"on\":\"2\"", "True"), POD("\"on\":\"1\"", "False"),
                                       POD("\"on\":\"1\",\"off\":\"1\"", "True")};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(read_pod(&r, same[i], &out), STORE_UNCHANGED);
    }
    assert_int_equal(r.reported, 1);
    assert_int_equal(read_pod(&r, POD("\"off\":\"1\"", "True"), &out), STORE_CHANGED);
    assert_int_equal(r.reported, 2);
    label_filter_free(r.targets.filter);
    store_free(r.store);
    object_targets_done(&r.targets);
    labels_builder_free(r.builder);
}
