#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/convert_diff.h"
#include "cli/helm/helm.h"
#include "config/file.h"
#include "config/migrate.h"
#include "write/protocol.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)

struct convert_args {
    bool strict;
    bool helm_values;
    const char *targets; /* --diff; NULL: print the YAML */
};

/* Loads the file and the YAML made from it, and compares the targets, labels and scrapes that both
 * make of a list. */
static int diff(const char *path, const char *targets, struct buf *text,
                const struct config_options *options, struct config_errors *errors)
{
    const struct config_options quiet = {.check_rule = options->check_rule,
                                         .languages = options->languages,
                                         .protocols = options->protocols};
    struct config *file = config_load(path, &quiet, errors);
    struct config *converted =
        file == NULL
            ? NULL
            : config_parse("converted YAML", (struct sv){text->data, text->len}, &quiet, errors);
    int code = EXIT_INPUT;
    if (converted != NULL) {
        code = convert_diff(file, converted, targets);
    } else {
        cmd_print_errors(errors);
    }
    config_unref(file);
    config_unref(converted);
    buf_done(text);
    return code;
}

static int convert(const char *path, const struct convert_args *args,
                   const struct config_options *options, struct config_errors *errors)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool ok = config_convert(path, options, errors, &text);
    size_t n = config_errors_count(errors) + config_errors_more(errors);
    size_t warnings = config_errors_count(options->warnings);
    if (n > 0) {
        cmd_print_errors(errors);
        fprintf(stderr, "profpull: %s has %zu error%s\n", path, n, n == 1 ? "" : "s");
    } else if (args->strict && warnings > 0) {
        cmd_print_messages(options->warnings, "warning");
        fprintf(stderr, "profpull: %s has %zu warning%s\n", path, warnings,
                warnings == 1 ? "" : "s");
        ok = false;
    }
    if (ok || n > 0 || warnings > 0) {
        if (ok) {
            return args->targets != NULL ? diff(path, args->targets, &text, options, errors)
                                         : cmd_print(true, &text, stdout);
        }
        buf_done(&text);
        return EXIT_INPUT;
    }
    return cmd_print(false, &text, stdout);
}

/* Checks a configuration in Alloy's language that becomes a value of the chart. The reader takes a
 * file, and knows the language by the end of its name. */
static bool check_inline(const char *path, const char *text)
{
    char name[] = "/tmp/profpull-XXXXXX.alloy";
    int fd = mkstemps(name, (int)strlen(".alloy"));
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = file != NULL && fputs(text, file) >= 0;
    ok = (file == NULL || fclose(file) == 0) && ok;
    if (!ok) {
        struct err err = ERR_INIT;
        err_sys(&err, "%s", name);
        (void)cmd_fail(EXIT_INPUT, &err);
    }
    struct cmd_config_flags which = {.file = name};
    struct config_errors *errors = config_errors_new();
    struct config_errors *warnings = config_errors_new();
    struct config *config = ok && errors != NULL && warnings != NULL
                                ? cmd_reload_config(&which, errors, warnings)
                                : NULL;
    for (size_t i = 0; errors != NULL && i < config_errors_count(errors); i++) {
        const struct config_error *e = config_errors_at(errors, i);
        fprintf(stderr, "%s: alloy.configMap.content: line %d, column %d: %s%s%s\n", path,
                e->pos.line, e->pos.column, e->path, e->path[0] == '\0' ? "" : ": ", e->message);
    }
    ok = config != NULL;
    config_unref(config);
    config_errors_free(errors);
    config_errors_free(warnings);
    if (fd >= 0) {
        (void)unlink(name);
    }
    return ok;
}

/* Prints the values on stdout, and what becomes of each one on stderr. */
static int print_values(const char *path, const struct helm_result *r, bool strict)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    fwrite(r->report.data, 1, r->report.len, stderr);
    if (r->config != NULL && !check_inline(path, r->config)) {
        fprintf(stderr, "profpull: the configuration in %s has errors for profpull\n", path);
        return EXIT_INPUT;
    }
    if (strict && r->ignored > 0) {
        fprintf(stderr, "profpull: %s has %zu values that are ignored\n", path, r->ignored);
        return EXIT_INPUT;
    }
    return cmd_print(helm_write(r, path, &text), &text, stdout);
}

static int convert_values(const char *path, bool strict)
{
    struct buf text;
    struct helm_result result = {.values = NULL};
    struct err err = ERR_INIT;
    buf_init(&text, CONFIG_FILE_MAX + 1);
    bool ok = file_read(path, CONFIG_FILE_MAX, &text, &err) || err_wrap(&err, "%s", path);
    ok = ok && helm_convert(path, (struct sv){text.data, text.len}, &result, &err);
    int code = ok ? print_values(path, &result, strict) : cmd_fail(EXIT_INPUT, &err);
    helm_done(&result);
    buf_done(&text);
    return code;
}

static int run_convert(const void *arg, char *const *operands, size_t n)
{
    const struct convert_args *args = arg;
    if (n == 0) {
        return cmd_usage_error("convert", "the FILE to convert is missing");
    }
    if (args->helm_values) {
        return args->targets != NULL
                   ? cmd_usage_error("convert", "--helm-values and --diff exclude each other")
                   : convert_values(operands[0], args->strict);
    }
    if (args->targets != NULL && strcmp(operands[0], "-") == 0) {
        return cmd_usage_error("convert", "--diff reads the FILE twice: standard input cannot be");
    }
    if (args->targets != NULL && migrate_is_yaml(operands[0], SV(""))) {
        return cmd_usage_error("convert",
                               "--diff compares a configuration of Alloy with its YAML, but %s is "
                               "YAML",
                               operands[0]);
    }
    struct config_errors *errors = config_errors_new();
    struct config_errors *warnings = config_errors_new();
    struct config_errors *notes = config_errors_new();
    const struct config_options options = {
        .check_rule = cmd_check_rule,
        .languages = cmd_languages,
        .protocols = write_protocols(),
        .warnings = warnings,
        .notes = notes,
    };
    int code = EXIT_INPUT;
    if (errors == NULL || warnings == NULL || notes == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else {
        code = convert(operands[0], args, &options, errors);
    }
    config_errors_free(errors);
    config_errors_free(warnings);
    config_errors_free(notes);
    return code;
}

static const struct flag flags[] = {
    FLAG(BOOL, "strict", 0, convert_args, strict, NULL,
         "refuse a file if a part of it about profiles is left out or changed"),
    FLAG(BOOL, "helm-values", 0, convert_args, helm_values, NULL,
         "FILE has values of Alloy's Helm chart, or of one that contains it (Pyroscope's, "
         "k8s-monitoring): print values of profpull's chart, and on standard error which values "
         "run unchanged, which are mapped, and which are ignored and why"),
    FLAG(TEXT, "diff", 0, convert_args, targets, "TARGETS",
         "print no YAML: apply the Alloy file and its YAML to the discovered targets in this file "
         "(the format of file_sd_configs), and print the scrapes that only one of them makes"),
};

const struct command cmd_convert = {
    .name = "convert",
    .summary = "print a configuration of Alloy, Parca or the Pyroscope agent as YAML",
    .usage = "convert [--strict] [--diff TARGETS] FILE\n"
             "convert --helm-values [--strict] FILE",
    .description =
        "Prints a configuration in YAML that does the same as FILE: a configuration of Grafana "
        "Alloy "
        "(*.alloy) or a directory of such files, or the YAML of Parca, of the Pyroscope "
        "agent or Prometheus-style scrape_configs (*.yaml, *.yml, *.json). Comments name the parts "
        "that are left out, and those that mean something else. `profpull run --config FILE` "
        "takes an Alloy file as it is.",
    .exit_codes =
        "Exit code: 0 done, 1 the file has errors, or with --strict warnings, or --diff finds "
        "a difference, 2 usage.",
    COMMAND_FLAGS(flags, convert_args),
    .operands_max = 1,
    .run = run_convert,
};
