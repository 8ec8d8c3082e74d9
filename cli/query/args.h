/* The flags that `query`, `pgo` and `status` share: the server, and the profiles to select. */
#ifndef PROFPULL_CLI_QUERY_ARGS_H
#define PROFPULL_CLI_QUERY_ARGS_H

#include "cli/cmd.h"
#include "cli/query/source.h"

/* Value of a time whose flag is not given. */
#define QUERY_NO_TIME INT64_MIN
#define QUERY_URL "http://127.0.0.1:4041"

/* The server to ask, and the credentials for it. */
struct query_server {
    struct config_endpoint_flags endpoint;
    int64_t timeout_ms;
};

#define QUERY_SERVER_DEFAULTS                                                                      \
    {                                                                                              \
        .endpoint = {.name = "query", .url = QUERY_URL, .protocol = "push"},                       \
        .timeout_ms = 60 * MS_PER_S                                                                \
    }

/* clang-format off: rows of a table. `at` is the member of args that is a struct query_server. */
#define QUERY_URL_FLAG(args, at)                                                                   \
    FLAG(TEXT, "url", 0, args, at.endpoint.url, "URL",                                             \
         "the server (default " QUERY_URL ", a profpull on this machine)", .env = "PROFPULL_URL")
#define QUERY_ACCESS_FLAGS(args, at)                                                               \
    FLAG(DURATION, "timeout", 0, args, at.timeout_ms, "DUR", "time limit of one request",          \
         .min = 1),                                                                                \
        FLAG(TEXT, "tenant", 0, args, at.endpoint.tenant, "ID", "X-Scope-OrgID"),                  \
        FLAG(TEXT, "username", 0, args, at.endpoint.username, "USER",                              \
             "user for basic authentication, with --password-file"),                               \
        FLAG(TEXT, "password-file", 0, args, at.endpoint.password_file, "FILE",                    \
             "file with the password of --username"),                                              \
        FLAG(TEXT, "bearer-token-file", 0, args, at.endpoint.bearer_token_file, "FILE",            \
             "file with the token for Authorization: Bearer"),                                     \
        FLAG(TEXT, "ca-file", 0, args, at.endpoint.ca_file, "FILE",                                \
             "trust the authority whose certificate is in this file"),                             \
        FLAG(BOOL, "insecure-skip-verify", 0, args, at.endpoint.insecure_skip_verify, NULL,        \
             "accept any certificate of the server")
/* clang-format on */

struct query_common {
    struct query_server server;
    const char *service;
    struct flag_pairs labels;
    int64_t from_ns; /* QUERY_NO_TIME if it is not given, as until_ns */
    int64_t until_ns;
    int64_t since_ms;
};

#define QUERY_COMMON_DEFAULTS(since)                                                               \
    {                                                                                              \
        .server = QUERY_SERVER_DEFAULTS, .from_ns = QUERY_NO_TIME, .until_ns = QUERY_NO_TIME,      \
        .since_ms = (since)                                                                        \
    }

/* clang-format off: rows of a table */
#define QUERY_COMMON_FLAGS(args)                                                                   \
    QUERY_URL_FLAG(args, common.server),                                                           \
        FLAG(TEXT, "service", 0, args, common.service, "NAME", "the service (service_name)"),      \
        FLAG(PAIRS, "label", 0, args, common.labels, "NAME=VALUE",                                 \
             "only profiles with this label; may be repeated"),                                    \
        FLAG(DURATION, "since", 0, args, common.since_ms, "DUR",                                   \
             "length of the time range, which ends at --until", .min = 1),                         \
        FLAG(TIME, "from", 0, args, common.from_ns, "TIME",                                        \
             "start of the time range (2026-11-21T03:23:34Z, or seconds since 1970), instead of "  \
             "--since"),                                                                           \
        FLAG(TIME, "until", 0, args, common.until_ns, "TIME",                                      \
             "end of the time range; by default now"),                                             \
        QUERY_ACCESS_FLAGS(args, common.server)
/* clang-format on */

/* Fills in a query from the flags; the caller sets its type. False with ERR_INPUT if the times are
 * wrong. */
bool query_ask_from(const struct query_common *common, int64_t now_ns, struct query_ask *ret,
                    struct err *err);

/* Prints the error. Returns the exit code, which shows whether the server failed. */
int query_fail(const struct err *err);

/* Writes a profile as gzip to a file or to standard output ("-"), and one line about it, as JSON if
 * asked for: to standard output, or to standard error if the profile is there. Returns the exit
 * code. */
int query_write_profile(const char *path, struct sv body, bool json);

#endif
