/* `profpull help`: the help of a subcommand, the manual page, and completions of shells. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/manual.h"

#define TEXT_MAX ((size_t)1024 * 1024)

struct help_args {
    bool manual;
    const char *shell;
};

static int help_of(const char *name)
{
    const struct command *c = command_named(name);
    if (c == NULL) {
        return command_unknown(name);
    }
    struct buf text;
    buf_init(&text, TEXT_MAX);
    return cmd_print(command_help(c, &text), &text, stdout);
}

static int run_help(const void *arg, char *const *operands, size_t n)
{
    const struct help_args *args = arg;
    struct buf text;
    int code;
    if ((n > 0) + args->manual + (args->shell != NULL) > 1) {
        return cmd_usage_error("help", "COMMAND, --man and --completion exclude each other");
    }
    buf_init(&text, TEXT_MAX);
    if (args->manual) {
        code = cmd_print(manual_page(&text), &text, stdout);
    } else if (args->shell != NULL) {
        code = cmd_print(completion_script(args->shell, &text), &text, stdout);
    } else if (n > 0) {
        code = help_of(operands[0]);
    } else {
        command_list(stdout);
        code = EXIT_DONE;
    }
    return cmd_flush(code);
}

static const struct flag flags[] = {
    FLAG(BOOL, "man", 0, help_args, manual, NULL, "print the manual page, as roff"),
    FLAG(CHOICE, "completion", 0, help_args, shell, "SHELL",
         "print the script that lets a shell complete commands and options",
         .choice = completion_shell),
};

static int run_completion(const void *arg, char *const *operands, size_t n)
{
    struct buf text;
    size_t i = 0;
    (void)arg;
    while (n == 1 && completion_shell(i) != NULL && strcmp(completion_shell(i), operands[0]) != 0) {
        i++;
    }
    if (n != 1 || completion_shell(i) == NULL) {
        return cmd_usage_error("completion", "expected one of bash, zsh, fish%s%s",
                               n == 0 ? "" : ", got ", n == 0 ? "" : operands[n - 1]);
    }
    buf_init(&text, TEXT_MAX);
    return cmd_flush(cmd_print(completion_script(operands[0], &text), &text, stdout));
}

const struct command cmd_completion = {
    .name = "completion",
    .summary = "print the script with which a shell completes commands and options",
    .usage = "completion bash|zsh|fish",
    .description = "Prints a script that lets a shell complete commands, their subjects, options "
                   "and the values of options. For one session of bash: `source <(profpull "
                   "completion bash)`. The Debian package has installed the scripts already.",
    .exit_codes = "Exit code: 0 done, 1 standard output failed, 2 usage.",
    .operands_max = SIZE_MAX,
    .subject = completion_shell,
    .run = run_completion,
};

static const char *command_name(size_t i)
{
    const struct command *c = command_at(i);
    return c == NULL ? NULL : c->name;
}

const struct command cmd_help = {
    .name = "help",
    .summary = "explain a command; print the manual page or completions",
    .usage = "help [COMMAND]\nhelp --man | --completion SHELL",
    .description = "Prints the help of a command, or the list of all. `profpull help --man | man "
                   "-l -` shows the\nmanual page.",
    .exit_codes = "Exit code: 0 done, 1 standard output failed, 2 usage.",
    COMMAND_FLAGS(flags, help_args),
    .operands_max = 1,
    .subject = command_name,
    .run = run_help,
};
