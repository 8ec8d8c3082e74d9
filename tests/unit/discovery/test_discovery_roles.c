/* The targets of nodes, services, ingresses, endpoints and slices, and their joined labels, are
 * those of Prometheus' kubernetes_sd. */
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "discovery/kubernetes/join.h"
#include "discovery/kubernetes/roles.h"

struct fixture {
    struct intern *intern;
    struct labels_builder *builder;
    struct object_targets targets;
    struct join *join;
    struct buf reported; /* "key:" and the targets, one per line */
    const char *ip;      /* with which pods are reported */
    uint64_t content;    /* of what is put; 0: not known */
};

/* name=value of every label, K_ for __meta_kubernetes_. */
static void print_labels(const struct labels *l, struct buf *out)
{
    for (size_t i = 0; i < labels_count(l); i++) {
        struct label label = labels_at(l, i);
        bool meta = sv_starts_with(label.name, SV(META));
        size_t cut = meta ? strlen(META) : 0;
        buf_printf(out, "%s%s%.*s=%.*s", i == 0 ? "" : " ", meta ? "K_" : "",
                   (int)(label.name.n - cut), label.name.p + cut, SV_ARG(label.value));
    }
    buf_putc(out, '\n');
}

static void on_change(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved)
{
    struct fixture *f = arg;
    CHECK_STR(ip == NULL ? "none" : ip, n == 0 || f->ip == NULL ? "none" : f->ip, key);
    assert_false(moved);
    buf_printf(&f->reported, "%s:\n", key);
    for (size_t i = 0; i < n; i++) {
        print_labels(targets[i], &f->reported);
    }
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){.intern = intern_new()};
    f->builder = labels_builder_new(f->intern);
    assert_non_null(f->builder);
    f->targets = (struct object_targets){0};
    buf_init(&f->reported, 1 << 20);
}

static void teardown(struct fixture *f)
{
    join_free(f->join);
    object_targets_done(&f->targets);
    labels_builder_free(f->builder);
    intern_free(f->intern);
    buf_done(&f->reported);
}
SCOPED_VALUE(fixture, teardown)

/* JSON with ' for ". */
static void parse(struct test_object *t, const struct kube_role *role, const char *text,
                  bool protobuf)
{
    SCOPED_MEMORY char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    test_object_read(t, copy, role->resource.rows, protobuf);
}

/* Out of both encodings. */
static void check(const struct kube_role *role, const char *text, const char *want, const char *row)
{
    for (int protobuf = 0; protobuf <= 1; protobuf++) {
        SCOPED(fixture) f;
        SCOPED(test_object) t;
        setup(&f);
        parse(&t, role, text, protobuf == 1);
        CHECK_INT(role->read(&t.object, f.builder, &f.targets), OBJECT_OK, row);
        for (size_t i = 0; i < f.targets.n; i++) {
            print_labels(f.targets.at[i], &f.reported);
        }
        CHECK_STR(f.reported.data, want, row);
    }
}

/* A node has one target at its first address in the order of types, with its conditions and
 * addresses. */
TEST(nodes)
{
    check(&kube_nodes,
          "{'kind':'Node','metadata':{'name':'test','labels':{'test-label':'x'}},"
          "'spec':{'providerID':'aws:///x'},'status':{'addresses':[{'type':'Hostname','address':"
          "'h'},{'type':'InternalIP','address':'1.2.3.4'},{'type':'InternalIP','address':'5.6.7.8'}"
          "],'conditions':[{'type':'Ready','status':'True'}],"
          "'daemonEndpoints':{'kubeletEndpoint':{'Port':10250}}}}",
          "__address__=1.2.3.4:10250 K_node_address_Hostname=h K_node_address_InternalIP=1.2.3.4 "
          "K_node_condition_ready=true K_node_label_test_label=x "
          "K_node_labelpresent_test_label=true K_node_name=test K_node_provider_id=aws:///x "
          "instance=test\n",
          "usual");
    check(&kube_nodes,
          "{'metadata':{'name':'six'},'status':{'addresses':[{'type':'ExternalDNS','address':'d'},"
          "{'type':'ExternalIP','address':'fd00::1'}],"
          "'daemonEndpoints':{'kubeletEndpoint':{'Port':1}}}}",
          "__address__=[fd00::1]:1 K_node_address_ExternalDNS=d K_node_address_ExternalIP=fd00::1 "
          "K_node_name=six instance=six\n",
          "order of addresses, IPv6");
    check(&kube_nodes, "{'metadata':{'name':'none'},'status':{}}", "", "no address");
    check(&kube_nodes,
          "{'metadata':{'name':'n'},'status':{'addresses':[{'type':'InternalIP','address':''},"
          "{'type':'Hostname','address':'h'},{'type':'InternalIP','address':'10.0.0.1'}],"
          "'daemonEndpoints':{'kubeletEndpoint':{'Port':10250}}}}",
          "__address__=10.0.0.1:10250 K_node_address_Hostname=h K_node_name=n instance=n\n",
          "the first address is empty");
    check(&kube_nodes,
          "{'metadata':{'name':'n'},'status':{'addresses':[{'type':'InternalIP','address':"
          "'10.0.0.1'}],'daemonEndpoints':{'kubeletEndpoint':{'Port':0}}}}",
          "__address__=10.0.0.1:0 K_node_address_InternalIP=10.0.0.1 K_node_name=n instance=n\n",
          "port 0");
    check(&kube_nodes,
          "{'metadata':{'name':'n'},'status':{'addresses':[{'type':'ExternalIP','address':"
          "'fd00::1'}]}}",
          "__address__=[fd00::1]:0 K_node_address_ExternalIP=fd00::1 K_node_name=n instance=n\n",
          "no port");
}

#define SVC(type, more)                                                                            \
    "{'kind':'Service','metadata':{'name':'testservice','namespace':'default'},'spec':{'ports':["  \
    "{'name':'testport','protocol':'TCP','port':30900}],'type':'" type "'," more "}"
#define SVC_TARGET "__address__=testservice.default.svc:30900 K_namespace=default K_service_"
#define SVC_PORT                                                                                   \
    "K_service_port_name=testport K_service_port_number=30900 K_service_port_protocol=TCP "

/* A service has one target for each port, with the labels of its type. */
TEST(services)
{
    check(&kube_services, SVC("ClusterIP", "'clusterIP':'10.0.0.1'}"),
          SVC_TARGET "cluster_ip=10.0.0.1 K_service_name=testservice " SVC_PORT
                     "K_service_type=ClusterIP\n",
          "ClusterIP");
    check(&kube_services, SVC("ExternalName", "'externalName':'FooExternalName'}"),
          SVC_TARGET "external_name=FooExternalName K_service_name=testservice " SVC_PORT
                     "K_service_type=ExternalName\n",
          "ExternalName");
    check(&kube_services,
          SVC("LoadBalancer", "'clusterIP':'10.0.0.1','loadBalancerIP':'127.0.0.1'}"),
          SVC_TARGET "cluster_ip=10.0.0.1 K_service_loadbalancer_ip=127.0.0.1 "
                     "K_service_name=testservice " SVC_PORT "K_service_type=LoadBalancer\n",
          "LoadBalancer, asked for");
    check(&kube_services,
          SVC("LoadBalancer", "'loadBalancerIP':'127.0.0.1'},'status':{'loadBalancer':{'ingress':["
                              "{'ip':'192.168.1.15'},{'hostname':'h'},{'ip':'2001:db8::1'}]}}"),
          SVC_TARGET "loadbalancer_ip=192.168.1.15,2001:db8::1 K_service_name=testservice " SVC_PORT
                     "K_service_type=LoadBalancer\n",
          "LoadBalancer, given");
}

#define INGRESS(tls)                                                                               \
    "{'metadata':{'name':'i','namespace':'n'},'spec':{'ingressClassName':'testclass'," tls         \
    "'rules':[{'host':'example.com','http':{'paths':[{'path':'/'},{'path':'/foo'}]}},"             \
    "{'host':'test.example.com','http':{'paths':[{}]}},{'host':'nobackend.example.com','http':{}}" \
    "]}}"
#define INGRESS_TARGET(host, path, scheme)                                                         \
    "__address__=" host " K_ingress_class_name=testclass K_ingress_host=" host                     \
    " K_ingress_name=i K_ingress_path=" path " K_ingress_scheme=" scheme " K_namespace=n\n"

/* An ingress has one target for each rule and path, https where a TLS host covers the rule. */
TEST(ingresses)
{
    check(&kube_ingresses, INGRESS(""),
          INGRESS_TARGET("example.com", "/", "http") INGRESS_TARGET("example.com", "/foo", "http")
              INGRESS_TARGET("test.example.com", "/", "http"),
          "plain");
    check(&kube_ingresses, INGRESS("'tls':[{'hosts':['example.com']}],"),
          INGRESS_TARGET("example.com", "/", "https") INGRESS_TARGET("example.com", "/foo", "https")
              INGRESS_TARGET("test.example.com", "/", "http"),
          "tls");
    check(&kube_ingresses, INGRESS("'tls':[{'hosts':['*.example.com']}],"),
          INGRESS_TARGET("example.com", "/", "http") INGRESS_TARGET("example.com", "/foo", "http")
              INGRESS_TARGET("test.example.com", "/", "https"),
          "tls with a wildcard");
    check(&kube_ingresses,
          "{'metadata':{'name':'i','namespace':'n'},'spec':{'rules':[{'host':'a'}]}}",
          "__address__=a K_ingress_host=a K_ingress_name=i K_ingress_path=/ K_ingress_scheme=http "
          "K_namespace=n\n",
          "a rule without http");
}

/* Endpoints have one target for each address and port, ready or not; a slice has zone, node and
 * topology, and an empty targetRef adds no labels. */
TEST(endpoints)
{
    check(&kube_endpoints,
          "{'metadata':{'name':'e','namespace':'default'},'subsets':["
          "{'addresses':[{'ip':'1.2.3.4','hostname':'testendpoint1','nodeName':'foobar'}],"
          "'ports':[{'name':'testport','port':9000,'protocol':'TCP'}]},"
          "{'addresses':[{'ip':'2.3.4.5'}],'notReadyAddresses':[{'ip':'2.3.4.5'},{'ip':'x'}],"
          "'ports':[{'port':9001}]},"
          "{'addresses':[{'ip':'6.7.8.9','targetRef':{'kind':'Node','name':'barbaz'}}],"
          "'ports':[{'port':9002}]}]}",
          "__address__=1.2.3.4:9000 K_endpoint_hostname=testendpoint1 K_endpoint_node_name=foobar "
          "K_endpoint_port_name=testport K_endpoint_port_protocol=TCP K_endpoint_ready=true "
          "K_endpoints_name=e K_namespace=default\n"
          "__address__=2.3.4.5:9001 K_endpoint_ready=true K_endpoints_name=e K_namespace=default\n"
          "__address__=2.3.4.5:9001 K_endpoint_ready=false K_endpoints_name=e "
          "K_namespace=default\n"
          "__address__=6.7.8.9:9002 K_endpoint_address_target_kind=Node "
          "K_endpoint_address_target_name=barbaz K_endpoint_ready=true K_endpoints_name=e "
          "K_namespace=default\n",
          "");
    check(&kube_endpointslices,
          "{'metadata':{'name':'s','namespace':'n'},'addressType':'IPv4','endpoints':[{"
          "'addresses':['1.2.3.4'],'conditions':{'ready':true,'serving':true,'terminating':false},"
          "'hostname':'h','nodeName':'foobar','zone':'us-east-1a','targetRef':{},"
          "'deprecatedTopology':{'topology':'value'}}],"
          "'ports':[{'name':'p','port':9000,'protocol':'TCP','appProtocol':'http'},{}]}",
          "__address__=1.2.3.4:9000 K_endpointslice_address_type=IPv4 "
          "K_endpointslice_endpoint_conditions_ready=true "
          "K_endpointslice_endpoint_conditions_serving=true "
          "K_endpointslice_endpoint_conditions_terminating=false "
          "K_endpointslice_endpoint_hostname=h K_endpointslice_endpoint_node_name=foobar "
          "K_endpointslice_endpoint_topology_present_topology=true "
          "K_endpointslice_endpoint_topology_topology=value "
          "K_endpointslice_endpoint_zone=us-east-1a K_endpointslice_name=s "
          "K_endpointslice_port=9000 K_endpointslice_port_app_protocol=http "
          "K_endpointslice_port_name=p K_endpointslice_port_protocol=TCP K_namespace=n\n"
          "__address__=1.2.3.4 K_endpointslice_address_type=IPv4 "
          "K_endpointslice_endpoint_conditions_ready=true "
          "K_endpointslice_endpoint_conditions_serving=true "
          "K_endpointslice_endpoint_conditions_terminating=false "
          "K_endpointslice_endpoint_hostname=h K_endpointslice_endpoint_node_name=foobar "
          "K_endpointslice_endpoint_topology_present_topology=true "
          "K_endpointslice_endpoint_topology_topology=value "
          "K_endpointslice_endpoint_zone=us-east-1a K_endpointslice_name=s K_namespace=n\n",
          "");
}

/* ---- joining --------------------------------------------------------------------------------- */

static void new_join(struct fixture *f, const struct kube_role *role, bool node, bool namespace,
                     bool rest)
{
    setup(f);
    f->join = join_new(&(struct join_options){
        .labels = &role->join,
        .uses = {[JOIN_NODE] = node,
                 [JOIN_NAMESPACE] = namespace,
                 [JOIN_SERVICE] = rest,
                 [JOIN_POD] = rest},
        .max = 100,
        .intern = f->intern,
        .n_lists = 10,
        .on_change = on_change,
        .arg = f,
    });
    assert_non_null(f->join);
    f->targets.keep_shared = true;
}

static void put(struct fixture *f, const struct kube_role *role, const char *text,
                enum store_result want)
{
    SCOPED(test_object) t;
    struct object_id id;
    parse(&t, role, text, true);
    assert_true(object_identify(&t.object, role->resource.kind, true, &id));
    CHECK_INT(role->read(&t.object, f->builder, &f->targets), OBJECT_OK, text);
    f->targets.content = f->content;
    CHECK_INT(join_put(f->join, 0, &id, &f->targets), want, text);
    object_targets_clear(&f->targets);
}

/* A fact with one label. */
static void put_fact(struct fixture *f, enum join_kind kind, const char *namespace,
                     const char *name, const char *value, char family)
{
    SCOPED(labels) *l = testing_labels(f->intern, "from", value, (char *)NULL);
    struct object_id id = {sv_from(namespace), sv_from(name), 0};
    struct join_fact fact = {.kind = kind, .labels = l, .family = family};
    assert_int_not_equal(join_fact_put(f->join, 1 + (unsigned)kind, &id, &fact), STORE_NO_MEMORY);
}

static void put_pod_fact(struct fixture *f, const char *text)
{
    SCOPED(test_object) t;
    struct object_id id;
    parse(&t, &kube_pods, text, true);
    assert_true(object_identify(&t.object, "Pod", true, &id));
    f->targets.without_ip = true;
    CHECK_INT(kube_pods.read(&t.object, f->builder, &f->targets), OBJECT_OK, text);
    struct join_fact fact = {.kind = JOIN_POD, .labels = f->targets.shared, .pods = &f->targets};
    assert_int_not_equal(join_fact_put(f->join, 9, &id, &fact), STORE_NO_MEMORY);
    f->targets.without_ip = false;
    object_targets_clear(&f->targets);
}

static void check_reported(struct fixture *f, const char *want, const char *row)
{
    CHECK_STR(f->reported.data, want, row);
    buf_clear(&f->reported);
}

#define POD(name, node)                                                                            \
    "{'kind':'Pod','metadata':{'namespace':'n','name':'" name "'},'spec':{'nodeName':'" node       \
    "','containers':[{'name':'c'}]},'status':{'podIP':'10.0.0.1'}}"
#define POD_LABELS(name, node)                                                                     \
    "__address__=10.0.0.1 K_namespace=n K_pod_container_init=false K_pod_container_name=c "        \
    "K_pod_ip=10.0.0.1 K_pod_name=" name " K_pod_node_name=" node " K_pod_ready=unknown"

/* Pods have the current labels of their node; a pod of an unknown node has no target. */
TEST(nodes_of_pods)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_pods, true, false, false);
    f.ip = "10.0.0.1";
    put(&f, &kube_pods, POD("a", "one"), STORE_CHANGED);
    put(&f, &kube_pods, POD("b", "two"), STORE_CHANGED);
    put_fact(&f, JOIN_NODE, "", "one", "x", 0);
    check_reported(&f, "", "nothing before everything is there");
    assert_true(join_ready(f.join, 0));
    check_reported(&f, "n/a:\n" POD_LABELS("a", "one") " from=x\n",
                   "the node of the other one is not known");
    CHECK_INT(join_count(f.join), 1, "");
    put_fact(&f, JOIN_NODE, "", "one", "x", 0);
    check_reported(&f, "", "a heartbeat");
    put_fact(&f, JOIN_NODE, "", "one", "y", 0);
    check_reported(&f, "n/a:\n" POD_LABELS("a", "one") " from=y\n", "only what is on it");
    put_fact(&f, JOIN_NODE, "", "two", "z", 0);
    check_reported(&f, "n/b:\n" POD_LABELS("b", "two") " from=z\n", "it comes");
    struct object_id one = {SV(""), SV("one"), 0};
    CHECK_INT(join_fact_remove(f.join, JOIN_NODE, &one), STORE_CHANGED, "");
    check_reported(&f, "n/a:\n", "it goes");
    /* The next list no longer names the other node. */
    join_list_begin(f.join, 1 + JOIN_NODE);
    put_fact(&f, JOIN_NODE, "", "one", "x", 0);
    join_list_end(f.join, 1 + JOIN_NODE);
    check_reported(&f, "n/a:\n" POD_LABELS("a", "one") " from=x\nn/b:\n", "a list");
    /* Nor does that of the pods name the other pod. */
    join_list_begin(f.join, 0);
    put(&f, &kube_pods, POD("b", "one"), STORE_CHANGED);
    join_list_end(f.join, 0);
    check_reported(&f, "n/b:\n" POD_LABELS("b", "one") " from=x\nn/a:\n", "moved, and gone");
    CHECK_INT(join_count(f.join), 1, "");
}

/* Pods have the current labels of their namespace. */
TEST(namespaces_of_pods)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_pods, false, true, false);
    f.ip = "10.0.0.1";
    assert_true(join_ready(f.join, 0));
    put(&f, &kube_pods, POD("a", "one"), STORE_CHANGED);
    check_reported(&f, "n/a:\n" POD_LABELS("a", "one") "\n", "not known yet");
    put_fact(&f, JOIN_NAMESPACE, "", "other", "x", 0);
    check_reported(&f, "", "another namespace");
    put_fact(&f, JOIN_NAMESPACE, "", "n", "x", 0);
    check_reported(&f, "n/a:\n" POD_LABELS("a", "one") " from=x\n", "");
    put(&f, &kube_pods, POD("a", "one"), STORE_UNCHANGED);
    check_reported(&f, "", "the same pod");
}

#define SLICE(type, ip)                                                                            \
    "{'kind':'EndpointSlice','metadata':{'name':'s','namespace':'default','labels':{"              \
    "'kubernetes.io/service-name':'svc'}},'addressType':'" type                                    \
    "','endpoints':[{'addresses':['" ip                                                            \
    "'],'conditions':{'ready':false},'targetRef':{'kind':'Pod','name':'testpod'}}],"               \
    "'ports':[{'name':'testport','port':9000,'protocol':'TCP'}]}"
#define SLICE_META(type) "K_endpointslice_address_type=" type " "
#define SLICE_LABELS                                                                               \
    "K_endpointslice_label_kubernetes_io_service_name=svc "                                        \
    "K_endpointslice_labelpresent_kubernetes_io_service_name=true K_endpointslice_name=s "
#define SLICE_TARGET(type, ip)                                                                     \
    "__address__=" ip ":9000 K_endpointslice_address_target_kind=Pod "                             \
    "K_endpointslice_address_target_name=testpod " SLICE_META(                                     \
        type) "K_endpointslice_endpoint_conditions_ready=false " SLICE_LABELS                      \
              "K_endpointslice_port=9000 K_endpointslice_port_name=testport "                      \
              "K_endpointslice_port_protocol=TCP K_namespace=default"
#define TESTPOD(namespace)                                                                         \
    "{'kind':'Pod','metadata':{'namespace':'" namespace "','name':'testpod'},'spec':{"             \
                                                        "'containers':[{'name':'c1','ports':[{'"   \
                                                        "name':'mainport','containerPort':9000,'"  \
                                                        "protocol':"                               \
                                                        "'TCP'}]},{'name':'c2','ports':[{'name':'" \
                                                        "sideport','containerPort':9001,'"         \
                                                        "protocol':'TCP'}]}]"                      \
                                                        ",'initContainers':[{'name':'sidecar','"   \
                                                        "ports':[{'containerPort':9111}]}]},"      \
                                                        "'status':{'podIP':'1.2.3.4','"            \
                                                        "containerStatuses':[{'name':'c2','"       \
                                                        "containerID':'x'}]}}"

/* A slice has the labels of its pod, and a target for each port that no endpoint covers, such as
 * that of a sidecar. A change of the service is reported at once. Slices of the second family have
 * no targets. */
TEST(slices)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_endpointslices, false, false, true);
    assert_true(join_ready(f.join, 0));
    put(&f, &kube_endpointslices, SLICE("IPv4", "4.3.2.1"), STORE_CHANGED);
    check_reported(&f, "default/s:\n" SLICE_TARGET("IPv4", "4.3.2.1") "\n", "alone");
    put_pod_fact(&f, TESTPOD("elsewhere"));
    check_reported(&f, "", "a pod of another namespace");
    put_pod_fact(&f, TESTPOD("default"));
#define JOINED(more)                                                                               \
    "default/s:\n" SLICE_TARGET(                                                                   \
        "IPv4", "4.3.2.1") " K_pod_container_init=false K_pod_container_name=c1 "                  \
                           "K_pod_container_port_name=mainport "                                   \
                           "K_pod_container_port_number=9000 K_pod_container_port_protocol=TCP "   \
                           "K_pod_ip=1.2.3.4 "                                                     \
                           "K_pod_name=testpod K_pod_ready=unknown" more                           \
                           "\n__address__=1.2.3.4:9001 " SLICE_META("IPv4") SLICE_LABELS           \
        "K_namespace=default K_pod_container_init=false K_pod_container_name=c2 "                  \
        "K_pod_container_port_name=sideport K_pod_container_port_number=9001 "                     \
        "K_pod_container_port_protocol=TCP K_pod_ip=1.2.3.4 K_pod_name=testpod "                   \
        "K_pod_ready=unknown" more "\n__address__=1.2.3.4:9111 " SLICE_META("IPv4") SLICE_LABELS   \
        "K_namespace=default K_pod_container_init=true K_pod_container_name=sidecar "              \
        "K_pod_container_port_number=9111 K_pod_ip=1.2.3.4 K_pod_name=testpod "                    \
        "K_pod_ready=unknown" more "\n"
    check_reported(&f, JOINED(""), "with its pod, and the ports that no endpoint covers");
    put_fact(&f, JOIN_SERVICE, "default", "svc", "x", '4');
    check_reported(&f, JOINED(" from=x"), "with its service");
    put_fact(&f, JOIN_SERVICE, "default", "svc", "y", '4');
    check_reported(&f, JOINED(" from=y"), "a label of the service changes");
    /* Another slice of the same service, for its second family. */
    put_fact(&f, JOIN_SERVICE, "default", "svc", "y", '6');
    check_reported(&f, "default/s:\n", "the slice of the secondary family");
    put_fact(&f, JOIN_SERVICE, "default", "svc", "y", 0);
    check_reported(&f, JOINED(" from=y"), "single stack");
}

#define ENDPOINTS                                                                                  \
    "{'kind':'Endpoints','metadata':{'name':'e','namespace':'n'},'subsets':[{'addresses':[{'ip':"  \
    "'1.2.3.4','nodeName':'one','targetRef':{'kind':'Pod','name':'p'}}],'ports':[{'port':80,"      \
    "'protocol':'UDP'}]}]}"

/* The sidecar wins; the protocol is that of the endpoint. */
TEST(endpoints_join)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_endpoints, true, false, true);
    put_pod_fact(&f, "{'kind':'Pod','metadata':{'namespace':'n','name':'p'},'spec':{'containers':["
                     "{'name':'c','ports':[{'containerPort':80,'protocol':'TCP'}]}],"
                     "'initContainers':[{'name':'side','image':'i','ports':[{'containerPort':80,"
                     "'name':'first'},{'containerPort':80,'name':'again'}]}]},"
                     "'status':{'podIP':'1.2.3.4'}}");
    put_fact(&f, JOIN_NODE, "", "one", "node", 0);
    put(&f, &kube_endpoints, ENDPOINTS, STORE_CHANGED);
    assert_true(join_ready(f.join, 0));
    check_reported(&f,
                   "n/e:\n__address__=1.2.3.4:80 K_endpoint_address_target_kind=Pod "
                   "K_endpoint_address_target_name=p K_endpoint_node_name=one "
                   "K_endpoint_port_protocol=UDP K_endpoint_ready=true K_endpoints_name=e "
                   "K_namespace=n K_pod_container_image=i K_pod_container_init=true "
                   "K_pod_container_name=side K_pod_container_port_name=first "
                   "K_pod_container_port_number=80 K_pod_container_port_protocol=UDP "
                   "K_pod_ip=1.2.3.4 K_pod_name=p K_pod_ready=unknown from=node\n",
                   "");
}

/* A target that refers to a node, and names another one: of a slice the reference decides, of
 * Endpoints the name, as in Prometheus. */
TEST(referred_nodes)
{
#define REF "'nodeName':'named','targetRef':{'kind':'Node','name':'referred'}"
    static const struct {
        const struct kube_role *role;
        const char *text, *want;
    } cases[] = {
        {&kube_endpointslices,
         "{'kind':'EndpointSlice','metadata':{'name':'s','namespace':'n'},'addressType':'IPv4',"
         "'endpoints':[{'addresses':['1.2.3.4']," REF "}],'ports':[{'port':80}]}",
         " from=referred\n"},
        {&kube_endpointslices,
         "{'kind':'EndpointSlice','metadata':{'name':'s','namespace':'n'},'addressType':'IPv4',"
         "'endpoints':[{'addresses':['1.2.3.4'],'nodeName':'named'}],'ports':[{'port':80}]}",
         " from=named\n"},
        {&kube_endpoints,
         "{'kind':'Endpoints','metadata':{'name':'e','namespace':'n'},'subsets':[{'addresses':[{"
         "'ip':'1.2.3.4'," REF "}],'ports':[{'port':80}]}]}",
         " from=named\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fixture) f;
        new_join(&f, cases[i].role, true, false, true);
        put_fact(&f, JOIN_NODE, "", "named", "named", 0);
        put_fact(&f, JOIN_NODE, "", "referred", "referred", 0);
        put(&f, cases[i].role, cases[i].text, STORE_CHANGED);
        assert_true(join_ready(f.join, 0));
        CHECK_CONTAINS(f.reported.data, cases[i].want, cases[i].text);
    }
}

/* An endpoint whose pod has no address yet has the labels of its container all the same; the other
 * ports of the pod are no targets. */
TEST(pod_without_address)
{
    struct fixture f;
    new_join(&f, &kube_endpoints, false, false, true);
    put_pod_fact(&f, "{'kind':'Pod','metadata':{'namespace':'n','name':'p'},'spec':{'containers':["
                     "{'name':'c','image':'i','ports':[{'containerPort':80,'name':'web'},"
                     "{'containerPort':81}]}]},'status':{}}");
    put(&f, &kube_endpoints, ENDPOINTS, STORE_CHANGED);
    assert_true(join_ready(f.join, 0));
    check_reported(&f,
                   "n/e:\n__address__=1.2.3.4:80 K_endpoint_address_target_kind=Pod "
                   "K_endpoint_address_target_name=p K_endpoint_node_name=one "
                   "K_endpoint_port_protocol=UDP K_endpoint_ready=true K_endpoints_name=e "
                   "K_namespace=n K_pod_container_image=i K_pod_container_init=false "
                   "K_pod_container_name=c K_pod_container_port_name=web "
                   "K_pod_container_port_number=80 K_pod_container_port_protocol=UDP "
                   "K_pod_name=p K_pod_ready=unknown\n",
                   "");
    /* The same object has no targets as the object of a role. */
    teardown(&f);
    new_join(&f, &kube_pods, false, true, false);
    assert_true(join_ready(f.join, 0));
    put(&f, &kube_pods,
        "{'kind':'Pod','metadata':{'namespace':'n','name':'p'},'spec':{'containers':["
        "{'name':'c','ports':[{'containerPort':80}]}]},'status':{}}",
        STORE_UNCHANGED);
    teardown(&f);
}

/* Many pods of one namespace: removing them leaks no link (sanitizers check). */
TEST(many)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_pods, false, true, false);
    f.join = join_free(f.join);
    f.join = join_new(&(struct join_options){.labels = &kube_pods.join,
                                             .uses = {[JOIN_NAMESPACE] = true},
                                             .max = 50,
                                             .n_lists = 10,
                                             .intern = f.intern,
                                             .on_change = on_change,
                                             .arg = &f});
    assert_true(join_ready(f.join, 0));
    SCOPED(labels) *l = testing_labels(f.intern, "a", "b", (char *)NULL);
    struct object_targets t = {.at = &l, .n = 1, .shared = l};
    char name[16];
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        struct object_id id = {SV("n"), sv_from(name), 1};
        CHECK_INT(join_put(f.join, 0, &id, &t), i < 50 ? STORE_CHANGED : STORE_FULL, name);
    }
    struct object_id other = {SV("n"), SV("p3"), 2};
    CHECK_INT(join_remove(f.join, &other), STORE_UNCHANGED, "its predecessor");
    for (int i = 0; i < 50; i += 2) {
        snprintf(name, sizeof(name), "p%d", i);
        struct object_id id = {SV("n"), sv_from(name), 1};
        CHECK_INT(join_remove(f.join, &id), STORE_CHANGED, name);
    }
    buf_clear(&f.reported);
    put_fact(&f, JOIN_NAMESPACE, "", "n", "x", 0);
    size_t reported = 0;
    for (const char *p = f.reported.data; (p = strstr(p, "from=x")) != NULL; p++) {
        reported++;
    }
    CHECK_INT(reported, 25, "the remaining ones, once each");
}

/* A primary, a fact of a content that is known need not be read again, and a list that has it keeps
 * it. */
TEST(contents)
{
    SCOPED(fixture) f;
    new_join(&f, &kube_pods, true, false, false);
    f.ip = "10.0.0.1";
    struct object_id pod = {SV("n"), SV("a"), 0};
    struct object_id node = {SV(""), SV("one"), 0};
    SCOPED(labels) *l = testing_labels(f.intern, "from", "x", (char *)NULL);
    struct join_fact fact = {.kind = JOIN_NODE, .labels = l, .content = 8};
    CHECK_INT(join_fact_has(f.join, 1, JOIN_NODE, &node, 8), false, "not put yet");
    CHECK_INT(join_has(f.join, 0, &pod, 7), false, "not put yet");
    assert_int_not_equal(join_fact_put(f.join, 1, &node, &fact), STORE_NO_MEMORY);
    f.content = 7;
    put(&f, &kube_pods, POD("a", "one"), STORE_CHANGED);
    assert_true(join_ready(f.join, 0));
    buf_clear(&f.reported);
    CHECK_INT(join_has(f.join, 0, &pod, 0), false, "a content that is not known");
    CHECK_INT(join_has(f.join, 0, &pod, 9), false, "another content");
    CHECK_INT(join_fact_has(f.join, 1, JOIN_NODE, &node, 9), false, "another content");
    join_list_begin(f.join, 0);
    join_list_begin(f.join, 1);
    CHECK_INT(join_has(f.join, 0, &pod, 7), true, "a heartbeat");
    CHECK_INT(join_fact_has(f.join, 1, JOIN_NODE, &node, 8), true, "a heartbeat");
    join_list_end(f.join, 0);
    join_list_end(f.join, 1);
    check_reported(&f, "", "both are still there");
    CHECK_INT(join_fact_remove(f.join, JOIN_NODE, &node), STORE_CHANGED, "");
    CHECK_INT(join_fact_has(f.join, 1, JOIN_NODE, &node, 8), false, "it is gone");
    check_reported(&f, "n/a:\n", "and with it the pod");
}
