/* The way of a profile from where it was made to the destinations: the rules of its job, then a
 * copy for each destination that has rules of its own.
 *
 * One thread at a time, that of the rules (agent/profile_rules.h).
 */
#ifndef PROFPULL_AGENT_DELIVERY_H
#define PROFPULL_AGENT_DELIVERY_H

#include <stdint.h>

#include "agent/profile_rules.h"
#include "config/config.h"
#include "model/profile.h"
#include "write/write.h"

/* The parts of deliveries. All of them outlive the deliveries. */
struct delivery {
    const struct config_job *jobs; /* profile.job is an index in them */
    struct profile_rules *rules;   /* of these jobs */
    struct writer *writer;
};

enum delivery_result {
    DELIVERY_TAKEN, /* by one destination at least */
    DELIVERY_FULL,  /* the others dropped it, or none of them had room */
    DELIVERY_NO_MEMORY,
    DELIVERY_FAILED,  /* a rule failed, or took away the type */
    DELIVERY_DROPPED, /* by a rule, as intended */
};

/* Delivers a profile. Takes over the caller's reference. forward_to: bits of destinations, not 0.
 * now_ms: monotonic. */
enum delivery_result delivery_put(const struct delivery *d, struct profile *profile,
                                  uint64_t forward_to, int64_t now_ms);

#endif
