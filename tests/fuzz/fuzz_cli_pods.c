/* Objects of an API server as pods and workloads, and any text as the name of one: no control
 * character reaches a message, and no name gets into a path that is not one of Kubernetes. */
#include <string.h>

#include "cli/cluster/pods.h"
#include "tests/fuzz/fuzz.h"

static void check_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        REQUIRE(strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", v.p[i]) != NULL);
    }
}

static void read_object(const json_t *root)
{
    static const char *const names[] = {"pod/a", "deploy/a", "svc/a", "job/b/c"};
    struct buf out;
    buf_init(&out, (size_t)64 * 1024 * 1024);
    pods_describe(root, &out);
    for (size_t i = 0; i < out.len; i++) {
        REQUIRE((unsigned char)out.data[i] >= ' ');
    }
    (void)pods_has_address(root);
    (void)pods_meta(root, "name");
    for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
        struct pods_name name;
        struct err err = ERR_INIT;
        REQUIRE(pods_parse(names[i], &name, &err));
        pods_put_selector(&name, root, &out);
    }
    buf_done(&out);
}

FUZZ(in)
{
    struct pods_name name;
    struct err err = ERR_INIT;
    char *text = strndup(in.p, in.n);
    REQUIRE(text != NULL);
    bool known = pods_is_name(text);
    if (pods_parse(text, &name, &err)) {
        REQUIRE(known);
        REQUIRE(name.name.n > 0);
        check_name(name.name);
        check_name(name.namespace);
    } else {
        REQUIRE(err.kind == ERR_INPUT);
    }
    free(text);
    json_t *root = json_loadb(in.p, in.n, 0, NULL);
    if (root != NULL) {
        read_object(root);
        json_decref(root);
    }
}
