/* profpull: pull-mode continuous profiling for Kubernetes.
 *
 * This file picks the subcommand; cli/ holds them, agent/app.c wires the rooms. */
#include <curl/curl.h>
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
    int code = command_main(c, argc - 1, argv + 1);
    curl_global_cleanup();
    return code;
}
