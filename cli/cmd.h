/* The subcommands, one file each, and what they share.
 *
 * Each takes its own argv (argv[0] is the subcommand's name) and returns the exit code. Results go
 * to stdout, everything else to stderr.
 */
#ifndef PROFPULL_CLI_CMD_H
#define PROFPULL_CLI_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

enum {
    EXIT_DONE = 0,
    EXIT_INPUT = 1, /* the input or the configuration is wrong */
    EXIT_USAGE = 2,
    EXIT_PEER = 3, /* the other side failed */
};

int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_discover(int argc, char **argv);
int cmd_relabel(int argc, char **argv);
int cmd_scrape(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_spool(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* What run, check and discover have in common on their command line. */
struct cmd_config_flags {
    const char *file;      /* --config */
    const char *write_url; /* --write.url */
    const char *listen;    /* --listen */
};

/* Loads the configuration with the relabel room's check of rules. On errors prints them all to
 * stderr and returns NULL. file must be set. */
struct config *cmd_load_config(const struct cmd_config_flags *flags);

/* Prints "profpull NAME: MESSAGE" and where help is to stderr; returns EXIT_USAGE. */
int cmd_usage_error(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints a help text to stdout; EXIT_DONE. */
int cmd_help(const char *text);

/* Prints "profpull: MESSAGE" to stderr and returns code. */
int cmd_fail(int code, const struct err *err);

/* A duration from the command line, in ms; false with a message on stderr. */
bool cmd_parse_duration(const char *name, const char *flag, const char *text, int64_t *ret_ms);

#endif
