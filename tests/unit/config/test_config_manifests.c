/* The manifests are YAML, grant no more than list and watch, and run the program without privileges
 * and without any configuration but the URL. Reads manifests/ of the project. */
#include "tests/unit/lib/testing.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>

#include "base/arena.h"
#include "config/yaml.h"

#define FILES_MAX 64
#define DOCUMENT_MAX ((size_t)1 << 20)

static char *read_file(const char *path)
{
    struct buf text = testing_read_file(path);
    assert_true(text.len > 0 && text.len < DOCUMENT_MAX - 1);
    return buf_take(&text, NULL);
}

static const char *text_of(const struct yaml_node *n)
{
    return n == NULL || n->kind != YAML_SCALAR ? "" : n->text.p;
}

/* The node that a path such as "spec/template/spec" leads to, or NULL; "0" is the first of a list.
 */
static const struct yaml_node *at(const struct yaml_node *n, const char *path)
{
    struct sv rest = sv_from(path);
    while (n != NULL && rest.n > 0) {
        struct sv key = rest;
        char name[64];
        if (!sv_cut(rest, '/', &key, &rest)) {
            rest = SV("");
        }
        snprintf(name, sizeof(name), "%.*s", SV_ARG(key));
        n = n->kind == YAML_LIST && n->items != NULL ? n->items->value : yaml_get(n, name);
    }
    return n;
}

static bool lists(const struct yaml_node *list, const char *text)
{
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        if (strcmp(text_of(list->items[i].value), text) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- each document --------------------------------------------------------------------------- */

struct counts {
    size_t documents, roles, workloads, bindings;
};

/* Only list and watch, and only of the resources that discovery reads. */
static void check_rules(const struct yaml_node *document, const char *file)
{
    static const char *const readable[] = {"pods",      "nodes",          "services", "namespaces",
                                           "endpoints", "endpointslices", "ingresses"};
    const struct yaml_node *rules = at(document, "rules");
    assert_non_null(rules);
    assert_true(rules->n_items > 0);
    for (size_t i = 0; i < rules->n_items; i++) {
        const struct yaml_node *verbs = yaml_get(rules->items[i].value, "verbs");
        const struct yaml_node *resources = yaml_get(rules->items[i].value, "resources");
        CHECK_INT(verbs->n_items, 2, file);
        assert_true(lists(verbs, "list") && lists(verbs, "watch"));
        assert_true(resources->n_items > 0);
        size_t known = 0;
        for (size_t r = 0; r < sizeof(readable) / sizeof(readable[0]); r++) {
            known += lists(resources, readable[r]) ? 1 : 0;
        }
        CHECK_INT(known, resources->n_items, file);
    }
}

static void check_binding(const struct yaml_node *document, const char *file)
{
    CHECK_STR(text_of(at(document, "subjects/0/kind")), "ServiceAccount", file);
    CHECK_STR(text_of(at(document, "subjects/0/name")), "profpull", file);
    /* kustomize fills in the namespace of the ServiceAccount, unless one is written here: that one
     * would stay when the user sets another namespace in kustomization.yaml. */
    assert_null(at(document, "subjects/0/namespace"));
}

static void check_equal(const struct yaml_node *document, const char *path, const char *want,
                        const char *file)
{
    char row[256];
    snprintf(row, sizeof(row), "%s: %s", file, path);
    CHECK_STR(text_of(at(document, path)), want, row);
}

#define POD "spec/template/spec"
#define CONTAINER POD "/containers/0"

static void check_workload(const struct yaml_node *d, const char *file)
{
    check_equal(d, POD "/serviceAccountName", "profpull", file);
    check_equal(d, POD "/automountServiceAccountToken", "true", file);
    check_equal(d, POD "/securityContext/runAsNonRoot", "true", file);
    check_equal(d, POD "/securityContext/seccompProfile/type", "RuntimeDefault", file);
    check_equal(d, CONTAINER "/securityContext/allowPrivilegeEscalation", "false", file);
    check_equal(d, CONTAINER "/securityContext/readOnlyRootFilesystem", "true", file);
    check_equal(d, CONTAINER "/securityContext/privileged", "", file);
    check_equal(d, CONTAINER "/livenessProbe/httpGet/path", "/-/healthy", file);
    check_equal(d, CONTAINER "/readinessProbe/httpGet/path", "/-/ready", file);
    assert_true(lists(at(d, CONTAINER "/securityContext/capabilities/drop"), "ALL"));
    assert_true(text_of(at(d, CONTAINER "/resources/requests/cpu"))[0] != '\0');
    assert_true(text_of(at(d, CONTAINER "/resources/limits/memory"))[0] != '\0');
    assert_null(at(d, POD "/hostNetwork"));
    assert_null(at(d, POD "/hostPID"));
    assert_null(at(d, POD "/volumes/0/hostPath"));
    assert_true(lists(at(d, CONTAINER "/args"), "run"));
}

static void check_document(const struct yaml_node *d, const char *file, struct counts *counts)
{
    const char *kind = text_of(yaml_get(d, "kind"));
    counts->documents++;
    assert_true(kind[0] != '\0');
    assert_true(text_of(yaml_get(d, "apiVersion"))[0] != '\0');
    if (strcmp(kind, "Kustomization") != 0 && strcmp(kind, "Component") != 0) {
        assert_true(text_of(at(d, "metadata/name"))[0] != '\0');
    }
    if (strcmp(kind, "Role") == 0 || strcmp(kind, "ClusterRole") == 0) {
        counts->roles++;
        check_rules(d, file);
    } else if (strcmp(kind, "RoleBinding") == 0 || strcmp(kind, "ClusterRoleBinding") == 0) {
        counts->bindings++;
        check_binding(d, file);
    } else if (strcmp(kind, "Deployment") == 0 || strcmp(kind, "DaemonSet") == 0 ||
               strcmp(kind, "StatefulSet") == 0) {
        counts->workloads++;
        check_workload(d, file);
    }
}

static void check_text(struct sv text, const char *file, struct counts *counts)
{
    SCOPED(arena) *arena = arena_new(64 << 20);
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct err err = ERR_INIT;
    assert_non_null(arena);
    CHECK(yaml_parse(text, arena, &root, &place, &err), "%s: line %d of a document: %s", file,
          place.line, err.msg);
    if (root != NULL && yaml_get(root, "kind") != NULL) {
        check_document(root, file, counts);
    }
}

/* Every file; some hold several documents. */
static void check_file(const char *file, struct counts *counts)
{
    SCOPED_MEMORY char *text = read_file(file);
    char *start = text;
    char *end;
    while ((end = strstr(start, "\n---\n")) != NULL) {
        check_text((struct sv){start, (size_t)(end - start) + 1}, file, counts);
        start = end + 5;
    }
    check_text(sv_from(start), file, counts);
}

TEST(documents_are_what_they_should_be)
{
    static const char *const patterns[] = {"manifests/*.yaml", "manifests/*/*.yaml",
                                           "manifests/*/*/*.yaml"};
    struct counts counts = {0};
    for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
        glob_t found;
        assert_int_equal(glob(patterns[p], 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++) {
            check_file(found.gl_pathv[i], &counts);
        }
        globfree(&found);
    }
    assert_true(counts.documents >= 10);
    assert_true(counts.roles >= 2 && counts.bindings >= 2 && counts.workloads >= 2);
}

/* The permissions for the discovery of pods, which the built-in configuration does. */
TEST(least_privilege)
{
    static const char *const files[] = {"manifests/cluster/clusterrole.yaml",
                                        "manifests/namespaced/role.yaml"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        SCOPED(arena) *arena = arena_new(64 << 20);
        struct yaml_place place;
        struct err err = ERR_INIT;
        const struct yaml_node *root = NULL;
        SCOPED_MEMORY char *text = read_file(files[i]);
        *strstr(text, "\n---\n") = '\0';
        assert_true(yaml_parse(sv_from(text), arena, &root, &place, &err));
        const struct yaml_node *rules = at(root, "rules");
        CHECK_INT(rules->n_items, 1, files[i]);
        CHECK_INT(at(rules, "0/resources")->n_items, 1, files[i]);
        CHECK_STR(text_of(at(rules, "0/resources/0")), "pods", files[i]);
        CHECK_INT(at(rules, "0/apiGroups")->n_items, 1, files[i]);
        CHECK_STR(text_of(at(rules, "0/apiGroups/0")), "", files[i]);
    }
}
