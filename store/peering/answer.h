/* Answers the questions of peers, from the disk of this process alone: a question is never passed
 * on, so there are no loops.
 */
#ifndef PROFPULL_STORE_PEERING_ANSWER_H
#define PROFPULL_STORE_PEERING_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "store/peering/message.h"

struct store;

/* Limits of one slice, whatever a question asks for. The second one is that of one set: a set is
 * never split. */
#define PEERING_SLICE_BYTES ((uint64_t)16 * 1024 * 1024)
#define PEERING_SLICE_MAX ((uint64_t)128 * 1024 * 1024)

/* Appends the answer to a question. instance: the id of this process. False with err, which is
 * ERR_LIMIT if one set is larger than the question allows. Any thread; blocks on the disk. */
bool peering_answer(struct store *s, const char *instance, const struct peering_question *q,
                    struct buf *out, struct err *err);

#endif
