/* Rendezvous hashing: the member with the highest weight for a key owns it.
 *
 * Every replica computes the same result from the same names, without communication. When a member
 * leaves, only its keys move, evenly to the others; when one joins, it takes an even share from
 * everybody. Replicas of different versions of this program must agree during a rollout, so these
 * functions never change: tests hold golden values. Pure, any thread.
 */
#ifndef PROFPULL_AGENT_SHARING_RENDEZVOUS_H
#define PROFPULL_AGENT_SHARING_RENDEZVOUS_H

#include <stdint.h>

#include "base/str.h"

/* Returns the hash of a member's name, or of a key. */
uint64_t rendezvous_hash(struct sv text);
/* Returns the weight of a member for a key, given the hashes of both. */
uint64_t rendezvous_weight(uint64_t member, uint64_t key);

/* Returns the key of a target. process: "host:port" with the host in canonical form; pinned_host:
 * the discovered host, NULL if the operator wrote the address. All ports of a discovered host share
 * one key, so its owner follows from the object alone; of hosts that the operator wrote, each port
 * has its own key, as has a target redirected to another host (allow_foreign_address). The result
 * is a part of process. */
struct sv rendezvous_key(struct sv process, const char *pinned_host, bool foreign_allowed);

#endif
