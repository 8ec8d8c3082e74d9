/* Classifies the response of an endpoint: is the profile stored, to be sent again, or lost?
 *
 * The status alone does not decide, because servers and the proxies in front of them use it in
 * different ways: a 422 may mean overload, a 500 a broken profile, a 429 a refusal for good, a 200
 * a login page. Rules that hold for all protocols are here, the others in write/protocols/. Pure;
 * any thread.
 */
#ifndef PROFPULL_WRITE_ANSWER_H
#define PROFPULL_WRITE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "http/http.h"

/* Most bytes of a response that are kept for classification and logs. */
#define ANSWER_BODY_MAX ((size_t)64 * 1024)
/* The most characters of a server's message that are passed on. If a message is longer, its head
 * and tail are kept, with ANSWER_TEXT_CUT between them. */
#define ANSWER_TEXT_MAX ((size_t)400)
#define ANSWER_TEXT_TAIL ((size_t)160)
#define ANSWER_TEXT_CUT " ... "
/* The longest wait that a server may ask for (Retry-After, "next reset at"). */
#define ANSWER_DELAY_MAX_MS INT64_C(300000)
/* The wait after a failure that only an operator can fix: 401, 403, 404, unreadable credentials. */
#define ANSWER_SLOW_MS INT64_C(30000)
/* The number of doubtful answers to one profile after which the profile is dropped. */
#define ANSWER_TRIES 5
/* The same number for a rate limit; with the default backoff these attempts take over four minutes.
 * They must end, because a profile that is larger than the burst of the server's limiter is refused
 * every time. */
#define ANSWER_RATE_TRIES 10
/* The same number for a 422 without a reason, and for a rate limit whose message names a profile of
 * more than ANSWER_BURST_MIB. */
#define ANSWER_FEW_TRIES 2
/* Pyroscope's default rate limiter never accepts a profile that inflates to more than this. */
#define ANSWER_BURST_MIB 2

enum answer_class {
    ANSWER_SENT,
    ANSWER_RETRY,          /* the endpoint is at fault: send again until max_age */
    ANSWER_RETRY_DOUBTFUL, /* the profile may be at fault: send at most `tries` times */
    ANSWER_REJECTED,       /* do not send again */
};

/* The part that a failure concerns. This part waits, and everything else is sent meanwhile. */
enum answer_scope {
    ANSWER_OF_ENDPOINT, /* the endpoint cannot be reached, or says that it is out of order */
    ANSWER_OF_TENANT,   /* a rate limit, a quota, credentials */
    ANSWER_OF_PROFILE,  /* nothing shows that other profiles would be refused as well */
};

/* The reason for which a profile is given up, if the server gives it in a known phrase. */
enum answer_fault {
    ANSWER_FAULT_OTHER,
    ANSWER_FAULT_TOO_LARGE, /* too many bytes or samples */
    ANSWER_FAULT_TOO_OLD,   /* outside of the server's ingestion window */
    ANSWER_FAULT_BURST,     /* larger than the burst of the server's rate limit */
};

struct protocol;

struct answer_input {
    const struct protocol *protocol;
    bool retry_on_429;
    enum http_result result;
    bool stream_ended; /* as in struct http_response */
    bool early;        /* as in struct http_response */
    long status;       /* 0 if no status line came */
    const char *says;  /* the words for the status in texts; NULL: "HTTP" and the number */
    const char *error;
    const char *content_type;
    const char *location;
    int64_t retry_after_ms; /* -1 if none */
    struct sv body;         /* at most the first ANSWER_BODY_MAX bytes of the body */
    struct sv grpc_status;  /* the number of the gRPC status; empty if none arrived */
    struct sv grpc_message; /* the text of that status, decoded */
    int64_t wall_ns;        /* the present time, for "next reset at" */
};

struct answer {
    enum answer_class class;
    enum answer_scope scope; /* ANSWER_RETRY, ANSWER_RETRY_DOUBTFUL */
    bool answered;           /* an HTTP status arrived: the profile goes to the end of the queue */
    /* The status of HTTP, or the one that means the same as the protocol's own; 0: none. */
    long status;
    enum answer_fault fault;
    unsigned tries; /* ANSWER_RETRY_DOUBTFUL */
    /* ANSWER_SENT: messages of the request that the server did not take; text says why */
    uint64_t refused;
    /* The shortest wait of the part in `scope`; 0 if the server asked for none. */
    int64_t delay_ms;
    /* The change that is needed before another attempt can succeed, in static storage. NULL: the
     * advice depends on the status (advice.h). */
    const char *advice;
    /* A text for people: "HTTP 503: service is unavailable", "connection refused". "" if the server
     * took everything.
     */
    char text[4 * ANSWER_TEXT_MAX + 128];
};

/* Classifies a response. A status counts even if the transfer broke off after it: the profile may
 * have been stored. */
void answer_classify(const struct answer_input *in, struct answer *ret_answer);

/* Returns true if the server has refused this request, and nothing says that it would refuse other
 * requests as well.
 */
bool answer_is_about_content(const struct answer *a);

/* ---- for protocols that classify themselves -------------------------------------------------- */

/* The contents of a response body: Connect's error JSON, profefe's, an error that the protocol
 * reads, or the text itself. */
struct reply {
    struct json_t *json; /* NULL: not JSON */
    const char *code;    /* "" if there is none */
    struct sv message;
    /* Space for a protocol, whose code and message may point here. */
    char own_code[64];
    char own_text[2 * ANSWER_TEXT_MAX];
};

/* Returns true if a text contains `part`. */
bool answer_mentions(struct sv text, const char *part);
/* Returns true if a Content-Type names this media type, in any case. Parameters, or a suffix such
 * as "+proto", may follow. */
bool answer_type_is(const char *content_type, const char *wanted);
/* Copies up to ANSWER_TEXT_MAX characters as one line; of a longer text, the middle is left out. */
void answer_copy_text(struct sv v, char *out, size_t size);
/* Classifies the answer as ANSWER_RETRY_DOUBTFUL: the profile is retried, and dropped after so many
 * tries. */
void answer_set_doubtful(struct answer *a, unsigned tries);

/* Returns the class of a result for metrics: "2xx", "3xx", "4xx", "429", "5xx", or
 * http_result_name(). */
const char *answer_result_name(enum http_result result, long status);

#endif
