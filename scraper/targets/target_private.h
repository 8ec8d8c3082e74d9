/* The inside of a target: one block of memory, besides its labels. Immutable and reference-counted
 * (atomic, any thread).
 *
 * All profiles of the target share its labels; a type adds only its name, its path and its part of
 * the URL. Paths and queries are built once.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_TARGET_PRIVATE_H
#define PROFPULL_SCRAPER_TARGETS_TARGET_PRIVATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "scraper/targets/target.h"

/* Offsets are into the strings of the target; 0 is "". */
struct target_entry {
    uint32_t path;     /* path and query */
    uint32_t own_path; /* the path set by a label of this type, or "" */
    uint32_t address;  /* host:port, brackets around IPv6 */
    uint32_t process;  /* the same with the host in canonical form */
    uint32_t interval_ms;
    uint32_t timeout_ms; /* without the seconds */
    uint32_t seconds;    /* the N of seconds=N, 0 if the type does not sample */
    uint16_t type;       /* index in job->types */
    bool https;
};

/* A type of this target that is not scraped because a label is wrong. */
struct target_problem {
    uint32_t text; /* offset in the texts */
    uint16_t type; /* index in job->types; n_types: the label names none */
};

struct target {
    atomic_uint refs;
    uint32_t job;                /* the slot of the job */
    const struct config *config; /* a reference; NULL in tests that own their job */
    const struct config_job *job_config;
    struct labels *labels;
    char *problem_texts; /* NULL if there are no problems; so is the next member */
    struct target_problem *problems;
    uint32_t n_problems;
    uint32_t address;         /* offset, as in the entries: `__address__` */
    uint32_t process;         /* the same in canonical form */
    uint64_t generation;      /* a hash of the pod's UID; 0 if unknown */
    bool is_object;           /* the target comes from an object of Kubernetes */
    bool instance_is_address; /* no rule has set the label */
    uint32_t n;
    struct target_entry entries[]; /* then the strings */
};

/* Does the work of target_new() for a job that belongs to the configuration owner; owner is NULL in
 * tests that own their job. */
struct target *target_make(const struct config *owner, size_t index, const struct config_job *job,
                           struct labels_builder *b, const char *pinned_host, struct err *err);

/* Returns path and query of the i-th scrape: "/debug/pprof/profile?seconds=14". */
const char *target_path(const struct target *t, size_t i);
/* target_address() returns the host:port to which the i-th scrape connects, target_process() the
 * same with the host in canonical form. */
const char *target_address(const struct target *t, size_t i);
const char *target_process(const struct target *t, size_t i);
/* Returns true if two scrapes have the same identity: scheme, address, path with query, type. Other
 * labels are not part of it, so a scrape keeps its state when they change. */
bool target_same_scrape(const struct target *a, size_t i, const struct target *b, size_t j);
/* Returns true if the address of the host must be checked when the request is made: a name from
 * Kubernetes is looked up only then, while an address was checked before. With a proxy there is
 * nothing to check, since the proxy has an address of its own. */
bool target_checks_address(const struct target *t);
uint64_t target_scrape_hash(const struct target *t, size_t i);
/* Returns the labels of the profiles of one type: those of the target, `__name__`,
 * `__profile_path__`, its own address where it has one (also as `instance`, if no rule has set
 * that), and `__delta__`="false" where there are no counters since the start of the process.
 * Returns NULL if out of memory. */
struct labels *target_series(const struct target *t, size_t i, struct labels_builder *b);
/* Sets a label that is absent or empty. */
void target_set_default(struct labels_builder *b, const char *name, struct sv value);
/* Returns true if a and b are known to be different pods. */
bool target_is_another_pod(const struct target *a, const struct target *b);
/* Returns the timeout of the whole request. */
int64_t target_timeout_ms(const struct target *t, size_t i);

#endif
