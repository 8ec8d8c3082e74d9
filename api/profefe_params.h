/* Parts that both directions of profefe's API share: times, labels, and the answers in JSON.
 *
 * Any thread.
 */
#ifndef PROFPULL_API_PROFEFE_PARAMS_H
#define PROFPULL_API_PROFEFE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"
#include "server/exchange.h"

/* The id that the collector gives a profile: an xid, 20 digits of base 32 for 12 bytes. Ours says
 * the second in which the profile starts (the lower 32 bits of it) and its hash in the store. */
#define PROFEFE_ID_LENGTH 20
void profefe_id_format(int64_t time_ns, uint64_t hash, char out[PROFEFE_ID_LENGTH + 1]);
/* Reads such an id. False if the text is no id. */
bool profefe_id_parse(struct sv text, uint32_t *ret_second, uint64_t *ret_hash);

/* "2026-11-22T00:30:00", perhaps with a fraction: UTC, without a zone. The error, of kind
 * ERR_INPUT, is profefe's: `time in unsupported format "x"`, with the beginning of x. */
bool profefe_time(struct sv text, int64_t *ret_ns, struct err *err);

/* "k=v,k=v" of a query that has been decoded: each side is trimmed and decoded a second time. A
 * pair without a name is skipped, one without "=" has the value "". Sorted by name, pairs of one
 * name in their order; copied into the arena. The error is profefe's. */
bool profefe_labels(struct sv text, struct arena *arena, struct label **ret, size_t *ret_n,
                    struct err *err);

/* Puts `bad "name"`, something more, and the beginning of the text, quoted, before an error.
 * Returns false. */
bool profefe_wrap(struct err *err, const char *name, const char *more, struct sv text);

/* A profile as the API describes it. */
struct profefe_profile {
    struct sv id;
    const char *type;
    struct sv service;
    const struct label *labels; /* `__*` and service_name are left out */
    size_t n_labels;
    int64_t time_ns;
};
/* Appends {"id":...,"type":...,"service":...,"labels":[...],"created_at":...}. */
bool profefe_put_profile(const struct profefe_profile *p, struct buf *out);

/* Answers {"code":STATUS,"error":"..."}. */
void profefe_fail(struct exchange *x, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
