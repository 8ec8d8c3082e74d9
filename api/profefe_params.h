/* Parts that the reading and the receiving side of profefe's API share: ids, times, labels, and
 * responses in JSON.
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

/* Length of the id that the collector gives a profile: an xid, 20 digits of base 32 for 12 bytes.
 * Our ids have the second in which the profile starts (its lower 32 bits) and the hash of the
 * profile in the store. */
#define PROFEFE_ID_LENGTH 20
void profefe_id_format(int64_t time_ns, uint64_t hash, char out[PROFEFE_ID_LENGTH + 1]);
/* Parses such an id. False if the text is no id. */
bool profefe_id_parse(struct sv text, uint32_t *ret_second, uint64_t *ret_hash);

/* Parses a time such as "2026-11-22T00:30:00", in UTC and without a zone; it may have a fraction.
 * The error, of kind ERR_INPUT, is that of profefe: `time in unsupported format "x"`, where x is
 * the beginning of the text. */
bool profefe_time(struct sv text, int64_t *ret_ns, struct err *err);

/* Parses "k=v,k=v" from a query that has been decoded: each key and value is trimmed and decoded a
 * second time. A pair without a name is skipped; a pair without "=" has the value "". The labels
 * are sorted by name, those with the same name stay in their order, and all are copied into the
 * arena. The error is that of profefe. */
bool profefe_labels(struct sv text, struct arena *arena, struct label **ret, size_t *ret_n,
                    struct err *err);

/* Puts `bad "name"`, the text `more`, and the beginning of `text` in quotes in front of an error.
 * Returns false. */
bool profefe_wrap(struct err *err, const char *name, const char *more, struct sv text);

/* The properties of a profile that the API shows. */
struct profefe_profile {
    struct sv id;
    const char *type;
    struct sv service;
    const struct label *labels; /* labels `__*` and service_name are not shown */
    size_t n_labels;
    int64_t time_ns;
};
/* Appends {"id":...,"type":...,"service":...,"labels":[...],"created_at":...}. */
bool profefe_put_profile(const struct profefe_profile *p, struct buf *out);

/* Answers with {"code":STATUS,"error":"..."}. */
void profefe_fail(struct exchange *x, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
