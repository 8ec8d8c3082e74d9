#include "discovery/kubernetes/object.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const struct json_keep owner_keep[] = {
    {"kind", NULL}, {"name", NULL}, {"controller", NULL}, {NULL, NULL}};

const struct json_keep object_keep_metadata[] = {{"name", NULL},
                                                 {"namespace", NULL},
                                                 {"uid", NULL},
                                                 {"labels", NULL},
                                                 {"annotations", NULL},
                                                 {"resourceVersion", NULL},
                                                 {"ownerReferences", owner_keep},
                                                 {NULL, NULL}};

const struct json_keep object_keep_marks[] = {OBJECT_KEEP, {NULL, NULL}};

/* ---- reading --------------------------------------------------------------------------------- */

struct sv object_string(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    if (!json_is_string(v)) {
        return SV("");
    }
    return (struct sv){.p = json_string_value(v), .n = json_string_length(v)};
}

bool object_is_name(struct sv v, size_t max)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_') {
            return false;
        }
    }
    return v.n > 0 && v.n <= max;
}

bool object_identify(const json_t *object, const char *kind, bool namespaced, struct object_id *ret)
{
    /* The items of a list have no kind. */
    const json_t *given = json_object_get(object, "kind");
    if (given != NULL && (!json_is_string(given) || strcmp(json_string_value(given), kind) != 0)) {
        return false;
    }
    const json_t *metadata = json_object_get(object, "metadata");
    struct object_id id = {
        .namespace = namespaced ? object_string(metadata, "namespace") : SV(""),
        .name = object_string(metadata, "name"),
        .uid = object_string(metadata, "uid"),
    };
    if ((namespaced && !object_is_name(id.namespace, OBJECT_NAMESPACE_MAX)) ||
        !object_is_name(id.name, OBJECT_NAME_MAX)) {
        return false;
    }
    *ret = id;
    return true;
}

struct sv object_key(const struct object_id *id, char out[OBJECT_KEY_MAX])
{
    int n = snprintf(out, OBJECT_KEY_MAX, "%.*s%s%.*s", SV_ARG(id->namespace),
                     id->namespace.n == 0 ? "" : "/", SV_ARG(id->name));
    return (struct sv){.p = out, .n = n < 0 ? 0 : (size_t)n};
}

const char *object_ip(struct sv text, bool *ret_ipv6)
{
    struct in6_addr address;
    /* An IP address has no NUL in it; inet_pton() would not see what is behind one. */
    if (text.n == 0 || memchr(text.p, '\0', text.n) != NULL) {
        return NULL;
    }
    *ret_ipv6 = inet_pton(AF_INET6, text.p, &address) == 1;
    return *ret_ipv6 || inet_pton(AF_INET, text.p, &address) == 1 ? text.p : NULL;
}

unsigned object_port(const json_t *number)
{
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    return n < 1 || n > 65535 ? 0 : (unsigned)n;
}

void object_sanitize(struct sv name, struct buf *out)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '0' && c <= '9')) {
            buf_putc(out, (char)c);
        } else if ((c & 0xc0) != 0x80) {
            buf_putc(out, '_');
        }
    }
}

void object_lower(struct sv v, char *out, size_t size)
{
    size_t n = v.n < size - 1 ? v.n : size - 1;
    for (size_t i = 0; i < n; i++) {
        char c = v.p[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    out[n] = '\0';
}

/* ---- targets --------------------------------------------------------------------------------- */

void object_targets_init(struct object_targets *t)
{
    *t = (struct object_targets){0};
}

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
        .wanted = t->wanted,
    };
}

void object_targets_done(struct object_targets *t)
{
    object_targets_clear(t);
    free(t->at);
    object_targets_init(t);
}

static bool make_room(struct object_targets *t)
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

/* ---- making label sets ----------------------------------------------------------------------- */

void maker_init(struct maker *m, struct labels_builder *b, struct object_targets *out)
{
    object_targets_clear(out);
    *m = (struct maker){.b = b, .out = out};
    labels_builder_reset(b, NULL);
}

static void set(struct maker *m, struct sv name, struct sv value)
{
    if (!labels_builder_ok(m->b)) {
        return;
    }
    labels_builder_set(m->b, name, value);
    m->bytes += name.n + value.n;
    if (!labels_builder_ok(m->b)) {
        m->over = m->bytes > LABELS_BYTES_MAX || labels_builder_count(m->b) >= LABELS_MAX;
    }
}

void maker_set(struct maker *m, struct sv name, struct sv value)
{
    if (wanted_label(m->out->wanted, name)) {
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

struct member {
    struct sv name;
    struct sv value;
};

static int compare_members(const void *a, const void *b)
{
    return sv_cmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* The string members of an object in order of names; *ret_n of them, the caller frees. NULL with
 * *ret_n 0 if there are none, NULL with *ret_n > 0 if out of memory. */
static struct member *sorted_members(const json_t *object, size_t *ret_n)
{
    *ret_n = 0;
    size_t size = json_object_size(object);
    if (size == 0) {
        return NULL;
    }
    struct member *members = calloc(size, sizeof(*members));
    if (members == NULL) {
        *ret_n = size;
        return NULL;
    }
    size_t n = 0;
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const json_t *v = json_object_iter_value(it);
        if (json_is_string(v)) {
            members[n] = (struct member){
                .name = {.p = json_object_iter_key(it), .n = json_object_iter_key_len(it)},
                .value = {.p = json_string_value(v), .n = json_string_length(v)},
            };
            n++;
        }
    }
    qsort(members, n, sizeof(*members), compare_members);
    *ret_n = n;
    return members;
}

/* prefix is the name of a label up to the part that is the member's, and name has room for it. */
static void set_member(struct maker *m, const char *prefix, struct sv member, struct sv value,
                       struct buf *name)
{
    buf_clear(name);
    buf_puts(name, prefix);
    buf_putc(name, '_');
    object_sanitize(member, name);
    m->no_memory |= !buf_ok(name) && !buf_too_big(name);
    struct sv label = {name->data, name->len};
    if (wanted_mark(m->out->wanted, label)) {
        set(m, label, value);
    }
}

void maker_set_members(struct maker *m, const json_t *object, const char *prefix,
                       const char *present)
{
    size_t n;
    struct member *members = sorted_members(object, &n);
    if (members == NULL) {
        m->no_memory |= n > 0;
        return;
    }
    struct buf name;
    buf_init(&name, LABELS_BYTES_MAX);
    for (size_t i = 0; i < n && labels_builder_ok(m->b); i++) {
        set_member(m, prefix, members[i].name, members[i].value, &name);
        set_member(m, present, members[i].name, SV("true"), &name);
    }
    buf_done(&name);
    free(members);
}

void maker_set_meta(struct maker *m, const json_t *metadata, const char *kind)
{
    char name[64];
    maker_set(m, SV(META "namespace"), object_string(metadata, "namespace"));
    snprintf(name, sizeof(name), META "%s_name", kind);
    maker_set(m, sv_from(name), object_string(metadata, "name"));
    maker_set_marks(m, metadata, kind);
}

void maker_set_marks(struct maker *m, const json_t *metadata, const char *kind)
{
    char prefix[64];
    char present[64];
    snprintf(prefix, sizeof(prefix), META "%s_label", kind);
    snprintf(present, sizeof(present), META "%s_labelpresent", kind);
    maker_set_members(m, json_object_get(metadata, "labels"), prefix, present);
    snprintf(prefix, sizeof(prefix), META "%s_annotation", kind);
    snprintf(present, sizeof(present), META "%s_annotationpresent", kind);
    maker_set_members(m, json_object_get(metadata, "annotations"), prefix, present);
}

void maker_set_address(struct maker *m, struct sv host, unsigned port)
{
    struct buf address;
    bool brackets = memchr(host.p, ':', host.n) != NULL;
    buf_init(&address, LABELS_BYTES_MAX);
    buf_puts(&address, brackets ? "[" : "");
    buf_append(&address, host.p, host.n);
    buf_puts(&address, brackets ? "]" : "");
    if (port > 0) {
        buf_printf(&address, ":%u", port);
    }
    m->no_memory |= !buf_ok(&address) && !buf_too_big(&address);
    maker_set(m, SV(LABEL_ADDRESS), (struct sv){address.data, address.len});
    buf_done(&address);
}

/* Why there is no label set. */
static enum object_status failure(const struct maker *m)
{
    return !labels_builder_ok(m->b) && m->over ? OBJECT_TOO_MANY_LABELS : OBJECT_NO_MEMORY;
}

enum object_status maker_share(struct maker *m)
{
    if (m->no_memory) {
        return OBJECT_NO_MEMORY;
    }
    m->shared = labels_builder_build(m->b);
    m->shared_bytes = m->bytes;
    if (m->out->keep_shared && m->shared != NULL) {
        m->out->shared = labels_ref(m->shared);
    }
    return m->shared == NULL ? failure(m) : OBJECT_OK;
}

void maker_begin(struct maker *m)
{
    labels_builder_reset(m->b, m->shared);
    m->bytes = m->shared_bytes;
}

enum object_status maker_add(struct maker *m)
{
    struct object_targets *out = m->out;
    if (out->n >= (out->max == 0 ? OBJECT_TARGETS_MAX : out->max)) {
        out->too_many_targets++;
        return OBJECT_OK;
    }
    if (m->no_memory || !make_room(out)) {
        return OBJECT_NO_MEMORY;
    }
    struct labels *labels = labels_builder_build(m->b);
    if (labels == NULL) {
        return failure(m);
    }
    out->at[out->n++] = labels;
    return OBJECT_OK;
}

enum object_status maker_done(struct maker *m, enum object_status status)
{
    labels_unref(m->shared);
    m->shared = NULL;
    for (size_t i = 0; status != OBJECT_OK && i < m->out->n; i++) {
        labels_unref(m->out->at[i]);
    }
    m->out->n = status == OBJECT_OK ? m->out->n : 0;
    return status;
}
