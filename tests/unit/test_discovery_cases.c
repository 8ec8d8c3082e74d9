/* One kubernetes source from the objects of the API server to its groups, without a server: fakes
 * that the test feeds replace the reflectors. */
#include "tests/unit/testing.h"

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
    struct intern *intern;
    struct discovery_counters counters;
    struct kubernetes *k;
    struct reflectors all; /* its first "reflector" is this world */
    struct buf reported;   /* "source: address and labels that begin with `show`" */
    const char *show;
    bool synced;
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

void reflector_relist(struct reflector *r, int64_t within_ms)
{
    CHECK_INT(within_ms, 77, "");
    r->n_relists++;
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
    w->n_reported++;
    w->n_gone += group->n_targets == 0 ? 1 : 0;
    CHECK_INT(group->pinned_host != NULL, group->kind == GROUP_POD && group->n_targets > 0,
              group->source);
    buf_printf(&w->reported, "%s%s:", group->moved ? "moved " : "", group->source);
    for (size_t i = 0; i < group->n_targets; i++) {
        print_target(w, group->targets[i]);
    }
    buf_putc(&w->reported, '\n');
}

static void on_synced(void *arg)
{
    ((struct world *)arg)->synced = true;
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
    w->all.first = (struct reflector *)(void *)w;
    w->all.env.counters = &w->counters;
    buf_init(&w->reported, 1 << 20);
    struct err err = ERR_INIT;
    w->k = kubernetes_new(&(struct kubernetes_options){.config = config,
                                                       .access = {.namespace = "own-ns"},
                                                       .reflectors = &w->all,
                                                       .intern = w->intern,
                                                       .on_change = on_change,
                                                       .sharing = sharing,
                                                       .on_counts = on_counts,
                                                       .on_synced = on_synced,
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
    buf_done(&w->reported);
}

static struct reflector *slot(struct world *w, const struct kube_resource *resource)
{
    for (size_t i = 0; i < w->n_slots; i++) {
        if (w->slots[i].resource == resource) {
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
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    json_t *object = json_loads(copy, 0, NULL);
    assert_non_null(object);
    struct object_id id;
    assert_true(object_identify(object, resource->kind, resource->namespaced, &id));
    struct reflector_listener *l = slot(w, resource)->listener;
    enum store_result result = l->object(l->arg, &id, deleted ? NULL : object);
    json_decref(object);
    free(copy);
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
static void test_namespaces(void **state)
{
    (void)state;
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
        struct world w;
        setup(&w, &config);
        struct buf got;
        buf_init(&got, 1 << 16);
        for (int pods = 1; pods >= 0; pods--) {
            for (size_t k = 0; k < w.n_slots; k++) {
                if ((w.slots[k].resource == &kube_pods.resource) == (pods == 1)) {
                    buf_printf(&got, "%s:%s ", pods == 1 ? "pods" : "nodes", w.slots[k].namespace);
                }
            }
        }
        CHECK_STR(got.data, cases[i].want, "");
        buf_done(&got);
        teardown(&w);
    }
}

/* A deleted pod is reported as a group without targets, and so is a pod without an IP. */
static void test_pod_goes(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD};
    struct world w;
    setup(&w, &config);
    list(&w, &kube_pods.resource, POD_ON("n"));
    assert_true(w.synced);
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
    teardown(&w);
}

/* A pod has the labels of its node, which change with the node; without the node it has no targets.
 */
static void test_node_of_pod(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD, .attach_node = true};
    struct world w;
    setup(&w, &config);
    w.show = "__meta_kubernetes_node_";
    list(&w, &kube_pods.resource, POD_ON("testnode"));
    check_reported(&w, "", "half-joined labels would come and go");
    list(&w, &kube_nodes.resource, NODE("testnode", "v1"));
    assert_true(w.synced);
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("testnode", "v1") "\n", "");
    feed(&w, &kube_nodes.resource, false, NODE("testnode", "v2"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("testnode", "v2") "\n", "");
    feed(&w, &kube_nodes.resource, true, NODE("testnode", "v2"));
    check_reported(&w, "pod/default/p:\n", "not known any more");
    teardown(&w);
}

/* A selector for nodes applies to the request for nodes; pods on other nodes have no targets. */
static void test_node_selector(void **state)
{
    (void)state;
    struct config_selector selector = {.role = ROLE_NODE, .label = "node-type=worker"};
    struct config_kubernetes config = {
        .role = ROLE_POD, .attach_node = true, .selectors = &selector, .n_selectors = 1};
    struct world w;
    setup(&w, &config);
    CHECK_STR(slot(&w, &kube_nodes.resource)->selectors, "labelSelector=node-type%3Dworker", "");
    CHECK_STR(slot(&w, &kube_pods.resource)->selectors, "", "");
    w.show = "__meta_kubernetes_node_";
    list(&w, &kube_nodes.resource, NODE("good", "worker"));
    list(&w, &kube_pods.resource, POD_ON("good"));
    check_reported(&w, "pod/default/p: 10.0.0.1:80" NODE_LABELS("good", "worker") "\n", "");
    feed(&w, &kube_pods.resource, false, POD_ON("filtered"));
    check_reported(&w, "pod/default/p:\n", "");
    teardown(&w);
}

/* A pod has the labels and annotations of its namespace, which change with the namespace. */
static void test_namespace_of_pod(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD, .attach_namespace = true};
    struct world w;
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
    teardown(&w);
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
    list_end(w, &kube_endpointslices.resource);
}

/* Of a dual-stack service only the slices of its first family have targets. */
static void test_dual_stack(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        bool v4;
        bool v6;
    } cases[] = {
        {"'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4','IPv6']", true, false},
        {"'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv6','IPv4']", false, true},
        {"'ipFamilyPolicy':'RequireDualStack','ipFamilies':['IPv4','IPv6']", true, false},
        {"'ipFamilyPolicy':'SingleStack','ipFamilies':['IPv6']", true, true},
        {"'ipFamilies':['IPv6']", true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char service[512];
        snprintf(service, sizeof(service), SERVICE("x", "%s"), cases[i].spec);
        struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE};
        struct world w;
        setup_slices(&w, &config, service);
        bool v4 = strstr(w.reported.data, "endpointslice/default/s-IPv4: 10.0.0.1:80\n") != NULL;
        bool v6 = strstr(w.reported.data, "endpointslice/default/s-IPv6: [fd00::1]:80\n") != NULL;
        CHECK_INT(v4, cases[i].v4, cases[i].spec);
        CHECK_INT(v6, cases[i].v6, cases[i].spec);
        teardown(&w);
    }
}

/* A changed label of a service is reported with each of its slices. */
static void test_service_changes(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_ENDPOINTSLICE};
    struct world w;
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
    teardown(&w);
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
static void test_many_vanish(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD};
    struct world w;
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
    teardown(&w);
}

/* Updates that change no label, such as heartbeats, are not reported. */
static void test_heartbeats(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD};
    struct world w;
    setup(&w, &config);
    list_pods(&w, 0, 500);
    w.n_reported = 0;
    char text[512];
    for (int i = 0; i < 2000; i++) {
        format_pod(text, sizeof(text), i % 500, 100 + i);
        CHECK_INT(feed(&w, &kube_pods.resource, false, text), STORE_UNCHANGED, "");
    }
    CHECK_INT(w.n_reported, 0, "");
    teardown(&w);
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
static void test_shares(void **state)
{
    (void)state;
    struct config_kubernetes config = {.role = ROLE_POD};
    struct world w;
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
    teardown(&w);
}

/* Where the owner does not follow from the pod alone, everything is reported. */
static void test_not_shared(void **state)
{
    (void)state;
    struct world w;
    struct discovery_sharing sharing = {
        .key = sharing_key, .is_assigned = sharing_is_assigned, .arg = &w};
    struct config_kubernetes joined = {.role = ROLE_POD, .attach_node = true};
    setup_shared(&w, &joined, &sharing);
    list(&w, &kube_nodes.resource, NODE("n", "x"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespaces),       cmocka_unit_test(test_pod_goes),
        cmocka_unit_test(test_node_of_pod),      cmocka_unit_test(test_node_selector),
        cmocka_unit_test(test_namespace_of_pod), cmocka_unit_test(test_dual_stack),
        cmocka_unit_test(test_service_changes),  cmocka_unit_test(test_many_vanish),
        cmocka_unit_test(test_heartbeats),       cmocka_unit_test(test_shares),
        cmocka_unit_test(test_not_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
