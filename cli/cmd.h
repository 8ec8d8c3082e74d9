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
    EXIT_PEER = 3, /* the server or target failed */
};

/* The largest limit that flags can set for a body or a file. */
#define CMD_BODY_MAX (UINT64_C(1) << 30)

extern const struct command cmd_run;
extern const struct command cmd_check;
extern const struct command cmd_discover;
extern const struct command cmd_explain;
extern const struct command cmd_relabel;
extern const struct command cmd_scrape;
extern const struct command cmd_import;
extern const struct command cmd_verify;
extern const struct command cmd_status;
extern const struct command cmd_query;
extern const struct command cmd_flame;
extern const struct command cmd_open;
extern const struct command cmd_pgo;
extern const struct command cmd_jfr;
extern const struct command cmd_mcp;
extern const struct command cmd_spool;
extern const struct command cmd_store;
extern const struct command cmd_convert;
extern const struct command cmd_reload;
extern const struct command cmd_log_level;
extern const struct command cmd_completion;
extern const struct command cmd_help;
extern const struct command cmd_version;

/* Prints the list of commands, as `profpull help` does. */
void command_list(FILE *out);
/* Prints to stderr that there is no such command, and which one may be meant. Returns EXIT_USAGE.
 */
int command_unknown(const char *name);

/* The flags that say which configuration to use. */
struct cmd_config_flags {
    const char *file; /* --config */
    /* a configuration instead of a file; `file` is its name in messages; p is NULL: none */
    struct sv text;
    const char *write_url; /* --write.url */
    const char *listen;    /* --listen */
    const char *service;   /* --sharding.service */
    bool strict;           /* warnings count as errors */
    bool notes; /* also print notes about parts of the file that have nothing to do with profiles */
    bool for_this_machine; /* limits of memory depend on the memory of this machine */
};

/* Loads the configuration and checks its relabel rules. Prints warnings to stderr. If there are
 * errors, prints all of them and returns NULL. file or write_url must be set. */
struct config *cmd_load_config(const struct cmd_config_flags *flags);

/* Loads the configuration as cmd_load_config() does, and prints nothing. The lists belong to the
 * caller. */
struct config *cmd_read_config(const struct cmd_config_flags *flags, struct config_errors *errors,
                               struct config_errors *warnings, struct config_errors *notes);
/* The same without notes: they are of no interest when a running process loads again. */
struct config *cmd_reload_config(const struct cmd_config_flags *flags, struct config_errors *errors,
                                 struct config_errors *warnings);

/* Returns the value of a variable of the environment; NULL if it is not set, or empty. */
const char *cmd_environment(const char *name);

/* The languages of configuration files besides YAML, for struct config_options; ended by NULL. */
extern const struct config_language *const cmd_languages[];
/* Checks a relabel rule; a callback for struct config_options. */
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

/* If ok, writes text to a stream; otherwise prints to stderr that memory ran out. Frees text.
 * Returns EXIT_DONE or EXIT_INPUT. */
int cmd_print(bool ok, struct buf *text, FILE *to);

/* Flushes stdout. Returns code, or EXIT_INPUT with a message if that fails. */
int cmd_flush(int code);

#endif
