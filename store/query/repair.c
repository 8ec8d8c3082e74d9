#include "store/query/repair.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/quick.h"

/* Number of frames at the root end by which stacks are compared. A shorter stack is not changed. */
#define SUFFIX 24
/* Number of consecutive frames that two stacks must share. */
#define TOKEN 16
/* Largest number of frames above a token by which one stack may be more complete than another. */
#define ABOVE (SUFFIX - TOKEN)
/* If the repair of a stack depends on a longer chain of other stacks, the stacks are recursive, and
 * repairing ends. */
#define CHAIN_MAX 56

/* ---- which profiles -------------------------------------------------------------------------- */

/* The depths at which the runtime cuts stacks. The minimum is 4 less, because some stacks that were
 * cut are shorter. */
struct kind {
    const char *types[5]; /* a profile of this kind has one of these sample types */
    size_t depth_min;     /* if no stack is so deep, the profile is complete */
    /* if a stack is deeper, the runtime that recorded the profile does not cut; 0: no limit */
    size_t depth_max;
};

static const struct kind kinds[] = {
    {{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}, 28, 32},
    {{"cpu"}, 60, 0},
};

static bool has_type(const struct samples *s, const struct kind *kind)
{
    const struct pprof_summary *summary = &s->x.summary;
    for (size_t i = 0; i < summary->n[PROFILE_SAMPLE_TYPE]; i++) {
        struct sv type = pprof_string(&s->x, summary->types[i].type);
        for (size_t k = 0; kind->types[k] != NULL; k++) {
            if (sv_eq_str(type, kind->types[k])) {
                return true;
            }
        }
    }
    return false;
}

static const struct kind *kind_of(const struct samples *s)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (has_type(s, &kinds[i])) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Texts at the start or end of a string that show the language of a program. The strings of a
 * profile are tried in their order, and each string with these texts in their order. */
static const struct {
    const char *text;
    bool is_go;
} marks[] = {
    {".go", true},      {"/usr/local/go/", true}, {"java/", false}, {"sun/", false},
    {".rb", false},     {"gems/", false},         {".js", false},   {"./node_modules/", false},
    {"System.", false}, {"Microsoft.", false},    {".py", false},   {"main.rs", false},
    {"core.rs", false},
};

/* Returns true if the first string that shows a language shows Go. */
static bool has_go_strings(const struct samples *s)
{
    for (size_t i = 0; i < s->x.summary.n[PROFILE_STRING]; i++) {
        struct sv text = pprof_string(&s->x, i);
        for (size_t k = 0; k < sizeof(marks) / sizeof(marks[0]); k++) {
            struct sv mark = sv_from(marks[k].text);
            if (sv_starts_with(text, mark) || sv_ends_with(text, mark)) {
                return marks[k].is_go;
            }
        }
    }
    return false;
}

/* Returns true for a profile of a Go program. SDKs name their language in the label
 * `pyroscope_spy`; without it, the strings of the profile decide. */
static bool is_go(const struct samples *s, const struct label *labels, size_t n_labels)
{
    static const char *const others[] = {
        "dotnetspy",          "phpspy",      "pyspy", "rbspy", "nodespy", "javaspy",
        "grafana-agent.java", "pyroscope-rs"};
    for (size_t i = 0; i < n_labels; i++) {
        struct sv value = labels[i].value;
        if (!sv_eq_str(labels[i].name, "pyroscope_spy")) {
            continue;
        }
        if (sv_eq_str(value, "gospy")) {
            return true;
        }
        if (sv_in(value, others, sizeof(others) / sizeof(others[0]))) {
            return false;
        }
    }
    return has_go_strings(s);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct deep {
    const uint32_t *places; /* places of the stack's locations, the leaf first */
    /* the last SUFFIX ids, with their bytes swapped, so that they can be compared as bytes */
    const uint64_t *suffix;
    uint32_t n;
    uint32_t sample;
};

/* A group of stacks with the same suffix. */
struct group {
    uint32_t first; /* index of its first stack, in sorted order */
    uint32_t end;
    uint32_t next; /* 1 + the number of the group that is more complete; 0: none */
    uint32_t by;   /* frames that this other group has in addition */
};

struct token {
    uint32_t group; /* 1 + the number of the group; 0: a free slot */
    uint32_t above; /* frames of the group's suffix above the token */
};

struct repairing {
    const struct samples *s;
    struct scratch *scratch;
    struct repair_part *parts;
    size_t n_ids; /* the most locations that all stacks to be compared may have */
    bool renumber;
    uint64_t seed;
    struct deep *stacks;
    size_t n_stacks;
    struct group *groups;
    size_t n_groups;
    struct token *tokens;
    size_t mask;
};

static struct sample sample_at(const struct samples *s, size_t i)
{
    const struct pprof_entries *samples = &s->x.entries[PROFILE_SAMPLE];
    return (struct sample){.message = pprof_span_of(&s->x, samples->spans[i])};
}

/* Returns the number of locations of a sample. */
static size_t count_locations(const struct samples *s, const struct sample *sample)
{
    size_t place;
    size_t n = 0;
    for (struct sample_ids ids = sample_ids_of(sample); sample_ids_next(&ids, s, &place);) {
        n++;
    }
    return n;
}

/* Returns the most locations that a sample may have: each one ends with a byte whose top bit is
 * 0. */
static size_t most_locations(struct sv message)
{
    size_t n = message.n;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= message.n; i += sizeof(uint64_t)) {
        uint64_t more = wire_eight(message.p + i) & WIRE_TOP_BITS;
        n -= (size_t)((more >> 7) * QUICK_ONES >> 56);
    }
    for (; i < message.n; i++) {
        n -= (unsigned char)message.p[i] >= 0x80;
    }
    return n;
}

/* Returns false if no stack is deep enough for certain. */
static bool may_be_deep(const struct samples *s, size_t depth_min)
{
    const struct pprof_entries *samples = &s->x.entries[PROFILE_SAMPLE];
    for (size_t i = 0; i < samples->ids.n; i++) {
        if (samples->spans[i].n >= depth_min &&
            most_locations(pprof_span_of(&s->x, samples->spans[i])) >= depth_min) {
            return true;
        }
    }
    return false;
}

/* Counts the stacks that may be compared, and their locations. Only stacks that may be deep are
 * read for it. False if none of them is deep enough, or one is too deep. */
static bool count_stacks(struct repairing *r, const struct kind *kind)
{
    bool deep = false;
    for (size_t i = 0; i < r->s->x.entries[PROFILE_SAMPLE].ids.n; i++) {
        struct sample sample = sample_at(r->s, i);
        size_t n = most_locations(sample.message);
        if (n >= SUFFIX) {
            r->n_stacks++;
            r->n_ids += n;
        }
        if (n < kind->depth_min) {
            continue;
        }
        n = count_locations(r->s, &sample);
        deep = deep || n >= kind->depth_min;
        if (kind->depth_max != 0 && n > kind->depth_max) {
            return false;
        }
    }
    return deep;
}

/* Returns true if Pyroscope renumbers the locations before it repairs the profile: it does if a
 * name has type parameters. The numbers decide which of several candidates is used. */
static bool is_renumbered(const struct samples *s)
{
    static const char shape[] = "[go.shape.";
    for (size_t i = 0; i < s->x.summary.n[PROFILE_STRING]; i++) {
        struct sv text = pprof_string(&s->x, i);
        if (text.n >= strlen(shape) && memmem(text.p, text.n, shape, strlen(shape)) != NULL) {
            return true;
        }
    }
    return false;
}

static bool read_stacks(struct repairing *r)
{
    const struct pprof_ids *locations = &r->s->x.entries[PROFILE_LOCATION].ids;
    uint32_t *places = scratch_array(r->scratch, r->n_ids, sizeof(*places));
    uint64_t *suffixes = scratch_array(r->scratch, r->n_stacks * SUFFIX, sizeof(*suffixes));
    r->stacks = scratch_array(r->scratch, r->n_stacks, sizeof(*r->stacks));
    if (places == NULL || suffixes == NULL || r->stacks == NULL) {
        return false;
    }
    size_t place;
    size_t at = 0;
    for (uint32_t i = 0; i < r->s->x.entries[PROFILE_SAMPLE].ids.n; i++) {
        struct sample sample = sample_at(r->s, i);
        size_t n = 0;
        if (most_locations(sample.message) < SUFFIX) {
            continue;
        }
        for (struct sample_ids ids = sample_ids_of(&sample); sample_ids_next(&ids, r->s, &place);) {
            places[n++] = (uint32_t)place;
        }
        if (n < SUFFIX) {
            continue;
        }
        struct deep *d = &r->stacks[at];
        *d = (struct deep){places, suffixes + at++ * SUFFIX, (uint32_t)n, i};
        places += n;
        for (size_t k = 0; k < SUFFIX; k++) {
            place = d->places[n - SUFFIX + k];
            suffixes[(at - 1) * SUFFIX + k] =
                __builtin_bswap64(r->renumber ? place + 1 : locations->at[place]);
        }
    }
    r->n_stacks = at;
    return true;
}

static int compare_stacks(const void *a, const void *b)
{
    const struct deep *x = a;
    const struct deep *y = b;
    for (size_t i = 0; i < SUFFIX; i++) {
        if (x->suffix[i] != y->suffix[i]) {
            return x->suffix[i] < y->suffix[i] ? -1 : 1;
        }
    }
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static bool make_groups(struct repairing *r)
{
    qsort(r->stacks, r->n_stacks, sizeof(*r->stacks), compare_stacks);
    r->groups = scratch_array(r->scratch, r->n_stacks, sizeof(*r->groups));
    if (r->groups == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_stacks; i++) {
        if (i == 0 ||
            memcmp(r->stacks[i].suffix, r->stacks[i - 1].suffix, SUFFIX * sizeof(uint64_t)) != 0) {
            r->groups[r->n_groups++] = (struct group){.first = i};
        }
        r->groups[r->n_groups - 1].end = i + 1;
    }
    /* Pyroscope takes the number of groups for the end of the last group. So it uses and repairs
     * the last group only up to there, and so does this code. */
    struct group *last = &r->groups[r->n_groups - 1];
    last->end = (uint32_t)r->n_groups;
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static const uint64_t *suffix_of(const struct repairing *r, size_t group)
{
    return r->stacks[r->groups[group].first].suffix;
}

/* Returns the slot of a token: the one with its entry, or a free one. */
static struct token *find_token(const struct repairing *r, const uint64_t *frames)
{
    size_t i = (size_t)hash_bytes(frames, TOKEN * sizeof(*frames), r->seed) & r->mask;
    for (;; i = (i + 1) & r->mask) {
        struct token *t = &r->tokens[i];
        if (t->group == 0 || memcmp(suffix_of(r, t->group - 1) + ABOVE - t->above, frames,
                                    TOKEN * sizeof(*frames)) == 0) {
            return t;
        }
    }
}

/* Notes for each token the group that has the most frames above it; of several such groups the
 * first. */
static bool note_tokens(struct repairing *r)
{
    size_t slots = 16;
    while (slots < 2 * r->n_groups * ABOVE) {
        slots *= 2;
    }
    r->tokens = scratch_zeroed(r->scratch, slots, sizeof(*r->tokens));
    r->mask = slots - 1;
    for (size_t i = 0; r->tokens != NULL && i < r->n_groups; i++) {
        if (r->groups[i].end <= r->groups[i].first) {
            continue;
        }
        for (uint32_t above = 1; above <= ABOVE; above++) {
            struct token *t = find_token(r, suffix_of(r, i) + ABOVE - above);
            if (t->group == 0 || above > t->above) {
                *t = (struct token){(uint32_t)i + 1, above};
            }
        }
    }
    return r->tokens != NULL;
}

/* ---- missing parts --------------------------------------------------------------------------- */

static void link_groups(struct repairing *r)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct token *t = find_token(r, suffix_of(r, i) + ABOVE);
        if (t->group != 0 && t->group != i + 1) {
            r->groups[i].next = t->group;
            r->groups[i].by = t->above;
        }
    }
}

/* Follows the links of a group to the most complete one. Returns how many frames are missing, or
 * UINT32_MAX if the chain is too long. */
static uint32_t follow(const struct repairing *r, const struct group *g, uint32_t *ret_last)
{
    uint32_t missing = 0;
    *ret_last = 0;
    for (size_t links = 0; g->next != 0; links++) {
        if (links == CHAIN_MAX) {
            return UINT32_MAX;
        }
        missing += g->by;
        *ret_last = g->next - 1;
        g = &r->groups[g->next - 1];
    }
    return missing;
}

static void add_parts(struct repairing *r)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct group *g = &r->groups[i];
        uint32_t last;
        uint32_t missing = follow(r, g, &last);
        if (missing == UINT32_MAX) {
            return;
        }
        const struct deep *whole = &r->stacks[r->groups[last].first];
        if (missing == 0 || missing >= whole->n) {
            continue;
        }
        for (uint32_t k = g->first; k < g->end; k++) {
            r->parts[r->stacks[k].sample] =
                (struct repair_part){whole->places + whole->n - missing, missing};
        }
    }
}

bool repair_find(struct repair *ret, const struct samples *s, const struct label *labels,
                 size_t n_labels, struct scratch *scratch, struct err *err)
{
    struct repairing r = {.s = s, .scratch = scratch};
    const struct kind *kind = kind_of(s);
    ret->parts = NULL;
    if (kind == NULL || !may_be_deep(s, kind->depth_min) || !count_stacks(&r, kind) ||
        !is_go(s, labels, n_labels)) {
        return true;
    }
    r.seed = query_seed();
    r.renumber = is_renumbered(s);
    r.parts = scratch_zeroed(scratch, s->x.entries[PROFILE_SAMPLE].ids.n, sizeof(*r.parts));
    if (r.parts == NULL || !read_stacks(&r) || !make_groups(&r) || !note_tokens(&r)) {
        return err_memory(err);
    }
    link_groups(&r);
    add_parts(&r);
    ret->parts = r.parts;
    return true;
}
