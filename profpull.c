/* profpull: pull-mode continuous profiling for Kubernetes.
 *
 * This file picks the subcommand; cli/ holds them, agent/app.c wires the rooms. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cmd.h"

#define COMMANDS_MAX 32

static void print_help(FILE *out)
{
    const struct command *c;
    fputs("Usage: profpull COMMAND [OPTIONS]\n"
          "\n"
          "Pulls /debug/pprof profiles from discovered targets and pushes them to "
          "Pyroscope-compatible\n"
          "servers.\n"
          "\n",
          out);
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        fprintf(out, "  %-10s %s\n", c->name, c->summary);
    }
    fputs(
        "\n"
        "`profpull COMMAND --help` says more. Exit codes: 0 done, 1 wrong input or configuration,\n"
        "2 usage, 3 the other side failed.\n",
        out);
}

static int fail_unknown(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t n = 0;
    for (; n < COMMANDS_MAX && command_at(n) != NULL; n++) {
        names[n] = command_at(n)->name;
    }
    const char *near = suggest(sv_from(name), names, n);
    fprintf(stderr, "profpull: unknown command \"%s\"%s%s%s\n\n", name,
            near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
            near == NULL ? "" : "\"?");
    print_help(stderr);
    return EXIT_USAGE;
}

/* A core dump would hold every credential. The hard limit stays, so that `prlimit --core` can allow
 * one. */
static void forbid_core_dumps(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &limit);
    }
}

int main(int argc, char **argv)
{
    const struct command *c;
    forbid_core_dumps();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_DONE;
    }
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        if (strcmp(name, c->name) == 0) {
            curl_global_init(CURL_GLOBAL_DEFAULT);
            int code = command_main(c, argc - 1, argv + 1);
            curl_global_cleanup();
            return code;
        }
    }
    return fail_unknown(name);
}
