/* `profpull import`: pushes profiles from files to an endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/import/args.h"
#include "cli/import/import.h"
#include "write/protocol.h"

static void summarise(const struct import_args *args, const struct one_endpoint *to,
                      const struct import_totals *t)
{
    char size[32];
    format_size(t->sent_bytes, size, sizeof(size));
    printf("%s %llu profile%s (%s) to %s (%s)", args->dry_run ? "would send" : "sent",
           (unsigned long long)t->sent, t->sent == 1 ? "" : "s", size, to->endpoint.url,
           to->endpoint.protocol->name);
    if (t->refused > 0) {
        printf(", %llu not accepted", (unsigned long long)t->refused);
    }
    if (t->bad > 0) {
        printf(", %llu bad file%s", (unsigned long long)t->bad, t->bad == 1 ? "" : "s");
    }
    if (t->skipped > 0) {
        printf(", %llu other file%s skipped", (unsigned long long)t->skipped,
               t->skipped == 1 ? "" : "s");
    }
    printf("%s\n", t->gave_up ? "; gave up, the rest was not read" : "");
}

static void summarise_json(const struct import_args *args, const struct one_endpoint *to,
                           const struct import_totals *t)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    buf_putc(&out, '{');
    json_member("url", sv_from(to->endpoint.url), &out);
    json_member("protocol", sv_from(to->endpoint.protocol->name), &out);
    buf_printf(&out,
               ",\"sent\":%llu,\"sent_bytes\":%llu,\"refused\":%llu,\"bad_files\":%llu,"
               "\"skipped_files\":%llu,\"gave_up\":%s,\"dry_run\":%s}\n",
               (unsigned long long)t->sent, (unsigned long long)t->sent_bytes,
               (unsigned long long)t->refused, (unsigned long long)t->bad,
               (unsigned long long)t->skipped, t->gave_up ? "true" : "false",
               args->dry_run ? "true" : "false");
    fputs(buf_ok(&out) ? out.data : "", stdout);
    buf_done(&out);
}

static int conclude(const struct import_args *args, const struct one_endpoint *to,
                    const struct import_totals *t)
{
    if (args->json) {
        summarise_json(args, to, t);
    } else if (!args->quiet) {
        summarise(args, to, t);
    }
    int code = t->bad > 0 ? EXIT_INPUT : EXIT_DONE;
    if (t->refused > 0 || t->gave_up) {
        code = EXIT_PEER;
    }
    if (cmd_flush(EXIT_DONE) != EXIT_DONE) {
        return EXIT_INPUT;
    }
    if (code == EXIT_DONE && t->sent == 0) {
        fputs("profpull: found no profile\n", stderr);
        return EXIT_INPUT;
    }
    return code;
}

static bool open_endpoint(const struct import_args *args, struct one_endpoint *to)
{
    struct err err = ERR_INIT;
    struct config *config = NULL;
    if (args->config.file != NULL && (config = cmd_load_config(&args->config)) == NULL) {
        return false;
    }
    bool ok = config == NULL ? one_endpoint_from_flags(to, &args->endpoint, &err)
                             : one_endpoint_from_config(to, config, args->endpoint_name, &err);
    if (!ok) {
        (void)cmd_fail(EXIT_INPUT, &err);
    }
    return ok;
}

static bool wants_progress(const struct import_args *args)
{
    const char *term = getenv("TERM");
    return !args->quiet && isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
}

/* Takes the destination from the environment if no flag names one. --endpoint is about one of a
 * configuration, --protocol and credentials are about a URL. */
static void take_environment(struct import_args *args)
{
    struct config_endpoint_flags *e = &args->endpoint;
    const char *url = cmd_environment("PROFPULL_URL");
    if (e->url != NULL || args->config.file != NULL) {
        return;
    }
    if (url != NULL && args->endpoint_name == NULL) {
        e->url = url;
    } else {
        args->config.file = cmd_environment("PROFPULL_CONFIG");
    }
}

static int run_import(const void *arg, char *const *operands, size_t n)
{
    struct import_args with_environment = *(const struct import_args *)arg;
    const struct import_args *args = &with_environment;
    struct one_endpoint to;
    struct import_totals totals;
    struct err err = ERR_INIT;
    int code;
    take_environment(&with_environment);
    const char *wrong = import_args_problem(args, operands, n);
    if (wrong[0] != '\0') {
        return cmd_usage_error("import", "%s", wrong);
    }
    if (!open_endpoint(args, &to)) {
        return EXIT_INPUT;
    }
    if (!import_check_labels(args, &protocol_of(&to.endpoint)->labels, &err)) {
        code = cmd_usage_error("import", "%s", err.msg);
    } else if (!import_run(args, operands, n, &to, wants_progress(args), &totals, &err)) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        code = conclude(args, &to, &totals);
    }
    one_endpoint_done(&to);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "url", 0, import_args, endpoint.url, "URL",
         "URL of the endpoint, as in the configuration; file:///DIR writes files; or PROFPULL_URL"),
    FLAG(TEXT, "protocol", 0, import_args, endpoint.protocol, "P",
         "protocol of the endpoint, as in the configuration (push, or "
         "file for file:///DIR)"),
    FLAG(TEXT, "config", 'c', import_args, config.file, "FILE",
         "take URL, protocol, credentials and external labels from a configuration; or "
         "PROFPULL_CONFIG, without PROFPULL_URL or with --endpoint"),
    FLAG(TEXT, "endpoint", 0, import_args, endpoint_name, "NAME",
         "name of the endpoint in the configuration; needed if it has more than one"),
    FLAG(TEXT, "name", 0, import_args, name, "APP",
         "the service that the profiles are of (service_name)"),
    FLAG(PAIRS, "label", 0, import_args, labels, "NAME=VALUE", "a further label; may be repeated"),
    FLAG(TEXT, "type", 0, import_args, type, "TYPE",
         "the type's name in the store (process_cpu, memory, goroutine, mutex, block, ...); by "
         "default derived from the samples"),
    FLAG(TIME, "from", 0, import_args, from_ns, "TIME",
         "the beginning of the time covered (2026-11-21T03:23:34Z, or seconds since 1970); by "
         "default the time in the profile, or else the file's date"),
    FLAG(TIME, "until", 0, import_args, until_ns, "TIME", "the end of the time covered"),
    FLAG(TEXT, "tenant", 0, import_args, endpoint.tenant, "ID", "X-Scope-OrgID"),
    FLAG(TEXT, "username", 0, import_args, endpoint.username, "USER",
         "user for basic authentication, with --password-file"),
    FLAG(TEXT, "password-file", 0, import_args, endpoint.password_file, "FILE",
         "file with the password of --username"),
    FLAG(TEXT, "bearer-token-file", 0, import_args, endpoint.bearer_token_file, "FILE",
         "file with the token for Authorization: Bearer"),
    FLAG(TEXT, "ca-file", 0, import_args, endpoint.ca_file, "FILE",
         "trust the authority whose certificate is in this file"),
    FLAG(BOOL, "insecure-skip-verify", 0, import_args, endpoint.insecure_skip_verify, NULL,
         "accept any certificate of the server"),
    FLAG(DURATION, "timeout", 0, import_args, timeout_ms, "DUR", "time limit of one request"),
    FLAG(DURATION, "retry-for", 0, import_args, retry_ms, "DUR",
         "give up when nothing has been accepted for this long"),
    FLAG(SIZE, "max-size", 0, import_args, max_size, "SIZE", "refuse files above this size",
         .min = 1, .max = CMD_BODY_MAX),
    FLAG(BOOL, "dry-run", 0, import_args, dry_run, NULL,
         "print what would be sent, and send nothing"),
    FLAG(BOOL, "json", 0, import_args, json, NULL, "print the summary as JSON"),
    FLAG(BOOL, "quiet", 'q', import_args, quiet, NULL, "no progress and no summary"),
};

const struct command cmd_import = {
    .name = "import",
    .summary = "push profiles from files",
    .usage = "import --url URL [--protocol P] --name APP [OPTIONS] FILE|DIR|-...\n"
             "import --config FILE [--endpoint NAME] --name APP [OPTIONS] FILE|DIR|-...",
    .description = "Pushes profiles from files, pprof (gzip or plain) or JFR, to any kind "
                   "of endpoint. Directories are searched for files that are profiles by their "
                   "content; - is standard input.",
    .exit_codes = "Exit code: 0 all were accepted; 1 a file is bad or wrong options for the "
                  "endpoint; 2 usage; 3 at least one was not accepted.",
    COMMAND_FLAGS(flags, import_args),
    .defaults = &(const struct import_args){.endpoint.name = "import",
                                            .from_ns = IMPORT_NO_TIME,
                                            .until_ns = IMPORT_NO_TIME,
                                            .max_size = UINT64_C(64) * 1024 * 1024,
                                            .timeout_ms = 30 * MS_PER_S,
                                            .retry_ms = 60 * MS_PER_S},
    .operands_max = SIZE_MAX,
    .run = run_import,
};
