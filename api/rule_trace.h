/* The labels of a label set after each rule of its job, which the pages of targets and of dropped
 * label sets show. Any thread; a trace belongs to one thread.
 */
#ifndef PROFPULL_API_RULE_TRACE_H
#define PROFPULL_API_RULE_TRACE_H

#include "base/labels.h"
#include "config/config.h"
#include "relabel/relabel.h"

struct rule_trace_step {
    size_t rule; /* number of the rule, from 1 */
    enum relabel_outcome outcome;
    struct labels *labels; /* the labels after the rule */
};

struct rule_trace {
    struct relabel *rules;
    /* the last one has dropped the label set or failed, or is that of the last rule */
    struct rule_trace_step *steps;
    size_t n;
    struct relabel_verdict verdict;
    /* Private. */
    struct intern *intern;
    struct labels_builder *copy;
    bool failed;
};

/* Runs the rules on the labels. rule_trace_done() is needed whatever the result. */
bool rule_trace_run(struct rule_trace *t, const struct config_rules *rules,
                    const struct labels *discovered, struct err *err);
void rule_trace_done(struct rule_trace *t);

#endif
