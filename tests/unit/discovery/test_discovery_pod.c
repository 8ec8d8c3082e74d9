/* A pod's targets are those of Prometheus' kubernetes_sd role "pod". */
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "discovery/kubernetes/roles.h"

#define META "__meta_kubernetes_"

struct fixture {
    struct intern *intern;
    struct labels_builder *builder;
    struct object_targets targets;
};

static void setup(struct fixture *f)
{
    f->intern = intern_new();
    assert_non_null(f->intern);
    f->builder = labels_builder_new(f->intern);
    assert_non_null(f->builder);
    f->targets = (struct object_targets){0};
}

static void teardown(struct fixture *f)
{
    object_targets_done(&f->targets);
    labels_builder_free(f->builder);
    intern_free(f->intern);
}
SCOPED_VALUE(fixture, teardown)

static void parse(struct test_object *t, const char *text, bool protobuf)
{
    test_object_read(t, text, kube_pods.resource.rows, protobuf);
}

/* The label set of a line such as "K_namespace=x K_pod_name=y a=b". */
static struct labels *described(struct fixture *f, struct sv line)
{
    SCOPED(labels_builder) *b = labels_builder_new(f->intern);
    assert_non_null(b);
    labels_builder_reset(b, NULL);
    while (line.n > 0) {
        struct sv pair = line;
        struct sv rest = SV("");
        sv_cut(line, ' ', &pair, &rest);
        struct sv name;
        struct sv value;
        assert_true(sv_cut(pair, '=', &name, &value));
        char full[200];
        bool meta = sv_starts_with(name, SV("K_"));
        snprintf(full, sizeof(full), "%s%.*s", meta ? META : "", (int)name.n - (meta ? 2 : 0),
                 name.p + (meta ? 2 : 0));
        labels_builder_set(b, sv_from(full), value);
        line = rest;
    }
    struct labels *l = labels_builder_build(b);
    assert_non_null(l);
    return l;
}

static void check_target(struct fixture *f, size_t i, struct sv want_line, const char *row)
{
    SCOPED(buf) got = testing_buf(1 << 20);
    SCOPED(buf) want = testing_buf(1 << 20);
    SCOPED(labels) *want_labels = described(f, want_line);
    testing_labels_format(want_labels, &want);
    if (i < f->targets.n) {
        testing_labels_format(f->targets.at[i], &got);
    }
    CHECK_STR(got.data, want.data, row);
}

/* want: one line for each target, its labels in any order; "" for none. Out of both encodings. */
static void check_pod(const char *row, const char *text, const char *want)
{
    for (int protobuf = 0; protobuf <= 1; protobuf++) {
        SCOPED(fixture) f;
        SCOPED(test_object) pod;
        setup(&f);
        parse(&pod, text, protobuf == 1);
        CHECK_INT(kube_pods.read(&pod.object, f.builder, &f.targets), OBJECT_OK, row);
        struct sv rest = sv_from(want);
        size_t n = 0;
        while (rest.n > 0) {
            struct sv line;
            assert_true(sv_cut(rest, '\n', &line, &rest));
            check_target(&f, n++, line, row);
        }
        CHECK_INT(f.targets.n, n, row);
    }
}

/* ---- whole pods ------------------------------------------------------------------------------ */

#define TEST_POD                                                                                   \
    "K_namespace=default K_pod_name=testpod K_pod_ip=1.2.3.4 K_pod_host_ip=2.3.4.5 "               \
    "K_pod_node_name=testnode K_pod_ready=true K_pod_phase=Running K_pod_uid=abc123 "              \
    "K_pod_controller_kind=testcontrollerkind K_pod_controller_name=testcontrollername "           \
    "K_pod_label_test_label=testvalue K_pod_labelpresent_test_label=true "                         \
    "K_pod_annotation_test_annotation=testannotationvalue "                                        \
    "K_pod_annotationpresent_test_annotation=true K_pod_container_init=false "
#define TEST_CONTAINER                                                                             \
    TEST_POD "K_pod_container_name=testcontainer0 K_pod_container_image=testcontainer0:latest "    \
             "K_pod_container_id=docker://a1b2c3d4e5f6 "

/* A pod has one target for each port and one for each container without ports, with all its
 * labels. */
TEST(test_ports_and_none)
{
    check_pod(
        "two ports, then a container without",
        "{\"metadata\":{\"name\":\"testpod\",\"namespace\":\"default\",\"uid\":\"abc123\","
        "\"labels\":{\"test/label\":\"testvalue\"},"
        "\"annotations\":{\"test/annotation\":\"testannotationvalue\"},"
        "\"ownerReferences\":[{\"kind\":\"testcontrollerkind\",\"name\":\"testcontrollername\","
        "\"controller\":true}]},"
        "\"spec\":{\"nodeName\":\"testnode\",\"containers\":["
        "{\"name\":\"testcontainer0\",\"image\":\"testcontainer0:latest\",\"ports\":["
        "{\"name\":\"testport0\",\"protocol\":\"TCP\",\"containerPort\":9000},"
        "{\"name\":\"testport1\",\"protocol\":\"UDP\",\"containerPort\":9001}]},"
        "{\"name\":\"testcontainer1\",\"image\":\"testcontainer1:latest\"}]},"
        "\"status\":{\"podIP\":\"1.2.3.4\",\"hostIP\":\"2.3.4.5\",\"phase\":\"Running\","
        "\"conditions\":[{\"type\":\"Initialized\",\"status\":\"False\"},"
        "{\"type\":\"Ready\",\"status\":\"True\"}],"
        "\"containerStatuses\":[{\"name\":\"testcontainer1\","
        "\"containerID\":\"containerd://6f5e4d3c2b1a\"},"
        "{\"name\":\"testcontainer0\",\"containerID\":\"docker://a1b2c3d4e5f6\"}]}}",
        TEST_CONTAINER
        "__address__=1.2.3.4:9000 K_pod_container_port_name=testport0 "
        "K_pod_container_port_number=9000 K_pod_container_port_protocol=TCP\n" TEST_CONTAINER
        "__address__=1.2.3.4:9001 K_pod_container_port_name=testport1 "
        "K_pod_container_port_number=9001 K_pod_container_port_protocol=UDP\n" TEST_POD
        "__address__=1.2.3.4 K_pod_container_name=testcontainer1 "
        "K_pod_container_image=testcontainer1:latest "
        "K_pod_container_id=containerd://6f5e4d3c2b1a\n");
}

/* Init containers come last, are marked as such, and have their own statuses. */
TEST(test_init_container)
{
    static const char shared[] = "K_namespace=default K_pod_name=testpod K_pod_ip=1.2.3.4 "
                                 "K_pod_ready=false K_pod_phase=Pending ";
    char want[1000];
    snprintf(want, sizeof(want),
             "%s__address__=1.2.3.4:9000 K_pod_container_name=testcontainer "
             "K_pod_container_init=false K_pod_container_port_number=9000 "
             "K_pod_container_port_name=p K_pod_container_port_protocol=TCP\n"
             "%s__address__=1.2.3.4 K_pod_container_name=initcontainer K_pod_container_init=true "
             "K_pod_container_id=containerd://1\n",
             shared, shared);
    check_pod("init containers come last and have statuses of their own",
              "{\"metadata\":{\"name\":\"testpod\",\"namespace\":\"default\"},"
              "\"spec\":{\"initContainers\":[{\"name\":\"initcontainer\"}],"
              "\"containers\":[{\"name\":\"testcontainer\",\"ports\":[{\"name\":\"p\","
              "\"protocol\":\"TCP\",\"containerPort\":9000}]}]},"
              "\"status\":{\"podIP\":\"1.2.3.4\",\"phase\":\"Pending\","
              "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],"
              "\"initContainerStatuses\":[{\"name\":\"initcontainer\","
              "\"containerID\":\"containerd://1\"}]}}",
              want);
}

/* ---- single facts ---------------------------------------------------------------------------- */

/* A pod of the given parts; the container has the port 6060 unless stated otherwise. */
static char *make_pod(const char *metadata, const char *spec, const char *status)
{
    char *text = NULL;
    int n = asprintf(&text,
                     "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\"%s},"
                     "\"spec\":{%s},\"status\":{%s}}",
                     metadata, spec, status);
    assert_true(n > 0);
    return text;
}

#define ONE_PORT "\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":6060}]}]"
#define WITH_IP "\"podIP\":\"10.0.0.1\""
#define PLAIN                                                                                      \
    "K_namespace=n K_pod_name=p K_pod_ip=10.0.0.1 K_pod_ready=unknown K_pod_container_name=c "     \
    "K_pod_container_init=false __address__=10.0.0.1:6060 K_pod_container_port_number=6060"
#define OTHER_ADDRESS(ip, address)                                                                 \
    "K_namespace=n K_pod_name=p K_pod_ip=" ip " K_pod_ready=unknown K_pod_container_name=c "       \
    "K_pod_container_init=false __address__=" address

/* Without a Ready condition a pod is "unknown"; without an IP it has no target; IPv6 addresses are
 * in brackets; an unnamed port has no name label; names of labels and annotations are sanitised;
 * the owner is the controller. */
TEST(test_facts)
{
    static const struct {
        const char *name, *metadata, *spec, *status, *want;
    } cases[] = {
        {"a port without name and protocol, no Ready condition", "", ONE_PORT, WITH_IP, PLAIN "\n"},
        {"no address yet", "", ONE_PORT, "\"podIP\":\"\"", ""},
        {"no status", "", ONE_PORT, "", ""},
        {"no containers", "", "", WITH_IP, ""},
        {"IPv6 with a port", "", ONE_PORT, "\"podIP\":\"fd00::5\"",
         OTHER_ADDRESS("fd00::5", "[fd00::5]:6060") " K_pod_container_port_number=6060\n"},
        {"IPv6 without port is bracketed", "", "\"containers\":[{\"name\":\"c\"}]",
         "\"podIP\":\"fd00::5\"", OTHER_ADDRESS("fd00::5", "[fd00::5]") "\n"},
        {"only the primary address counts", "", ONE_PORT,
         WITH_IP ",\"podIPs\":[{\"ip\":\"fd00::1\"},{\"ip\":\"10.0.0.1\"}]", PLAIN "\n"},
        {"a name instead of an address", "", ONE_PORT, "\"podIP\":\"metadata.google.internal\"",
         ""},
        {"an address and a path", "", ONE_PORT, "\"podIP\":\"10.0.0.1/x\"", ""},
        {"an address in short form", "", ONE_PORT, "\"podIP\":\"127.1\"", ""},
        {"an address with a zone", "", ONE_PORT, "\"podIP\":\"fe80::1%eth0\"", ""},
        {"text after a NUL", "", ONE_PORT, "\"podIP\":\"10.0.0.1\\u0000x\"", ""},
        {"an address that is no string", "", ONE_PORT, "\"podIP\":[\"10.0.0.1\"]", ""},
        {"finished pods stay", "", ONE_PORT, WITH_IP ",\"phase\":\"Failed\"",
         PLAIN " K_pod_phase=Failed\n"},
        {"pods that are being deleted stay", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
         ONE_PORT, WITH_IP, PLAIN "\n"},
        {"the node's address, with hostNetwork", "", ONE_PORT ",\"hostNetwork\":true",
         WITH_IP ",\"hostIP\":\"10.0.0.1\"", PLAIN " K_pod_host_ip=10.0.0.1\n"},
        {"annotation names are sanitised",
         ",\"annotations\":{\"pyroscope.io/service_name\":\"shop/cart\"}", ONE_PORT, WITH_IP,
         PLAIN " K_pod_annotation_pyroscope_io_service_name=shop/cart "
               "K_pod_annotationpresent_pyroscope_io_service_name=true\n"},
        {"label names are sanitised",
         ",\"labels\":{\"app.kubernetes.io/name\":\"x\",\"a.b/c-d\":\"y\",\"9_Z\":\"z\"}", ONE_PORT,
         WITH_IP,
         PLAIN
         " K_pod_label_app_kubernetes_io_name=x K_pod_labelpresent_app_kubernetes_io_name=true"
         " K_pod_label_a_b_c_d=y K_pod_labelpresent_a_b_c_d=true"
         " K_pod_label_9_Z=z K_pod_labelpresent_9_Z=true\n"},
        {"a character of several bytes becomes one underscore",
         ",\"annotations\":{\"a\xc3\xa9\xf0\x9f\x98\x80z\":\"1\"}", ONE_PORT, WITH_IP,
         PLAIN " K_pod_annotation_a__z=1 K_pod_annotationpresent_a__z=true\n"},
        {"of two names that become one the last in order wins",
         ",\"labels\":{\"a/b\":\"slash\",\"a-b\":\"dash\",\"a.b\":\"dot\"}", ONE_PORT, WITH_IP,
         PLAIN " K_pod_label_a_b=slash K_pod_labelpresent_a_b=true\n"},
        {"a label without value is present", ",\"labels\":{\"canary\":\"\"}", ONE_PORT, WITH_IP,
         PLAIN " K_pod_labelpresent_canary=true\n"},
        {"values that are no strings do not exist",
         ",\"labels\":{\"a\":1,\"b\":null,\"c\":[\"x\"]},\"annotations\":\"x\"", ONE_PORT, WITH_IP,
         PLAIN "\n"},
        {"the first controller among the owners",
         ",\"ownerReferences\":[{\"kind\":\"A\",\"name\":\"a\"},{\"kind\":\"B\",\"name\":\"b\","
         "\"controller\":true},{\"kind\":\"C\",\"name\":\"c\",\"controller\":true}]",
         ONE_PORT, WITH_IP, PLAIN " K_pod_controller_kind=B K_pod_controller_name=b\n"},
        {"no controller among the owners",
         ",\"ownerReferences\":[{\"kind\":\"A\",\"name\":\"a\",\"controller\":false}]", ONE_PORT,
         WITH_IP, PLAIN "\n"},
        {"a condition that is neither true nor false", "", ONE_PORT,
         WITH_IP ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]", PLAIN "\n"},
        {"impossible ports", "",
         "\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":0},{\"containerPort\":"
         "65536},"
         "{\"containerPort\":-1},{\"containerPort\":\"6060\"},{\"containerPort\":6060.5},{},7,"
         "{\"containerPort\":6060}]}]",
         WITH_IP, PLAIN "\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED_MEMORY char *text = make_pod(cases[i].metadata, cases[i].spec, cases[i].status);
        check_pod(cases[i].name, text, cases[i].want);
    }
}

TEST(test_counts)
{
    SCOPED(fixture) f;
    setup(&f);
    SCOPED_MEMORY char *text = make_pod("", ONE_PORT, "\"podIP\":\"example.com\"");
    struct test_object pod;
    parse(&pod, text, true);
    CHECK_INT(kube_pods.read(&pod.object, f.builder, &f.targets), OBJECT_OK, "");
    CHECK_INT(f.targets.bad_ip, 1, "");
    assert_null(f.targets.ip);
    test_object_done(&pod);
    free(text);
    text = make_pod("",
                    "\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":0},"
                    "{\"containerPort\":65536},{\"containerPort\":65535}]}]",
                    WITH_IP);
    parse(&pod, text, true);
    CHECK_INT(kube_pods.read(&pod.object, f.builder, &f.targets), OBJECT_OK, "");
    CHECK_INT(f.targets.bad_ip, 0, "counts are of one pod");
    CHECK_INT(f.targets.bad_ports, 2, "");
    CHECK_INT(f.targets.n, 1, "");
    CHECK_STR(f.targets.ip, "10.0.0.1", "");
    test_object_done(&pod);
}

TEST(test_too_many_targets)
{
    SCOPED(buf) spec = testing_buf(1 << 20);
    buf_puts(&spec, "\"containers\":[{\"name\":\"c\",\"ports\":[");
    for (int i = 1; i <= OBJECT_TARGETS_MAX + 10; i++) {
        buf_printf(&spec, "%s{\"containerPort\":%d}", i == 1 ? "" : ",", i);
    }
    buf_puts(&spec, "]},{\"name\":\"d\"}]");
    SCOPED_MEMORY char *text = make_pod("", spec.data, WITH_IP);
    SCOPED(test_object) pod;
    parse(&pod, text, true);
    SCOPED(fixture) f;
    setup(&f);
    CHECK_INT(kube_pods.read(&pod.object, f.builder, &f.targets), OBJECT_OK, "");
    CHECK_INT(f.targets.n, OBJECT_TARGETS_MAX, "");
    CHECK_INT(f.targets.too_many_targets, 11, "");
}

/* Fills a pod with n labels or one value of n bytes. */
static enum object_status read_big(size_t n_labels, size_t value_len)
{
    SCOPED(buf) text = testing_buf(1 << 26);
    buf_puts(&text, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"annotations\":{");
    for (size_t i = 0; i < n_labels; i++) {
        buf_printf(&text, "\"a%zu\":\"x\",", i);
    }
    buf_puts(&text, "\"big\":\"");
    for (size_t i = 0; i < value_len; i++) {
        buf_putc(&text, 'v');
    }
    buf_puts(&text, "\"}},\"spec\":{" ONE_PORT "},\"status\":{" WITH_IP "}}");
    SCOPED(test_object) pod;
    parse(&pod, text.data, true);
    SCOPED(fixture) f;
    setup(&f);
    enum object_status status = kube_pods.read(&pod.object, f.builder, &f.targets);
    CHECK_INT(f.targets.n, status == OBJECT_OK ? 1 : 0, "all or nothing");
    /* The builder is usable again. */
    SCOPED_MEMORY char *usual = make_pod("", ONE_PORT, WITH_IP);
    SCOPED(test_object) small;
    parse(&small, usual, true);
    CHECK_INT(kube_pods.read(&small.object, f.builder, &f.targets), OBJECT_OK, "");
    CHECK_INT(f.targets.n, 1, "");
    return status;
}

TEST(test_too_many_labels)
{
    CHECK_INT(read_big(100, 100), OBJECT_OK, "usual");
    CHECK_INT(read_big(LABELS_MAX / 2, 1), OBJECT_TOO_MANY_LABELS, "number");
    CHECK_INT(read_big(0, 300000), OBJECT_OK, "more than Kubernetes allows");
    CHECK_INT(read_big(0, LABELS_BYTES_MAX), OBJECT_TOO_MANY_LABELS, "bytes");
}

TEST(test_identify)
{
    static const struct {
        const char *text;
        const char *want; /* namespace/name/uid; NULL: not a pod */
    } cases[] = {
        {"{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\"}}", "n/p/u"},
        {"{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"n\",\"name\":\"p\"}}", "n/p/"},
        {"{\"kind\":\"Table\",\"metadata\":{\"namespace\":\"n\",\"name\":\"p\"}}", NULL},
        {"{\"kind\":7,\"metadata\":{\"namespace\":\"n\",\"name\":\"p\"}}", "n/p/"},
        {"{\"metadata\":{\"name\":\"p\"}}", NULL},
        {"{\"metadata\":{\"namespace\":\"n\",\"name\":\"\"}}", NULL},
        {"{\"metadata\":{\"namespace\":\"n\",\"name\":3}}", NULL},
        {"{\"metadata\":{\"namespace\":\"n/x\",\"name\":\"p\"}}", NULL},
        {"{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\\u0000\"}}", NULL},
        {"{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\\n\"}}", NULL},
        {"{\"metadata\":[]}", NULL},
        {"{}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(test_object) t;
        parse(&t, cases[i].text, false);
        struct object_id id;
        bool ok = object_identify(&t.object, "Pod", true, &id);
        CHECK_INT(ok, cases[i].want != NULL, cases[i].text);
        if (ok && cases[i].want != NULL) {
            char got[64];
            snprintf(got, sizeof(got), "%.*s/%.*s/%s", SV_ARG(id.namespace), SV_ARG(id.name),
                     id.uid == hash_bytes("u", 1, 0) ? "u"
                     : id.uid == 0                   ? ""
                                                     : "other");
            CHECK_STR(got, cases[i].want, cases[i].text);
        }
    }
}
