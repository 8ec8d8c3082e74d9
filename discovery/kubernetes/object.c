#include "discovery/kubernetes/object.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

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

/* ---- reading --------------------------------------------------------------------------------- */

struct sv object_text(const json_t *string)
{
    if (!json_is_string(string)) {
        return SV("");
    }
    return (struct sv){.p = json_string_value(string), .n = json_string_length(string)};
}

struct sv object_string(const json_t *object, const char *name)
{
    return object_text(json_object_get(object, name));
}

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
    };
    if ((namespaced && !object_is_name(id.namespace, OBJECT_NAMESPACE_MAX)) ||
        !object_is_name(id.name, OBJECT_NAME_MAX)) {
        return false;
    }
    struct sv uid = object_string(metadata, "uid");
    id.uid = uid.n == 0 ? 0 : hash_bytes(uid.p, uid.n, 0);
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
    /* An IP address has no NUL in it; inet_pton() would not see what follows one. */
    return text.n > 0 && memchr(text.p, '\0', text.n) == NULL &&
           (inet_pton(AF_INET6, text.p, &address) == 1 ||
            inet_pton(AF_INET, text.p, &address) == 1);
}

void object_sanitize(struct sv name, struct buf *out)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (ascii_is_alnum(c)) {
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
        uint64_t one = labels_hash(at[i]);
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

void maker_set_strings(struct maker *m, const json_t *object, const struct maker_member *list)
{
    for (; list->label != NULL; list++) {
        maker_set(m, sv_from(list->label), object_string(object, list->member));
    }
}

/* The text of a buffer, as far as it fit. */
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

struct member {
    struct sv name;
    struct sv value;
};

static int compare_members(const void *a, const void *b)
{
    return sv_cmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* The *ret_n string members of an object, sorted by name; the caller frees the array. NULL with
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
                .value = object_text(v),
            };
            n++;
        }
    }
    qsort(members, n, sizeof(*members), compare_members);
    *ret_n = n;
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

void maker_set_annotations(struct maker *m, const json_t *metadata, const char *kind)
{
    static const char *const sorts[][2] = {{"labels", "label"}, {"annotations", "annotation"}};
    for (size_t i = 0; i < 2; i++) {
        char prefix[64];
        char present[64];
        snprintf(prefix, sizeof(prefix), META "%s_%s", kind, sorts[i][1]);
        snprintf(present, sizeof(present), META "%s_%spresent", kind, sorts[i][1]);
        maker_set_members(m, json_object_get(metadata, sorts[i][0]), prefix, present);
    }
}

void maker_set_metadata(struct maker *m, const json_t *metadata, const char *kind)
{
    char name[64];
    maker_set(m, SV(META "namespace"), object_string(metadata, "namespace"));
    snprintf(name, sizeof(name), META "%s_name", kind);
    maker_set(m, sv_from(name), object_string(metadata, "name"));
    maker_set_annotations(m, metadata, kind);
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
    maker_set_buf(m, LABEL_ADDRESS, &address);
    buf_done(&address);
}

unsigned maker_port(struct maker *m, const json_t *number)
{
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    bool good = n >= 1 && n <= 65535;
    m->out->bad_ports += !good && m->status == OBJECT_OK ? 1 : 0;
    return good ? (unsigned)n : 0;
}

bool maker_check_ip(struct maker *m, bool usable)
{
    m->out->bad_ip += !usable && m->status == OBJECT_OK ? 1 : 0;
    return usable;
}

/* A label set of what the builder holds; NULL, and the reason in m->status, if there is none. */
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
