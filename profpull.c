/* profpull: pull-mode continuous profiling for Kubernetes.
 *
 * This file picks the subcommand; cli/ holds them, agent/app.c wires the rooms. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cmd.h"

/* A core dump would hold every credential. One byte, since the kernel gives a program such as
 * systemd-coredump whole dumps with a limit of 0, and none with 1. The hard limit stays, so that
 * `prlimit --core` can allow one. */
static void forbid_core_dumps(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
        (void)setrlimit(RLIMIT_CORE, &limit);
    }
}

/* Returns true if kubectl has started us: its plugins are programs called kubectl-NAME. */
static bool is_plugin(const char *program)
{
    const char *slash = strrchr(program, '/');
    return strcmp(slash == NULL ? program : slash + 1, "kubectl-profpull") == 0;
}

/* Runs a command. For kubectl, commands that can ask a server or the cluster ask the cluster. */
static int run_command(const struct command *c, int argc, char **argv)
{
    static char flag[] = "--cluster";
    bool in_cluster = is_plugin(argv[0]) && command_has_flag(c, "cluster");
    char **args = calloc((size_t)argc + 2, sizeof(*args));
    if (args == NULL) {
        fputs("profpull: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    int n = 0;
    for (int i = 1; i < argc; i++) {
        args[n++] = argv[i];
        if (i == 1 && in_cluster) {
            args[n++] = flag;
        }
    }
    int code = command_main(c, n, args);
    free(args);
    return code;
}

int main(int argc, char **argv)
{
    forbid_core_dumps();
    if (argc < 2) {
        command_list(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        name = "version";
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    }
    const struct command *c = command_named(name);
    if (c == NULL) {
        return command_unknown(name);
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int code = run_command(c, argc, argv);
    curl_global_cleanup();
    return code;
}
