/* `profpull verify`: sends a tiny profile to each endpoint, and checks that it can be found there.
 */
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/verify/verify.h"

struct verify_args {
    struct cmd_config_flags config;
    struct verify_options options;
};

static int run_verify(const void *arg, char *const *operands, size_t n)
{
    const struct verify_args *args = arg;
    struct verify_options options = args->options;
    const char *url = options.deepflow_querier;
    struct err err = ERR_INIT;
    bool all_work = false;
    (void)operands;
    (void)n;
    if (args->config.file == NULL) {
        return cmd_usage_error("verify", "--config is needed, or PROFPULL_CONFIG");
    }
    if (url != NULL && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return cmd_usage_error("verify", "--deepflow-querier: expected a URL such as "
                                         "\"http://server:20416\"");
    }
    options.config = cmd_load_config(&args->config);
    if (options.config == NULL) {
        return EXIT_INPUT;
    }
    int code = verify_run(&options, &all_work, &err) ? cmd_flush(all_work ? EXIT_DONE : EXIT_PEER)
                                                     : cmd_fail(EXIT_INPUT, &err);
    config_unref(options.config);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', verify_args, config.file, "FILE", "the configuration",
         .env = "PROFPULL_CONFIG"),
    FLAG(TEXT, "endpoint", 0, verify_args, options.only, "NAME", "test this endpoint only"),
    FLAG(DURATION, "timeout", 0, verify_args, options.timeout_ms, "DUR",
         "time limit for a profile to be found; four times as long if the tenant of a Pyroscope "
         "was empty",
         .min = 1),
    FLAG(BOOL, "json", 0, verify_args, options.json, NULL,
         "print a line of JSON for each endpoint"),
    FLAG(TEXT, "deepflow-querier", 0, verify_args, options.deepflow_querier, "URL",
         "the querier of the DeepFlow server (http://SERVER:20416)"),
};

const struct command cmd_verify = {
    .name = "verify",
    .summary = "send a tiny profile to each endpoint and read it back",
    .usage = "verify --config FILE [OPTIONS]",
    .description =
        "Sends one tiny profile of the service profpull-verify to each endpoint of a configuration "
        "and reads it back where the server can be asked: Pyroscope by its querier at the same "
        "URL, profefe by its list, a file endpoint by its files, DeepFlow with --deepflow-querier.",
    .exit_codes = "Exit code: 0 all endpoints work; 1 the configuration is wrong; 2 usage; 3 at "
                  "least one does not work.",
    COMMAND_FLAGS(flags, verify_args),
    .defaults = &(const struct verify_args){.options.timeout_ms = 30 * MS_PER_S},
    .run = run_verify,
};
