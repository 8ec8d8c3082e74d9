#include "pprof/sample_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "pprof/check.h"
#include "pprof/columns.h"
#include "pprof/gzip.h"
#include "pprof/put.h"

/* The new form of a label's name. */
struct name {
    enum sample_label_change change; /* SAMPLE_LABEL_CHANGES: none */
    struct sv text;                  /* empty: the label is dropped */
    uint64_t string;                 /* its number */
    uint64_t samples;                /* number of samples in which it is the name of a text */
};

/* A label of the sample at hand. */
struct label {
    struct name *name;
    bool is_text;
    uint64_t field[LABEL_NUM_UNIT + 1];
    uint64_t value; /* the string to send, of a text */
    size_t place;
};

struct rewriting {
    const struct sample_label_rules *rules;
    struct scratch *scratch;
    struct sv plain;
    struct sv *strings;
    uint64_t next_string;
    uint32_t *name_of; /* by string: a place in names + 1, 0 if it is not there yet */
    /* by string: the string that replaces it as a value + 1, 0 if not known yet */
    uint32_t *value_of;
    struct name *names;
    size_t n_names;
    struct label *labels;
    size_t n_labels;
    bool changed;     /* the sample at hand */
    struct buf text;  /* a new string */
    struct buf added; /* fields of new strings */
    struct buf sample;
    struct buf out;
    uint64_t *changes;
    struct err *err;
};

const char *sample_label_change_name(enum sample_label_change change)
{
    static const char *const names[] = {
        [SAMPLE_LABEL_DROPPED] = "dropped",   [SAMPLE_LABEL_RENAMED] = "renamed",
        [SAMPLE_LABEL_REPAIRED] = "repaired", [SAMPLE_LABEL_COLLISION] = "collision",
        [SAMPLE_LABEL_SURPLUS] = "surplus",
    };
    return names[change];
}

/* Returns true if a label has a text as its value. */
static bool is_text(struct sv label)
{
    uint64_t v[LABEL_STR + 1] = {0};
    wire_read_numbers(label, v, LABEL_STR + 1);
    return v[LABEL_STR] != 0;
}

static bool has_labels(struct sv plain, bool numbers)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_reader sample = wire_reader_of(f.bytes);
        struct wire_field part = {.number = 0};
        while (f.number == PROFILE_SAMPLE && wire_next(&sample, &part)) {
            if (part.number == SAMPLE_LABEL && (numbers || is_text(part.bytes))) {
                return true;
            }
        }
    }
    return false;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool add_string(struct rewriting *w, struct sv text, uint64_t *ret)
{
    wire_put_bytes(&w->added, PROFILE_STRING, text.p, text.n);
    *ret = w->next_string++;
    return buf_ok(&w->added) || err_memory(w->err);
}

/* Copies w->text into memory of the scratch. */
static bool keep_text(struct rewriting *w, struct sv *ret)
{
    char *copy = scratch_array(w->scratch, w->text.len + 1, 1);
    if (copy == NULL || !buf_ok(&w->text)) {
        return err_memory(w->err);
    }
    memcpy(copy, w->text.len > 0 ? w->text.data : "", w->text.len);
    *ret = (struct sv){.p = copy, .n = w->text.len};
    return true;
}

static bool find_name(struct rewriting *w, uint64_t string, struct name **ret)
{
    struct sv before = w->strings[string];
    if (w->name_of[string] != 0) {
        *ret = &w->names[w->name_of[string] - 1];
        return true;
    }
    if (w->n_names == SAMPLE_LABEL_NAMES_MAX) {
        return err_set(w->err, ERR_LIMIT, "more than %d names of labels", SAMPLE_LABEL_NAMES_MAX);
    }
    struct name *n = *ret = &w->names[w->n_names++];
    *n = (struct name){.string = string};
    w->name_of[string] = (uint32_t)w->n_names;
    buf_clear(&w->text);
    n->change = w->rules->name(w->rules->arg, before, &w->text);
    return keep_text(w, &n->text) &&
           (n->text.n == 0 || sv_eq(n->text, before) || add_string(w, n->text, &n->string));
}

static bool find_value(struct rewriting *w, uint64_t string, uint64_t *ret)
{
    struct sv text = w->strings[string];
    *ret = string;
    if (w->value_of[string] != 0) {
        *ret = w->value_of[string] - 1;
        return true;
    }
    if (w->rules->repair && (text.n > w->rules->value_max || !utf8_valid(text))) {
        buf_clear(&w->text);
        utf8_repair(text, &w->text);
        text = (struct sv){.p = w->text.data, .n = w->text.len};
        text.n = utf8_prefix(text, w->rules->value_max);
        if (!buf_ok(&w->text) || !add_string(w, text, ret)) {
            return err_memory(w->err);
        }
    }
    w->value_of[string] = (uint32_t)*ret + 1;
    return true;
}

/* ---- one sample ------------------------------------------------------------------------------ */

static bool read_label(struct rewriting *w, struct sv message)
{
    struct label *l = &w->labels[w->n_labels];
    *l = (struct label){.place = w->n_labels};
    wire_read_numbers(message, l->field, LABEL_NUM_UNIT + 1);
    l->is_text = l->field[LABEL_STR] != 0;
    w->n_labels++;
    return find_name(w, l->field[LABEL_KEY], &l->name) &&
           (!l->is_text || find_value(w, l->field[LABEL_STR], &l->value));
}

/* Reads the labels of a sample. *ret_surplus: the number of labels beyond SAMPLE_LABELS_MAX. */
static bool read_labels(struct rewriting *w, struct sv message, size_t *ret_surplus)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    w->n_labels = 0;
    *ret_surplus = 0;
    while (wire_next(&r, &f)) {
        if (f.number != SAMPLE_LABEL) {
            continue;
        }
        if (w->n_labels == SAMPLE_LABELS_MAX) {
            ++*ret_surplus;
        } else if (!read_label(w, f.bytes)) {
            return false;
        }
    }
    return true;
}

static bool same_name(const struct rewriting *w, struct sv a, struct sv b)
{
    if (!w->rules->repair || a.n != b.n) {
        return sv_eq(a, b);
    }
    for (size_t i = 0; i < a.n; i++) {
        bool folded = (a.p[i] == '.' || a.p[i] == '_') && (b.p[i] == '.' || b.p[i] == '_');
        if (a.p[i] != b.p[i] && !folded) {
            return false;
        }
    }
    return true;
}

/* Compares labels: texts before numbers, then names that more samples have, then by name, then in
 * the order of the sample. */
static int by_worth(const void *x, const void *y)
{
    const struct label *a = x;
    const struct label *b = y;
    if (a->is_text != b->is_text) {
        return a->is_text ? -1 : 1;
    }
    if (a->name->samples != b->name->samples) {
        return a->name->samples > b->name->samples ? -1 : 1;
    }
    int order = sv_cmp(a->name->text, b->name->text);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static void note(struct rewriting *w, enum sample_label_change change)
{
    w->changes[change]++;
    w->changed = true;
}

/* Returns true if one of the first n labels, all of them texts, has the name. */
static bool is_taken(const struct rewriting *w, size_t n, const struct label *l)
{
    for (size_t i = 0; i < n; i++) {
        if (same_name(w, w->labels[i].name->text, l->name->text)) {
            return true;
        }
    }
    return false;
}

/* Returns true if a label is kept as it is. Names of numbers are not repaired, because servers do
 * not check them. */
static bool stays(const struct label *l)
{
    return !l->is_text && l->name->change == SAMPLE_LABEL_REPAIRED;
}

/* Returns true if a label is sent, and counts changes. n: number of texts that are sent already. */
static bool goes(struct rewriting *w, const struct label *l, size_t n)
{
    if (stays(l)) {
        return true;
    }
    if (l->name->change != SAMPLE_LABEL_CHANGES) {
        note(w, l->name->change);
    }
    if (l->name->text.n == 0) {
        return false;
    }
    if (l->is_text && is_taken(w, n, l)) {
        note(w, SAMPLE_LABEL_COLLISION);
        return false;
    }
    if (l->is_text && n >= w->rules->names_max) {
        note(w, SAMPLE_LABEL_SURPLUS);
        return false;
    }
    if (l->is_text && l->value != l->field[LABEL_STR]) {
        note(w, SAMPLE_LABEL_REPAIRED);
    }
    return true;
}

/* Leaves out labels that are not sent. */
static void choose(struct rewriting *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_labels; i++) {
        if (goes(w, &w->labels[i], n)) {
            w->labels[n++] = w->labels[i];
        }
    }
    w->n_labels = n;
}

static void put_label(struct rewriting *w, const struct label *l)
{
    unsigned char bytes[(LABEL_NUM_UNIT + 1) * 2 * WIRE_NUMBER_MAX];
    uint64_t v[LABEL_NUM_UNIT + 1];
    size_t n = 0;
    memcpy(v, l->field, sizeof(v));
    v[LABEL_KEY] = stays(l) ? l->field[LABEL_KEY] : l->name->string;
    v[LABEL_STR] = l->is_text ? l->value : 0;
    for (unsigned field = LABEL_KEY; field <= LABEL_NUM_UNIT; field++) {
        if (v[field] != 0) {
            n += wire_encode((uint64_t)field << 3 | WIRE_VARINT, bytes + n);
            n += wire_encode(v[field], bytes + n);
        }
    }
    wire_put_bytes(&w->sample, SAMPLE_LABEL, bytes, n);
}

/* Writes the sample without its labels, then the labels that are sent. */
static void put_sample(struct rewriting *w, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    buf_clear(&w->sample);
    while (wire_next(&r, &f)) {
        if (f.number != SAMPLE_LABEL) {
            buf_append(&w->sample, message.p + r.field_start, r.at - r.field_start);
        }
    }
    for (size_t i = 0; i < w->n_labels; i++) {
        put_label(w, &w->labels[i]);
    }
    wire_put_bytes(&w->out, PROFILE_SAMPLE, w->sample.data, w->sample.len);
}

/* Writes a sample. Sets w->changed if it differs from the original. */
static bool rewrite_sample(struct rewriting *w, struct sv message)
{
    size_t surplus;
    w->changed = false;
    if (!read_labels(w, message, &surplus)) {
        return false;
    }
    if (w->n_labels > 1) {
        qsort(w->labels, w->n_labels, sizeof(*w->labels), by_worth);
    }
    choose(w);
    for (; surplus > 0; surplus--) {
        note(w, SAMPLE_LABEL_SURPLUS);
    }
    if (w->changed) {
        put_sample(w, message);
    } else {
        wire_put_bytes(&w->out, PROFILE_SAMPLE, message.p, message.n);
    }
    return true;
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* Finds the strings, and counts the samples that have each name. */
static bool read_all(struct rewriting *w)
{
    struct wire_reader r = wire_reader_of(w->plain);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING) {
            w->strings[n++] = f.bytes;
        }
    }
    r = wire_reader_of(w->plain);
    while (wire_next(&r, &f)) {
        size_t surplus;
        if (f.number != PROFILE_SAMPLE) {
            continue;
        }
        if (!read_labels(w, f.bytes, &surplus)) {
            return false;
        }
        for (size_t i = 0; i < w->n_labels; i++) {
            w->labels[i].name->samples += w->labels[i].is_text;
        }
    }
    return true;
}

static bool rewrite(struct rewriting *w, bool *ret_changed)
{
    struct wire_reader r = wire_reader_of(w->plain);
    struct wire_field f = {.number = 0};
    *ret_changed = false;
    while (wire_next(&r, &f)) {
        if (f.number != PROFILE_SAMPLE) {
            buf_append(&w->out, w->plain.p + r.field_start, r.at - r.field_start);
        } else if (!rewrite_sample(w, f.bytes)) {
            return false;
        } else {
            *ret_changed = *ret_changed || w->changed;
        }
    }
    buf_append(&w->out, w->added.data, w->added.len);
    return (buf_ok(&w->out) && buf_ok(&w->sample)) || err_memory(w->err);
}

static bool make_room(struct rewriting *w, size_t n_strings, size_t max)
{
    w->next_string = n_strings;
    w->strings = scratch_array(w->scratch, n_strings, sizeof(*w->strings));
    w->name_of = scratch_zeroed(w->scratch, n_strings, sizeof(*w->name_of));
    w->value_of = scratch_zeroed(w->scratch, n_strings, sizeof(*w->value_of));
    w->names = scratch_array(w->scratch, SAMPLE_LABEL_NAMES_MAX, sizeof(*w->names));
    w->labels = scratch_array(w->scratch, SAMPLE_LABELS_MAX, sizeof(*w->labels));
    buf_init(&w->text, max);
    buf_init(&w->added, max);
    buf_init(&w->sample, max);
    buf_init(&w->out, 2 * max);
    return (w->strings != NULL && w->name_of != NULL && w->value_of != NULL && w->names != NULL &&
            w->labels != NULL) ||
           err_memory(w->err);
}

static bool rewrite_plain(struct rewriting *w, size_t max, struct sample_labels_result *ret)
{
    struct pprof_summary summary;
    bool changed = false;
    if (!pprof_check(w->plain, &summary, w->err) ||
        !pprof_small_enough(summary.n, "rewriting", w->err)) {
        return false;
    }
    bool ok = make_room(w, summary.n[PROFILE_STRING], max) && read_all(w) && rewrite(w, &changed);
    if (ok && changed) {
        ok = gzip_pack(w->scratch, (struct sv){.p = w->out.data, .n = w->out.len}, &ret->data,
                       &ret->size) ||
             err_memory(w->err);
    }
    buf_done(&w->text);
    buf_done(&w->added);
    buf_done(&w->sample);
    buf_done(&w->out);
    return ok;
}

bool sample_labels_rewrite(struct scratch *s, struct sv body, size_t max,
                           const struct sample_label_rules *rules, struct sample_labels_result *ret,
                           struct err *err)
{
    struct rewriting w = {.rules = rules, .scratch = s, .changes = ret->changes, .err = err};
    *ret = (struct sample_labels_result){.data = NULL};
    scratch_reset(s);
    if (!gzip_plain(s, body, max, gzip_claim(body), &w.plain, err)) {
        return false;
    }
    if (w.plain.n > max) {
        return err_set(err, ERR_LIMIT, "larger than %zu bytes", max);
    }
    ret->plain = w.plain;
    ret->labelled = has_labels(w.plain, rules->numbers);
    return !ret->labelled || rewrite_plain(&w, max, ret);
}
