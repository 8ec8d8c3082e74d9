/* `profpull pgo`: fetches a profile for `go build -pgo`. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/query/args.h"
#include "pprof/pgo.h"

struct pgo_args {
    struct query_common common;
    const char *type;
    const char *output;
};

/* Refuses a profile that the compiler would refuse: the message of this command can name the time
 * range and the labels to change. */
static bool check(const struct pgo_args *args, struct remote *r, struct sv body, struct err *err)
{
    if (body.n == 0) {
        return err_set(err, ERR_REFUSED, "%s has no CPU profile of the service \"%s\" in this time",
                       remote_url(r), args->common.service);
    }
    struct scratch *scratch = scratch_new();
    bool ok =
        scratch == NULL ? err_memory(err) : pgo_check(scratch, body, REMOTE_BODY_MAX, NULL, err);
    scratch_free(scratch);
    return ok || err_wrap(err, "%s: service \"%s\"", remote_url(r), args->common.service);
}

static int fetch(const struct pgo_args *args, const struct query_ask *ask)
{
    struct err err = ERR_INIT;
    struct buf body;
    struct remote *r =
        remote_new(&args->common.server.endpoint, args->common.server.timeout_ms, &err);
    if (r == NULL || !query_pyroscope_pgo(r, ask, &body, &err)) {
        remote_free(r);
        return query_fail(&err);
    }
    struct sv profile = {body.data, body.len};
    int code = check(args, r, profile, &err) ? query_write_profile(args->output, profile, false)
                                             : query_fail(&err);
    buf_done(&body);
    remote_free(r);
    return code;
}

static int run_pgo(const void *arg, char *const *operands, size_t n)
{
    const struct pgo_args *args = arg;
    struct query_ask ask = {.type = args->type};
    struct err err = ERR_INIT;
    (void)operands;
    (void)n;
    if (args->common.service == NULL) {
        return cmd_usage_error("pgo", "--service is needed");
    }
    if (!query_ask_from(&args->common, clock_wall_ns(), &ask, &err)) {
        return cmd_usage_error("pgo", "%s", err.msg);
    }
    return fetch(args, &ask);
}

static const struct flag flags[] = {
    QUERY_COMMON_FLAGS(pgo_args),
    FLAG(TEXT, "type", 0, pgo_args, type, "ID", "the type (default " PGO_TYPE ")"),
    FLAG(TEXT, "output", 'o', pgo_args, output, "FILE",
         "the file to write (default default.pgo, which Go finds in the directory of the main "
         "package); - is standard output"),
};

const struct command cmd_pgo = {
    .name = "pgo",
    .summary = "get a merged CPU profile for go build -pgo",
    .usage = "pgo --service NAME [--url URL] [--since 24h] [-o default.pgo] [OPTIONS]",
    .description =
        "Asks a profpull or a Pyroscope for the CPU profiles of a service, merged, and writes what "
        "the Go compiler reads of them: the five innermost frames of each stack, with the names of "
        "functions as they are in the binary. A time range from hours to a few days is suitable. "
        "Use --label (a version, for example) to leave out other builds.",
    .exit_codes = "Exit code: 0 done; 1 wrong options for the server, FILE cannot be written, "
                  "or the compiler would refuse the profile; 2 usage; 3 no answer, an error, or no "
                  "profile.",
    COMMAND_FLAGS(flags, pgo_args),
    .defaults = &(const struct pgo_args){.common = QUERY_COMMON_DEFAULTS(MS_PER_DAY),
                                         .type = PGO_TYPE,
                                         .output = "default.pgo"},
    .run = run_pgo,
};
