/* `profpull jfr`: shows the content of a recording of Java's Flight Recorder. */
#include "cli/cmd.h"
#include "cli/recording.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)

struct jfr_args {
    bool json;
    uint64_t sample_rate; /* 0: the recording's settings determine it */
};

static int print(const struct jfr_args *args, const char *path, const struct recording *r)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    if (args->json) {
        recording_print_json(r, path, &text);
    } else {
        recording_print(r, &text);
    }
    int code = cmd_print(buf_ok(&text), &text, stdout);
    code = code == EXIT_DONE ? cmd_flush(EXIT_DONE) : code;
    if (r->damage.kind != ERR_NONE) {
        struct err err = r->damage;
        err_wrap(&err, "%s", path);
        code = cmd_fail(EXIT_INPUT, &err);
    }
    return code;
}

static int run_jfr(const void *arg, char *const *operands, size_t n)
{
    const struct jfr_args *args = arg;
    struct recording r;
    struct err err = ERR_INIT;
    if (n != 1) {
        return cmd_usage_error("jfr", "expected one FILE, got %zu", n);
    }
    int code = recording_read_file(operands[0], (unsigned)args->sample_rate, &r, &err)
                   ? print(args, operands[0], &r)
                   : cmd_fail(EXIT_INPUT, &err);
    recording_done(&r);
    return code;
}

static const struct flag flags[] = {
    FLAG(BOOL, "json", 0, jfr_args, json, NULL, "print JSON"),
    FLAG(NUMBER, "sample-rate", 0, jfr_args, sample_rate, "N",
         "samples per second; 0 takes the value of the recording's settings", .max = 1000000),
};

const struct command cmd_jfr = {
    .name = "jfr",
    .summary = "show what is in a recording of Java's Flight Recorder",
    .usage = "jfr [OPTIONS] FILE",
    .description =
        "Reads a recording (gzip or plain) and prints its chunks, its events, the "
        "profiles that profpull makes of it, and the events that had to be left out. - is standard "
        "input. A recording may be of any size: one chunk at a time is in memory.",
    .exit_codes = "Exit code: 0 done; 1 FILE cannot be read, or is damaged (the part before the "
                  "damage is printed); 2 usage.",
    COMMAND_FLAGS(flags, jfr_args),
    .defaults = &(const struct jfr_args){.json = false},
    .operands_max = 1,
    .run = run_jfr,
};
