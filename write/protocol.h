/* A protocol that a destination speaks: what it carries, how a profile becomes a request, what a
 * response means, and how `profpull verify` reads a profile back.
 *
 * Each file in write/protocols/ defines one row, and write/protocols/table.h lists them; nothing
 * else names a protocol. A protocol either uses HTTP (build, build_many) or delivers profiles by
 * itself (open, deliver). Constant data and pure functions; any thread.
 */
#ifndef PROFPULL_WRITE_PROTOCOL_H
#define PROFPULL_WRITE_PROTOCOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "config/config.h"
#include "config/protocol.h"
#include "model/profile.h"
#include "write/answer.h"
#include "write/readback.h"
#include "write/request.h"
#include "write/series.h"

/* One profile for a destination that is not HTTP. */
struct delivery {
    const struct series *series;
    const struct profile *profile;
    struct answer *answer; /* set by the delivery */
    /* Private to attempt.c. */
    struct delivery *next;
    bool taken;
};

/* The most profiles that are delivered at once. */
#define SINK_BATCH_MAX 256

/* The state that a protocol without HTTP keeps for a destination: the first member of the
 * protocol's own struct. Reference-counted, because a delivery may outlive the writer. */
struct sink {
    atomic_uint refs;
    void (*free)(struct sink *s);
    /* Delivers all profiles that wait, at most SINK_BATCH_MAX, on the thread of the destination.
     * NULL: the protocol delivers them one by one. */
    void (*deliver_all)(struct sink *s, struct delivery *const *all, size_t n);
    /* The deliveries that wait, in order; under the lock. Private to attempt.c. */
    pthread_mutex_t lock;
    struct delivery *first;
    struct delivery **end;
};
/* Initialises a sink with one reference, which belongs to the caller. */
void sink_init(struct sink *s, void (*free_sink)(struct sink *s));

struct protocol {
    struct config_protocol config; /* the first member, see protocol_of() */
    struct series_rules labels;

    /* HTTP: sets the URL, the content type, own headers and the body around the profile. The caller
     * has checked the format and adds the headers that all protocols share. */
    enum request_status (*build)(struct request *r, const struct request_input *in);
    /* HTTP, in place of build: puts many profiles of one tenant into one request, on a thread of
     * the destination. Leaves out the parts whose status is not REQUEST_OK, and may set the status
     * of further parts; the request (r->packed) holds the remaining ones. */
    enum request_status (*build_many)(struct request *r, const struct config_endpoint *endpoint,
                                      struct request_part *parts, size_t n,
                                      struct request_memory *memory);
    /* Estimates the bytes of the request that a profile takes, and the bytes that a request may
     * have; a profile that takes more has a request to itself. Both exist with build_many. */
    size_t (*weigh)(const struct config_endpoint *endpoint, const struct profile *p);
    size_t (*weight_max)(const struct config_endpoint *endpoint);
    /* Called first: replaces the status of HTTP by the result that the server reports by other
     * means, and sets `says`. */
    void (*translate)(struct answer_input *in);
    /* Reads the message and the code of a refusal that is not JSON; NULL: the message is the text
     * of the body. */
    void (*read_refusal)(const struct answer_input *in, struct reply *r);
    /* Reads the details of a 2xx: answer->refused, and the text. */
    void (*read_taken)(const struct answer_input *in, const struct reply *r, struct answer *a);
    /* Returns true if a 2xx comes from a server of this protocol; NULL: everything but HTML does.
     */
    bool (*accepts)(const struct answer_input *in, const struct reply *r);
    /* Classifies a response with a status of 300 or above that has a special meaning in this
     * protocol. Returns false if it has none. NULL: no response has one. */
    bool (*knows)(const struct answer_input *in, const struct reply *r, struct answer *a);
    /* Classifies a status of 400 and above whose meaning differs between protocols. NULL: a 4xx
     * refuses the profile, and a 5xx is a failure of the server. */
    void (*classify)(const struct answer_input *in, const struct reply *r, struct answer *a);

    /* Not HTTP: opens the destination, with one reference for the caller. If this and build are
     * both NULL, another room opens it (open_sink in the options of the writer). */
    struct sink *(*open)(const struct config_endpoint *endpoint, struct err *err);
    /* Writes one profile, on the thread of the destination. */
    void (*deliver)(struct sink *sink, const struct series *s, const struct profile *p,
                    struct answer *ret_answer);

    /* The way in which a profile is read back. If both members are NULL, profiles cannot be read
     * back. */
    const struct readback *readback;
    const struct readback *(*readback_of_url)(const char *url); /* if the URL decides */
    /* Advice for people after a 404 or 405; NULL: the general advice. */
    const char *advice_not_found;
};

/* The configuration's part of all protocols, for struct config_options. NULL-terminated. */
const struct config_protocol *const *write_protocols(void);
/* Returns true if the protocol uses HTTP. */
bool protocol_is_http(const struct protocol *p);
/* Returns the protocol of an endpoint whose configuration was read with write_protocols(). */
const struct protocol *protocol_of(const struct config_endpoint *endpoint);

struct sink *sink_ref(struct sink *s);
struct sink *sink_unref(struct sink *s); /* accepts NULL, returns NULL */

#endif
