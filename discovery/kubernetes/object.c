#include "discovery/kubernetes/object.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

_Static_assert(OBJECT_IP_MAX == INET6_ADDRSTRLEN, "the longest address");

static const struct schema_row owner_rows[] = {
    SCHEMA_MEMBER("kind", 1, TEXT, struct kube_owner, kind),
    SCHEMA_MEMBER("name", 3, TEXT, struct kube_owner, name),
    SCHEMA_MEMBER("controller", 6, FLAG, struct kube_owner, controller),
    SCHEMA_END,
};

const struct schema_row object_metadata_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_object, metadata.name),
    SCHEMA_MEMBER("namespace", 3, TEXT, struct kube_object, metadata.namespace),
    SCHEMA_MEMBER("uid", 5, TEXT, struct kube_object, metadata.uid),
    SCHEMA_MEMBER("resourceVersion", 6, MARK, struct kube_object, metadata.version),
    SCHEMA_MEMBER("labels", 11, PAIRS, struct kube_object, metadata.labels),
    SCHEMA_MEMBER("annotations", 12, PAIRS, struct kube_object, metadata.annotations),
    SCHEMA_LIST_OF("ownerReferences", 13, struct kube_owner, owner_rows, struct kube_object,
                   metadata.owners),
    SCHEMA_END,
};

const struct schema_row object_condition_rows[] = {
    SCHEMA_MEMBER("type", 1, TEXT, struct kube_condition, type),
    SCHEMA_MEMBER("status", 2, TEXT, struct kube_condition, status),
    SCHEMA_END,
};

/* ---- reading --------------------------------------------------------------------------------- */

bool object_is_name(struct sv v, size_t max)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!ascii_is_word(c) && c != '-' && c != '.') {
            return false;
        }
    }
    return v.n > 0 && v.n <= max;
}

bool object_identify(const struct kube_object *object, const char *kind, bool namespaced,
                     struct object_id *ret)
{
    /* The items of a list have no kind. */
    if (object->kind.n > 0 && !sv_eq_str(object->kind, kind)) {
        return false;
    }
    const struct kube_metadata *metadata = &object->metadata;
    struct object_id id = {
        .namespace = namespaced ? metadata->namespace : SV(""),
        .name = metadata->name,
    };
    if ((namespaced && !object_is_name(id.namespace, OBJECT_NAMESPACE_MAX)) ||
        !object_is_name(id.name, OBJECT_NAME_MAX)) {
        return false;
    }
    id.uid = metadata->uid.n == 0 ? 0 : hash_bytes(metadata->uid.p, metadata->uid.n, 0);
    *ret = id;
    return true;
}

struct sv object_key(const struct object_id *id, char out[OBJECT_KEY_MAX])
{
    int n = snprintf(out, OBJECT_KEY_MAX, "%.*s%s%.*s", SV_ARG(id->namespace),
                     id->namespace.n == 0 ? "" : "/", SV_ARG(id->name));
    return (struct sv){.p = out, .n = n < 0 ? 0 : (size_t)n};
}

bool object_is_ip(struct sv text)
{
    struct in6_addr address;
    char copy[OBJECT_IP_MAX];
    /* An IP address has no NUL in it; inet_pton() would not see what follows one. */
    if (text.n == 0 || text.n >= sizeof(copy) || memchr(text.p, '\0', text.n) != NULL) {
        return false;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1 || inet_pton(AF_INET, copy, &address) == 1;
}

struct sv object_pair(const struct schema_list *pairs, struct sv name)
{
    struct sv value = SV("");
    for (const struct schema_pair *p = pairs->first; p != NULL; p = p->next) {
        value = sv_eq(p->name, name) ? p->value : value;
    }
    return value;
}

void object_sanitize(struct sv name, struct buf *out)
{
    char part[64];
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (n == sizeof(part)) {
            buf_append(out, part, n);
            n = 0;
        }
        if (ascii_is_alnum(c)) {
            part[n++] = (char)c;
        } else if ((c & 0xc0) != 0x80) {
            part[n++] = '_';
        }
    }
    buf_append(out, part, n);
}

void object_lower(struct sv v, char *out, size_t size)
{
    size_t n = v.n < size - 1 ? v.n : size - 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = ascii_lower(v.p[i]);
    }
    out[n] = '\0';
}

/* ---- targets --------------------------------------------------------------------------------- */

void object_targets_clear(struct object_targets *t)
{
    for (size_t i = 0; i < t->n; i++) {
        labels_unref(t->at[i]);
    }
    labels_unref(t->shared);
    *t = (struct object_targets){
        .at = t->at,
        .cap = t->cap,
        .max = t->max,
        .keep_shared = t->keep_shared,
        .without_ip = t->without_ip,
        .filter = t->filter,
    };
}

void object_targets_done(struct object_targets *t)
{
    object_targets_clear(t);
    free(t->at);
    *t = (struct object_targets){0};
}

uint64_t object_hash_labels(struct labels *const *at, size_t n, uint64_t hash)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t one = labels_mark(at[i]);
        hash = hash_bytes(&one, sizeof(one), hash);
    }
    return hash;
}

static bool reserve(struct object_targets *t)
{
    if (t->n < t->cap) {
        return true;
    }
    size_t cap = t->cap == 0 ? 8 : 2 * t->cap;
    struct labels **at = realloc(t->at, cap * sizeof(struct labels *));
    if (at == NULL) {
        return false;
    }
    t->at = at;
    t->cap = cap;
    return true;
}

/* ---- building label sets --------------------------------------------------------------------- */

void maker_init(struct maker *m, struct labels_builder *b, struct object_targets *out)
{
    object_targets_clear(out);
    *m = (struct maker){.b = b, .out = out};
    labels_builder_reset(b, NULL);
}

static void set(struct maker *m, struct sv name, struct sv value)
{
    if (m->status != OBJECT_OK || !labels_builder_ok(m->b)) {
        return;
    }
    labels_builder_set(m->b, name, value);
}

void maker_set(struct maker *m, struct sv name, struct sv value)
{
    if (label_filter_passes(m->out->filter, name)) {
        set(m, name, value);
    }
}

void maker_set_text(struct maker *m, const char *name, const char *value)
{
    maker_set(m, sv_from(name), sv_from(value));
}

void maker_set_labels(struct maker *m, const struct labels *labels)
{
    for (size_t i = 0; i < labels_count(labels); i++) {
        struct label label = labels_at(labels, i);
        maker_set(m, label.name, label.value);
    }
}

void maker_set_number(struct maker *m, const char *name, unsigned value)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", value);
    maker_set_text(m, name, text);
}

/* Returns the text of a buffer, which may be cut. */
static struct sv view(struct maker *m, const struct buf *b)
{
    m->no_memory |= !buf_ok(b) && !buf_too_big(b);
    return (struct sv){b->data, b->len};
}

void maker_set_buf(struct maker *m, const char *name, const struct buf *value)
{
    maker_set(m, sv_from(name), view(m, value));
}

void maker_set_named(struct maker *m, const struct buf *name, struct sv value)
{
    maker_set(m, view(m, name), value);
}

/* A pair of a list, and its index there. */
struct member {
    const struct schema_pair *pair;
    size_t at;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    int order = sv_cmp(x->pair->name, y->pair->name);
    return order != 0 ? order : x->at < y->at ? -1 : 1;
}

/* The n pairs of a list, sorted by name: of two names that sanitising makes equal the one that
 * sorts last wins. The caller frees the array; NULL if out of memory. */
static struct member *sorted_members(const struct schema_list *pairs, size_t n)
{
    struct member *members = calloc(n, sizeof(*members));
    size_t i = 0;
    for (const struct schema_pair *p = pairs->first; p != NULL && members != NULL; p = p->next) {
        members[i] = (struct member){.pair = p, .at = i};
        i++;
    }
    if (members != NULL) {
        qsort(members, n, sizeof(*members), compare_members);
    }
    return members;
}

/* The label's name is the prefix and the member's name; `name` is scratch. */
static void set_member(struct maker *m, const char *prefix, struct sv member, struct sv value,
                       struct buf *name)
{
    buf_clear(name);
    buf_puts(name, prefix);
    buf_putc(name, '_');
    object_sanitize(member, name);
    struct sv label = view(m, name);
    if (label_filter_passes_metadata(m->out->filter, label)) {
        set(m, label, value);
    }
}

static void set_pair(struct maker *m, const struct schema_pair *p, const char *prefix,
                     const char *present, struct buf *name)
{
    set_member(m, prefix, p->name, p->value, name);
    set_member(m, present, p->name, SV("true"), name);
}

void maker_set_pairs(struct maker *m, const struct schema_list *pairs, const char *prefix,
                     const char *present)
{
    size_t n = 0;
    bool sorted = true;
    for (const struct schema_pair *p = pairs->first; p != NULL; p = p->next) {
        const struct schema_pair *next = p->next;
        sorted = sorted && (next == NULL || sv_cmp(p->name, next->name) <= 0);
        n++;
    }
    struct buf name;
    buf_init(&name, LABELS_BYTES_MAX);
    /* API servers send the pairs sorted, so a sorted copy is rarely needed. */
    struct member *members = sorted ? NULL : sorted_members(pairs, n);
    m->no_memory |= !sorted && members == NULL;
    for (size_t i = 0; members != NULL && i < n && labels_builder_ok(m->b); i++) {
        set_pair(m, members[i].pair, prefix, present, &name);
    }
    for (const struct schema_pair *p = sorted ? pairs->first : NULL;
         p != NULL && labels_builder_ok(m->b); p = p->next) {
        set_pair(m, p, prefix, present, &name);
    }
    buf_done(&name);
    free(members);
}

void maker_set_annotations(struct maker *m, const struct kube_metadata *metadata, const char *kind)
{
    const struct {
        const struct schema_list *pairs;
        const char *sort;
    } all[] = {{&metadata->labels, "label"}, {&metadata->annotations, "annotation"}};
    for (size_t i = 0; i < 2; i++) {
        char prefix[64];
        char present[64];
        snprintf(prefix, sizeof(prefix), META "%s_%s", kind, all[i].sort);
        snprintf(present, sizeof(present), META "%s_%spresent", kind, all[i].sort);
        maker_set_pairs(m, all[i].pairs, prefix, present);
    }
}

void maker_set_metadata(struct maker *m, const struct kube_metadata *metadata, const char *kind)
{
    char name[64];
    maker_set(m, SV(META "namespace"), metadata->namespace);
    snprintf(name, sizeof(name), META "%s_name", kind);
    maker_set(m, sv_from(name), metadata->name);
    maker_set_annotations(m, metadata, kind);
}

static void set_address(struct maker *m, struct sv host, const char *port)
{
    struct buf address;
    bool brackets = memchr(host.p, ':', host.n) != NULL;
    buf_init(&address, LABELS_BYTES_MAX);
    buf_puts(&address, brackets ? "[" : "");
    buf_append(&address, host.p, host.n);
    buf_puts(&address, brackets ? "]" : "");
    buf_puts(&address, port);
    maker_set_buf(m, LABEL_ADDRESS, &address);
    buf_done(&address);
}

void maker_set_host_port(struct maker *m, struct sv host, unsigned port)
{
    char text[16];
    (void)snprintf(text, sizeof(text), ":%u", port);
    set_address(m, host, text);
}

void maker_set_address(struct maker *m, struct sv host, unsigned port)
{
    if (port > 0) {
        maker_set_host_port(m, host, port);
    } else {
        set_address(m, host, "");
    }
}

unsigned maker_port(struct maker *m, struct schema_number number)
{
    bool good = number.value >= 1 && number.value <= 65535;
    m->out->bad_ports += !good && m->status == OBJECT_OK ? 1 : 0;
    return good ? (unsigned)number.value : 0;
}

bool maker_check_ip(struct maker *m, bool usable)
{
    m->out->bad_ip += !usable && m->status == OBJECT_OK ? 1 : 0;
    return usable;
}

/* Makes a label set from the builder. NULL on failure, with the reason in m->status. */
static struct labels *build(struct maker *m)
{
    struct labels *labels = m->no_memory ? NULL : labels_builder_build(m->b);
    if (labels == NULL) {
        m->status =
            labels_builder_over(m->b) && !m->no_memory ? OBJECT_TOO_MANY_LABELS : OBJECT_NO_MEMORY;
    }
    return labels;
}

void maker_share(struct maker *m)
{
    m->shared = build(m);
    if (m->out->keep_shared && m->shared != NULL) {
        m->out->shared = labels_ref(m->shared);
    }
}

void maker_begin(struct maker *m)
{
    if (m->status == OBJECT_OK) {
        labels_builder_reset(m->b, m->shared);
    }
}

void maker_add(struct maker *m)
{
    struct object_targets *out = m->out;
    if (m->status != OBJECT_OK) {
        return;
    }
    if (out->n >= (out->max == 0 ? OBJECT_TARGETS_MAX : out->max)) {
        out->too_many_targets++;
        return;
    }
    if (!reserve(out)) {
        m->status = OBJECT_NO_MEMORY;
        return;
    }
    struct labels *labels = build(m);
    if (labels != NULL) {
        out->at[out->n++] = labels;
    } else if (m->status == OBJECT_TOO_MANY_LABELS) {
        m->status = OBJECT_OK;
        out->too_many_labels++;
    }
}

enum object_status maker_done(struct maker *m)
{
    m->shared = labels_unref(m->shared);
    for (size_t i = 0; m->status != OBJECT_OK && i < m->out->n; i++) {
        labels_unref(m->out->at[i]);
    }
    m->out->n = m->status == OBJECT_OK ? m->out->n : 0;
    return m->status;
}
