/* `profpull verify`: a tiny profile to each endpoint, and the question whether it is there. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/verify/verify.h"

static const char help[] =
    "Usage: profpull verify --config FILE [OPTIONS]\n"
    "\n"
    "Sends one tiny profile of the service profpull-verify to each endpoint of a configuration\n"
    "and reads it back where the server can be asked: Pyroscope by its querier at the same URL,\n"
    "profefe by its list, a file endpoint by its files, DeepFlow with --deepflow-querier.\n"
    "\n"
    "  -c, --config FILE            the configuration\n"
    "      --endpoint NAME          this endpoint only\n"
    "      --timeout DUR            how long a profile may take to be found (30s)\n"
    "      --deepflow-querier URL   the querier of the DeepFlow server (http://SERVER:20416)\n"
    "\n"
    "Exit code: 0 all endpoints work; 1 the configuration is wrong; 2 usage; 3 at least one does\n"
    "not work.\n";

enum { OPT_ENDPOINT = 256, OPT_TIMEOUT, OPT_QUERIER };

static bool take_option(const char *name, int c, const char **ret_config,
                        struct verify_options *options)
{
    switch (c) {
    case 'c':
        *ret_config = optarg;
        return true;
    case OPT_ENDPOINT:
        options->only = optarg;
        return true;
    case OPT_QUERIER:
        options->deepflow_querier = optarg;
        return true;
    case OPT_TIMEOUT:
        return cmd_parse_duration(name, "--timeout", optarg, &options->timeout_ms);
    default:
        cmd_usage_error(name, "see above");
        return false;
    }
}

static const char *problem(const struct verify_options *options, const char *file, bool rest)
{
    const char *url = options->deepflow_querier;
    if (file == NULL) {
        return "--config is needed";
    }
    if (rest) {
        return "unexpected argument";
    }
    if (options->timeout_ms == 0) {
        return "--timeout: expected more than 0";
    }
    if (url != NULL && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return "--deepflow-querier: expected a URL such as \"http://server:20416\"";
    }
    return "";
}

static int verify(const char *file, struct verify_options *options)
{
    struct cmd_config_flags flags = {.file = file};
    struct err err = ERR_INIT;
    bool all_work = false;
    int code;
    options->config = cmd_load_config(&flags);
    if (options->config == NULL) {
        return EXIT_INPUT;
    }
    if (!verify_run(options, &all_work, &err)) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else if (fflush(stdout) != 0) {
        err_sys(&err, "standard output");
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        code = all_work ? EXIT_DONE : EXIT_PEER;
    }
    config_unref(options->config);
    return code;
}

int cmd_verify(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"config", required_argument, NULL, 'c'},
        {"endpoint", required_argument, NULL, OPT_ENDPOINT},
        {"timeout", required_argument, NULL, OPT_TIMEOUT},
        {"deepflow-querier", required_argument, NULL, OPT_QUERIER},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct verify_options options = {.timeout_ms = 30000};
    const char *file = NULL;
    int c;
    while ((c = getopt_long(argc, argv, "c:h", long_options, NULL)) != -1) {
        if (c == 'h') {
            return cmd_help(help);
        }
        if (!take_option(argv[0], c, &file, &options)) {
            return EXIT_USAGE;
        }
    }
    const char *wrong = problem(&options, file, optind != argc);
    if (wrong[0] != '\0') {
        return cmd_usage_error(argv[0], "%s", wrong);
    }
    return verify(file, &options);
}
