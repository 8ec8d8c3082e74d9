/* Configurations from texts without mistakes, and the messages of those with some. */
#ifndef PROFPULL_TESTS_VALID_CONFIG_H
#define PROFPULL_TESTS_VALID_CONFIG_H

#include "config/config.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(config, config_unref)
SCOPED_POINTER(config_errors, config_errors_free)

/* options: NULL for none. Fails the test if the text has mistakes. The caller drops the reference.
 */
static inline struct config *valid_config(const char *name, const char *text,
                                          const struct config_options *options)
{
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse(name, sv_from(text), options, errors);
    struct buf problems = testing_buf(1 << 20);
    config_errors_format(errors, &problems);
    CHECK_STR(problems.data, "", text);
    buf_done(&problems);
    config_errors_free(errors);
    assert_non_null(c);
    return c;
}

/* Checks that each text is refused with exactly these messages. */
static inline void check_refused(const struct text_case *rows, size_t n,
                                 const struct config_options *options)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED(config_errors) *errors = config_errors_new();
        SCOPED(buf) got = testing_buf(1 << 16);
        assert_null(config_parse("f", sv_from(rows[i].text), options, errors));
        config_errors_format(errors, &got);
        CHECK_STR(got.data, rows[i].want, rows[i].text);
    }
}
#define CHECK_REFUSED(rows, options)                                                               \
    check_refused((rows), sizeof(rows) / sizeof((rows)[0]), (options))

#endif
