#include <stdio.h>

#include "cli/cmd.h"
#include "write/protocol.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)

struct convert_args {
    bool strict;
};

static int convert(const char *path, bool strict, const struct config_options *options,
                   struct config_errors *errors)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool ok = config_convert(path, options, errors, &text);
    size_t n = config_errors_count(errors) + config_errors_more(errors);
    size_t warnings = config_errors_count(options->warnings);
    if (n > 0) {
        cmd_print_errors(errors);
        fprintf(stderr, "profpull: %s has %zu error%s\n", path, n, n == 1 ? "" : "s");
    } else if (strict && warnings > 0) {
        cmd_print_messages(options->warnings, "warning");
        fprintf(stderr, "profpull: %s has %zu warning%s\n", path, warnings,
                warnings == 1 ? "" : "s");
        ok = false;
    }
    if (ok || n > 0 || warnings > 0) {
        if (ok) {
            return cmd_print(true, &text, stdout);
        }
        buf_done(&text);
        return EXIT_INPUT;
    }
    return cmd_print(false, &text, stdout);
}

static int run_convert(const void *arg, char *const *operands, size_t n)
{
    const struct convert_args *args = arg;
    if (n == 0) {
        return cmd_usage_error("convert", "the FILE to convert is missing");
    }
    struct config_errors *errors = config_errors_new();
    struct config_errors *warnings = config_errors_new();
    struct config_errors *notes = config_errors_new();
    const struct config_options options = {
        .check_rule = cmd_check_rule,
        .protocols = write_protocols(),
        .warnings = warnings,
        .notes = notes,
    };
    int code = EXIT_INPUT;
    if (errors == NULL || warnings == NULL || notes == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else {
        code = convert(operands[0], args->strict, &options, errors);
    }
    config_errors_free(errors);
    config_errors_free(warnings);
    config_errors_free(notes);
    return code;
}

static const struct flag flags[] = {
    FLAG(BOOL, "strict", 0, convert_args, strict, NULL,
         "refuse a file of which something about profiles is left out or changed"),
};

const struct command cmd_convert = {
    .name = "convert",
    .summary = "print a configuration of Alloy, Parca or the Pyroscope agent as YAML",
    .usage = "convert [--strict] FILE",
    .description =
        "Prints the YAML that says the same as FILE: a configuration of Grafana Alloy "
        "(*.alloy) or a directory of such files, or the YAML of Parca, of the Pyroscope "
        "agent or Prometheus-style scrape_configs (*.yaml, *.yml, *.json). Comments name "
        "what is left out, and what means something else. `profpull run --config FILE` "
        "takes an Alloy file as it is.",
    .exit_codes = "Exit code: 0 done, 1 the file has errors, or with --strict warnings, 2 usage.",
    COMMAND_FLAGS(flags, convert_args),
    .operands_max = 1,
    .run = run_convert,
};
