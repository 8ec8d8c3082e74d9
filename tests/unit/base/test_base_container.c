/* Signs of a container: variables, and files in a directory that stands for the root. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/container.h"

static const char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static const char *empty_variable(const char *name)
{
    (void)name;
    return "";
}

static const char *in_kubernetes(const char *name)
{
    return strcmp(name, "KUBERNETES_SERVICE_HOST") == 0 ? "10.0.0.1" : NULL;
}

static const char *in_podman(const char *name)
{
    return strcmp(name, "container") == 0 ? "podman" : NULL;
}

TEST(signs_of_a_container)
{
    static const struct {
        const char *name;
        const char *(*env)(const char *name);
        const char *file;
        bool is_around;
    } rows[] = {
        {"a machine", no_variable, NULL, false},
        {"empty variables", empty_variable, NULL, false},
        {"Kubernetes", in_kubernetes, NULL, true},
        {"Podman's variable", in_podman, NULL, true},
        {"Docker's file", no_variable, ".dockerenv", true},
        {"Podman's file", no_variable, "run/.containerenv", true},
        {"another file", no_variable, "run/other", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_DIRECTORY char *root = testing_mkdtemp();
        char run[4096];
        (void)snprintf(run, sizeof(run), "%s/run", root);
        assert_int_equal(mkdir(run, 0700), 0);
        if (rows[i].file != NULL) {
            testing_write_file(root, rows[i].file, "");
        }
        CHECK_INT(container_is_around(root, rows[i].env), rows[i].is_around, rows[i].name);
    }
}
