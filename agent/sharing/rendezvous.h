/* Rendezvous hashing: of all members, the one with the highest weight for a key owns it.
 *
 * Every replica computes the same answer from the same names, without talking. When a member goes,
 * only its keys move, evenly to the others; when one comes, it takes an even part of everybody's.
 * Replicas of different versions of this program must agree while an update is rolled out, so these
 * functions never change: tests hold golden values. Pure, any thread.
 */
#ifndef PROFPULL_AGENT_SHARING_RENDEZVOUS_H
#define PROFPULL_AGENT_SHARING_RENDEZVOUS_H

#include <stdint.h>

#include "base/str.h"

/* The hash of the name of a member, or of a key. */
uint64_t rendezvous_hash(struct sv text);
/* The weight that a member has for a key, of the hashes of both. */
uint64_t rendezvous_weight(uint64_t member, uint64_t key);

/* The text by which the owner of a target is found. process: "host:port" with the host in its one
 * canonical form; pinned_host: the host that was discovered, NULL if the operator wrote the
 * address. All that runs at an address that was discovered belongs together, whatever the port, so
 * that its owner is known from the object alone; of hosts that somebody wrote down each port counts
 * for itself. A target that was aimed elsewhere (allow_foreign_address) counts as written down.
 * The result is a part of process. */
struct sv rendezvous_key(struct sv process, const char *pinned_host, bool foreign_allowed);

#endif
