/* What Kubernetes objects of all kinds have in common: names, labels and annotations, and the
 * making of label sets from them as Prometheus' kubernetes_sd does.
 *
 * Pure: knows no IO and keeps nothing. The roles (pod.h, node.h, service.h, ingress.h, endpoints.h)
 * are functions from an object to its targets, made with what is here.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_OBJECT_H
#define PROFPULL_DISCOVERY_KUBERNETES_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"
#include "base/str.h"
#include "discovery/kubernetes/json_cut.h"
#include "discovery/kubernetes/label_filter.h"

#define META "__meta_kubernetes_"

/* Targets of one object; those beyond are left out and counted. */
#define OBJECT_TARGETS_MAX 512

/* Kubernetes' limits of these names (DNS label and subdomain). */
#define OBJECT_NAMESPACE_MAX 63
#define OBJECT_NAME_MAX 253
/* "namespace/name", with NUL. */
#define OBJECT_KEY_MAX (OBJECT_NAMESPACE_MAX + 1 + OBJECT_NAME_MAX + 1)

/* What identifies an object; views into it. */
struct object_id {
    struct sv namespace; /* letters, digits, "-", "." and "_" only, as is the name; "" if none */
    struct sv name;
    struct sv uid; /* may be empty */
};

/* False if the object is not of the kind ("Pod") or does not say which: no names, or impossible
 * ones. */
bool object_identify(const json_t *object, const char *kind, bool namespaced,
                     struct object_id *ret);
/* For lists of struct json_keep: what object_identify(), the watch and maker_set_meta() need of any
 * object, and what there is of a Status, which stands in an object's place when a watch fails. */
#define OBJECT_KEEP                                                                                \
    {"kind", NULL}, {"metadata", object_keep_metadata}, {"code", NULL}, {"reason", NULL},          \
        {"message", NULL},                                                                         \
    {                                                                                              \
        "details", NULL                                                                            \
    }
extern const struct json_keep object_keep_metadata[];
/* Of a resource of which nothing else is needed. */
extern const struct json_keep object_keep_marks[];

/* Writes "namespace/name", or "name" of what is in no namespace. */
struct sv object_key(const struct object_id *id, char out[OBJECT_KEY_MAX]);
/* A little wider than DNS names: the point is that it can stand in a path and a log. */
bool object_is_name(struct sv v, size_t max);

enum object_status {
    OBJECT_OK,
    OBJECT_TOO_MANY_LABELS, /* LABELS_MAX or LABELS_BYTES_MAX */
    OBJECT_NO_MEMORY,
};

/* The targets of one object; the caller owns it and reuses it for the next. */
struct object_targets {
    struct labels **at; /* references */
    size_t n;
    size_t max; /* 0: OBJECT_TARGETS_MAX */
    /* What all of them have; only with keep_shared, and then also if there are no targets. */
    struct labels *shared;
    bool keep_shared;
    struct wanted *wanted; /* the labels that are made; NULL: all. Referenced */
    const char *ip; /* of a pod: status.podIP, into the object; NULL if none (no targets then) */
    uint64_t key;   /* by which the owner of ip is found; 0: nobody asks. Set by who reads it */
    /* What was left out. */
    size_t bad_ip;           /* addresses that are not IP addresses */
    size_t bad_ports;        /* ports that are not numbers of 1-65535 */
    size_t too_many_targets; /* beyond max */
    size_t cap;              /* private */
};

void object_targets_init(struct object_targets *t);
/* Drops the references, keeps the storage. */
void object_targets_clear(struct object_targets *t);
void object_targets_done(struct object_targets *t);

/* A string member, or an empty view. */
struct sv object_string(const json_t *object, const char *name);
/* An IP address; NULL if it is none. Into the object. */
const char *object_ip(struct sv text, bool *ret_ipv6);
/* A port of 1-65535, or 0. */
unsigned object_port(const json_t *number);

/* Appends a name with every character outside of [a-zA-Z0-9_] as one underscore (Prometheus'
 * SanitizeLabelName): of a character of several bytes the first alone counts. */
void object_sanitize(struct sv name, struct buf *out);
/* Copies with ASCII letters in lower case, cut to size. */
void object_lower(struct sv v, char *out, size_t size);

/* ---- making label sets ----------------------------------------------------------------------- */

/* What an object's targets are made with: first the labels that all of them have (until
 * maker_share()), then one after the other (maker_begin(), maker_add()). */
struct maker {
    struct labels_builder *b;
    struct labels *shared; /* what all targets of the object have */
    struct object_targets *out;
    size_t bytes; /* set so far */
    size_t shared_bytes;
    bool over;      /* the builder failed at one of its limits, not for want of memory */
    bool no_memory; /* out of memory elsewhere */
};

/* Clears out. Labels that out->wanted does not want are not set by the functions below. */
void maker_init(struct maker *m, struct labels_builder *b, struct object_targets *out);
void maker_set(struct maker *m, struct sv name, struct sv value);
void maker_set_text(struct maker *m, const char *name, const char *value);
void maker_set_labels(struct maker *m, const struct labels *labels);
void maker_set_number(struct maker *m, const char *name, unsigned value);
/* For each string member sets <prefix>_<name> = value and <present>_<name> = "true". */
void maker_set_members(struct maker *m, const json_t *object, const char *prefix,
                       const char *present);
/* Sets K_<kind>_label_*, _labelpresent_*, _annotation_* and _annotationpresent_*. */
void maker_set_marks(struct maker *m, const json_t *metadata, const char *kind);
/* Sets K_<kind>_name, _label_* and _annotation_* from the metadata; K_namespace if it has one. */
void maker_set_meta(struct maker *m, const json_t *metadata, const char *kind);
/* __address__ of a host that is bracketed if it has colons; port 0: none. */
void maker_set_address(struct maker *m, struct sv host, unsigned port);
/* Ends what all targets share. */
enum object_status maker_share(struct maker *m);
/* Begins a target. */
void maker_begin(struct maker *m);
/* Adds what the builder holds as one more target, or counts it if there are too many. */
enum object_status maker_add(struct maker *m);
/* Releases what is shared; without OBJECT_OK there are no targets. Returns status. */
enum object_status maker_done(struct maker *m, enum object_status status);

#endif
