/* One kubernetes source from the objects of the API server to its groups, without a server: fakes
 * that the test feeds replace the reflectors. */
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "discovery/callbacks.h"
#include "discovery/kubernetes/kubernetes.h"
#include "discovery/kubernetes/object.h"
#include "discovery/kubernetes/roles.h"

#define SLOTS 16

/* ---- fake reflectors ------------------------------------------------------------------------- */

struct reflector {
    const struct kube_resource *resource;
    char namespace[64]; /* "" for all */
    char selectors[256];
    struct reflector_listener *listener;
    size_t n_relists;
};

struct world {
    struct reflector slots[SLOTS];
    size_t n_slots;
    const char *in; /* the namespace whose lists are fed; NULL: there is only one */
    struct intern *intern;
    struct discovery_counters counters;
    struct kubernetes *k;
    struct reflectors all; /* its first "reflector" is this world */
    struct buf reported;   /* "source: address and labels that begin with `show`" */
    const char *show;
    struct metrics *metrics;
    struct testing_log *log;
    const char *ours; /* last digits of the addresses that are ours */
    size_t n_counts;  /* calls of on_counts */
    size_t n_keys;    /* calls of sharing_key */
    size_t n_reported;
    size_t n_gone;
};

struct reflector *reflectors_get(struct reflectors *all, const struct reflector_options *options)
{
    struct world *w = (struct world *)(void *)all->first;
    assert_true(w->n_slots < SLOTS);
    struct reflector *r = &w->slots[w->n_slots++];
    r->resource = options->resource;
    snprintf(r->namespace, sizeof(r->namespace), "%s",
             options->namespace == NULL ? "" : options->namespace);
    snprintf(r->selectors, sizeof(r->selectors), "%s", options->selectors);
    return r;
}

void reflector_listen(struct reflector *r, struct reflector_listener *listener)
{
    r->listener = listener;
}

void reflector_follow(struct reflector *r, struct reflector_listener *listener)
{
    assert_ptr_equal(r->listener, listener);
}

void reflector_unlisten(struct reflector *r, struct reflector_listener *listener)
{
    assert_ptr_equal(r->listener, listener);
    r->listener = NULL;
}

void reflector_relist(struct reflector *r, int64_t within_ms)
{
    CHECK_INT(within_ms, 77, "");
    r->n_relists++;
}

enum source_state reflector_state(const struct reflector *r, struct buf *why)
{
    (void)r;
    (void)why;
    return SOURCE_WORKS;
}

/* ---- the source ------------------------------------------------------------------------------ */

static void print_target(struct world *w, const struct labels *target)
{
    buf_printf(&w->reported, " %.*s", SV_ARG(labels_get(target, SV(LABEL_ADDRESS))));
    for (size_t i = 0; w->show != NULL && i < labels_count(target); i++) {
        struct label l = labels_at(target, i);
        if (sv_starts_with(l.name, sv_from(w->show))) {
            buf_printf(&w->reported, " %.*s=%.*s", SV_ARG(l.name), SV_ARG(l.value));
        }
    }
}

static void on_change(void *arg, const struct target_group *group)
{
    struct world *w = arg;
    bool armed = failing_malloc_pause();
    w->n_reported++;
    w->n_gone += group->n_targets == 0 ? 1 : 0;
    CHECK_INT(group->pinned_host != NULL, group->kind == GROUP_POD && group->n_targets > 0,
              group->source);
    CHECK_INT(group->kind, strncmp(group->source, "pod/", 4) == 0 ? GROUP_POD : GROUP_OBJECT,
              group->source);
    buf_printf(&w->reported, "%s%s:", group->moved ? "moved " : "", group->source);
    for (size_t i = 0; i < group->n_targets; i++) {
        print_target(w, group->targets[i]);
    }
    buf_putc(&w->reported, '\n');
    failing_malloc_resume(armed);
}

static uint64_t sharing_key(void *arg, const char *ip)
{
    ((struct world *)arg)->n_keys++;
    return (uint64_t)ip[strlen(ip) - 1];
}

static bool sharing_is_assigned(void *arg, uint64_t key)
{
    return strchr(((struct world *)arg)->ours, (int)key) != NULL;
}

static void on_counts(void *arg)
{
    ((struct world *)arg)->n_counts++;
}

static void setup_shared(struct world *w, const struct config_kubernetes *config,
                         const struct discovery_sharing *sharing)
{
    *w = (struct world){.intern = intern_new(), .ours = ""};
    w->metrics = metrics_new();
    w->log = testing_log_new();
    discovery_counters_init(&w->counters, w->metrics);
    w->all.first = (struct reflector *)(void *)w;
    w->all.env.counters = &w->counters;
    w->all.env.log = testing_log(w->log);
    buf_init(&w->reported, 1 << 20);
    struct err err = ERR_INIT;
    w->k = kubernetes_new(&(struct kubernetes_options){.config = config,
                                                       .access = {.namespace = "own-ns"},
                                                       .reflectors = &w->all,
                                                       .intern = w->intern,
                                                       .on_change = on_change,
                                                       .sharing = sharing,
                                                       .on_counts = on_counts,
                                                       .arg = w},
                          &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(w->k);
}

static void setup(struct world *w, const struct config_kubernetes *config)
{
    setup_shared(w, config, NULL);
}

static void teardown(struct world *w)
{
    kubernetes_free(w->k);
    intern_free(w->intern);
    metrics_free(w->metrics);
    testing_log_done(w->log);
    buf_done(&w->reported);
}
SCOPED_VALUE(world, teardown)

/* The reflector of a resource, in the namespace w->in if there are several. */
static struct reflector *slot(struct world *w, const struct kube_resource *resource)
{
    for (size_t i = 0; i < w->n_slots; i++) {
        const char *namespace = w->slots[i].namespace;
        if (w->slots[i].resource == resource &&
            (w->in == NULL || namespace[0] == '\0' || strcmp(namespace, w->in) == 0)) {
            return &w->slots[i];
        }
    }
    fail_msg("no reflector was requested for %s", resource->plural);
    return NULL;
}

/* text: JSON with ' for ". */
static enum store_result feed(struct world *w, const struct kube_resource *resource, bool deleted,
                              const char *text)
{
    SCOPED_MEMORY char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    SCOPED(test_object) object;
    test_object_read(&object, copy, resource->rows, true);
    struct object_id id;
    assert_true(object_identify(&object.object, resource->kind, resource->namespaced, &id));
    struct reflector_listener *l = slot(w, resource)->listener;
    enum store_result result = l->object(l->arg, &id, deleted ? NULL : &object.object);
    return result;
}

static void list_begin(struct world *w, const struct kube_resource *resource)
{
    struct reflector_listener *l = slot(w, resource)->listener;
    l->list_begin(l->arg);
}

static void list_end(struct world *w, const struct kube_resource *resource)
{
    struct reflector_listener *l = slot(w, resource)->listener;
    l->list_end(l->arg);
}

/* A list of one object, or of none. */
static void list(struct world *w, const struct kube_resource *resource, const char *text)
{
    list_begin(w, resource);
    if (text != NULL) {
        feed(w, resource, false, text);
    }
    list_end(w, resource);
}

static void check_reported(struct world *w, const char *want, const char *row)
{
    CHECK_STR(w->reported.data, want, row);
    buf_clear(&w->reported);
}

/* ---- objects --------------------------------------------------------------------------------- */

#define POD_ON(node)                                                                               \
    "{'kind':'Pod','metadata':{'namespace':'default','name':'p','uid':'1'},'spec':{'nodeName':"    \
    "'" node "','containers':[{'name':'c','ports':[{'containerPort':80}]}]},"                      \
    "'status':{'podIP':'10.0.0.1'}}"
#define NODE(name, value)                                                                          \
    "{'kind':'Node','metadata':{'name':'" name "','labels':{'node-type':'" value "'}}}"
#define NODE_LABELS(name, value)                                                                   \
    " __meta_kubernetes_node_label_node_type=" value                                               \
    " __meta_kubernetes_node_labelpresent_node_type=true __meta_kubernetes_node_name=" name

/* ---- pods ------------------------------------------------------------------------------------ */

/* Named namespaces and our own one are read, each once; nodes are read everywhere. */
TEST(test_namespaces)
{
    const char *names[] = {"ns1", "ns2", "ns1"};
    static const struct {
        size_t n;
        bool own;
        const char *want;
    } cases[] = {
        {0, false, "pods: nodes: "},
        {3, false, "pods:ns1 pods:ns2 nodes: "},
        {0, true, "pods:own-ns nodes: "},
        {3, true, "pods:ns1 pods:ns2 pods:own-ns nodes: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_kubernetes config = {.role = ROLE_POD,
                                           .attach_node = true,
                                           .own_namespace = cases[i].own,
                                           .namespaces = {names, cases[i].n}};
        SCOPED(world) w;
        setup(&w, &config);
        SCOPED(buf) got = testing_buf(1 << 16);
        for (int pods = 1; pods >= 0; pods--) {
            for (size_t k = 0; k < w.n_slots; k++) {
                if ((w.slots[k].resource == &kube_pods.resource) == (pods == 1)) {
                    buf_printf(&got, "%s:%s ", pods == 1 ? "pods" : "nodes", w.slots[k].namespace);
                }
            }
        }
        CHECK_STR(got.data, cases[i].want, "");
    }
}

/* A deleted pod is reported as a group without targets, and so is a pod without an IP. */
TEST(test_pod_goes)
{
    struct config_kubernetes config = {.role = ROLE_POD};
    SCOPED(world) w;
    setup(&w, &config);
    list(&w, &kube_pods.resource, POD_ON("n"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80\n", "");
    CHECK_INT(feed(&w, &kube_pods.resource, true, POD_ON("n")), STORE_CHANGED, "");
    check_reported(&w, "pod/default/p:\n", "");
    CHECK_INT(feed(&w, &kube_pods.resource, true, POD_ON("n")), STORE_UNCHANGED, "once");
    feed(&w, &kube_pods.resource, false, POD_ON("n"));
    feed(&w, &kube_pods.resource, false,
         "{'kind':'Pod','metadata':{'namespace':'default','name':'p','uid':'1'},'spec':{},"
         "'status':{}}");
    check_reported(&w, "pod/default/p: 10.0.0.1:80\npod/default/p:\n", "");
    CHECK_INT(kubernetes_counts(w.k).reported, 0, "");
}

/* A pod has the labels of its node, which change with the node; without the node it has no targets.
 */
TEST(test_node_of_pod)
{
    struct config_kubernetes config = {.role = ROLE_POD, .attach_node = true};
    SCOPED(world) w;
    setup(&w, &config);
    w.show = "__meta_kubernetes_node_";
    list(&w, &kube_pods.resource, POD_ON("testnode"));
    check_reported(&w, "", "half-joined labels would come and go");
    list(&w, &kube_node_metadata, NODE("testnode", "v1"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("testnode", "v1") "\n", "");
    feed(&w, &kube_node_metadata, false, NODE("testnode", "v2"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("testnode", "v2") "\n", "");
    feed(&w, &kube_node_metadata, true, NODE("testnode", "v2"));
    check_reported(&w, "pod/default/p:\n", "not known any more");
}

/* A selector for nodes applies to the request for nodes; pods on other nodes have no targets. */
TEST(test_node_selector)
{
    struct config_selector selector = {.role = ROLE_NODE, .label = "node-type=worker"};
    struct config_kubernetes config = {
        .role = ROLE_POD, .attach_node = true, .selectors = &selector, .n_selectors = 1};
    SCOPED(world) w;
    setup(&w, &config);
    CHECK_STR(slot(&w, &kube_node_metadata)->selectors, "labelSelector=node-type%3Dworker", "");
    CHECK_STR(slot(&w, &kube_pods.resource)->selectors, "", "");
    w.show = "__meta_kubernetes_node_";
    list(&w, &kube_node_metadata, NODE("good", "worker"));
    list(&w, &kube_pods.resource, POD_ON("good"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("good", "worker") "\n", "");
    feed(&w, &kube_pods.resource, false, POD_ON("filtered"));
    check_reported(&w, "pod/default/p:\n", "");
}

/* A pod has the labels and annotations of its namespace, which change with the namespace. */
TEST(test_namespace_of_pod)
{
    struct config_kubernetes config = {.role = ROLE_POD, .attach_namespace = true};
    SCOPED(world) w;
    setup(&w, &config);
    w.show = "__meta_kubernetes_namespace_";
#define NAMESPACE(tier)                                                                            \
    "{'kind':'Namespace','metadata':{'name':'default','labels':{'tier':'" tier                     \
    "'},'annotations':{'maintainer':'devops'}}}"
#define WITH(tier)                                                                                 \
    "pod/default/p: 10.0.0.1:80 __meta_kubernetes_namespace_annotation_maintainer=devops "         \
    "__meta_kubernetes_namespace_annotationpresent_maintainer=true "                               \
    "__meta_kubernetes_namespace_label_tier=" tier                                                 \
    " __meta_kubernetes_namespace_labelpresent_tier=true\n"
    list(&w, &kube_namespaces, NAMESPACE("frontend"));
    list(&w, &kube_pods.resource, POD_ON("n"));
    check_reported(&w, WITH("frontend"), "");
    feed(&w, &kube_namespaces, false, NAMESPACE("backend"));
    check_reported(&w, WITH("backend"), "");
}

/* ---- namespaces that cannot be read ---------------------------------------------------------- */

/* The objects of one namespace: a pod, and an Endpoints object and a slice that refer to it. */
#define IN(namespace, kind, rest)                                                                  \
    "{'kind':'" kind "','metadata':{'namespace':'" namespace "','name':'x'}," rest "}"
#define POD_IN(namespace)                                                                          \
    IN(namespace, "Pod",                                                                           \
       "'spec':{'nodeName':'n','containers':[{'name':'c','ports':[{'containerPort':80}]}]},"       \
       "'status':{'podIP':'10.0.0.1'}")
#define ENDPOINTS_IN(namespace)                                                                    \
    IN(namespace, "Endpoints",                                                                     \
       "'subsets':[{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':80}]}]")
#define SLICE_IN(namespace)                                                                        \
    IN(namespace, "EndpointSlice",                                                                 \
       "'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1']}],'ports':[{'port':80}]")

static void list_namespace(struct world *w, enum config_role role, const char *namespace)
{
    static const char *const objects[CONFIG_ROLES][2] = {
        [ROLE_POD] = {POD_IN("a"), POD_IN("b")},
        [ROLE_ENDPOINTS] = {ENDPOINTS_IN("a"), ENDPOINTS_IN("b")},
        [ROLE_ENDPOINTSLICE] = {SLICE_IN("a"), SLICE_IN("b")},
    };
    w->in = namespace;
    list(w, &kube_role(role)->resource, objects[role][namespace[0] - 'a']);
    if (role != ROLE_POD) {
        list(w, &kube_pods.resource, NULL);
        list(w, &kube_services.resource, NULL);
    }
}

/* A namespace that cannot be read, wholly or in part, does not keep the targets of another one
 * back, whatever is joined. When it can be read later, it is there. */
TEST(test_namespaces_do_not_wait)
{
    const char *names[] = {"a", "b"};
    static const struct {
        enum config_role role;
        bool node, namespace;
        const char *name;
    } cases[] = {
        {ROLE_POD, true, false, "pod"},
        {ROLE_POD, false, true, "pod"},
        {ROLE_ENDPOINTS, false, false, "endpoints"},
        {ROLE_ENDPOINTS, true, true, "endpoints"},
        {ROLE_ENDPOINTSLICE, false, false, "endpointslice"},
        {ROLE_ENDPOINTSLICE, true, true, "endpointslice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_kubernetes config = {.role = cases[i].role,
                                           .attach_node = cases[i].node,
                                           .attach_namespace = cases[i].namespace,
                                           .namespaces = {names, 2}};
        char want[64];
        SCOPED(world) w;
        setup(&w, &config);
        if (cases[i].node) {
            list(&w, &kube_node_metadata, NODE("n", "v"));
        }
        list_namespace(&w, cases[i].role, "b");
        if (cases[i].namespace) {
            check_reported(&w, "", "the cluster's lists are needed by all");
            list(&w, &kube_namespaces, NULL);
        }
        snprintf(want, sizeof(want), "%s/b/x: 10.0.0.1:80\n", cases[i].name);
        check_reported(&w, want, cases[i].name);
        if (cases[i].role != ROLE_POD) {
            w.in = "a";
            list(&w, &kube_pods.resource, NULL);
            check_reported(&w, "", "one of its lists is not enough");
        }
        list_namespace(&w, cases[i].role, "a");
        snprintf(want, sizeof(want), "%s/a/x: 10.0.0.1:80\n", cases[i].name);
        check_reported(&w, want, "allowed later");
    }
}

/* A group that lacked memory when the last list ended is reported with the next event, whatever
 * that is about. */
TEST(test_no_memory_for_all)
{
    bool failed = true;
    size_t n = 0;
    for (; failed; n++) {
        struct config_kubernetes config = {.role = ROLE_ENDPOINTS};
        SCOPED(world) w;
        setup(&w, &config);
        list(&w, &kube_services.resource, NULL);
        list(&w, &kube_endpoints.resource, ENDPOINTS_IN("a"));
        list_begin(&w, &kube_pods.resource);
        failing_malloc(FAIL_OURS, n);
        list_end(&w, &kube_pods.resource);
        failed = failing_malloc_stop();
        feed(&w, &kube_pods.resource, false, POD_IN("b"));
        check_reported(&w, "endpoints/a/x: 10.0.0.1:80\n", failed ? "after a failure" : "without");
    }
    assert_in_range(n, 2, 1000);
}

/* ---- references ------------------------------------------------------------------------------ */

#define SLICE_FOR(namespace, pod)                                                                  \
    "{'kind':'EndpointSlice','metadata':{'namespace':'a','name':'s'},'addressType':'IPv4',"        \
    "'endpoints':[{'addresses':['10.0.0.1'],'targetRef':{'kind':'Pod','name':'" pod                \
    "'" namespace "}}],'ports':[{'port':80}]}"

/* A slice refers to a pod in the namespace that the reference names. Where namespaces are listed
 * one by one, those of another one are not joined. */
TEST(test_namespace_of_reference)
{
    const char *names[] = {"a", "b"};
    static const struct {
        size_t n_names;
        const char *slice, *want;
    } cases[] = {
        {0, SLICE_FOR(",'namespace':'b'", "x"), " __meta_kubernetes_pod_name=x"},
        {0, SLICE_FOR(",'namespace':'a'", "x"), ""},
        {0, SLICE_FOR("", "x"), ""},
        {2, SLICE_FOR(",'namespace':'b'", "x"), ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE,
                                           .namespaces = {names, cases[i].n_names}};
        SCOPED(world) w;
        setup(&w, &config);
        w.show = "__";
        for (size_t k = 0; k < 2; k++) {
            w.in = names[k];
            list(&w, &kube_services.resource, NULL);
            list(&w, &kube_pods.resource, POD_IN("b"));
        }
        w.in = "a";
        list(&w, &kube_endpointslices.resource, cases[i].slice);
        bool joined = strstr(w.reported.data, " __meta_kubernetes_pod_name=x") != NULL;
        CHECK_INT(joined, cases[i].want[0] != '\0', cases[i].slice);
        assert_null(strstr(w.reported.data, "ref_namespace"));
        CHECK_CONTAINS(w.reported.data, "endpointslice/a/s: 10.0.0.1:80", cases[i].slice);
    }
}

/* ---- too many labels ------------------------------------------------------------------------- */

/* A pod with so many labels that its targets cannot have them; the caller frees it. */
static char *big_pod(const char *name, int labels)
{
    struct buf text = testing_buf(1 << 20);
    buf_printf(&text, "{'kind':'Pod','metadata':{'namespace':'a','name':'%s','labels':{", name);
    for (int i = 0; i < labels; i++) {
        buf_printf(&text, "%s'l%d':'v'", i == 0 ? "" : ",", i);
    }
    buf_puts(&text, "}},'spec':{'nodeName':'n','containers':[{'name':'c','ports':[{"
                    "'containerPort':80}]}]},'status':{'podIP':'10.0.0.2'}}");
    return buf_take(&text, NULL);
}

#define TWO_PODS                                                                                   \
    "{'kind':'EndpointSlice','metadata':{'namespace':'a','name':'s','labels':{'one':'1',"          \
    "'two':'2'}},'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1'],'targetRef':{"        \
    "'kind':'Pod','name':'x','namespace':'a'}},{'addresses':['10.0.0.2'],'targetRef':{'kind':"     \
    "'Pod','name':'big','namespace':'a'}}],'ports':[{'port':80}]}"

/* A pod with more labels than a target may have costs its own targets only, and is named: whether
 * it has them alone (600 labels are 1,200) or only together with those of the slice. */
TEST(test_too_many_labels)
{
    static const struct {
        int labels;
        const char *objects; /* skipped, as a whole */
        const char *named;
    } cases[] = {
        {600, "1", "kind=Pod name=a/big source=endpointslice"},
        {505, "0", "kind=Pod name=big source=endpointslice/a/s"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE};
        SCOPED(world) w;
        setup(&w, &config);
        testing_log_expect(w.log, "too many labels and annotations");
        list(&w, &kube_services.resource, NULL);
        list_begin(&w, &kube_pods.resource);
        SCOPED_MEMORY char *big = big_pod("big", cases[i].labels);
        feed(&w, &kube_pods.resource, false, POD_IN("a"));
        feed(&w, &kube_pods.resource, false, big);
        list_end(&w, &kube_pods.resource);
        list(&w, &kube_endpointslices.resource, TWO_PODS);
        check_reported(&w, "endpointslice/a/s: 10.0.0.1:80\n", cases[i].named);
        CHECK_CONTAINS(testing_log_text(w.log), cases[i].named, "");
        CHECK_INT(
            testing_metric(w.metrics,
                           "profpull_discovery_targets_skipped_total{reason=\"too_many_labels\"}"),
            1, cases[i].named);
        CHECK_INT(
            testing_metric(w.metrics,
                           "profpull_discovery_objects_skipped_total{reason=\"too_many_labels\"}"),
            cases[i].objects[0] - '0', cases[i].named);
        feed(&w, &kube_pods.resource, false, big);
        CHECK_INT(
            testing_metric(w.metrics,
                           "profpull_discovery_objects_skipped_total{reason=\"too_many_labels\"}"),
            cases[i].objects[0] - '0', "not again while nothing changes");
        free(big);
        big = big_pod("big", 5);
        feed(&w, &kube_pods.resource, false, big);
        check_reported(&w, "endpointslice/a/s: 10.0.0.1:80 10.0.0.2:80\n", "fewer");
    }
}

/* The same for a pod on its own: it is named. */
TEST(test_too_many_labels_of_pod)
{
    for (int attach = 0; attach < 2; attach++) {
        struct config_kubernetes config = {.role = ROLE_POD, .attach_node = attach == 1};
        SCOPED(world) w;
        setup(&w, &config);
        testing_log_expect(w.log, "too many labels and annotations");
        if (attach == 1) {
            list(&w, &kube_node_metadata, NODE("n", "v"));
        }
        SCOPED_MEMORY char *big = big_pod("big", 600);
        list_begin(&w, &kube_pods.resource);
        feed(&w, &kube_pods.resource, false, POD_IN("a"));
        feed(&w, &kube_pods.resource, false, big);
        list_end(&w, &kube_pods.resource);
        check_reported(&w, "pod/a/x: 10.0.0.1:80\n", "");
        CHECK_CONTAINS(testing_log_text(w.log), "kind=Pod name=a/big source=pod", "");
    }
}

/* ---- slices ---------------------------------------------------------------------------------- */

#define SLICE(family, address)                                                                     \
    "{'kind':'EndpointSlice','metadata':{'namespace':'default','name':'s-" family                  \
    "','labels':{'kubernetes.io/service-name':'svc'}},'addressType':'" family                      \
    "','endpoints':[{'addresses':['" address "']}],'ports':[{'port':80}]}"
#define SERVICE(label, spec)                                                                       \
    "{'kind':'Service','metadata':{'namespace':'default','name':'svc','labels':{'app':'" label     \
    "'}},'spec':{" spec "}}"

static void setup_slices(struct world *w, const struct config_kubernetes *config,
                         const char *service)
{
    setup(w, config);
    list(w, &kube_services.resource, service);
    list(w, &kube_pods.resource, NULL);
    list_begin(w, &kube_endpointslices.resource);
    feed(w, &kube_endpointslices.resource, false, SLICE("IPv4", "10.0.0.1"));
    feed(w, &kube_endpointslices.resource, false, SLICE("IPv6", "fd00::1"));
    feed(w, &kube_endpointslices.resource, false, SLICE("FQDN", "web.example"));
    list_end(w, &kube_endpointslices.resource);
}

/* Slices of a dual-stack service have targets only if they are of its first family: those of names
 * (FQDN) have none. */
TEST(test_dual_stack)
{
    static const struct {
        const char *spec;
        bool v4, v6, names;
    } cases[] = {
        {"'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4','IPv6']", true, false, false},
        {"'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv6','IPv4']", false, true, false},
        {"'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv4','IPv6']", true, false, false},
        {"'ipFamilyPolicy':'PreferDualStack'", true, true, true},
        {"'ipFamilyPolicy':'SingleStack','ipFamilies':['IPv6']", true, true, true},
        {"'ipFamilies':['IPv6']", true, true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char service[512];
        snprintf(service, sizeof(service), SERVICE("x", "%s"), cases[i].spec);
        struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE};
        SCOPED(world) w;
        setup_slices(&w, &config, service);
        bool v4 = strstr(w.reported.data, "endpointslice/default/s-IPv4: 10.0.0.1:80\n") != NULL;
        bool v6 = strstr(w.reported.data, "endpointslice/default/s-IPv6: [fd00::1]:80\n") != NULL;
        CHECK_INT(v4, cases[i].v4, cases[i].spec);
        bool names =
            strstr(w.reported.data, "endpointslice/default/s-FQDN: web.example:80\n") != NULL;
        CHECK_INT(v6, cases[i].v6, cases[i].spec);
        CHECK_INT(names, cases[i].names, cases[i].spec);
    }
}

/* A changed label of a service is reported with each of its slices. */
TEST(test_service_changes)
{
    struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE};
    SCOPED(world) w;
    setup_slices(&w, &config, SERVICE("old", ""));
    buf_clear(&w.reported);
    w.show = "__meta_kubernetes_service_label_";
    feed(&w, &kube_services.resource, false, SERVICE("new", ""));
    CHECK_CONTAINS(w.reported.data,
                   "endpointslice/default/s-IPv4: 10.0.0.1:80 "
                   "__meta_kubernetes_service_label_app=new\n",
                   "");
    CHECK_CONTAINS(w.reported.data,
                   "endpointslice/default/s-IPv6: [fd00::1]:80 "
                   "__meta_kubernetes_service_label_app=new\n",
                   "");
}

/* ---- many ------------------------------------------------------------------------------------ */

static void format_pod(char *out, size_t size, int i, int heartbeat)
{
    snprintf(out, size,
             "{'kind':'Pod','metadata':{'namespace':'n','name':'p%d','uid':'%d',"
             "'resourceVersion':'%d'},'spec':{'containers':[{'name':'c','ports':["
             "{'containerPort':80}]}]},'status':{'podIP':'10.0.0.1','phase':'Running',"
             "'conditions':[{'type':'Ready','status':'True','lastProbeTime':'%d'}]}}",
             i, i, heartbeat, heartbeat);
}

static void list_pods(struct world *w, int from, int to)
{
    char text[512];
    list_begin(w, &kube_pods.resource);
    for (int i = from; i < to; i++) {
        format_pod(text, sizeof(text), i, 1);
        feed(w, &kube_pods.resource, false, text);
    }
    list_end(w, &kube_pods.resource);
}

/* 7,000 of 10,000 pods that vanish at once are reported once each, the others not at all, and
 * nothing before the new list is complete. */
TEST(test_many_vanish)
{
    struct config_kubernetes config = {.role = ROLE_POD};
    SCOPED(world) w;
    setup(&w, &config);
    list_pods(&w, 0, 10000);
    CHECK_INT(w.n_reported, 10000, "");
    w.n_reported = 0;
    list_begin(&w, &kube_pods.resource);
    char text[512];
    for (int i = 7000; i < 10000; i++) {
        format_pod(text, sizeof(text), i, 2);
        feed(&w, &kube_pods.resource, false, text);
    }
    CHECK_INT(w.n_reported, 0, "the list is not complete");
    list_end(&w, &kube_pods.resource);
    CHECK_INT(w.n_reported, 7000, "");
    CHECK_INT(w.n_gone, 7000, "");
    CHECK_INT(kubernetes_counts(w.k).reported, 3000, "");
}

/* Updates that change no label, such as heartbeats, are not reported. */
TEST(test_heartbeats)
{
    struct config_kubernetes config = {.role = ROLE_POD};
    SCOPED(world) w;
    setup(&w, &config);
    list_pods(&w, 0, 500);
    w.n_reported = 0;
    char text[512];
    for (int i = 0; i < 2000; i++) {
        format_pod(text, sizeof(text), i % 500, 100 + i);
        CHECK_INT(feed(&w, &kube_pods.resource, false, text), STORE_UNCHANGED, "");
    }
    CHECK_INT(w.n_reported, 0, "");
}

/* ---- pods of other replicas ------------------------------------------------------------------ */

#define SHARED_POD(name, ip)                                                                       \
    "{'kind':'Pod','metadata':{'namespace':'ns','name':'" name "','uid':'1'},"                     \
    "'spec':{'containers':[{'name':'c','ports':[{'containerPort':80}]}]},"                         \
    "'status':{'podIP':'" ip "'}}"

static void check_shares(struct world *w, size_t reported, size_t foreign, size_t pending,
                         const char *row)
{
    CHECK_INT(kubernetes_counts(w->k).reported, reported, row);
    CHECK_INT(kubernetes_counts(w->k).foreign, foreign, row);
    CHECK_INT(kubernetes_counts(w->k).pending, pending, row);
}

/* Pods that are ours are reported, those that become ours when they are listed again; those that we
 * lose are removed at once; and the owner of a pod follows from its address. */
TEST(test_shares)
{
    struct config_kubernetes config = {.role = ROLE_POD};
    SCOPED(world) w;
    struct discovery_sharing sharing = {
        .key = sharing_key, .is_assigned = sharing_is_assigned, .arg = &w};
    setup_shared(&w, &config, &sharing);
    w.ours = "1";
    list_begin(&w, &kube_pods.resource);
    feed(&w, &kube_pods.resource, false, SHARED_POD("a", "10.0.0.1"));
    feed(&w, &kube_pods.resource, false, SHARED_POD("b", "10.0.0.2"));
    feed(&w, &kube_pods.resource, false, SHARED_POD("c", ""));
    feed(&w, &kube_pods.resource, false, SHARED_POD("d", "none"));
    list_end(&w, &kube_pods.resource);
    check_reported(&w, "pod/ns/a: 10.0.0.1:80\n", "only ours");
    check_shares(&w, 1, 1, 0, "pods without an address have no owner");
    CHECK_INT(w.n_counts, 1, "");
    CHECK_INT(feed(&w, &kube_pods.resource, false, SHARED_POD("b", "10.0.0.2")), STORE_UNCHANGED,
              "an update of a foreign pod");
    kubernetes_reassign(w.k, 77);
    CHECK_INT(w.slots[0].n_relists, 0, "nothing has moved");

    w.ours = "12";
    kubernetes_reassign(w.k, 77);
    CHECK_INT(w.slots[0].n_relists, 1, "a gain");
    check_reported(&w, "", "not known yet");
    check_shares(&w, 1, 0, 1, "a gain");
    list_begin(&w, &kube_pods.resource);
    feed(&w, &kube_pods.resource, false, SHARED_POD("a", "10.0.0.1"));
    feed(&w, &kube_pods.resource, false, SHARED_POD("b", "10.0.0.2"));
    list_end(&w, &kube_pods.resource);
    check_reported(&w, "moved pod/ns/b: 10.0.0.2:80\n", "listed");
    check_shares(&w, 2, 0, 0, "listed");

    w.ours = "2";
    kubernetes_reassign(w.k, 77);
    CHECK_INT(w.slots[0].n_relists, 1, "no list for a loss");
    check_reported(&w, "pod/ns/a:\n", "a loss");
    check_shares(&w, 1, 1, 0, "a loss");

    CHECK_INT(feed(&w, &kube_pods.resource, false, SHARED_POD("b", "10.0.0.1")), STORE_CHANGED,
              "its address is another one's");
    check_reported(&w, "pod/ns/b:\n", "its address is another one's");
    feed(&w, &kube_pods.resource, false, SHARED_POD("b", "10.0.0.2"));
    check_reported(&w, "moved pod/ns/b: 10.0.0.2:80\n", "and ours again");
    feed(&w, &kube_pods.resource, true, SHARED_POD("a", "10.0.0.1"));
    feed(&w, &kube_pods.resource, false, SHARED_POD("b", ""));
    check_reported(&w, "pod/ns/b:\n", "the one that was reported is removed");
    check_shares(&w, 0, 0, 0, "all gone");
}

/* Where the owner does not follow from the pod alone, everything is reported. */
TEST(test_not_shared)
{
    struct world w;
    struct discovery_sharing sharing = {
        .key = sharing_key, .is_assigned = sharing_is_assigned, .arg = &w};
    struct config_kubernetes joined = {.role = ROLE_POD, .attach_node = true};
    setup_shared(&w, &joined, &sharing);
    list(&w, &kube_node_metadata, NODE("n", "x"));
    list(&w, &kube_pods.resource, POD_ON("n"));
    kubernetes_reassign(w.k, 77);
    check_reported(&w, "pod/default/p: 10.0.0.1:80\n", "what is joined");
    CHECK_INT(w.n_keys + w.n_counts, 0, "no key is computed");
    check_shares(&w, 1, 0, 0, "");
    teardown(&w);
    struct config_kubernetes nodes = {.role = ROLE_NODE};
    setup_shared(&w, &nodes, &sharing);
    list(&w, &kube_nodes.resource,
         "{'kind':'Node','metadata':{'name':'n'},'status':{'addresses':[{'type':'InternalIP',"
         "'address':'10.0.0.1'}],'daemonEndpoints':{'kubeletEndpoint':{'Port':80}}}}");
    kubernetes_reassign(w.k, 77);
    check_reported(&w, "node/n: 10.0.0.1:80\n", "another role");
    teardown(&w);
}
