#include "model/reason.h"

#include <string.h>

/* The bytes of a body in which an error message is searched: it appears at the start. */
#define MESSAGE_MAX 512

struct row {
    const char *name;
    long status;         /* status of the response; 0: no single status stands for the reason */
    const char *message; /* text that the body of the response must contain; NULL: any body */
    enum reason_kind kind;
    /* advice for the operator; NULL: there is none that holds in general */
    const char *advice;
};

#define ADVICE_NO_PPROF                                                                            \
    "another page is served at this path: check the port and the path of the profile type"
#define ADVICE_FORBIDDEN                                                                           \
    "the target refuses access: check basic_auth, authorization or tls_config of the job"

/* A row with a message precedes the one for its status alone. */
static const struct row rows[REASONS] = {
    [REASON_NONE] = {.name = "", .kind = REASON_KIND_SUCCESS},
    [REASON_RESOLVE] =
        {.name = "resolve",
         .advice =
             "no such host name: check __address__, and whether the DNS of this machine knows it"},
    [REASON_CONNECT] =
        {.name = "connect",
         .advice =
             "nothing answers there: check the port (annotation, label or list), that the program "
             "listens on this address and not on 127.0.0.1 only, and network policies"},
    [REASON_TLS] = {.name = "tls",
                    .advice =
                        "check that the port speaks TLS (scheme), and tls_config: ca_file for a "
                        "private authority, server_name if the certificate is for another name"},
    [REASON_TIMEOUT] = {.name = "timeout",
                        .advice = "raise scrape_timeout, or find out why the target is slow"},
    [REASON_TOO_LARGE] = {.name = "too_large", .advice = "raise body_size_limit of the job"},
    [REASON_NO_ROOM] = {.name = "no_room",
                        .advice = "too little memory for the bodies of all responses: raise "
                                  "global.memory_limit (or the limit "
                                  "of the container), or scrape large profiles less often"},
    [REASON_REDIRECT] = {.name = "redirect",
                         .advice = "only redirects to the same scheme, host and port are followed: "
                                   "set scheme or path to where it leads"},
    [REASON_CUT] = {.name = "cut"},
    [REASON_PROTOCOL] =
        {.name = "protocol",
         .advice =
             "the server there does not speak HTTP as expected: check the port, and http or https"},
    [REASON_ABORTED] = {.name = "aborted"},
    [REASON_DESCRIPTORS] = {.name = "descriptors",
                            .advice = "raise the limit of open files (LimitNOFILE, ulimit -n)"},
    [REASON_ADDRESS] = {.name = "address",
                        .advice = "the name resolves to an address that is only scraped with "
                                  "allow_special_address: set it if this is intended"},
    [REASON_CONFIG] = {.name = "config",
                       .advice =
                           "a file with credentials or certificates of the job cannot be used"},
    [REASON_MEMORY] = {.name = "memory", .advice = "give the process more memory"},
    [REASON_BUSY] =
        {.name = "busy",
         .advice =
             "profiles come faster than deltas are made of them: more CPUs, or longer intervals"},
    [REASON_CPU_IN_USE] = {.name = "cpu_in_use",
                           .status = 500,
                           .message = "cpu profiling already in use",
                           .kind = REASON_KIND_CONFLICT,
                           .advice = "a process can run one CPU profile at a time: end the other "
                                     "profiler (an SDK that pushes, a second agent), or switch "
                                     "the type off here"},
    [REASON_DURATION_TOO_LONG] = {.name = "duration_too_long",
                                  .status = 400,
                                  .message = "duration exceeds server's WriteTimeout"},
    [REASON_HTTP_404] = {.name = "http_404",
                         .status = 404,
                         .kind = REASON_KIND_ABSENT,
                         .advice = "the program does not serve this type at this path: set its "
                                   "path, or switch the type off in profiles"},
    [REASON_HTTP_401] = {.name = "http_401", .status = 401, .advice = ADVICE_FORBIDDEN},
    [REASON_HTTP_403] = {.name = "http_403", .status = 403, .advice = ADVICE_FORBIDDEN},
#define ROW(s) [REASON_HTTP_##s] = {.name = "http_" #s, .status = (s)}
    REASON_STATUSES(ROW),
#undef ROW
    [REASON_HTTP_4XX] = {.name = "http_4xx"},
    [REASON_HTTP_5XX] = {.name = "http_5xx"},
    [REASON_HTTP_OTHER] = {.name = "http_other"},
    [REASON_EMPTY] = {.name = "empty"},
    [REASON_NOT_PPROF_HTML] = {.name = "not_pprof_html", .advice = ADVICE_NO_PPROF},
    [REASON_NOT_PPROF_JSON] = {.name = "not_pprof_json", .advice = ADVICE_NO_PPROF},
    [REASON_NOT_PPROF_TEXT] = {.name = "not_pprof_text", .advice = ADVICE_NO_PPROF},
    [REASON_NOT_PPROF_SHORT] = {.name = "not_pprof_short"},
    [REASON_NOT_JFR] = {.name = "not_jfr"},
    [REASON_BAD_GZIP] = {.name = "bad_gzip"},
    [REASON_BAD_PROTOBUF] = {.name = "bad_protobuf"},
    [REASON_BAD_PPROF] = {.name = "bad_pprof"},
    [REASON_BAD_LEGACY] = {.name = "bad_legacy"},
};

static const uint8_t of_transfer[] = {
    [HTTP_DONE] = REASON_NONE,           [HTTP_ERR_RESOLVE] = REASON_RESOLVE,
    [HTTP_ERR_CONNECT] = REASON_CONNECT, [HTTP_ERR_TLS] = REASON_TLS,
    [HTTP_ERR_TIMEOUT] = REASON_TIMEOUT, [HTTP_ERR_TOO_LARGE] = REASON_TOO_LARGE,
    [HTTP_ERR_NO_ROOM] = REASON_NO_ROOM, [HTTP_ERR_REDIRECT] = REASON_REDIRECT,
    [HTTP_ERR_CUT] = REASON_CUT,         [HTTP_ERR_PROTOCOL] = REASON_PROTOCOL,
    [HTTP_ERR_ABORTED] = REASON_ABORTED, [HTTP_ERR_DESCRIPTORS] = REASON_DESCRIPTORS,
    [HTTP_ERR_ADDRESS] = REASON_ADDRESS, [HTTP_ERR_CONFIG] = REASON_CONFIG,
    [HTTP_ERR_MEMORY] = REASON_MEMORY,
};

static const uint8_t of_sniff[] = {
    [SNIFF_EMPTY] = REASON_EMPTY,
    [SNIFF_HTML] = REASON_NOT_PPROF_HTML,
    [SNIFF_JSON] = REASON_NOT_PPROF_JSON,
    [SNIFF_TEXT] = REASON_NOT_PPROF_TEXT,
    [SNIFF_TOO_SHORT] = REASON_NOT_PPROF_SHORT,
    [SNIFF_BAD_GZIP] = REASON_BAD_GZIP,
    [SNIFF_BAD_WIRE] = REASON_BAD_PROTOBUF,
    [SNIFF_NOT_JFR] = REASON_NOT_JFR,
};

static const uint8_t of_delta[] = {
    [DELTA_BAD_GZIP] = REASON_BAD_GZIP,
    [DELTA_BAD_PPROF] = REASON_BAD_PPROF,
    [DELTA_TOO_LARGE] = REASON_TOO_LARGE,
    [DELTA_NO_MEMORY] = REASON_MEMORY,
};

static const uint8_t of_legacy[] = {
    [LEGACY_BAD] = REASON_BAD_LEGACY,
    [LEGACY_BAD_GZIP] = REASON_BAD_GZIP,
    [LEGACY_TOO_LARGE] = REASON_TOO_LARGE,
    [LEGACY_NO_MEMORY] = REASON_MEMORY,
};

const char *reason_name(enum reason r)
{
    return rows[r].name;
}

const char *reason_advice(enum reason r)
{
    return rows[r].advice == NULL ? "" : rows[r].advice;
}

enum reason_kind reason_kind(enum reason r)
{
    return rows[r].kind;
}

static bool contains(struct sv body, const char *message)
{
    size_t n = body.n < MESSAGE_MAX ? body.n : MESSAGE_MAX;
    return n > 0 && memmem(body.p, n, message, strlen(message)) != NULL;
}

static enum reason reason_of_status(long status, struct sv body)
{
    for (size_t i = REASON_CPU_IN_USE; i < REASON_HTTP_4XX; i++) {
        if (rows[i].status == status &&
            (rows[i].message == NULL || contains(body, rows[i].message))) {
            return (enum reason)i;
        }
    }
    switch (status / 100) {
    case 3:
        return REASON_REDIRECT;
    case 4:
        return REASON_HTTP_4XX;
    case 5:
        return REASON_HTTP_5XX;
    default:
        return REASON_HTTP_OTHER;
    }
}

enum reason reason_of_response(enum http_result result, long status, struct sv body)
{
    /* The status of an error page counts even if the page was cut or is too long. */
    bool answered = result == HTTP_DONE ||
                    (status >= 400 && (result == HTTP_ERR_TOO_LARGE || result == HTTP_ERR_CUT ||
                                       result == HTTP_ERR_NO_ROOM));
    return answered ? reason_of_status(status, body) : (enum reason)of_transfer[result];
}

enum reason reason_of_sniff(enum sniff_result r)
{
    return (enum reason)of_sniff[r];
}

enum reason reason_of_delta(enum delta_result r)
{
    return (enum reason)of_delta[r];
}

enum reason reason_of_legacy(enum legacy_result r)
{
    return (enum reason)of_legacy[r];
}
