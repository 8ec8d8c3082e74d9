/* The subcommands, one file each, and what they share.
 *
 * Results go to stdout, everything else to stderr.
 */
#ifndef PROFPULL_CLI_CMD_H
#define PROFPULL_CLI_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/flags.h"
#include "config/config.h"

enum {
    EXIT_DONE = 0,
    EXIT_INPUT = 1, /* the input or the configuration is wrong */
    EXIT_USAGE = 2,
    EXIT_PEER = 3, /* the other side failed */
};

/* The largest limit that flags can set for a body or a file. */
#define CMD_BODY_MAX (UINT64_C(1) << 30)

extern const struct command cmd_run;
extern const struct command cmd_check;
extern const struct command cmd_discover;
extern const struct command cmd_relabel;
extern const struct command cmd_scrape;
extern const struct command cmd_import;
extern const struct command cmd_verify;
extern const struct command cmd_status;
extern const struct command cmd_query;
extern const struct command cmd_pgo;
extern const struct command cmd_jfr;
extern const struct command cmd_spool;
extern const struct command cmd_convert;
extern const struct command cmd_help;
extern const struct command cmd_version;

/* Prints the list of commands, as `profpull help` does. */
void command_list(FILE *out);
/* Says on stderr that there is no such command, and which one may be meant; returns EXIT_USAGE. */
int command_unknown(const char *name);

/* The flags that say which configuration to use. */
struct cmd_config_flags {
    const char *file; /* --config */
    struct sv text;   /* in place of a file, with its name for messages in file; p NULL: none */
    const char *write_url; /* --write.url */
    const char *listen;    /* --listen */
    const char *service;   /* --sharding.service */
    bool strict;           /* warnings are errors */
    bool notes;            /* prints what has nothing to do with profiles, too */
    bool for_this_machine; /* ceilings of memory depend on what there is */
};

/* Loads the configuration and checks its relabel rules. Prints warnings, and on errors all of them,
 * to stderr; returns NULL after errors. file or write_url must be set. */
struct config *cmd_load_config(const struct cmd_config_flags *flags);

/* The same for a running process: prints nothing. errors and warnings are the caller's. */
struct config *cmd_reload_config(const struct cmd_config_flags *flags, struct config_errors *errors,
                                 struct config_errors *warnings);

/* The languages of configuration files besides YAML, for struct config_options. */
extern const struct config_language *const cmd_languages[];
/* For struct config_options. */
bool cmd_check_rule(void *arg, const struct config_rule *rule, struct err *err);
/* Prints every error to stderr. */
void cmd_print_errors(const struct config_errors *errors);
/* Prints each message as file:line:column: KIND: path: message to stderr. */
void cmd_print_messages(const struct config_errors *list, const char *kind);

/* Prints "profpull NAME: MESSAGE" and the line about --help to stderr; returns EXIT_USAGE. */
int cmd_usage_error(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints only the line about --help; returns EXIT_USAGE. */
int cmd_usage_hint(const char *name);

/* Prints "profpull: MESSAGE" to stderr and returns code. */
int cmd_fail(int code, const struct err *err);

/* Writes text to a stream if ok, else the message that memory ran out to stderr; frees text.
 * Returns EXIT_DONE or EXIT_INPUT. */
int cmd_print(bool ok, struct buf *text, FILE *to);

/* Flushes stdout. Returns code, or EXIT_INPUT with a message if that fails. */
int cmd_flush(int code);

#endif
