/* Reads the common parts of Kubernetes objects of all kinds (names, labels, annotations), and
 * builds label sets from them as Prometheus' kubernetes_sd does.
 *
 * Pure: no IO, no state. The roles (roles/) are functions from an object to its targets, written
 * with what is here.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_OBJECT_H
#define PROFPULL_DISCOVERY_KUBERNETES_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "base/str.h"
#include "discovery/kubernetes/label_filter.h"
#include "discovery/kubernetes/types.h"

#define META "__meta_kubernetes_"

/* The most bytes of one object in JSON, and its deepest nesting. An object that exceeds one of them
 * is skipped and counted. */
#define OBJECT_BYTES_MAX ((size_t)2 * 1024 * 1024)
#define OBJECT_DEPTH_MAX 64
/* The most targets of one object; further ones are left out and counted. */
#define OBJECT_TARGETS_MAX 512

/* Kubernetes' limits of these names (DNS label and subdomain). */
#define OBJECT_NAMESPACE_MAX 63
#define OBJECT_NAME_MAX 253
/* "namespace/name", with NUL. */
#define OBJECT_KEY_MAX (OBJECT_NAMESPACE_MAX + 1 + OBJECT_NAME_MAX + 1)

/* The identity of an object; views into it. */
struct object_id {
    struct sv namespace; /* letters, digits, "-", "." and "_" only, as is the name; "" if none */
    struct sv name;
    uint64_t uid; /* a hash of the uid; 0 if the object has none */
};

/* Reads the identity of an object. False if the object claims another kind than `kind` ("Pod"), or
 * if its names are missing or impossible. */
bool object_identify(const struct kube_object *object, const char *kind, bool namespaced,
                     struct object_id *ret);
/* The first rows of every table: what object_identify(), the watch and maker_set_metadata() need of
 * any object, and the members of a Status, which takes an object's place when a watch fails. */
#define OBJECT_ROWS                                                                                \
    SCHEMA_MEMBER("kind", 0, TEXT, struct kube_object, kind),                                      \
        SCHEMA_PART_OF("metadata", 1, object_metadata_rows), {.name = "code"}, {.name = "reason"}, \
        {.name = "message"},                                                                       \
    {                                                                                              \
        .name = "details"                                                                          \
    }
extern const struct schema_row object_metadata_rows[];
/* Tables that several kinds of objects have in common. */
extern const struct schema_row object_condition_rows[]; /* rows of struct kube_condition */
#define OBJECT_REFERENCE_ROWS(type)                                                                \
    SCHEMA_MEMBER("kind", 1, TEXT, type, target.kind),                                             \
        SCHEMA_MEMBER("namespace", 2, TEXT, type, target.namespace),                               \
        SCHEMA_MEMBER("name", 3, TEXT, type, target.name)

/* Writes "namespace/name", or "name" for an object in no namespace. */
struct sv object_key(const struct object_id *id, char out[OBJECT_KEY_MAX]);
/* Returns true for a name of at most max bytes that is safe in a path and in a log; the check
 * accepts a little more than DNS names. */
bool object_is_name(struct sv v, size_t max);

/* An IP address as text, with NUL. */
#define OBJECT_IP_MAX 46

enum object_status {
    OBJECT_OK,
    /* the labels that all targets share exceed LABELS_MAX or LABELS_BYTES_MAX */
    OBJECT_TOO_MANY_LABELS,
    OBJECT_NO_MEMORY,
};

/* The targets of one object; the caller owns it and reuses it for the next. */
struct object_targets {
    struct labels **at; /* references */
    size_t n;
    size_t max; /* 0: OBJECT_TARGETS_MAX */
    /* The labels that all targets have; only with keep_shared, and then even without targets. */
    struct labels *shared;
    bool keep_shared;
    /* makes targets for the ports of a pod without an address; they have no __address__ */
    bool without_ip;
    struct label_filter *filter; /* the labels to build; NULL: all. Referenced */
    /* status.podIP of a pod, in ip_text; NULL if there is none, and no targets then */
    const char *ip;
    char ip_text[OBJECT_IP_MAX];
    /* Set by the caller. key determines the owner of ip; 0: not shared. content is a hash of the
     * members that the targets were made of; 0: not known. */
    uint64_t key;
    uint64_t content;
    /* Counts of what was left out. */
    size_t bad_ip;           /* addresses that are not IP addresses */
    size_t bad_ports;        /* ports that are not numbers of 1-65535 */
    size_t too_many_targets; /* beyond max */
    size_t too_many_labels;  /* targets beyond LABELS_MAX or LABELS_BYTES_MAX on their own */
    size_t cap;              /* private */
};

/* Drops the references, keeps the storage. A zeroed struct is empty. */
void object_targets_clear(struct object_targets *t);
void object_targets_done(struct object_targets *t);
/* Returns a hash of label sets in their order that also depends on `hash`. */
uint64_t object_hash_labels(struct labels *const *at, size_t n, uint64_t hash);

bool object_is_ip(struct sv text);
/* Returns the value of a name in a list of pairs; "" if the name is missing. */
struct sv object_pair(const struct schema_list *pairs, struct sv name);

/* Appends a name in which every character outside of [a-zA-Z0-9_] is replaced by one underscore,
 * even a character of several bytes (Prometheus' SanitizeLabelName). */
void object_sanitize(struct sv name, struct buf *out);
/* Copies a text with ASCII letters in lower case, cut to size. */
void object_lower(struct sv v, char *out, size_t size);

/* ---- building label sets --------------------------------------------------------------------- */

/* Builds the targets of an object: first the labels that all of them have (until maker_share()),
 * then one target after the other (maker_begin(), maker_add()). After a failure the functions do
 * nothing; maker_done() returns it. */
struct maker {
    struct labels_builder *b;
    struct labels *shared; /* the labels of all targets */
    struct object_targets *out;
    enum object_status status;
    bool no_memory; /* memory ran out outside of the builder */
};

/* Clears out. The functions below set only labels that pass out->filter. */
void maker_init(struct maker *m, struct labels_builder *b, struct object_targets *out);
void maker_set(struct maker *m, struct sv name, struct sv value);
void maker_set_text(struct maker *m, const char *name, const char *value);
void maker_set_labels(struct maker *m, const struct labels *labels);
void maker_set_number(struct maker *m, const char *name, unsigned value);
/* Sets a label to the text in a buffer, which may have failed. */
void maker_set_buf(struct maker *m, const char *name, const struct buf *value);
void maker_set_named(struct maker *m, const struct buf *name, struct sv value);
/* For each pair sets <prefix>_<name> = value and <present>_<name> = "true". */
void maker_set_pairs(struct maker *m, const struct schema_list *pairs, const char *prefix,
                     const char *present);
/* Sets META<kind>_label_*, _labelpresent_*, _annotation_* and _annotationpresent_*. */
void maker_set_annotations(struct maker *m, const struct kube_metadata *metadata, const char *kind);
/* Sets the labels of maker_set_annotations(), and META<kind>_name and META"namespace". */
void maker_set_metadata(struct maker *m, const struct kube_metadata *metadata, const char *kind);
/* Sets __address__ to a host, which is bracketed if it has colons, and a port. */
void maker_set_host_port(struct maker *m, struct sv host, unsigned port);
/* Sets __address__ to a host and, unless it is 0, a port. */
void maker_set_address(struct maker *m, struct sv host, unsigned port);
/* Returns a port of 1-65535; otherwise 0, and the port is counted as bad. */
unsigned maker_port(struct maker *m, struct schema_number number);
/* Counts an address as bad unless it is usable. Returns `usable`. */
bool maker_check_ip(struct maker *m, bool usable);
/* Ends the labels that all targets share. */
void maker_share(struct maker *m);
/* Begins a target. */
void maker_begin(struct maker *m);
/* Adds the labels in the builder as one more target. If there are too many targets, or if this one
 * has too many labels, it is counted instead; other targets are not affected. */
void maker_add(struct maker *m);
/* Releases the shared labels. Unless the result is OBJECT_OK, there are no targets. */
enum object_status maker_done(struct maker *m);

#endif
