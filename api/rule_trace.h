/* The labels of a label set after each rule of its job: what the page of a target, or of a dropped
 * one, shows. Any thread; a trace belongs to one.
 */
#ifndef PROFPULL_API_RULE_TRACE_H
#define PROFPULL_API_RULE_TRACE_H

#include "base/labels.h"
#include "config/config.h"
#include "relabel/relabel.h"

struct rule_trace_step {
    size_t rule; /* from 1 */
    enum relabel_outcome outcome;
    struct labels *labels; /* after the rule */
};

struct rule_trace {
    struct relabel *rules;
    struct rule_trace_step *steps; /* the last one dropped it or failed, or there are no more */
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
