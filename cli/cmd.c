#include "cli/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "alloy/alloy.h"
#include "base/cgroup.h"
#include "base/container.h"
#include "base/str.h"
#include "relabel/relabel.h"
#include "write/protocol.h"

#define COMMANDS_MAX 32

const struct command *command_at(size_t i)
{
    static const struct command *const commands[] = {
        &cmd_run,    &cmd_check,     &cmd_discover,   &cmd_explain, &cmd_relabel, &cmd_scrape,
        &cmd_import, &cmd_verify,    &cmd_status,     &cmd_query,   &cmd_flame,   &cmd_open,
        &cmd_pgo,    &cmd_jfr,       &cmd_mcp,        &cmd_store,   &cmd_spool,   &cmd_convert,
        &cmd_reload, &cmd_log_level, &cmd_completion, &cmd_help,    &cmd_version,
    };
    return i < sizeof(commands) / sizeof(commands[0]) ? commands[i] : NULL;
}

const struct command *command_named(const char *name)
{
    size_t i = 0;
    while (command_at(i) != NULL && strcmp(command_at(i)->name, name) != 0) {
        i++;
    }
    return command_at(i);
}

void command_list(FILE *out)
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
        fprintf(out, "  %-11s %s\n", c->name, c->summary);
    }
    fputs(
        "\n"
        "`profpull COMMAND --help` says more. Exit codes: 0 done, 1 wrong input or configuration,\n"
        "2 usage, 3 a server, a target or a cluster failed.\n",
        out);
}

int command_unknown(const char *name)
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
    command_list(stderr);
    return EXIT_USAGE;
}

const struct config_language *const cmd_languages[] = {&alloy_language, NULL};

bool cmd_check_rule(void *arg, const struct config_rule *rule, struct err *err)
{
    (void)arg;
    return relabel_check_rule(rule, err);
}

void cmd_print_errors(const struct config_errors *errors)
{
    struct buf text;
    buf_init(&text, 16 * 1024 * 1024);
    if (config_errors_format(errors, &text)) {
        fwrite(text.data, 1, text.len, stderr);
    }
    buf_done(&text);
}

void cmd_print_messages(const struct config_errors *list, const char *kind)
{
    for (size_t i = 0; i < config_errors_count(list); i++) {
        const struct config_error *m = config_errors_at(list, i);
        fprintf(stderr, "%s:%d:%d: %s: %s%s%s\n", m->pos.file, m->pos.line, m->pos.column, kind,
                m->path, m->path[0] != '\0' ? ": " : "", m->message);
    }
}

/* Prints one line for all components of other families, instead of one line for each. */
static void print_foreign(const struct config_errors *notes)
{
    size_t n = config_errors_count(notes) + config_errors_more(notes);
    if (n > 0) {
        fprintf(stderr, "%s: %zu note%s; `profpull check --config` prints them\n",
                config_errors_at(notes, 0)->pos.file, n, n == 1 ? "" : "s");
    }
}

static struct config *load_config(const struct cmd_config_flags *flags,
                                  const struct config_options *options,
                                  struct config_errors *errors)
{
    struct config *config = flags->text.p != NULL
                                ? config_parse(flags->file, flags->text, options, errors)
                                : config_load(flags->file, options, errors);
    size_t n = config_errors_count(errors) + config_errors_more(errors);
    size_t warnings = config_errors_count(options->warnings);
    cmd_print_messages(options->warnings, "warning");
    if (config == NULL) {
        cmd_print_errors(errors);
        fprintf(stderr, "profpull: the configuration has %zu error%s\n", n, n == 1 ? "" : "s");
    } else if (flags->notes) {
        cmd_print_messages(options->notes, "note");
    } else {
        print_foreign(options->notes);
    }
    size_t notes = config_errors_count(options->notes);
    if (config != NULL && flags->strict && warnings + notes > 0) {
        fprintf(stderr, "profpull: the configuration has %zu warning%s and %zu note%s\n", warnings,
                warnings == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
        config = config_unref(config);
    }
    return config;
}

static struct config_options options_of(const struct cmd_config_flags *flags)
{
    return (struct config_options){
        .check_rule = cmd_check_rule,
        .languages = cmd_languages,
        .protocols = write_protocols(),
        .write_url = flags->write_url,
        .listen = flags->listen,
        .in_container = container_is_around("", NULL),
        .sharding_service = flags->service,
        .memory_available = flags->for_this_machine ? cgroup_memory("") : 0,
    };
}

struct config *cmd_load_config(const struct cmd_config_flags *flags)
{
    struct config_errors *errors = config_errors_new();
    struct config_options options = options_of(flags);
    options.warnings = config_errors_new();
    options.notes = config_errors_new();
    struct config *config = NULL;
    if (errors == NULL || options.warnings == NULL || options.notes == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else {
        config = load_config(flags, &options, errors);
    }
    config_errors_free(errors);
    config_errors_free(options.warnings);
    config_errors_free(options.notes);
    return config;
}

struct config *cmd_read_config(const struct cmd_config_flags *flags, struct config_errors *errors,
                               struct config_errors *warnings, struct config_errors *notes)
{
    struct config_options options = options_of(flags);
    options.warnings = warnings;
    options.notes = notes;
    return config_load(flags->file, &options, errors);
}

struct config *cmd_reload_config(const struct cmd_config_flags *flags, struct config_errors *errors,
                                 struct config_errors *warnings)
{
    struct config_errors *notes = config_errors_new();
    struct config *config = notes == NULL ? NULL : cmd_read_config(flags, errors, warnings, notes);
    config_errors_free(notes);
    return config;
}

const char *cmd_environment(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

int cmd_usage_hint(const char *name)
{
    fprintf(stderr, "Try `profpull %s --help`.\n", name);
    return EXIT_USAGE;
}

int cmd_usage_error(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "profpull %s: ", name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return cmd_usage_hint(name);
}

int cmd_fail(int code, const struct err *err)
{
    fprintf(stderr, "profpull: %s\n", err->msg);
    return code;
}

int cmd_print(bool ok, struct buf *text, FILE *to)
{
    if (ok) {
        fwrite(text->data, 1, text->len, to);
    } else {
        fputs("profpull: out of memory\n", stderr);
    }
    buf_done(text);
    return ok ? EXIT_DONE : EXIT_INPUT;
}

int cmd_flush(int code)
{
    struct err err = ERR_INIT;
    bool lost = ferror(stdout) != 0; /* an earlier write of a full buffer has failed */
    if (fflush(stdout) != 0) {
        err_sys(&err, "standard output");
    } else if (lost) {
        err_set(&err, ERR_SYSTEM, "standard output: not everything could be written");
    } else {
        return code;
    }
    __fpurge(stdout); /* empties the buffer, so that the failure is reported once */
    clearerr(stdout);
    return cmd_fail(EXIT_INPUT, &err);
}
