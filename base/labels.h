/* Label sets: immutable, reference-counted, sorted by unique names, with interned strings.
 *
 * The table of strings (struct intern) belongs to the program and outlives every label set made
 * with it. Label sets may be passed between threads and released on any of them: the counts are
 * atomic and the table has its own locks. A builder belongs to one thread.
 *
 * A label with an empty value does not exist: setting one to "" removes it (Prometheus' rule), and
 * getting one that is absent gives "".
 */
#ifndef PROFPULL_BASE_LABELS_H
#define PROFPULL_BASE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Label names that several rooms use. */
#define LABEL_ADDRESS "__address__"
#define LABEL_SCHEME "__scheme__"
#define LABEL_NAME "__name__"
#define LABEL_DELTA "__delta__"
#define LABEL_PROFILE_PATH "__profile_path__"
#define LABEL_PROFILE_PATH_PREFIX "__profile_path_prefix__"
#define LABEL_PARAM_PREFIX "__param_"
#define LABEL_TENANT "__tenant_id__"
#define LABEL_INSTANCE "instance"
#define LABEL_JOB "job"
#define LABEL_SERVICE_NAME "service_name"

struct intern;

struct intern *intern_new(void); /* NULL if out of memory */
/* Frees the table. All label sets must have been released before. Accepts NULL, returns NULL. */
struct intern *intern_free(struct intern *in);
/* Returns the number of distinct strings, and their bytes with overhead. Any thread may call it. */
void intern_stats(struct intern *in, size_t *ret_count, size_t *ret_bytes);

struct label {
    struct sv name;
    struct sv value; /* both are NUL-terminated too */
};

/* Returns the value of the first of n labels that has this name, or an empty view whose p is "" if
 * there is none. The labels may be in any order. */
struct sv label_value(const struct label *labels, size_t n, struct sv name);

struct labels;

struct labels *labels_ref(struct labels *l);
/* Accepts NULL; returns NULL. Any thread. */
struct labels *labels_unref(struct labels *l);

size_t labels_count(const struct labels *l);
/* Returns the i-th label in order of names; i < labels_count(). */
struct label labels_at(const struct labels *l, size_t i);
/* Returns the value of a label, or an empty view whose p is "" if the label is absent. */
struct sv labels_get(const struct labels *l, struct sv name);
/* Returns the bytes of all names and values, although other label sets may share them. */
size_t labels_bytes(const struct labels *l);
bool labels_equal(const struct labels *a, const struct labels *b);
/* Returns a hash that is equal for equal sets, on every machine and in every run. Each call
 * computes it. */
uint64_t labels_hash(const struct labels *l);
/* Returns a hash that is equal for equal sets of one table of strings, in this process only. It is
 * fast, because it does not read the strings. */
uint64_t labels_mark(const struct labels *l);
/* Appends {"a":"b","c":"d"}. */
bool labels_format_json(const struct labels *l, struct buf *out);

/* Builds a label set. Its storage is an arena that a reset reuses. More than LABELS_MAX labels or
 * LABELS_BYTES_MAX bytes, or a failed allocation, fail the builder until the reset, and build
 * returns NULL. */
#define LABELS_MAX 1024
#define LABELS_BYTES_MAX ((size_t)1024 * 1024)

struct labels_builder;

struct labels_builder *labels_builder_new(struct intern *in); /* NULL if out of memory */
struct labels_builder *labels_builder_free(struct labels_builder *b);
/* Starts again with the content of base, or empty if NULL. */
void labels_builder_reset(struct labels_builder *b, const struct labels *base);
/* Set a label to a value; both strings are copied. */
void labels_builder_set(struct labels_builder *b, struct sv name, struct sv value);
void labels_builder_set_str(struct labels_builder *b, const char *name, const char *value);
void labels_builder_del(struct labels_builder *b, struct sv name);
/* Returns the value of a label. The view stays valid until the builder is reset or freed, also when
 * the label is changed. */
struct sv labels_builder_get(const struct labels_builder *b, struct sv name);
size_t labels_builder_count(const struct labels_builder *b);
/* Returns the i-th label in order of names. Its views stay valid until the reset, the index i until
 * the next change. */
struct label labels_builder_at(const struct labels_builder *b, size_t i);
/* Marks the instant from which labels_builder_in_order() counts the order in which labels are
 * set. */
void labels_builder_start(struct labels_builder *b);
/* Lists all labels in the order of Prometheus' Builder: first the labels that have not changed
 * since labels_builder_start(), by name; then the labels that were set since, in the order in which
 * they were first set. Returns their number. The views stay valid until the reset. */
size_t labels_builder_in_order(const struct labels_builder *b, struct label ret[LABELS_MAX]);
bool labels_builder_ok(const struct labels_builder *b);
/* Returns true if the builder has failed at a limit. */
bool labels_builder_over(const struct labels_builder *b);
/* Says why there is no label set, with ERR_LIMIT or ERR_MEMORY. Returns false. */
bool labels_builder_explain(const struct labels_builder *b, struct err *err);
/* Makes the label set and returns its reference. Returns NULL if the builder has failed or out of
 * memory. The builder keeps its content. */
struct labels *labels_builder_build(struct labels_builder *b);

#endif
