/* `profpull import`: profiles that lie in files, pushed to an endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/import/args.h"
#include "cli/import/import.h"

static const char help[] =
    "Usage: profpull import --url URL [--protocol P] --name APP [OPTIONS] FILE|DIR|-...\n"
    "       profpull import --config FILE [--endpoint NAME] --name APP [OPTIONS] FILE|DIR|-...\n"
    "\n"
    "Pushes profiles that lie in files, pprof (gzip or plain) or JFR, to any kind of endpoint.\n"
    "Directories are searched for whatever is a profile by its content; - is standard input.\n"
    "\n"
    "      --url URL            as in the configuration, file:///DIR included\n"
    "      --protocol P         as in the configuration (push, or file for file:///DIR)\n"
    "  -c, --config FILE        take URL, protocol, credentials and external labels from a\n"
    "      --endpoint NAME      configuration; NAME is needed if it has more than one\n"
    "      --name APP           the service that the profiles are of (service_name)\n"
    "      --label NAME=VALUE   a further label; may be repeated\n"
    "      --type TYPE          the type's name in the store (process_cpu, memory, goroutine,\n"
    "                           mutex, block, ...); by default told from the samples\n"
    "      --from T, --until T  the time covered (2026-11-21T03:23:34Z, or seconds since 1970);\n"
    "                           by default what the profile says, else the file's date\n"
    "      --tenant ID          X-Scope-OrgID\n"
    "      --username USER      with --password-file FILE: basic authentication\n"
    "      --bearer-token-file FILE\n"
    "      --ca-file FILE       trust this authority\n"
    "      --insecure-skip-verify\n"
    "      --timeout DUR        for one request (30s)\n"
    "      --retry-for DUR      give up when nothing has been accepted for so long (1m)\n"
    "      --max-size SIZE      refuse larger files (64MiB)\n"
    "      --dry-run            say what would be sent, and send nothing\n"
    "  -q, --quiet              no progress and no summary\n"
    "\n"
    "Exit code: 0 all were accepted; 1 a file is bad or the endpoint is described wrongly;\n"
    "2 usage; 3 at least one was not accepted.\n";

static void summarise(const struct import_args *args, const struct one_endpoint *to,
                      const struct import_totals *t)
{
    char size[32];
    format_size(t->sent_bytes, size, sizeof(size));
    printf("%s %llu profile%s (%s) to %s (%s)", args->dry_run ? "would send" : "sent",
           (unsigned long long)t->sent, t->sent == 1 ? "" : "s", size, to->endpoint.url,
           config_protocol_name(to->endpoint.protocol));
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

static int conclude(const struct import_args *args, const struct one_endpoint *to,
                    const struct import_totals *t)
{
    struct err err = ERR_INIT;
    if (!args->quiet) {
        summarise(args, to, t);
    }
    if (fflush(stdout) != 0) {
        err_sys(&err, "standard output");
        return cmd_fail(EXIT_INPUT, &err);
    }
    if (t->refused > 0 || t->gave_up) {
        return EXIT_PEER;
    }
    if (t->sent == 0 && t->bad == 0) {
        err_set(&err, ERR_INPUT, "found no profile");
        return cmd_fail(EXIT_INPUT, &err);
    }
    return t->bad > 0 ? EXIT_INPUT : EXIT_DONE;
}

static bool open_endpoint(const struct import_args *args, struct one_endpoint *to, bool *ret_said)
{
    struct err err = ERR_INIT;
    bool ok;
    if (args->config != NULL) {
        struct cmd_config_flags flags = {.file = args->config};
        struct config *config = cmd_load_config(&flags);
        *ret_said = config == NULL;
        ok = config != NULL && one_endpoint_from_config(to, config, args->endpoint_name, &err);
    } else {
        ok = one_endpoint_from_flags(to, &args->endpoint, &err);
    }
    if (!ok && !*ret_said) {
        (void)cmd_fail(EXIT_INPUT, &err);
    }
    return ok;
}

static bool wants_progress(const struct import_args *args)
{
    const char *term = getenv("TERM");
    return !args->quiet && isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
}

static int import(const struct import_args *args)
{
    struct one_endpoint to;
    struct import_totals totals;
    struct err err = ERR_INIT;
    bool said = false;
    int code;
    if (!open_endpoint(args, &to, &said)) {
        return EXIT_INPUT;
    }
    if (!import_check_labels(args, to.endpoint.protocol, &err)) {
        code = cmd_usage_error("import", "%s", err.msg);
    } else if (!import_run(args, &to, wants_progress(args), &totals, &err)) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        code = conclude(args, &to, &totals);
    }
    one_endpoint_done(&to);
    return code;
}

int cmd_import(int argc, char **argv)
{
    struct import_args args;
    int code;
    if (!import_args_parse(&args, argc, argv)) {
        code = EXIT_USAGE;
    } else if (args.help) {
        code = cmd_help(help);
    } else {
        code = import(&args);
    }
    import_args_done(&args);
    return code;
}
