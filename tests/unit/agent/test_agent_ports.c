/* The built-in job, from a pod's JSON to the labels of its targets: which annotations lead to which
 * scrapes, under which container's labels. */
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "config/config.h"
#include "discovery/kubernetes/roles.h"
#include "relabel/relabel.h"
#include "scraper/targets/ports.h"

#define PODS_MAX 64

struct fixture {
    struct intern *intern;
    struct labels_builder *builder;
    struct relabel_scratch *scratch;
    struct config *config;
    struct relabel *rules;
    struct object_targets raw;
};

static struct config *load(struct sv text)
{
    struct config_errors *errors = config_errors_new();
    struct config_options options = {.write_url = "http://x:1"};
    struct config *config = text.n == 0 ? config_load(NULL, &options, errors)
                                        : config_parse("f", text, &options, errors);
    if (config == NULL) {
        struct buf b = testing_buf(1 << 20);
        config_errors_format(errors, &b);
        fail_msg("%s", b.data);
    }
    config_errors_free(errors);
    return config;
}

static int setup_with(void **state, struct sv text)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = ERR_INIT;
    assert_non_null(f);
    f->intern = intern_new();
    f->builder = labels_builder_new(f->intern);
    f->scratch = relabel_scratch_new();
    f->config = load(text);
    f->rules = relabel_new(&f->config->jobs[0].relabel, &err);
    assert_non_null(f->rules);
    f->raw = (struct object_targets){0};
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, SV(""));
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    object_targets_done(&f->raw);
    relabel_free(f->rules);
    config_unref(f->config);
    relabel_scratch_free(f->scratch);
    labels_builder_free(f->builder);
    intern_free(f->intern);
    free(f);
    return 0;
}

/* "container address type[:port][/path][ type...]" for one remaining label set. */
static void describe(const struct config_job *job, const struct labels *l, struct buf *out)
{
    struct sv container = labels_get(l, SV("container"));
    struct sv address = labels_get(l, SV(LABEL_ADDRESS));
    buf_printf(out, "%s%.*s %.*s", out->len > 0 ? " | " : "", SV_ARG(container), SV_ARG(address));
    for (size_t t = 0; t < job->n_types; t++) {
        char name[128];
        if (!ports_wanted(l, &job->types[t])) {
            continue;
        }
        buf_printf(out, " %s", job->types[t].key);
        snprintf(name, sizeof(name), "__profile_%s_port__", job->types[t].key);
        struct sv port = labels_get(l, sv_from(name));
        buf_printf(out, "%s%.*s", port.n > 0 ? ":" : "", SV_ARG(port));
    }
}

static void relabel_all(struct fixture *f, struct port_candidate *c)
{
    assert_true(f->raw.n <= PODS_MAX);
    for (size_t i = 0; i < f->raw.n; i++) {
        labels_builder_reset(f->builder, f->raw.at[i]);
        struct relabel_verdict v = relabel_apply(f->rules, f->scratch, f->builder, NULL, NULL);
        c[i] = (struct port_candidate){.discovered = f->raw.at[i]};
        if (v.outcome == RELABEL_KEPT) {
            c[i].labels = labels_builder_build(f->builder);
            assert_non_null(c[i].labels);
        }
    }
}

/* Runs a pod through all stages. visit gets each remaining label set; may be NULL. */
static void run_pod(struct fixture *f, const char *json, struct buf *out,
                    void (*visit)(const struct labels *l, const char *row), const char *row)
{
    SCOPED(test_object) pod;
    struct port_candidate c[PODS_MAX];
    test_object_read(&pod, json, kube_pods.resource.rows, true);
    assert_int_equal(kube_pods.read(&pod.object, f->builder, &f->raw), OBJECT_OK);
    relabel_all(f, c);
    assert_true(ports_choose(&f->config->jobs[0], c, f->raw.n, f->builder));
    for (size_t i = 0; i < f->raw.n; i++) {
        if (c[i].labels != NULL) {
            describe(&f->config->jobs[0], c[i].labels, out);
            if (visit != NULL) {
                visit(c[i].labels, row);
            }
        }
        labels_unref(c[i].labels);
    }
    object_targets_clear(&f->raw);
}

/* The containers of most rows: three declared ports, a container without ports, a finished init
 * container and a sidecar. */
#define CONTAINERS                                                                                 \
    "\"containers\":[{\"name\":\"main\",\"ports\":[{\"name\":\"http\",\"containerPort\":8080},"    \
    "{\"name\":\"metrics\",\"containerPort\":9090}]},"                                             \
    "{\"name\":\"side\",\"ports\":[{\"name\":\"debug\",\"containerPort\":6060}]},"                 \
    "{\"name\":\"plain\"}],"                                                                       \
    "\"initContainers\":[{\"name\":\"setup\",\"ports\":[{\"containerPort\":7070}]},"               \
    "{\"name\":\"mesh\",\"restartPolicy\":\"Always\",\"ports\":[{\"containerPort\":15000}]}]"

/* Puts annotations from words "key=value". Keys of Grafana have no mark in front of them. */
static void put_annotations(const char *words, struct buf *out)
{
    static const struct {
        const char *mark, *prefix;
    } owners[] = {{"p/", "pyroscope.io/"},
                  {"e/", "profefe.com/"},
                  {"o/", "resource.opentelemetry.io/"},
                  {"/", ""},
                  {"", "profiles.grafana.com/"}};
    struct sv word, key, value;
    for (struct sv rest = sv_from(words); rest.n > 0;) {
        if (!sv_cut(rest, ' ', &word, &rest)) {
            word = rest;
            rest = SV("");
        }
        size_t i = 0;
        while (!sv_starts_with(word, sv_from(owners[i].mark))) {
            i++;
        }
        assert_true(sv_cut(sv_skip(word, strlen(owners[i].mark)), '=', &key, &value));
        buf_printf(out, "%s\"%s%.*s\":\"%.*s\"", word.p == words ? "" : ",", owners[i].prefix,
                   SV_ARG(key), SV_ARG(value));
    }
}

static void pod_json(const char *annotations, const char *containers, const char *phase,
                     struct buf *out)
{
    buf_puts(out, "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"cart-1\","
                  "\"labels\":{\"app\":\"cart\"},\"annotations\":{");
    put_annotations(annotations, out);
    buf_printf(out,
               "}},\"spec\":{\"nodeName\":\"n1\",%s},"
               "\"status\":{\"phase\":\"%s\",\"podIP\":\"10.1.2.3\"}}",
               containers, phase);
}

struct row {
    const char *name, *annotations, *want, *containers, *phase;
};
#define ROW(name, annotations, want)                                                               \
    {                                                                                              \
        name, annotations, want, CONTAINERS, "Running"                                             \
    }

static void check_rows(struct fixture *f, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED(buf) json = testing_buf(1 << 20);
        SCOPED(buf) got = testing_buf(1 << 20);
        pod_json(rows[i].annotations, rows[i].containers, rows[i].phase, &json);
        run_pod(f, json.data, &got, NULL, rows[i].name);
        CHECK_STR(got.data, rows[i].want, rows[i].name);
    }
}
#define CHECK_ROWS(f, rows) check_rows((f), (rows), sizeof(rows) / sizeof((rows)[0]))

#define ALL_FIVE " memory block goroutine mutex process_cpu"

TEST_WITH(test_grafana, setup, teardown)
{
    static const struct row rows[] = {
        ROW("declared port: its owner", "cpu.scrape=true cpu.port=6060",
            "side 10.1.2.3:6060 process_cpu"),
        ROW("declared by the sidecar", "cpu.scrape=true cpu.port=15000",
            "mesh 10.1.2.3:15000 process_cpu"),
        ROW("declared by a finished container only: the first one's",
            "cpu.scrape=true cpu.port=7070", "main 10.1.2.3:7070 process_cpu"),
        ROW("undeclared port: the first container", "cpu.scrape=true cpu.port=7777",
            "main 10.1.2.3:7777 process_cpu"),
        ROW("by name", "cpu.scrape=true cpu.port_name=metrics", "main 10.1.2.3:9090 process_cpu"),
        ROW("the number wins over the name", "cpu.scrape=true cpu.port_name=debug cpu.port=8080",
            "main 10.1.2.3:8080 process_cpu"),
        ROW("a number, and a name that nobody has",
            "cpu.scrape=true cpu.port_name=nope cpu.port=8080", "main 10.1.2.3:8080 process_cpu"),
        ROW("the name of one type wins over the number of all",
            "cpu.scrape=true cpu.port_name=debug p/port=8080", "side 10.1.2.3:6060 process_cpu"),
        ROW("a container, and a port that another one declares",
            "cpu.scrape=true cpu.container=plain cpu.port=6060", "plain 10.1.2.3:6060 process_cpu"),
        ROW("a container, and a port that nobody declares",
            "cpu.scrape=true cpu.container=mesh cpu.port=7777", "mesh 10.1.2.3:7777 process_cpu"),
        ROW("a container with its port by name",
            "cpu.scrape=true cpu.container=main cpu.port_name=metrics",
            "main 10.1.2.3:9090 process_cpu"),
        ROW("a container, and the name of another one's port",
            "cpu.scrape=true cpu.container=main cpu.port_name=debug", ""),
        {"two containers with ports of the same name", "cpu.scrape=true cpu.container=b",
         "b 10.1.2.3:2 process_cpu",
         "\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":1,\"name\":\"pprof\"}]},"
         "{\"name\":\"b\",\"ports\":[{\"containerPort\":2,\"name\":\"pprof\"}]}]",
         "Running"},
        ROW("a container of one type only",
            "cpu.scrape=true cpu.container=side cpu.port=6060 memory.scrape=true memory.port=6060",
            "side 10.1.2.3:6060 memory process_cpu"),
        ROW("a container that the pod does not have",
            "cpu.scrape=true cpu.container=nope cpu.port=6060", ""),
        ROW("a name that nobody has", "cpu.scrape=true cpu.port_name=nope", ""),
        ROW("no port, and none is called pprof", "cpu.scrape=true", ""),
        {"no port, and one is called pprof", "cpu.scrape=true", "b 10.1.2.3:2 process_cpu",
         "\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":1}]},{\"name\":\"b\","
         "\"ports\":[{\"containerPort\":2,\"name\":\"pprof\"}]}]",
         "Running"},
        ROW("two types, one port",
            "cpu.scrape=true cpu.port=6060 memory.scrape=true memory.port=6060",
            "side 10.1.2.3:6060 memory process_cpu"),
        ROW("two types, two owners",
            "cpu.scrape=true cpu.port=6060 memory.scrape=true memory.port=9090",
            "main 10.1.2.3:9090 memory | side 10.1.2.3:6060 process_cpu"),
        ROW("one declared, one not",
            "cpu.scrape=true cpu.port=8080 memory.scrape=true memory.port=7777",
            "main 10.1.2.3:7777 memory process_cpu:8080"),
        ROW("all types",
            "cpu.scrape=true memory.scrape=true goroutine.scrape=true mutex.scrape=true "
            "block.scrape=true fgprof.scrape=true godeltaprof_memory.scrape=true "
            "godeltaprof_mutex.scrape=true godeltaprof_block.scrape=true p/port=6060",
            "side 10.1.2.3:6060" ALL_FIVE
            " fgprof godeltaprof_memory godeltaprof_mutex godeltaprof_block"),
        ROW("the types of brpc",
            "growth.scrape=true growth.port=8080 contention.scrape=true contention.port=8080",
            "main 10.1.2.3:8080 growth contention"),
        ROW("only one says true",
            "cpu.scrape=true cpu.port=6060 memory.scrape=false memory.port=6060",
            "side 10.1.2.3:6060 process_cpu"),
        ROW("a wrong number is for the scraper to refuse, once",
            "cpu.scrape=true cpu.port=http memory.scrape=true memory.port=6060",
            "main 10.1.2.3:8080 process_cpu:http | side 10.1.2.3:6060 memory"),
        {"no port at all is declared", "cpu.scrape=true cpu.port=6060",
         "a 10.1.2.3:6060 process_cpu", "\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]",
         "Running"},
        {"two containers declare it: the first", "cpu.scrape=true cpu.port=1",
         "a 10.1.2.3:1 process_cpu",
         "\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":1}]},{\"name\":\"b\","
         "\"ports\":[{\"containerPort\":1}]}]",
         "Running"},
    };
    CHECK_ROWS(*state, rows);
}

TEST_WITH(test_others, setup, teardown)
{
    static const struct row rows[] = {
        ROW("pyroscope.io", "p/scrape=true p/port=6060", "side 10.1.2.3:6060" ALL_FIVE),
        ROW("types off",
            "p/scrape=true p/port=8080 p/profile-mem-enabled=false "
            "p/profile-goroutines-enabled=false "
            "p/profile-mutex-enabled=false p/profile-block-enabled=false "
            "p/profile-cpu-enabled=true",
            "main 10.1.2.3:8080 process_cpu"),
        ROW("no port", "p/scrape=true", ""),
        ROW("profefe has a default", "e/enable=true", "side 10.1.2.3:6060" ALL_FIVE),
        ROW("profefe with a port", "e/enable=true e/port=9090", "main 10.1.2.3:9090" ALL_FIVE),
        ROW("one type has a port of its own", "p/scrape=true p/port=6060 memory.port=8080",
            "main 10.1.2.3:8080 memory | side 10.1.2.3:6060 block goroutine mutex process_cpu"),
    };
    CHECK_ROWS(*state, rows);
}

TEST_WITH(test_refused, setup, teardown)
{
    static const struct row rows[] = {
        ROW("no annotation", "", ""),
        ROW("another value", "cpu.scrape=yes cpu.port=6060", ""),
        ROW("false", "p/scrape=false p/port=6060", ""),
        ROW("a wrong type", "cpus.scrape=true cpus.port=6060", ""),
        {"pending", "cpu.scrape=true cpu.port=6060", "", CONTAINERS, "Pending"},
        {"succeeded", "cpu.scrape=true cpu.port=6060", "", CONTAINERS, "Succeeded"},
        {"failed", "cpu.scrape=true cpu.port=6060", "", CONTAINERS, "Failed"},
        ROW("truer", "cpu.scrape=truer cpu.port=6060", ""),
    };
    CHECK_ROWS(*state, rows);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *value;
} label_filter_passess[] = {
    {"namespace", "shop"},
    {"pod", "cart-1"},
    {"container", "side"},
    {"app", "cart"},
    {"service_name", "svc"},
    {"service_repository", "https://git/x"},
    {"service_git_ref", "v1"},
    {"service_root_path", "cmd/x"},
    {"__scheme__", "https"},
    {"__profile_process_cpu_path__", "/x/cpu"},
    {"__profile_process_cpu_scheme__", "http"},
    {"__profile_path_prefix__", "/app"},
    /* Intermediate labels are gone, and no label names an unknown type. */
    {"__profile_port_name__", ""},
    {"__profile_process_cpu_port_name__", ""},
    {"__profile_process_cpu_container__", ""},
    {"__profile_cpu_path__", ""},
    {"__profile_service_root_path__", ""},
};

static void check_labels(const struct labels *l, const char *row)
{
    (void)row;
    for (size_t i = 0; i < sizeof(label_filter_passess) / sizeof(label_filter_passess[0]); i++) {
        CHECK_STR(labels_get(l, sv_from(label_filter_passess[i].name)).p,
                  label_filter_passess[i].value, label_filter_passess[i].name);
    }
}

TEST_WITH(test_labels, setup, teardown)
{
    SCOPED(buf) json = testing_buf(1 << 20);
    SCOPED(buf) got = testing_buf(1 << 20);
    pod_json("cpu.scrape=true cpu.port_name=debug cpu.path=/x/cpu cpu.scheme=http p/scheme=https "
             "p/path=/app/debug/pprof/ service_name=svc service_repository=https://git/x "
             "service_git_ref=v1 service_root_path=cmd/x p/application-name=other",
             CONTAINERS, "Running", &json);
    run_pod(*state, json.data, &got, check_labels, "");
    CHECK_STR(got.data, "side 10.1.2.3:6060 process_cpu", "");
}

static const char *wanted_service;

static void check_service(const struct labels *l, const char *row)
{
    CHECK_STR(labels_get(l, SV("service_name")).p, wanted_service, row);
}

/* The first of these annotations names the service. */
TEST_WITH(test_service_name, setup, teardown)
{
    static const struct text_case rows[] = {
        {"e/service=e", "e"},      {"p/application-name=d", "d"}, {"p/service_name=c", "c"},
        {"o/service.name=b", "b"}, {"service_name=a", "a"},
    };
    SCOPED(buf) annotations = testing_buf(1 << 20);
    buf_puts(&annotations, "p/scrape=true p/port=6060");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) json = testing_buf(1 << 20);
        SCOPED(buf) got = testing_buf(1 << 20);
        buf_printf(&annotations, " %s", rows[i].text);
        pod_json(annotations.data, CONTAINERS, "Running", &json);
        wanted_service = rows[i].want;
        run_pod(*state, json.data, &got, check_service, rows[i].text);
        CHECK_STR(got.data, "side 10.1.2.3:6060" ALL_FIVE, rows[i].text);
    }
}

/* ---- custom rules ---------------------------------------------------------------------------- */

#define OWN(rules)                                                                                 \
    SV("scrape_configs:\n- job_name: own\n  profiles: {goroutine: {enabled: false}, mutex: "       \
       "{enabled: false}, block: {enabled: false}}\n"                                              \
       "  kubernetes_sd_configs: [{role: pod}]\n  relabel_configs:\n"                              \
       "  - {source_labels: [__meta_kubernetes_pod_container_name], target_label: "                \
       "container}\n" rules)

static int setup_rewriting(void **state)
{
    return setup_with(state, OWN("  - {source_labels: [__address__, "
                                 "__meta_kubernetes_pod_annotation_port], regex: "
                                 "'(.+?)(?::\\d+)?;(\\d+)', target_label: __address__, "
                                 "replacement: '$1:$2'}\n"));
}

/* The well-known rule that sets all ports of a pod to the annotated one: scraped once, as the
 * owner. Without the annotation all ports are targets. */
TEST_WITH(test_rewritten_address, setup_rewriting, teardown)
{
    static const struct row rows[] = {
        ROW("declared", "/port=6060", "side 10.1.2.3:6060 memory process_cpu"),
        ROW("undeclared", "/port=1", "main 10.1.2.3:1 memory process_cpu"),
        ROW("none", "",
            "main 10.1.2.3:8080 memory process_cpu | main 10.1.2.3:9090 memory process_cpu | "
            "side 10.1.2.3:6060 memory process_cpu | plain 10.1.2.3 memory process_cpu | "
            "setup 10.1.2.3:7070 memory process_cpu | mesh 10.1.2.3:15000 memory process_cpu"),
    };
    CHECK_ROWS(*state, rows);
}

static int setup_paths(void **state)
{
    return setup_with(state, OWN("  - {source_labels: [__meta_kubernetes_pod_container_name], "
                                 "target_label: __profile_path__, replacement: /$1}\n"
                                 "  - {target_label: __profile_port__, replacement: \"5\"}\n"));
}

/* Another path is another scrape, on the same port too. */
TEST_WITH(test_paths_differ, setup_paths, teardown)
{
    static const struct row rows[] = {
        {"two containers", "",
         "a 10.1.2.3:5 memory process_cpu | b 10.1.2.3:5 memory "
         "process_cpu",
         "\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":1},{\"containerPort\":2}]}"
         ",{\"name\":\"b\"}]",
         "Running"},
    };
    CHECK_ROWS(*state, rows);
}

static int setup_similar_names(void **state)
{
    return setup_with(
        state, SV("scrape_configs:\n- job_name: j\n  kubernetes_sd_configs: [{role: pod}]\n"
                  "  profiles:\n    process_cpu: {enabled: true}\n    memory: {enabled: false}\n"
                  "    custom:\n    - {name: a-b, path: /1}\n"
                  "    - {name: a_b, path: /2}\n    - {name: a.b, path: /3, enabled: false}\n"
                  "  relabel_configs:\n  - {target_label: __profile_a_b_port__, replacement: "
                  "\"6060\"}\nwrite: [{url: \"http://x\"}]\n"));
}

static void check_similar_names(const struct labels *l, const char *row)
{
    CHECK_INT(sv_eq_str(labels_get(l, SV("__profile_a_b_port__")), "6060"), 1, row);
    CHECK_INT(labels_get(l, SV("__profile_a_b_enabled__")).n, 0, row);
    CHECK_INT(sv_eq_str(labels_get(l, SV(LABEL_ADDRESS)), "10.1.2.3:80"), 1, row);
}

/* Types whose names become the same in labels have the same port. One of them is disabled: it does
 * not take the port away from the others. */
TEST_WITH(test_similar_names, setup_similar_names, teardown)
{
    SCOPED(buf) json = testing_buf(1 << 20);
    SCOPED(buf) got = testing_buf(1 << 20);
    pod_json("", "\"containers\":[{\"name\":\"main\",\"ports\":[{\"containerPort\":80}]}]",
             "Running", &json);
    run_pod(*state, json.data, &got, check_similar_names, "");
    assert_true(got.len > 0);
}

/* An IPv6 address keeps its brackets. */
TEST_WITH(test_ipv6, setup, teardown)
{
    SCOPED(buf) got = testing_buf(1 << 20);
    run_pod(*state,
            "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"annotations\":"
            "{\"profiles.grafana.com/cpu.scrape\":\"true\",\"profiles.grafana.com/"
            "cpu.port\":\"6060\"}},"
            "\"spec\":{\"containers\":[{\"name\":\"a\"}]},"
            "\"status\":{\"phase\":\"Running\",\"podIP\":\"fd00::5\"}}",
            &got, NULL, "");
    CHECK_STR(got.data, "a [fd00::5]:6060 process_cpu", "");
}
