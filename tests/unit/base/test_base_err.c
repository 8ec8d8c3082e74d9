/* The error object: setting, wrapping, cutting. */
#include "base/utf8.h"
#include "tests/unit/lib/testing.h"

#include <errno.h>

TEST(sets_kind_and_text)
{
    struct err e = ERR_INIT;
    assert_false(err_set(&e, ERR_LIMIT, "%d of %s", 7, "them"));
    CHECK_INT(e.kind, ERR_LIMIT, "");
    CHECK_STR(e.msg, "7 of them", "");
    err_clear(&e);
    CHECK_INT(e.kind, ERR_NONE, "");
    CHECK_STR(e.msg, "", "");
}

TEST(wraps_outside_in)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_NETWORK, "connection refused");
    assert_false(err_wrap(&e, "GET %s", "http://x/"));
    assert_false(err_wrap(&e, "scrape %s", "pod/x"));
    CHECK_INT(e.kind, ERR_NETWORK, "");
    CHECK_STR(e.msg, "scrape pod/x: GET http://x/: connection refused", "");
}

TEST(may_quote_itself)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_INPUT, "inner");
    err_set(&e, ERR_REFUSED, "outer (%s)", e.msg);
    CHECK_STR(e.msg, "outer (inner)", "");
    err_wrap(&e, "again %s", e.msg);
    CHECK_STR(e.msg, "again outer (inner): outer (inner)", "");
    CHECK_INT(e.kind, ERR_REFUSED, "");
}

TEST(appends)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_INPUT, "bad rule");
    assert_false(err_append(&e, " (did you mean \"%s\"?)", "keep"));
    CHECK_STR(e.msg, "bad rule (did you mean \"keep\"?)", "");
    CHECK_INT(e.kind, ERR_INPUT, "the kind stays");
    err_append(&e, "; %s", e.msg);
    CHECK_STR(e.msg, "bad rule (did you mean \"keep\"?); bad rule (did you mean \"keep\"?)", "");
}

TEST(out_of_memory)
{
    struct err e = ERR_INIT;
    assert_false(err_memory(&e));
    CHECK_INT(e.kind, ERR_MEMORY, "");
    CHECK_STR(e.msg, "out of memory", "");
}

TEST(names_the_system_error)
{
    struct err e = ERR_INIT;
    errno = ENOENT;
    assert_false(err_sys(&e, "open %s", "/x"));
    CHECK_STR(e.msg, "open /x: No such file or directory", "");
    CHECK_INT(e.kind, ERR_SYSTEM, "");
    CHECK_INT(errno, ENOENT, "errno is the caller's still");
}

TEST(accepts_null)
{
    assert_false(err_set(NULL, ERR_INPUT, "x"));
    assert_false(err_sys(NULL, "x"));
    assert_false(err_wrap(NULL, "x"));
    assert_false(err_append(NULL, "x"));
    assert_false(err_memory(NULL));
    err_clear(NULL);
}

TEST(cuts_long_messages)
{
    struct err e = ERR_INIT;
    char text[3 * ERR_MSG_MAX];
    for (size_t n = ERR_MSG_MAX - 3; n < ERR_MSG_MAX + 3; n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        err_set(&e, ERR_INPUT, "%s", text);
        bool fits = n < ERR_MSG_MAX;
        CHECK_INT(strlen(e.msg), fits ? n : ERR_MSG_MAX - 1, "");
        CHECK_STR(e.msg + strlen(e.msg) - 3, fits ? "aaa" : "...", "");
    }
    memset(text, 'b', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_wrap(&e, "%s", text);
    CHECK_INT(strlen(e.msg), ERR_MSG_MAX - 1, "");
    assert_memory_equal(e.msg, text, ERR_MSG_MAX - 4);
    CHECK_STR(e.msg + ERR_MSG_MAX - 4, "...", "");
}

TEST(cuts_between_characters)
{
    struct err e = ERR_INIT;
    char text[2 * ERR_MSG_MAX];
    /* At any offset, no part of a three-byte character is left. */
    for (size_t offset = 0; offset < 3; offset++) {
        memset(text, 'x', offset);
        size_t n = offset;
        while (n + 3 < sizeof(text)) {
            memcpy(text + n, "\xe2\x82\xac", 3);
            n += 3;
        }
        text[n] = '\0';
        err_set(&e, ERR_INPUT, "%s", text);
        assert_true(utf8_valid(sv_from(e.msg)));
        assert_true(strlen(e.msg) > ERR_MSG_MAX - 5);
    }
}
