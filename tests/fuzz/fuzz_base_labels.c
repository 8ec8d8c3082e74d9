/* The builder of label sets under random operations, against a plain table, and the text of the
 * result. Each operation is a byte that selects it, and two short texts. */
#include <jansson.h>
#include <string.h>

#include "base/labels.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

#define MODEL_MAX 64
#define TEXT_MAX 8

struct pair {
    char name[TEXT_MAX];
    size_t name_len;
    char value[TEXT_MAX];
    size_t value_len;
};

struct model {
    struct pair pairs[MODEL_MAX];
    size_t count;
};

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

/* Takes a text of at most TEXT_MAX - 1 bytes, preceded by its length. */
static struct sv take(struct sv *rest)
{
    if (rest->n == 0) {
        return SV("");
    }
    size_t n = (unsigned char)rest->p[0] % TEXT_MAX;
    n = n > rest->n - 1 ? rest->n - 1 : n;
    struct sv text = {.p = rest->p + 1, .n = n};
    rest->p += n + 1;
    rest->n -= n + 1;
    return text;
}

static struct sv name_of(const struct pair *p)
{
    return (struct sv){.p = p->name, .n = p->name_len};
}

static struct sv value_of(const struct pair *p)
{
    return (struct sv){.p = p->value, .n = p->value_len};
}

static struct pair *model_find(struct model *m, struct sv name)
{
    for (size_t i = 0; i < m->count; i++) {
        if (sv_eq(name_of(&m->pairs[i]), name)) {
            return &m->pairs[i];
        }
    }
    return NULL;
}

static void model_del(struct model *m, struct sv name)
{
    struct pair *p = model_find(m, name);
    if (p != NULL) {
        *p = m->pairs[--m->count];
    }
}

static void model_set(struct model *m, struct sv name, struct sv value)
{
    struct pair *p = model_find(m, name);
    if (p == NULL) {
        p = &m->pairs[m->count++];
        memcpy(p->name, name.p, name.n);
        p->name_len = name.n;
    }
    memcpy(p->value, value.p, value.n);
    p->value_len = value.n;
}

static void check(struct labels_builder *b, struct model *m, const struct labels *l)
{
    struct buf text;
    must(labels_builder_count(b) == m->count && labels_count(l) == m->count, "as many labels");
    for (size_t i = 0; i < m->count; i++) {
        struct label label = labels_at(l, i);
        struct pair *p = model_find(m, label.name);
        must(p != NULL && sv_eq(value_of(p), label.value), "the same labels");
        must(sv_eq(labels_get(l, label.name), label.value), "found by name");
        must(sv_eq(labels_builder_get(b, label.name), label.value), "found in the builder");
        must(i == 0 || sv_cmp(labels_at(l, i - 1).name, label.name) < 0, "sorted");
    }
    buf_init(&text, (size_t)1024 * 1024);
    json_error_t why;
    must(labels_format_json(l, &text), "room");
    must(utf8_valid((struct sv){.p = text.data, .n = text.len}), "text");
    json_t *j = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &why);
    /* Jansson accepts no NUL in a name. */
    must(j != NULL || memmem(text.data, text.len, "\\u0000", 6) != NULL, "JSON");
    json_decref(j);
    buf_done(&text);
}

static void run(struct labels_builder *b, struct sv rest)
{
    struct model m = {.count = 0};
    struct labels *l = NULL;
    while (rest.n > 0) {
        unsigned what = (unsigned char)rest.p[0] % 8;
        rest.p++;
        rest.n--;
        struct sv name = take(&rest);
        struct sv value = take(&rest);
        if (what == 0) {
            labels_unref(l);
            l = labels_builder_build(b);
            must(l != NULL, "built");
            check(b, &m, l);
        } else if (what == 1 && l != NULL) {
            labels_builder_reset(b, l);
            m.count = 0;
            for (size_t i = 0; i < labels_count(l); i++) {
                model_set(&m, labels_at(l, i).name, labels_at(l, i).value);
            }
        } else if (what == 2 || value.n == 0) {
            labels_builder_set(b, name, SV(""));
            model_del(&m, name);
        } else if (m.count < MODEL_MAX) {
            labels_builder_set(b, name, value);
            model_set(&m, name, value);
        }
    }
    labels_unref(l);
    l = labels_builder_build(b);
    must(l != NULL, "built at the end");
    check(b, &m, l);
    labels_unref(l);
}

FUZZ(input)
{
    size_t strings = 99, bytes;
    struct intern *in = intern_new();
    struct labels_builder *b = in == NULL ? NULL : labels_builder_new(in);
    REQUIRE(b != NULL);
    run(b, input);
    labels_builder_free(b);
    intern_stats(in, &strings, &bytes);
    must(strings == 0, "no string is left");
    intern_free(in);
}
