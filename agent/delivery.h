/* Delivers a profile to its destinations: applies the rules of its job, then makes a copy for each
 * destination that has rules of its own.
 *
 * One thread at a time, that of the rules (agent/profile_rules.h).
 */
#ifndef PROFPULL_AGENT_DELIVERY_H
#define PROFPULL_AGENT_DELIVERY_H

#include <stdint.h>

#include "agent/profile_rules.h"
#include "config/config.h"
#include "model/profile.h"
#include "record/record.h"
#include "write/write.h"

/* The parts that a delivery uses. All of them outlive the deliveries. */
struct delivery {
    const struct config_job *jobs; /* profile.job is an index in them */
    struct profile_rules *rules;   /* the rules of these jobs */
    struct writer *writer;
    struct record *record; /* counts the profiles that a destination has accepted; may be NULL */
};

enum delivery_result {
    DELIVERY_TAKEN, /* at least one destination has accepted it */
    DELIVERY_FULL,  /* no destination had room, or the others dropped it */
    DELIVERY_NO_MEMORY,
    DELIVERY_FAILED,  /* a rule failed, or took away the type */
    DELIVERY_DROPPED, /* a rule dropped it, as intended */
};

/* Delivers a profile. Takes over the caller's reference. forward_to: bits of destinations, not 0.
 * now_ms: monotonic. */
enum delivery_result delivery_put(const struct delivery *d, struct profile *profile,
                                  uint64_t forward_to, int64_t now_ms);

#endif
