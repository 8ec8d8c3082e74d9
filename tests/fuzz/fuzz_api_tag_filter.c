/* DeepFlow's tag_filter: the condition, a zero byte, and the value of all tags. A condition that
 * can be read has an answer, its negation the other one. */
#include <string.h>

#include "api/tag_filter.h"
#include "tests/fuzz/fuzz.h"

static struct sv value_of(void *arg, struct sv tag)
{
    const struct sv *value = arg;
    REQUIRE(tag.n <= TAG_FILTER_BYTES_MAX);
    return *value;
}

static bool answer(struct sv text, struct sv value, bool *ret_matches, struct err *err)
{
    struct tag_filter *f = tag_filter_parse(text, err);
    REQUIRE((f == NULL) == (err->kind != ERR_NONE));
    bool ok = f != NULL && tag_filter_matches(f, value_of, &value, ret_matches, err);
    tag_filter_free(f);
    return ok;
}

FUZZ(text)
{
    struct err err = ERR_INIT;
    struct buf negated;
    struct sv value = {"", 0};
    bool matches;
    bool opposite;
    (void)sv_cut(text, '\0', &text, &value);
    if (!answer(text, value, &matches, &err)) {
        REQUIRE(err.kind == ERR_INPUT || err.kind == ERR_LIMIT);
        return;
    }
    buf_init(&negated, TAG_FILTER_BYTES_MAX * 2);
    buf_printf(&negated, "NOT (%.*s)", SV_ARG(text));
    /* Blank text is no condition, and the longest and deepest ones have no room for more. */
    if (sv_trim(text).n > 0 &&
        answer((struct sv){negated.data, negated.len}, value, &opposite, &err)) {
        REQUIRE(opposite != matches);
    }
    buf_done(&negated);
}
