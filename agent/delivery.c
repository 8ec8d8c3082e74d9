#include "agent/delivery.h"

/* Combines the results of several destinations: a destination that accepted the profile counts
 * before one that had no room, and this one before one whose rules dropped the profile. */
static enum delivery_result better(enum delivery_result a, enum delivery_result b)
{
    return a < b ? a : b;
}

static enum delivery_result hand_over(const struct delivery *d, struct profile *profile,
                                      enum profile_verdict verdict, uint64_t endpoints)
{
    static const enum delivery_result results[] = {
        [PROFILE_DROPPED] = DELIVERY_DROPPED,
        [PROFILE_FAILED] = DELIVERY_FAILED,
        [PROFILE_NO_MEMORY] = DELIVERY_NO_MEMORY,
    };
    if (verdict == PROFILE_KEPT) {
        return writer_put(d->writer, profile, endpoints) ? DELIVERY_TAKEN : DELIVERY_FULL;
    }
    if (verdict == PROFILE_NO_MEMORY && profile->receipt != NULL) {
        receipt_fail(profile->receipt);
    }
    profile_unref(profile);
    return results[verdict];
}

/* Puts copies to the destinations with rules of their own, and removes these from *forward_to. */
static enum delivery_result put_ways(const struct delivery *d, const struct profile *profile,
                                     uint64_t *forward_to, int64_t now_ms)
{
    const struct config_job *job = &d->jobs[profile->job];
    enum delivery_result result = DELIVERY_DROPPED;
    /* With several destinations, another one may accept the profile: if one refused it, it would
     * lose the profile. */
    bool refusable = profile->refusable && (*forward_to & (*forward_to - 1)) == 0;
    for (size_t i = 0; i < job->n_ways; i++) {
        uint64_t endpoint = job->ways[i].endpoint & *forward_to;
        if (endpoint == 0) {
            continue;
        }
        *forward_to &= ~endpoint;
        struct profile *copy = profile_copy(profile);
        if (copy == NULL) {
            if (profile->receipt != NULL) {
                receipt_fail(profile->receipt);
            }
            result = better(result, DELIVERY_NO_MEMORY);
            continue;
        }
        copy->refusable = refusable;
        enum profile_verdict verdict = profile_rules_apply_way(d->rules, copy, i, now_ms);
        result = better(result, hand_over(d, copy, verdict, endpoint));
    }
    return result;
}

/* Hands a profile that the rules of its job have kept to its destinations. */
static enum delivery_result put_kept(const struct delivery *d, struct profile *profile,
                                     uint64_t forward_to, int64_t now_ms)
{
    enum delivery_result result = put_ways(d, profile, &forward_to, now_ms);
    if (forward_to == 0) {
        profile_unref(profile);
        return result;
    }
    return better(result, hand_over(d, profile, PROFILE_KEPT, forward_to));
}

enum delivery_result delivery_put(const struct delivery *d, struct profile *profile,
                                  uint64_t forward_to, int64_t now_ms)
{
    enum profile_verdict verdict = profile_rules_apply(d->rules, profile, now_ms);
    if (verdict != PROFILE_KEPT) {
        return hand_over(d, profile, verdict, forward_to);
    }
    struct record_item *item = d->record != NULL ? record_begin(d->record, profile) : NULL;
    enum delivery_result result = put_kept(d, profile, forward_to, now_ms);
    if (item != NULL) {
        record_end(d->record, item, result == DELIVERY_TAKEN);
    }
    return result;
}
