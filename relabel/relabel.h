/* Relabelling: a list of rules that turns one label set into another or drops it.
 *
 * The semantics are those of Prometheus (model/relabel): fully anchored RE2 regexes with dot
 * matching the newline, Go's $-expansion, eleven actions, labelmap over a snapshot in the order of
 * labels_builder_in_order(), label names in UTF-8 mode. Regexes have the syntax and the results of
 * Go's regexp (regex/regex.h).
 *
 * A compiled list is immutable and may be used by many threads, each with a scratch of its own.
 * Pure functions: no IO, no logging. A rule that cannot be decided is not "no match": the verdict
 * is RELABEL_FAILED and names the rule.
 */
#ifndef PROFPULL_RELABEL_RELABEL_H
#define PROFPULL_RELABEL_RELABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

/* The most rules in one list. */
#define RELABEL_RULES_MAX 1000

/* Checks one rule. The messages are those of Prometheus (`relabel configuration for replace action
 * requires 'target_label' value`); a regex gets the message of Go's regexp and the offset. */
bool relabel_check_rule(const struct config_rule *rule, struct err *err);

struct relabel;
/* Compiles a list; the result does not refer to the list. An error names the rule by its number and
 * position. */
struct relabel *relabel_new(const struct config_rules *rules, struct err *err);
struct relabel *relabel_free(struct relabel *r); /* accepts NULL, returns NULL */
size_t relabel_count(const struct relabel *r);

/* Per-thread working memory. */
struct relabel_scratch;
struct relabel_scratch *relabel_scratch_new(void);
struct relabel_scratch *relabel_scratch_free(struct relabel_scratch *s);

enum relabel_outcome {
    RELABEL_KEPT,
    RELABEL_DROPPED, /* verdict.rule dropped the labels */
    RELABEL_FAILED,  /* verdict.rule failed, because of a label limit or memory; see verdict.err */
};

struct relabel_verdict {
    enum relabel_outcome outcome;
    size_t rule; /* number of the rule, from 1; 0 if the labels were kept */
    struct err err;
};

/* Runs all rules on the labels in b. If they are dropped or a rule fails, b is left as it is at
 * that rule. explain (may be NULL) is called after each rule that ran, with b in its state then. */
struct relabel_verdict
relabel_apply(const struct relabel *r, struct relabel_scratch *s, struct labels_builder *b,
              void (*explain)(void *arg, size_t rule, const struct labels_builder *b,
                              enum relabel_outcome outcome),
              void *arg);

/* Returns true if the result for other labels can depend on this label: a rule has it among its
 * source_labels, compares with it, or maps it to another name. Also returns true if this cannot be
 * decided. */
bool relabel_reads(const struct relabel *r, struct relabel_scratch *s, struct sv name);

/* Appends a one-line description of a rule: `replace source_labels=[a,b] regex="x" -> c`. */
bool relabel_describe(const struct relabel *r, size_t rule, struct buf *out);

#endif
