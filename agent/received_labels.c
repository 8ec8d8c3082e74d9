#include "agent/received_labels.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

/* The longest text of labels in a message, in bytes; an error has room for less. */
#define PRINTED_MAX ((size_t)64 * 1024)

/* The service_name that a Pyroscope stores for a profile without one. */
#define NO_SERVICE "unknown_service"
#define GODELTAPROF SV("godeltaprof_")

static int by_name(const void *a, const void *b)
{
    const struct label *x = a;
    const struct label *y = b;
    int order = sv_cmp(x->name, y->name);
    return order != 0 ? order : sv_cmp(x->value, y->value);
}

size_t received_labels_sort(struct label *labels, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value.n > 0) {
            labels[kept++] = labels[i];
        }
    }
    if (kept > 1) {
        qsort(labels, kept, sizeof(*labels), by_name);
    }
    return kept;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Appends a string in quotes, nearly as Go does: control characters become \x00. */
static void print_quoted(struct sv v, struct buf *out)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if (c < 0x20 || c == 0x7f) {
            buf_printf(out, "\\x%02x", c);
        } else {
            buf_puts(out, c == '"' || c == '\\' ? "\\" : "");
            buf_putc(out, (char)c);
        }
    }
    buf_putc(out, '"');
}

void received_labels_print(const struct label *labels, size_t n, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i == 0 ? "" : ", ");
        buf_append(out, labels[i].name.p, labels[i].name.n);
        buf_putc(out, '=');
        print_quoted(labels[i].value, out);
    }
    buf_putc(out, '}');
}

/* Sets "<before> '<labels>' <after>"; invalid UTF-8 is replaced. */
static bool refuse(struct err *err, const char *before, const struct label *labels, size_t n,
                   const char *after)
{
    struct buf text;
    struct buf repaired;
    buf_init(&text, PRINTED_MAX);
    buf_init(&repaired, 2 * PRINTED_MAX);
    received_labels_print(labels, n, &text);
    utf8_repair((struct sv){text.data, text.len}, &repaired);
    err_set(err, ERR_INPUT, "%s '%s' %s", before, buf_ok(&text) ? repaired.data : "{...}", after);
    buf_done(&text);
    buf_done(&repaired);
    return false;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool has_name(const struct label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq_str(labels[i].name, LABEL_NAME)) {
            return true;
        }
    }
    return false;
}

/* Returns the words for the problem of one label; NULL: it has none. */
static const char *problem_of(const struct label *l, const struct config_receive *limits)
{
    if (l->name.n > limits->max_label_name_length) {
        return "has label name too long";
    }
    if (l->value.n > limits->max_label_value_length) {
        return "has label value too long";
    }
    return NULL;
}

static bool check_label(const struct label *labels, size_t n, size_t i,
                        const struct config_receive *limits, struct err *err)
{
    const struct label *l = &labels[i];
    char text[256];
    int shown = l->name.n > 128 ? 128 : (int)l->name.n;
    const char *problem = problem_of(l, limits);
    if (problem == NULL && i > 0 && sv_eq(l->name, labels[i - 1].name)) {
        problem = "has duplicate label name";
    }
    if (problem != NULL) {
        (void)snprintf(text, sizeof(text), "%s: '%.*s'", problem, shown, l->name.p);
        return refuse(err, "profile with labels", labels, n, text);
    }
    if (l->name.n == 0 || !utf8_valid(l->name)) {
        (void)snprintf(text, sizeof(text), "with error: invalid label name '%.*s'",
                       utf8_valid(l->name) ? shown : 0, l->name.p);
        return refuse(err, "invalid labels", labels, n, text);
    }
    if (!utf8_valid(l->value)) {
        (void)snprintf(text, sizeof(text), "with error: invalid value of label '%.*s': no UTF-8",
                       shown, l->name.p);
        return refuse(err, "invalid labels", labels, n, text);
    }
    return true;
}

bool received_labels_check(const struct label *labels, size_t n,
                           const struct config_receive *limits, struct err *err)
{
    if (n == 0) {
        return err_set(err, ERR_INPUT, "error at least one label pair is required per profile");
    }
    if (n > limits->max_label_names) {
        char text[64];
        (void)snprintf(text, sizeof(text), "has %zu label names; limit %u", n,
                       limits->max_label_names);
        return refuse(err, "profile series", labels, n, text);
    }
    if (!has_name(labels, n)) {
        return refuse(err, "invalid labels", labels, n, "with error: invalid metric name");
    }
    for (size_t i = 0; i < n; i++) {
        if (!check_label(labels, n, i, limits, err)) {
            return false;
        }
    }
    return true;
}

/* ---- the stored labels ----------------------------------------------------------------------- */

void received_labels_put(const struct label *labels, size_t n, struct labels_builder *b)
{
    labels_builder_set(b, SV(LABEL_SERVICE_NAME), SV(NO_SERVICE));
    for (size_t i = 0; i < n; i++) {
        labels_builder_set(b, labels[i].name, labels[i].value);
    }
    struct sv name = labels_builder_get(b, SV(LABEL_NAME));
    if (sv_starts_with(name, GODELTAPROF) && name.n > GODELTAPROF.n) {
        labels_builder_set(b, SV("__name_replaced__"), name);
        labels_builder_set(b, SV(LABEL_DELTA), SV("false"));
        labels_builder_set(b, SV(LABEL_NAME), sv_skip(name, GODELTAPROF.n));
    }
    labels_builder_del(b, SV("__session_id__"));
    /* Rules choose the tenant; the sender of a profile must not. */
    labels_builder_del(b, SV(LABEL_TENANT));
}
