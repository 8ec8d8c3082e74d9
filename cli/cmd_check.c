#include <stdio.h>
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/secret_files.h"

static void print_job(const struct config_job *job)
{
    printf(job->enriches ? "%s:" : "job %s:", job->name);
    for (size_t i = 0; i < job->n_sources; i++) {
        printf(" %s", config_source_kind_name(job->sources[i].kind));
    }
    printf(", %zu relabel rule%s%s", job->relabel.n, job->relabel.n == 1 ? "" : "s",
           job->enriches ? "\n" : ", types");
    if (job->enriches) {
        return;
    }
    bool any = false;
    for (size_t i = 0; i < job->n_types; i++) {
        if (job->types[i].enabled) {
            printf(" %s", job->types[i].key);
            any = true;
        }
    }
    if (!any) {
        printf(" as labels enable them");
    }
    putchar('\n');
}

/* Prints the limits of memory that do not fit under a limit that the file sets. The memory that the
 * process will find at run time is unknown here. */
static void print_memory(const struct config_memory *m)
{
    const double mib = 1024 * 1024;
    if (m->limit != 0 && m->sum > m->limit) {
        printf("warning: the ceilings of memory come to %.1f MiB, over global.memory_limit of %.1f "
               "MiB\n",
               (double)m->sum / mib, (double)m->limit / mib);
    }
}

static void print_summary(const struct config *config)
{
    if (config->lacks_cluster) {
        puts("no job: " CONFIG_LACKS_CLUSTER);
    }
    for (size_t i = 0; i < config->n_jobs; i++) {
        print_job(&config->jobs[i]);
    }
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        printf("endpoint %s: %s\n", e->name, e->protocol->name);
    }
    const struct config_sharding *sharding = &config->sharding;
    if (sharding->mode == SHARDING_STATIC) {
        printf("sharding: static, index %u of %u replicas\n", sharding->index, sharding->replicas);
    } else if (sharding->mode == SHARDING_KUBERNETES) {
        printf("sharding: kubernetes, the endpoints of the Service %s\n", sharding->service);
    }
    print_memory(&config->memory);
    printf("%s: the configuration is good\n", config->file);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

#define JSON_MAX ((size_t)64 * 1024 * 1024)

static void put_messages(const char *key, const struct config_errors *list, struct buf *out)
{
    json_key(key, out);
    buf_putc(out, '[');
    for (size_t i = 0; i < config_errors_count(list); i++) {
        const struct config_error *m = config_errors_at(list, i);
        buf_puts(out, i == 0 ? "{" : ",{");
        json_member("file", sv_from(m->pos.file), out);
        buf_printf(out, ",\"line\":%d,\"column\":%d", m->pos.line, m->pos.column);
        json_member("path", sv_from(m->path), out);
        json_member("message", sv_from(m->message), out);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void put_contents(const struct config *config, struct buf *out)
{
    buf_puts(out, ",\"jobs\":[");
    for (size_t i = 0; i < config->n_jobs; i++) {
        const struct config_job *job = &config->jobs[i];
        const char *comma = "";
        buf_puts(out, i == 0 ? "{" : ",{");
        json_member("name", sv_from(job->name), out);
        buf_puts(out, ",\"types\":[");
        for (size_t k = 0; k < job->n_types; k++) {
            if (job->types[k].enabled) {
                buf_puts(out, comma);
                json_quote(sv_from(job->types[k].key), out);
                comma = ",";
            }
        }
        buf_puts(out, "]}");
    }
    buf_puts(out, "],\"endpoints\":[");
    for (size_t i = 0; i < config->n_endpoints; i++) {
        buf_puts(out, i == 0 ? "{" : ",{");
        json_member("name", sv_from(config->endpoints[i].name), out);
        json_member("protocol", sv_from(config->endpoints[i].protocol->name), out);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

/* The messages that loading a configuration gives. */
struct messages {
    struct config_errors *errors;
    struct config_errors *warnings;
    struct config_errors *notes;
};

static void print_json(const struct config *config, const struct messages *m, bool good,
                       struct buf *out)
{
    buf_printf(out, "{\"good\":%s", good ? "true" : "false");
    put_messages("errors", m->errors, out);
    put_messages("warnings", m->warnings, out);
    put_messages("notes", m->notes, out);
    if (config != NULL) {
        put_contents(config, out);
    }
    buf_puts(out, "}\n");
}

/* Prints the result as JSON. Warnings and notes are no error, unless --strict is given. */
static int check_json(const struct cmd_config_flags *flags)
{
    struct messages m = {config_errors_new(), config_errors_new(), config_errors_new()};
    int code = EXIT_INPUT;
    if (m.errors == NULL || m.warnings == NULL || m.notes == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else {
        struct buf out;
        buf_init(&out, JSON_MAX);
        struct config *config = cmd_read_config(flags, m.errors, m.warnings, m.notes);
        bool clean = config_errors_count(m.warnings) + config_errors_count(m.notes) == 0;
        if (config != NULL) {
            clean = secret_files_check(config) == 0 && clean;
        }
        bool good = config != NULL && (clean || !flags->strict);
        print_json(config, &m, good, &out);
        code = cmd_print(buf_ok(&out), &out, stdout);
        code = code == EXIT_DONE && !good ? EXIT_INPUT : code;
        config_unref(config);
    }
    config_errors_free(m.errors);
    config_errors_free(m.warnings);
    config_errors_free(m.notes);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct check_args {
    bool json;
    struct cmd_config_flags config;
    bool dump;
    bool print_default;
};

static int run_check(const void *arg, char *const *operands, size_t n)
{
    const struct check_args *args = arg;
    struct cmd_config_flags which = args->config;
    int code = EXIT_DONE;
    if (args->print_default) {
        struct sv text = config_builtin();
        fwrite(text.p, 1, text.n, stdout);
        return EXIT_DONE;
    }
    if (n > 0 && which.file != NULL) {
        return cmd_usage_error("check", "unexpected argument: %s", operands[0]);
    }
    if (n > 0) {
        which.file = operands[0];
    } else if (which.file == NULL && which.write_url == NULL) {
        which.file = cmd_environment("PROFPULL_CONFIG");
    }
    if (which.file == NULL && which.write_url == NULL) {
        return cmd_usage_error("check", "--config FILE, or --write.url URL alone, is needed");
    }
    which.notes = true;
    if (args->json) {
        return check_json(&which);
    }
    struct config *config = cmd_load_config(&which);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    if (secret_files_check(config) > 0 && which.strict) {
        code = EXIT_INPUT;
    } else if (args->dump) {
        struct buf text;
        buf_init(&text, 64 * 1024 * 1024);
        code = cmd_print(config_dump(config, &text), &text, stdout);
    } else {
        print_summary(config);
    }
    config_unref(config);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', check_args, config.file, "FILE",
         "the configuration, - for standard input (or give FILE as the only argument); or "
         "PROFPULL_CONFIG"),
    FLAG(BOOL, "json", 0, check_args, json, NULL,
         "print errors, warnings, notes, jobs and endpoints as JSON"),
    FLAG(BOOL, "dump", 0, check_args, dump, NULL,
         "print the normalised configuration instead of a summary"),
    FLAG(BOOL, "print-default", 0, check_args, print_default, NULL,
         "print the built-in configuration, which is used without scrape_configs"),
    FLAG(TEXT, "write.url", 0, check_args, config.write_url, "URL", "as for `profpull run`"),
    FLAG(TEXT, "listen", 0, check_args, config.listen, "ADDR", "as for `profpull run`"),
    FLAG(TEXT, "sharding.service", 0, check_args, config.service, "NAME", "as for `profpull run`"),
    FLAG(BOOL, "strict", 0, check_args, config.strict, NULL,
         "treat warnings and notes as errors: likely mistakes, files of credentials that cannot be "
         "read here, and parts of a Grafana Alloy file that are left out or changed"),
};

const struct command cmd_check = {
    .name = "check",
    .summary = "read a configuration and report every mistake in it",
    .usage = "check --config FILE [--dump | --json] [--strict]\n"
             "check --print-default",
    .description = "Reads a configuration and reports every mistake in it as "
                   "file:line:column: key: message. Nothing is contacted. A setting that is valid "
                   "but doubtful is a warning: a job that "
                   "scrapes nothing, types that write the same series, an endpoint that no job "
                   "forwards to, a rule that reads a label that no source has.",
    .exit_codes = "Exit code: 0 the configuration is good, 1 it is not, 2 usage.",
    COMMAND_FLAGS(flags, check_args),
    .operands_max = 1,
    .run = run_check,
};
