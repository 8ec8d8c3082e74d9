/* Values of Alloy's Helm chart: what becomes of them, and that the documentation says so. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/buf.h"
#include "cli/helm/helm.h"
#include "cli/helm/table.h"
#include "config/config.h"
#include "config/file.h"

static char *convert(const char *text, char **ret_report)
{
    struct helm_result r;
    struct err err = ERR_INIT;
    struct buf out = testing_buf(1 << 20);
    if (!helm_convert("v.yaml", sv_from(text), &r, &err)) {
        fail_msg("%s", err.msg);
    }
    assert_true(helm_write(&r, "v.yaml", &out));
    *ret_report = strdup(r.report.data == NULL ? "" : r.report.data);
    helm_done(&r);
    return out.data;
}

TEST(values_are_mapped)
{
    static const struct {
        const char *text;
        const char *values; /* a part of what is written; NULL: only the comment */
        const char *report;
    } rows[] = {
        {"controller: {type: deployment}", "kind: \"Deployment\"", "kind: Deployment"},
        {"controller: {type: daemonset}", "kind: \"DaemonSet\"", "kind: DaemonSet"},
        {"controller: {type: daemonset, replicas: 4}\nalloy: {clustering: {enabled: true}}",
         "kind: \"StatefulSet\"\nreplicas: 4", "share the targets"},
        {"alloy: {configMap: {content: 'pyroscope.a {}'}}", "  inline: |2\n    pyroscope.a {}\n",
         "v.yaml:1:30: unchanged: alloy.configMap.content"},
        {"alloy: {configMap: {content: 'import.file m {}'}}",
         "  inline: |2\n    import.file m {}\n", "v.yaml:1:30: unchanged: alloy.configMap.content"},
        {"alloy: {configMap: {content: 'logging {}'}}", NULL,
         "v.yaml:1:30: ignored: alloy.configMap.content: it has no component of Pyroscope\n"
         "v.yaml: note: it has no configuration"},
        {"alloy: {configMap: {content: [a]}}", NULL, "ignored: alloy.configMap.content"},
        {"# the defaults\n", NULL, "note: it has no configuration"},
        {"---\n", NULL, "note: it has no configuration"},
        {"alloy: {configMap: {content: 'pyroscope.a {{ .Values.x }}'}}", "{{ .Values.x }}",
         "ours does not"},
        {"alloy: {configMap: {create: false, name: m, key: k.alloy}}",
         "{\"name\": \"m\", \"key\": \"k.alloy\"}", "has to exist"},
        {"image: {repository: a, pullSecrets: [{name: b}]}",
         "imagePullSecrets: [{\"name\": \"b\"}]",
         "ignored: image.repository: it is about Alloy's own image"},
        {"configReloader: {enabled: true}", NULL, "ignored: configReloader: profpull reads"},
        {"rbac: {namespaces: [a]}", "rbac: {\"scope\": \"namespace\"}", "mapped: rbac.namespaces"},
        {"unheard: 1", NULL, "v.yaml:1:10: ignored: unheard: no counterpart is known"},
        {"controller: {nodeSelector: {a: '1', b: true, c: 1.0}}",
         "{\"a\": \"1\", \"b\": true, \"c\": \"1.0\"}", "mapped: controller.nodeSelector"},
        {"controller: {nodeSelector: {}, tolerations: [], priorityClassName: ''}", NULL, "note"},
        {"alloy: {alloy: {extraEnv: [{name: a}]}, controller: {type: statefulset}}",
         "extraEnv: [{\"name\": \"a\"}]", "within another chart"},
        {"destinations: [{type: pyroscope, url: 'http://p', tenantId: t}, {type: loki}]\nx: {y: 1}",
         "pyroscope: {\"url\": \"http://p\", \"tenantId\": \"t\"}", "mapped: destinations"},
        {"destinations: {a: {type: pyroscope, url: u}, b: {type: pyroscope, url: v}}",
         "pyroscope: {\"url\": \"u\"}", "a second destination for profiles"},
        {"ingress: {enabled: true, hosts: [h]}",
         "\"hosts\": [{\"host\": \"h\", \"paths\": [{\"path\": \"/\"}]}]", "mapped: ingress"},
        {"ingress: {enabled: false, hosts: [h]}", NULL, "note"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_MEMORY char *report;
        SCOPED_MEMORY char *values = convert(rows[i].text, &report);
        if (rows[i].values == NULL) {
            assert_null(strstr(values, ": "));
        } else {
            CHECK_CONTAINS(values, rows[i].values, rows[i].text);
        }
        CHECK_CONTAINS(report, rows[i].report, rows[i].text);
    }
}

TEST(other_texts_are_refused_with_their_place)
{
    struct helm_result r;
    struct err err = ERR_INIT;
    assert_false(helm_convert("v.yaml", SV("[1]"), &r, &err));
    CHECK_STR(err.msg, "v.yaml: expected a mapping, the values of a Helm chart", "");
    helm_done(&r);
    err_clear(&err);
    assert_false(helm_convert("v.yaml", SV("a: {"), &r, &err));
    CHECK_CONTAINS(err.msg, "v.yaml:", "");
    helm_done(&r);
}

TEST(every_row_is_documented)
{
    struct err err = ERR_INIT;
    const struct helm_row *row;
    SCOPED(buf) docs = testing_buf(CONFIG_FILE_MAX + 1);
    assert_true(file_read("docs/migrating.md", CONFIG_FILE_MAX, &docs, &err));
    for (size_t i = 0; (row = helm_row_at(i)) != NULL; i++) {
        char want[256];
        snprintf(want, sizeof(want), "\n| `%s` | %s%s%s |", row->path, row->to == NULL ? "-" : "`",
                 row->to == NULL ? "" : row->to, row->to == NULL ? "" : "`");
        if (strstr(docs.data, want) == NULL) {
            fail_msg("docs/migrating.md has no row%s", want);
        }
    }
}
