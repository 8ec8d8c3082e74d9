/* A configuration from a text that has no mistakes. */
#ifndef PROFPULL_TESTS_VALID_CONFIG_H
#define PROFPULL_TESTS_VALID_CONFIG_H

#include "config/config.h"
#include "tests/unit/lib/testing.h"

/* options: NULL for none. Fails the test if the text has mistakes. The caller drops the reference.
 */
static inline struct config *valid_config(const char *name, const char *text,
                                          const struct config_options *options)
{
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse(name, sv_from(text), options, errors);
    struct buf problems;
    buf_init(&problems, 1 << 20);
    config_errors_format(errors, &problems);
    CHECK_STR(problems.data, "", text);
    buf_done(&problems);
    config_errors_free(errors);
    assert_non_null(c);
    return c;
}

#endif
