#include "cli/import/summary.h"

#include <stdio.h>
#include <string.h>

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/restamp.h"
#include "pprof/sniff.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the type of a pprof profile ------------------------------------------------------------- */

static bool has_type(const struct pprof_summary *s, const char *type)
{
    for (size_t i = 0; i < s->n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        if (sv_eq_str(s->types[i].type_text, type)) {
            return true;
        }
    }
    return false;
}

/* Finds whether a profile of Go is one of mutexes or of blocking. Both have the same types and
 * period, and differ only at the ends of their stacks: a mutex profile is taken where a lock is
 * released, a block profile where a goroutine has waited. */
static const char *contention_type(struct sv plain)
{
    static const char *const unlocks[] = {
        "sync.(*Mutex).Unlock",    "sync.(*RWMutex).Unlock",
        "sync.(*RWMutex).RUnlock", "internal/sync.(*Mutex).Unlock",
        "runtime.unlock",          "runtime._LostContendedRuntimeLock",
    };
    static const char *const waits[] = {
        "sync.(*Mutex).Lock",     "sync.(*RWMutex).Lock",
        "sync.(*RWMutex).RLock",  "internal/sync.(*Mutex).Lock",
        "sync.(*WaitGroup).Wait", "sync.(*Cond).Wait",
        "runtime.chanrecv1",      "runtime.chanrecv2",
        "runtime.chansend1",      "runtime.selectgo",
        "runtime.blockTimerChan",
    };
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    const char *type = NULL;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING && sv_in(f.bytes, unlocks, COUNT(unlocks))) {
            return "mutex";
        }
        if (f.number == PROFILE_STRING && sv_in(f.bytes, waits, COUNT(waits))) {
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
        /* The rows are in order: the first sample type that the profile has determines the name. */
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
    for (size_t i = 0; i < COUNT(table); i++) {
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

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_content(struct scratch *scratch, struct sv body, struct import_summary *ret,
                         struct err *err)
{
    struct sv plain;
    struct pprof_summary s;
    if (!gzip_plain(scratch, body, RESTAMP_INFLATED_MAX, 0, &plain, err)) {
        return false;
    }
    if (ret->format == PROFILE_JFR) {
        jfr_summary_read(plain, &s);
        /* A recording has samples of many kinds, which servers separate. */
        ret->type = "process_cpu";
        snprintf(ret->types, sizeof(ret->types), "%s", "a JFR recording");
    } else {
        if (!pprof_check(plain, &s, err)) {
            return false;
        }
        pprof_summary_name_types(plain, &s);
        ret->type = guess(&s, plain);
        pprof_summary_print_types(&s, "", ret->types, sizeof(ret->types));
    }
    ret->time_ns = s.time_ns > 0 ? s.time_ns : 0;
    ret->duration_ns = s.duration_ns > 0 ? s.duration_ns : 0;
    return true;
}

enum import_verdict import_summary_read(struct sv body, struct import_summary *ret, struct err *err)
{
    enum sniff_result r = sniff_any(body, err);
    *ret = (struct import_summary){.format = r == SNIFF_JFR ? PROFILE_JFR : PROFILE_PPROF};
    if (r == SNIFF_LEGACY) {
        return IMPORT_OLD;
    }
    if (!sniff_is_profile(r)) {
        return r == SNIFF_BAD_GZIP ? IMPORT_DAMAGED : IMPORT_OTHER;
    }
    struct scratch *scratch = scratch_new();
    bool ok = read_content(scratch, body, ret, err);
    scratch_free(scratch);
    if (!ok) {
        err_wrap(err, "damaged %s", r == SNIFF_JFR ? "recording" : "profile");
        return IMPORT_DAMAGED;
    }
    return IMPORT_PROFILE;
}

const char *import_type_of_name(const struct import_summary *summary, const char *path)
{
    if (strcmp(summary->types, "contentions/count delay/nanoseconds") != 0) {
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
