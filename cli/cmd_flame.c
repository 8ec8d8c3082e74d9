/* `profpull flame`: a file as a flame graph in the terminal. */
#include "cli/cmd.h"
#include "cli/query/question.h"

static int run_flame(const void *arg, char *const *operands, size_t n)
{
    struct query_args args = *(const struct query_args *)arg;
    if (n != 1) {
        return cmd_usage_error("flame", "expected one FILE; `profpull query flame` asks a server");
    }
    args.file = operands[0];
    return question_run(&args, "flame", NULL);
}

static const struct flag flags[] = {
    FLAG(TEXT, "type", 't', query_args, type, "TYPE",
         "the sample type (cpu, inuse_space); by default that of go tool pprof"),
    QUESTION_PROFILE_FLAGS,
    QUESTION_TERMINAL_FLAGS,
};

const struct command cmd_flame = {
    .name = "flame",
    .summary = "draw a profile in a file as a flame graph in the terminal",
    .usage = "flame FILE [--type TYPE] [--search TEXT] [OPTIONS]",
    .description =
        "Draws a flame graph: pprof (gzip or plain), the formats of gperftools and jemalloc, or a "
        "recording of Java's Flight Recorder. - is standard input. Without a terminal, the output "
        "is plain text. NO_COLOR, TERM, COLORTERM and the locale decide about colours and "
        "characters, --color and --ascii override them.",
    .exit_codes = "Exit code: 0 done; 1 FILE cannot be read, or has no such profile; 2 usage.",
    COMMAND_FLAGS(flags, query_args),
    .defaults = &(const struct query_args){.common = QUERY_COMMON_DEFAULTS(1),
                                           .protocol = "pyroscope",
                                           .colour = "auto"},
    .operands_max = SIZE_MAX,
    .run = run_flame,
};
