/* `profpull query`: asks a server, a store or a file about profiles. */
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/query/question.h"

static const char *suggest_type(size_t i)
{
    return config_type_name(i) == NULL ? NULL : config_type_name(i)->name;
}

static int run_query(const void *arg, char *const *operands, size_t n)
{
    if (n > 2) {
        return cmd_usage_error("query", "unexpected argument: %s", operands[2]);
    }
    return question_run(arg, n == 0 ? "" : operands[0], n < 2 ? NULL : operands[1]);
}

static const struct flag flags[] = {
    FLAG(CHOICE, "protocol", 0, query_args, protocol, "P", "the kind of server",
         .choice = question_protocol),
    QUERY_COMMON_FLAGS(query_args),
    FLAG(TEXT, "store", 0, query_args, store, "DIR",
         "ask a directory in which profpull has stored profiles, instead of a server; no running "
         "profpull may use it"),
    FLAG(TEXT, "file", 'f', query_args, file, "FILE",
         "ask a file, pprof or a recording of Java, instead of a server; - is standard input"),
    FLAG(TEXT, "type", 't', query_args, type, "TYPE",
         "the type (default cpu): cpu, heap, alloc, goroutine, mutex, block, ...; for pyroscope "
         "also an id such as process_cpu:cpu:nanoseconds:cpu:nanoseconds, its sample type "
         "(inuse_space) or its name; for deepflow also an event (on-cpu)",
         .suggest = suggest_type),
    QUESTION_PROFILE_FLAGS,
    FLAG(NUMBER, "limit", 'n', query_args, limit, "N",
         "number of functions that top and diff print; 0: all"),
    FLAG(TEXT, "language", 0, query_args, language, "NAME",
         "DeepFlow's profile_language_type (default Golang)"),
    FLAG(TEXT, "output", 'o', query_args, output, "FILE",
         "the file into which merge writes the profile; - is standard output"),
    FLAG(BOOL, "watch", 'w', query_args, watch, NULL, "repeat top until Ctrl-C"),
    FLAG(DURATION, "interval", 0, query_args, interval_ms, "DUR",
         "time between two updates, with --watch", .min = 100),
    FLAG(DURATION, "base-before", 0, query_args, base.before_ms, "DUR",
         "the base of diff is the same time range, this much earlier"),
    FLAG(TIME, "base-from", 0, query_args, base.from_ns, "TIME",
         "start of the time range of the base of diff"),
    FLAG(TIME, "base-until", 0, query_args, base.until_ns, "TIME",
         "end of the time range of the base of diff"),
    FLAG(PAIRS, "base-label", 0, query_args, base.labels, "NAME=VALUE",
         "the base has this label (version=1.4) instead of that of --label; may be repeated"),
    FLAG(TEXT, "base-service", 0, query_args, base.service, "NAME", "the base is this service"),
    FLAG(TEXT, "base-file", 0, query_args, base.file, "FILE", "the base is this file"),
    FLAG(BOOL, "normalize", 0, query_args, normalize, NULL,
         "diff scales the base so that both totals are equal"),
    FLAG(TEXT, "base-version", 0, query_args, base_version, "VERSION",
         "the version that changes compares with; by default the one before"),
    FLAG(TEXT, "new-version", 0, query_args, new_version, "VERSION",
         "the version whose changes are printed; by default the last"),
    FLAG(TEXT, "fail-above", 0, query_args, fail_above, "PERCENT",
         "changes ends with 4 if the new version costs more than this at the same load (5%), and "
         "with 5 if there is no verdict"),
    QUESTION_TERMINAL_FLAGS,
};

const struct command cmd_query = {
    .name = "query",
    .summary = "ask a profpull, Pyroscope, profefe or DeepFlow, a store or a file for profiles",
    .usage = "query services|types [--service NAME] [OPTIONS]\n"
             "query top --service NAME [--type TYPE] [-n 20] [--watch] [OPTIONS]\n"
             "query flame --service NAME [--type TYPE] [--search TEXT] [OPTIONS]\n"
             "query peek FUNCTION --service NAME [--type TYPE] [OPTIONS]\n"
             "query diff --service NAME --base-before 24h | --base-label NAME=VALUE [OPTIONS]\n"
             "query changes [--service NAME] [--since 1d] [--fail-above 5%] [OPTIONS]\n"
             "query merge --service NAME --type TYPE -o FILE [OPTIONS]",
    .description =
        "Asks a server, a store or a file what it has: the names of services, the types of "
        "profiles, the functions that a service spends most in, a flame graph for the terminal, "
        "the callers and callees of functions whose name a regex matches, the functions that grew "
        "and shrank, what changed from one version of a service to the next, or all profiles of a "
        "service and type merged into one file, which go tool "
        "pprof reads. Without --since and --from, changes reads the last day, all others the last "
        "hour.",
    .exit_codes = "Exit code: 0 done; 1 wrong options for the server, or FILE cannot be read "
                  "or written; 2 usage; 3 no answer, an error, or no profile; with --fail-above "
                  "also 4 the new version costs more, 5 there is no verdict.",
    COMMAND_FLAGS(flags, query_args),
    .defaults =
        &(const struct query_args){.common = QUERY_COMMON_DEFAULTS(0),
                                   .protocol = "pyroscope",
                                   .language = "Golang",
                                   .colour = "auto",
                                   .interval_ms = 2 * MS_PER_S,
                                   .base = {.from_ns = QUERY_NO_TIME, .until_ns = QUERY_NO_TIME},
                                   .limit = 20},
    .operands_max = SIZE_MAX,
    .subject = question_subject,
    .run = run_query,
};
