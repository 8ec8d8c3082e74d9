#include "cli/import/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/put.h"
#include "pprof/sniff.h"
#include "scraper/scraper.h"

/* ---- the type of a pprof profile ------------------------------------------------------------- */

static bool is_one_of(struct sv text, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (sv_eq_str(text, *names)) {
            return true;
        }
    }
    return false;
}

static bool has_type(const struct pprof_summary *s, const char *type)
{
    for (size_t i = 0; i < s->n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        if (sv_eq_str(s->types[i].type_text, type)) {
            return true;
        }
    }
    return false;
}

/* Mutex and block profiles of Go have the same types and period; only the ends of their stacks
 * differ: one is taken where a lock is released, the other where somebody has waited. */
static const char *contention_type(struct sv plain)
{
    static const char *const unlocks[] = {
        "sync.(*Mutex).Unlock",
        "sync.(*RWMutex).Unlock",
        "sync.(*RWMutex).RUnlock",
        "internal/sync.(*Mutex).Unlock",
        "runtime.unlock",
        "runtime._LostContendedRuntimeLock",
        NULL,
    };
    static const char *const waits[] = {
        "sync.(*Mutex).Lock",     "sync.(*RWMutex).Lock",
        "sync.(*RWMutex).RLock",  "internal/sync.(*Mutex).Lock",
        "sync.(*WaitGroup).Wait", "sync.(*Cond).Wait",
        "runtime.chanrecv1",      "runtime.chanrecv2",
        "runtime.chansend1",      "runtime.selectgo",
        "runtime.blockTimerChan", NULL,
    };
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    const char *type = NULL;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING && is_one_of(f.bytes, unlocks)) {
            return "mutex";
        }
        if (f.number == PROFILE_STRING && is_one_of(f.bytes, waits)) {
            type = "block";
        }
    }
    return type;
}

static const char *guess(const struct pprof_summary *s, struct sv plain)
{
    static const struct {
        const char *sample;
        const char *type;
    } table[] = {
        /* in this order: the first sample type that is there decides */
        {"alloc_space", "memory"},
        {"alloc_objects", "memory"},
        {"inuse_space", "memory"},
        {"inuse_objects", "memory"},
        {"wall", "wall"},
        {"cpu", "process_cpu"},
        {"goroutine", "goroutine"},
        {"goroutines", "goroutine"},
        {"threadcreate", "threadcreate"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (has_type(s, table[i].sample)) {
            return table[i].type;
        }
    }
    if (has_type(s, "contentions") && has_type(s, "delay")) {
        return contention_type(plain);
    }
    if (has_type(s, "samples") && has_type(s, "time")) {
        return "fgprof";
    }
    if (has_type(s, "samples") && sv_eq_str(s->period_type.type_text, "cpu")) {
        return "process_cpu";
    }
    return has_type(s, "space") && has_type(s, "objects") ? "memory" : NULL;
}

/* ---- pprof ----------------------------------------------------------------------------------- */

static bool read_pprof(struct sv plain, struct profile_facts *ret, struct err *err)
{
    struct pprof_summary s;
    if (!pprof_check(plain, &s, err)) {
        return false;
    }
    pprof_summary_name_types(plain, &s);
    ret->type = guess(&s, plain);
    ret->time_ns = s.time_ns > 0 ? s.time_ns : 0;
    ret->duration_ns = s.duration_ns > 0 ? s.duration_ns : 0;
    pprof_summary_print_types(&s, "", ret->types, sizeof(ret->types));
    return true;
}

/* ---- JFR ------------------------------------------------------------------------------------- */

/* Of a chunk's header, big-endian: where its size, start and duration stand, in ns since 1970. */
enum { CHUNK_SIZE_AT = 8, CHUNK_START_AT = 32, CHUNK_DURATION_AT = 40, CHUNK_HEADER_SIZE = 68 };

static uint64_t read_be64(const char *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) {
        v = v << 8 | (unsigned char)p[i];
    }
    return v;
}

/* A time in ns that can be one: 1970 to 2262, or 0. */
static int64_t plausible(uint64_t ns)
{
    return ns <= INT64_MAX ? (int64_t)ns : 0;
}

/* From the start of the first chunk to the end of the last. */
static void read_chunks(struct sv plain, struct profile_facts *ret)
{
    int64_t end = 0;
    while (plain.n >= CHUNK_HEADER_SIZE && memcmp(plain.p, "FLR", 4) == 0) {
        uint64_t size = read_be64(plain.p + CHUNK_SIZE_AT);
        int64_t start = plausible(read_be64(plain.p + CHUNK_START_AT));
        int64_t duration = plausible(read_be64(plain.p + CHUNK_DURATION_AT));
        ret->time_ns = ret->time_ns == 0 ? start : ret->time_ns;
        if (start > 0 && duration <= INT64_MAX - start && start + duration > end) {
            end = start + duration;
        }
        if (size < CHUNK_HEADER_SIZE || size > plain.n) {
            break;
        }
        plain.p += size;
        plain.n -= (size_t)size;
    }
    ret->duration_ns = end > ret->time_ns ? end - ret->time_ns : 0;
}

/* A recording holds samples of many kinds; servers take it apart by themselves. */
static void read_jfr(struct sv plain, struct profile_facts *ret)
{
    ret->format = PROFILE_JFR;
    ret->type = "process_cpu";
    snprintf(ret->types, sizeof(ret->types), "%s", "a JFR recording");
    read_chunks(plain, ret);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool read_content(struct sv body, bool jfr, struct profile_facts *ret, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct sv plain;
    bool ok = (scratch != NULL || err_memory(err)) &&
              gzip_plain(scratch, body, FACTS_INFLATED_MAX, 0, &plain, err);
    if (ok && jfr) {
        read_jfr(plain, ret);
    } else if (ok) {
        ok = read_pprof(plain, ret, err);
    }
    scratch_free(scratch);
    return ok || err_wrap(err, "damaged %s", jfr ? "recording" : "profile");
}

enum facts_result profile_facts_read(struct sv body, struct profile_facts *ret, struct err *err)
{
    *ret = (struct profile_facts){.format = PROFILE_PPROF};
    enum sniff_result r = sniff_any(body, err);
    if (r == SNIFF_LEGACY) {
        err_set(err, ERR_INPUT, "an old format of pprof (`pprof -proto` converts it)");
        return FACTS_BAD;
    }
    if (!sniff_is_profile(r)) {
        return r == SNIFF_BAD_GZIP ? FACTS_BAD : FACTS_OTHER;
    }
    return read_content(body, r == SNIFF_JFR, ret, err) ? FACTS_OK : FACTS_BAD;
}

const char *profile_facts_type_of_name(const struct profile_facts *facts, const char *path)
{
    if (strcmp(facts->types, "contentions/count delay/nanoseconds") != 0) {
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    bool mutex = strstr(name, "mutex") != NULL;
    bool block = strstr(name, "block") != NULL;
    if (mutex == block) {
        return NULL;
    }
    return mutex ? "mutex" : "block";
}

/* ---- another time ---------------------------------------------------------------------------- */

/* All fields but those that are written anew: readers take a second time for a second profile. */
static void copy_fields(struct sv plain, bool with_duration, struct buf *out)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number != PROFILE_TIME_NANOS &&
            (with_duration || f.number != PROFILE_DURATION_NANOS)) {
            buf_append(out, plain.p + r.field_start, r.at - r.field_start);
        }
    }
}

static bool restamp_plain(struct sv plain, int64_t time_ns, int64_t duration_ns, struct buf *out,
                          struct err *err)
{
    struct pprof_summary s;
    if (!pprof_check(plain, &s, err)) {
        return false;
    }
    buf_reserve(out, plain.n + 32);
    copy_fields(plain, duration_ns < 0, out);
    wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)time_ns);
    if (duration_ns >= 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_ns);
    }
    return buf_ok(out) || err_memory(err);
}

bool profile_restamp(struct sv body, int64_t time_ns, int64_t duration_ns, char **ret_data,
                     size_t *ret_size, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct sv plain;
    struct buf out;
    buf_init(&out, FACTS_INFLATED_MAX + 1024);
    bool ok = (scratch != NULL || err_memory(err)) &&
              gzip_plain(scratch, body, FACTS_INFLATED_MAX, 0, &plain, err) &&
              restamp_plain(plain, time_ns, duration_ns, &out, err);
    if (ok && gzip_is(body)) {
        struct sv stamped = {.p = out.data, .n = out.len};
        ok = gzip_pack(scratch, stamped, ret_data, ret_size) || err_memory(err);
    } else if (ok) {
        *ret_data = buf_take(&out, ret_size);
        ok = *ret_data != NULL || err_memory(err);
    }
    buf_done(&out);
    scratch_free(scratch);
    return ok;
}
