#include "cli/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "relabel/relabel.h"

static bool check_rule(void *arg, const struct config_rule *rule, struct err *err)
{
    (void)arg;
    return relabel_check_rule(rule, err);
}

static void print_errors(const struct config_errors *errors)
{
    struct buf text;
    buf_init(&text, 16 * 1024 * 1024);
    if (config_errors_format(errors, &text)) {
        fwrite(text.data, 1, text.len, stderr);
    }
    size_t n = config_errors_count(errors) + config_errors_more(errors);
    fprintf(stderr, "profpull: the configuration has %zu error%s\n", n, n == 1 ? "" : "s");
    buf_done(&text);
}

struct config *cmd_load_config(const struct cmd_config_flags *flags)
{
    struct config_errors *errors = config_errors_new();
    if (errors == NULL) {
        fputs("profpull: out of memory\n", stderr);
        return NULL;
    }
    struct config_options options = {
        .check_rule = check_rule,
        .write_url = flags->write_url,
        .listen = flags->listen,
    };
    struct config *config = config_load(flags->file, &options, errors);
    if (config == NULL) {
        print_errors(errors);
    }
    config_errors_free(errors);
    return config;
}

int cmd_usage_error(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "profpull %s: ", name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nTry `profpull %s --help`.\n", name);
    va_end(ap);
    return EXIT_USAGE;
}

int cmd_help(const char *text)
{
    fputs(text, stdout);
    return EXIT_DONE;
}

int cmd_fail(int code, const struct err *err)
{
    fprintf(stderr, "profpull: %s\n", err->msg);
    return code;
}

bool cmd_parse_duration(const char *name, const char *flag, const char *text, int64_t *ret_ms)
{
    struct err err = ERR_INIT;
    if (parse_duration_ms(sv_from(text), ret_ms, &err)) {
        return true;
    }
    cmd_usage_error(name, "%s: %s", flag, err.msg);
    return false;
}
