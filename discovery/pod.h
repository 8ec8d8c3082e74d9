/* One pod in JSON -> the label sets of its targets, as Prometheus' kubernetes_sd role "pod" makes
 * them.
 *
 * Pure: knows no IO and keeps nothing. The differences from Prometheus, all on purpose: an address
 * without port is bracketed if it is IPv6; of two label names that become the same when sanitised
 * the one that sorts last wins (there: a random one); an address that is no IP address, and a port
 * outside of 1-65535, make no target.
 */
#ifndef PROFPULL_DISCOVERY_POD_H
#define PROFPULL_DISCOVERY_POD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"
#include "base/str.h"
#include "discovery/json_cut.h"

/* Targets of one pod (its containers' ports); those beyond are left out and counted. */
#define POD_TARGETS_MAX 512

/* Kubernetes' limits of these names (DNS label and subdomain). */
#define POD_NAMESPACE_MAX 63
#define POD_NAME_MAX 253

/* What identifies a pod; views into the object. */
struct pod_id {
    struct sv namespace; /* letters, digits, "-", "." and "_" only, as is the name */
    struct sv name;
    struct sv uid; /* may be empty */
};

/* False if the object is not a pod or does not say which: no names, or impossible ones. */
bool pod_identify(const json_t *object, struct pod_id *ret);

enum pod_status {
    POD_OK,
    POD_TOO_MANY_LABELS, /* LABELS_MAX or LABELS_BYTES_MAX */
    POD_NO_MEMORY,
};

/* The targets of one pod; the caller owns it and reuses it for the next. */
struct pod_targets {
    struct labels **at; /* references */
    size_t n;
    const char *ip; /* status.podIP, into the object; NULL if there is none (no targets then) */
    /* What was left out. */
    size_t bad_ip;           /* 1 if status.podIP is not an IP address */
    size_t bad_ports;        /* ports that are not numbers of 1-65535 */
    size_t too_many_targets; /* beyond POD_TARGETS_MAX */
    size_t cap;              /* private */
};

void pod_targets_init(struct pod_targets *t);
/* Drops the references, keeps the storage. */
void pod_targets_clear(struct pod_targets *t);
void pod_targets_done(struct pod_targets *t);

/* Fills *ret (cleared first) from a pod. The builder is scratch. On anything but POD_OK there are
 * no targets; *ret holds counts and ip all the same. */
enum pod_status pod_read(const json_t *pod, struct labels_builder *builder,
                         struct pod_targets *ret);

/* The members of a pod that pod_read() does not need and that make up most of it. */
extern const struct json_omit pod_omit[];
extern const size_t pod_omit_count;

#endif
