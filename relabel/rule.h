/* One relabel rule, checked and compiled. Private to relabel/. */
#ifndef PROFPULL_RELABEL_RULE_H
#define PROFPULL_RELABEL_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "regex/regex.h"
#include "relabel/expand.h"

/* The defaults of a rule's keys. */
#define RULE_SEPARATOR ";"
#define RULE_REGEX "(.*)"
#define RULE_REPLACEMENT "$1"

/* A complete rule: defaults are filled in. Its texts live in the arena that was given to
 * rule_init(). */
struct rule {
    enum config_action action;
    bool disabled;     /* it changes and reads nothing */
    const char *place; /* "file:line:column"; "" for a built-in rule */
    const struct sv *sources;
    size_t n_sources;
    struct sv separator;
    struct sv regex_text;
    struct regex *regex; /* owned */
    uint64_t modulus;
    struct sv target_text;
    struct expansion target; /* compiled target_label of replace */
    struct sv replacement_text;
    struct expansion replacement; /* compiled replacement of replace and labelmap */
};

/* Checks (like relabel_check_rule()) and compiles a rule. After a failure, rule_done() must be
 * called as well; `place` is set even then. */
bool rule_init(struct rule *r, struct arena *arena, const struct config_rule *config,
               struct err *err);
void rule_done(struct rule *r);
/* Appends `replace source_labels=[a,b] regex="x" -> c`. */
bool rule_describe(const struct rule *r, struct buf *out);

#endif
