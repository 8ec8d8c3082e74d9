/* profpull: pull-mode continuous profiling for Kubernetes.
 *
 * This file picks the subcommand; cli/ holds them, agent/app.c wires the rooms. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

static const char help[] =
    "Usage: profpull COMMAND [OPTIONS]\n"
    "\n"
    "Pulls /debug/pprof profiles from discovered targets and pushes them to Pyroscope-compatible\n"
    "servers.\n"
    "\n"
    "  run        discover, scrape and push until stopped\n"
    "  check      read a configuration and report every mistake in it\n"
    "  discover   print the targets that are found now\n"
    "  relabel    run relabel rules over label sets from standard input\n"
    "  scrape     fetch one profile now and say what it is\n"
    "  import     push profiles that lie in files\n"
    "  verify     send a tiny profile to each endpoint and read it back\n"
    "  spool      show what waits on disk, or whether it is damaged\n"
    "  version    print the version\n"
    "\n"
    "`profpull COMMAND --help` says more. Exit codes: 0 done, 1 wrong input or configuration,\n"
    "2 usage, 3 the other side failed.\n";

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"run", cmd_run},         {"check", cmd_check},   {"discover", cmd_discover},
    {"relabel", cmd_relabel}, {"scrape", cmd_scrape}, {"import", cmd_import},
    {"verify", cmd_verify},   {"spool", cmd_spool},   {"version", cmd_version},
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return cmd_help(help);
    }
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            curl_global_init(CURL_GLOBAL_DEFAULT);
            int code = commands[i].run(argc - 1, argv + 1);
            curl_global_cleanup();
            return code;
        }
    }
    const char *names[sizeof(commands) / sizeof(commands[0])];
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        names[i] = commands[i].name;
    }
    const char *near = suggest(sv_from(argv[1]), names, sizeof(names) / sizeof(names[0]));
    fprintf(stderr, "profpull: unknown command \"%s\"%s%s%s\n\n%s", argv[1],
            near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
            near == NULL ? "" : "\"?", help);
    return EXIT_USAGE;
}
