/* `profpull explain`: says in words why one pod is scraped or not. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/cluster/pods.h"
#include "cli/discover.h"
#include "cli/explain/pod_lookup.h"

#define ARENA_MAX (UINT64_C(16) * 1024 * 1024)

struct explain_args {
    struct discover_args discover;
    const char *namespace; /* NULL: that of the context */
};

/* Appends NAMESPACE/NAME. The namespace is the given one, or that of the context. */
static bool put_pod(const struct explain_args *args, const struct pods_name *name,
                    struct arena *arena, struct buf *out, struct err *err)
{
    struct cluster_access access = {.is_person = false};
    struct sv namespace = name->namespace;
    if (namespace.n > 0 && args->namespace != NULL && !sv_eq_str(namespace, args->namespace)) {
        return err_set(err, ERR_INPUT, "two namespaces are given: %.*s and %s", SV_ARG(namespace),
                       args->namespace);
    }
    if (namespace.n == 0 && args->namespace != NULL) {
        namespace = sv_from(args->namespace);
    } else if (namespace.n == 0) {
        if (!cluster_access_find(&args->discover.cluster, arena, &access, err)) {
            return false;
        }
        namespace = sv_from(access.access.namespace == NULL ? "default" : access.access.namespace);
    }
    buf_printf(out, "%.*s/%.*s", SV_ARG(namespace), SV_ARG(name->name));
    return buf_ok(out) || err_memory(err);
}

/* Reads the operand: pod/NAME, pod/NAMESPACE/NAME, or NAMESPACE/NAME. */
static bool read_pod(const char *operand, struct pods_name *ret, struct err *err)
{
    if (pod_name_split(operand, &ret->namespace, &ret->name) && !pods_is_name(operand)) {
        return true;
    }
    if (!pods_parse(operand, ret, err)) {
        return false;
    }
    return pods_is_pod(ret) ||
           err_set(err, ERR_INPUT, "\"%s\": expected pod/NAME or pod/NAMESPACE/NAME", operand);
}

static int run_explain(const void *arg, char *const *operands, size_t n)
{
    const struct explain_args *args = arg;
    struct pods_name name = {.kind = NULL};
    struct err err = ERR_INIT;
    struct buf pod;
    if (n != 1) {
        return cmd_usage_error("explain", n == 0 ? "a pod is needed, such as pod/shop/cart-1"
                                                 : "one pod at a time");
    }
    if (!read_pod(operands[0], &name, &err)) {
        return cmd_usage_error("explain", "%s", err.msg);
    }
    struct arena *arena = arena_new(ARENA_MAX);
    buf_init(&pod, (size_t)4 * PODS_NAME_MAX);
    int code = EXIT_INPUT;
    if (arena == NULL || !put_pod(args, &name, arena, &pod, &err)) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        struct discover_args discover = args->discover;
        discover.explain = true;
        discover.only_pod = true;
        discover.pod = pod.data;
        code = discover_run(&discover);
    }
    buf_done(&pod);
    arena_free(arena);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', explain_args, discover.config.file, "FILE",
         "the configuration whose rules are explained, - for standard input; without it, that of "
         "annotated pods",
         .env = "PROFPULL_CONFIG"),
    FLAG(TEXT, "namespace", 'n', explain_args, namespace, "NAME",
         "the namespace of the pod; by default that of the context"),
    CLUSTER_FLAGS(explain_args, discover.cluster),
    FLAG(BOOL, "json", 0, explain_args, discover.json, NULL,
         "print JSON: whether the pod was found and is scraped, and the explanation"),
    FLAG(DURATION, "timeout", 0, explain_args, discover.timeout_ms, "DUR",
         "give up after this time if the cluster has not answered"),
};

const struct command cmd_explain = {
    .name = "explain",
    .summary = "say why a pod is scraped or not, and what to change",
    .usage = "explain pod/NAMESPACE/NAME [--config FILE] [OPTIONS]\n"
             "explain pod/NAME [-n NAMESPACE] [--context NAME] [OPTIONS]",
    .description = "Reads one pod, applies the rules of every job to it, and says in words why it "
                   "is scraped or not, and what to change. Nothing is scraped, and no other pod is "
                   "read. It needs the permission to list and watch pods in the namespace.",
    .exit_codes = "Exit code: 0 the pod is scraped, 1 the configuration is wrong, 2 usage, 3 the "
                  "pod is not scraped, or the cluster did not answer.",
    COMMAND_FLAGS(flags, explain_args),
    .defaults = &(const struct explain_args){.discover.timeout_ms = 30 * MS_PER_S},
    .operands_max = SIZE_MAX,
    .run = run_explain,
};
