#include "agent/sharing/members.h"

#include <stdlib.h>
#include <string.h>

#include "agent/sharing/rendezvous.h"

#define NEVER INT64_MAX

struct member {
    char *name;
    uint64_t hash;
    /* When a member that has left stops counting; NEVER: the member is present. */
    int64_t until_ms;
};

/* Members in order of name, followed by those that have left but still count. */
struct members {
    struct members_options options;
    struct member *at;
    size_t n_present;
    size_t n;
    size_t self;
    bool known;
    int64_t since_ms; /* since when we are a member */
    int64_t lost_ms;  /* since when the watch has failed; -1: it works */
    enum members_state state;
    bool changed; /* since the last tick */
};

struct members *members_new(const struct members_options *options)
{
    struct members *m = calloc(1, sizeof(*m));
    if (m != NULL) {
        m->options = *options;
        m->self = MEMBERS_NONE;
        m->lost_ms = -1;
    }
    return m;
}

static void free_members(struct member *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(at[i].name);
    }
    free(at);
}

struct members *members_free(struct members *m)
{
    if (m != NULL) {
        free_members(m->at, m->n);
        free(m);
    }
    return NULL;
}

/* ---- input ----------------------------------------------------------------------------------- */

static bool add(struct member *at, size_t *n, struct sv name, int64_t until_ms)
{
    char *copy = strndup(name.p, name.n);
    if (copy == NULL) {
        return false;
    }
    at[(*n)++] = (struct member){.name = copy, .hash = rendezvous_hash(name), .until_ms = until_ms};
    return true;
}

static bool is_named(const struct sv *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq_str(names[i], name)) {
            return true;
        }
    }
    return false;
}

static bool is_same(const struct members *m, const struct sv *names, size_t n, size_t self)
{
    bool same = m->known && n == m->n_present && self == m->self;
    for (size_t i = 0; i < n && same; i++) {
        same = sv_eq_str(names[i], m->at[i].name);
    }
    return same;
}

/* Returns true if our name is unchanged: our keys were ours before then. */
static bool is_still_self(const struct members *m, const struct sv *names, size_t self)
{
    return self != MEMBERS_NONE && m->self != MEMBERS_NONE &&
           sv_eq_str(names[self], m->at[m->self].name);
}

/* Fills at with the names that are present and with the members that are still handing over. */
static bool add_all(const struct members *m, struct member *at, size_t *n_all,
                    const struct sv *names, size_t n, int64_t now_ms)
{
    bool ok = at != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        ok = add(at, n_all, names[i], NEVER);
    }
    for (size_t i = 0; i < m->n && ok; i++) {
        const struct member *old = &m->at[i];
        int64_t until = old->until_ms == NEVER ? now_ms + m->options.handover_ms : old->until_ms;
        if (until > now_ms && !is_named(names, n, old->name)) {
            ok = add(at, n_all, sv_from(old->name), until);
        }
    }
    return ok;
}

enum members_result members_set(struct members *m, const struct sv *names, size_t n, size_t self,
                                int64_t now_ms)
{
    n = n > MEMBERS_MAX ? MEMBERS_MAX : n;
    self = self < n ? self : MEMBERS_NONE;
    if ((n == 0 && m->n_present > 0) || is_same(m, names, n, self)) {
        return MEMBERS_SAME;
    }
    struct member *at = calloc(n + m->n + 1, sizeof(*at));
    size_t n_all = 0;
    if (!add_all(m, at, &n_all, names, n, now_ms)) {
        free_members(at, n_all);
        return MEMBERS_NO_MEMORY;
    }
    if (!is_still_self(m, names, self)) {
        m->since_ms = now_ms;
    }
    free_members(m->at, m->n);
    m->at = at;
    m->n = n_all;
    m->n_present = n;
    m->self = self;
    m->known = true;
    m->changed = true;
    return MEMBERS_CHANGED;
}

static bool is_isolated(const struct members *m, int64_t now_ms)
{
    return m->options.isolation_ms > 0 && m->lost_ms >= 0 &&
           now_ms >= m->lost_ms + m->options.isolation_ms;
}

void members_reachable(struct members *m, bool reachable, int64_t now_ms)
{
    if (!reachable) {
        m->lost_ms = m->lost_ms < 0 ? now_ms : m->lost_ms;
        return;
    }
    if (is_isolated(m, now_ms)) {
        m->since_ms = now_ms; /* as a new member: others may have taken over */
    }
    m->lost_ms = -1;
}

/* ---- time ------------------------------------------------------------------------------------ */

static enum members_state state_at(const struct members *m, int64_t now_ms)
{
    if (!m->known) {
        return MEMBERS_UNKNOWN;
    }
    if (m->self == MEMBERS_NONE) {
        return MEMBERS_OUTSIDE;
    }
    if (is_isolated(m, now_ms)) {
        return MEMBERS_ISOLATED;
    }
    return now_ms < m->since_ms + m->options.handover_ms ? MEMBERS_WAITING : MEMBERS_ACTIVE;
}

bool members_tick(struct members *m, int64_t now_ms)
{
    enum members_state state = state_at(m, now_ms);
    bool changed = m->changed || state != m->state;
    for (size_t i = m->n; i > m->n_present; i--) {
        if (m->at[i - 1].until_ms <= now_ms) {
            free(m->at[i - 1].name);
            m->at[i - 1] = m->at[--m->n];
            changed = true;
        }
    }
    m->state = state;
    m->changed = false;
    return changed;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t members_next_at(const struct members *m)
{
    int64_t next = m->state == MEMBERS_WAITING ? m->since_ms + m->options.handover_ms : NEVER;
    for (size_t i = m->n_present; i < m->n; i++) {
        next = earlier(next, m->at[i].until_ms);
    }
    bool in_touch = m->state == MEMBERS_WAITING || m->state == MEMBERS_ACTIVE;
    if (in_touch && m->lost_ms >= 0 && m->options.isolation_ms > 0) {
        next = earlier(next, m->lost_ms + m->options.isolation_ms);
    }
    return next;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Returns true if a outweighs b. Different names practically never have equal weights; if they do,
 * the order of names decides, the same everywhere. */
static bool outweighs(const struct member *a, const struct member *b, uint64_t key)
{
    uint64_t weight_a = rendezvous_weight(a->hash, key);
    uint64_t weight_b = rendezvous_weight(b->hash, key);
    return weight_a > weight_b || (weight_a == weight_b && strcmp(a->name, b->name) < 0);
}

static const struct member *heaviest(const struct members *m, size_t n, uint64_t key)
{
    const struct member *best = n == 0 ? NULL : &m->at[0];
    for (size_t i = 1; i < n; i++) {
        if (outweighs(&m->at[i], best, key)) {
            best = &m->at[i];
        }
    }
    return best;
}

bool members_owns(const struct members *m, uint64_t key)
{
    return m->state == MEMBERS_ACTIVE && m->self != MEMBERS_NONE &&
           heaviest(m, m->n, key) == &m->at[m->self];
}

const char *members_owner(const struct members *m, uint64_t key)
{
    const struct member *best = heaviest(m, m->n_present, key);
    return best == NULL ? NULL : best->name;
}

bool members_is_assigned(const struct members *m, const char *name, uint64_t key)
{
    const struct member *best = heaviest(m, m->n_present, key);
    uint64_t hash = rendezvous_hash(sv_from(name));
    return best != NULL && (strcmp(best->name, name) == 0 ||
                            rendezvous_weight(hash, key) > rendezvous_weight(best->hash, key));
}

size_t members_count(const struct members *m)
{
    return m->n_present;
}

size_t members_index(const struct members *m)
{
    return m->self;
}

const char *members_name(const struct members *m, size_t i)
{
    return m->at[i].name;
}

enum members_state members_state(const struct members *m)
{
    return m->state;
}
