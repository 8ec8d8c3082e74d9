/* Profiles for benches: 700 functions, two thirds of which all services have, and stacks of some
 * two dozen frames that share their beginnings, as those of programs do. One owner.
 */
#ifndef PROFPULL_TESTS_TOOLS_MADE_PROFILE_H
#define PROFPULL_TESTS_TOOLS_MADE_PROFILE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/put.h"

#define MADE_KINDS 5
#define FUNCTIONS 700
#define DEPTH_MAX 40

static const struct {
    const char *name;
    const char *types[4]; /* type and unit by turns */
} made_kinds[MADE_KINDS] = {
    {"process_cpu", {"samples", "count", "cpu", "nanoseconds"}},
    {"memory", {"alloc_space", "bytes", "inuse_space", "bytes"}},
    {"goroutine", {"goroutine", "count"}},
    {"mutex", {"contentions", "count", "delay", "nanoseconds"}},
    {"block", {"contentions", "count", "delay", "nanoseconds"}},
};

struct profile_maker {
    struct rng rng;
    struct scratch *scratch;
    unsigned stacks;          /* of a profile */
    unsigned different;       /* stacks that there are */
    bool used[FUNCTIONS + 1]; /* by the profile being made */
};

static inline void put_types(unsigned kind, struct buf *out)
{
    for (unsigned i = 0; i + 1 < 4 && made_kinds[kind].types[i] != NULL; i += 2) {
        const unsigned char type[] = {8, (unsigned char)(i + 1), 16, (unsigned char)(i + 2)};
        wire_put_bytes(out, PROFILE_SAMPLE_TYPE, type, sizeof(type));
    }
}

/* A stack of the pool is the same each time: its frames follow from its number. */
static inline void put_stack(struct profile_maker *b, unsigned kind, unsigned stack,
                             struct buf *out)
{
    unsigned char ids[4 * DEPTH_MAX];
    size_t n = 0;
    struct rng frames;
    struct buf m;
    rng_seed(&frames, stack);
    uint64_t depth = 8 + rng_next(&frames) % (DEPTH_MAX - 8);
    uint64_t at = 0;
    uint64_t path[DEPTH_MAX];
    for (uint64_t i = 0; i < depth; i++) {
        /* Three callees each, of which one is called most: paths share their beginnings. */
        uint64_t callee = rng_next(&frames) % 16;
        at = (at * 3 + 1 + (callee < 2 ? callee + 1 : 0)) % FUNCTIONS;
        path[i] = at + 1;
        b->used[at + 1] = true;
    }
    for (uint64_t i = depth; i > 0; i--) {
        n += wire_encode(path[i - 1], ids + n);
    }
    buf_init(&m, 4096);
    wire_put_bytes(&m, SAMPLE_LOCATION_ID, ids, n);
    for (unsigned i = 0; i + 1 < 4 && made_kinds[kind].types[i] != NULL; i += 2) {
        wire_put_number(&m, SAMPLE_VALUE, 1 + rng_next(&b->rng) % 1000000);
    }
    wire_put_bytes(out, PROFILE_SAMPLE, m.data, m.len);
    buf_done(&m);
}

static inline void put_function(unsigned service, uint64_t id, struct buf *out)
{
    unsigned char m[64];
    unsigned char line[32];
    size_t n = 0;
    size_t k = 0;
    line[k++] = 8;
    k += wire_encode(id, line + k);
    line[k++] = 16;
    k += wire_encode(10 + id, line + k);
    m[n++] = 8;
    n += wire_encode(id, m + n);
    m[n++] = 24;
    n += wire_encode(0x400000 + service + id * 64, m + n);
    m[n++] = 34;
    m[n++] = (unsigned char)k;
    memcpy(m + n, line, k);
    wire_put_bytes(out, PROFILE_LOCATION, m, n + k);
    n = 0;
    m[n++] = 8;
    n += wire_encode(id, m + n);
    m[n++] = 16;
    n += wire_encode(4 + id, m + n);
    wire_put_bytes(out, PROFILE_FUNCTION, m, n);
}

/* A gzip that the caller frees; without bytes if out of memory. */
static inline struct sv made_profile(struct profile_maker *b, unsigned service, unsigned kind)
{
    struct buf out;
    char *data = NULL;
    struct sv body = {NULL, 0};
    buf_init(&out, (size_t)16 * 1024 * 1024);
    memset(b->used, 0, sizeof(b->used));
    put_types(kind, &out);
    for (unsigned i = 0; i < b->stacks; i++) {
        put_stack(b, kind, (unsigned)(rng_next(&b->rng) % b->different), &out);
    }
    for (uint64_t id = 1; id <= FUNCTIONS; id++) {
        if (b->used[id]) {
            put_function(service, id, &out);
        }
    }
    wire_put_bytes(&out, PROFILE_STRING, "", 0);
    for (unsigned i = 0; i < 4; i++) {
        const char *text = made_kinds[kind].types[i] != NULL ? made_kinds[kind].types[i] : "-";
        wire_put_bytes(&out, PROFILE_STRING, text, strlen(text));
    }
    for (uint64_t id = 1; id <= FUNCTIONS; id++) {
        char name[100];
        /* Most of what a program runs are libraries that others have too. */
        int n = id % 3 > 0 ? snprintf(name, sizeof(name), "net/http.(*part%" PRIu64 ").Step", id)
                           : snprintf(name, sizeof(name),
                                      "github.com/acme/service-%u/internal/part%" PRIu64
                                      ".(*Handler%" PRIu64 ").Step",
                                      service, id % 17, id);
        wire_put_bytes(&out, PROFILE_STRING, name, b->used[id] ? (size_t)n : 0);
    }
    if (!buf_ok(&out) || !gzip_pack(b->scratch, (struct sv){out.data, out.len}, &data, &body.n)) {
        body.n = 0;
    }
    scratch_reset(b->scratch);
    buf_done(&out);
    body.p = data;
    return body;
}

#endif
