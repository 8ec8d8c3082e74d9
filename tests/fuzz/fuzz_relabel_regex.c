/* A regex, a newline, a text: whatever compiles must give the same answer in every way to run it,
 * and groups that lie within the text and between runes. The text is used as a template too. */
#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "regex/regex.h"
#include "relabel/expand.h"
#include "tests/fuzz/fuzz.h"

static bool starts_rune(struct sv text, size_t at)
{
    return at == text.n || ((unsigned char)text.p[at] & 0xc0) != 0x80;
}

static void check_groups(const struct regex *re, const struct regex_scratch *s, struct sv text)
{
    struct regex_span whole = regex_group(s, 0);
    REQUIRE(whole.start == 0 && whole.end == text.n);
    for (size_t i = 0; i < regex_groups(re); i++) {
        struct regex_span span = regex_group(s, i);
        if (span.start == REGEX_UNSET) {
            continue;
        }
        REQUIRE(span.start <= span.end && span.end <= text.n);
        REQUIRE(starts_rune(text, span.start) && starts_rune(text, span.end));
    }
}

static void same_groups(const struct regex *re, const struct regex_scratch *a,
                        const struct regex_scratch *b)
{
    for (size_t i = 0; i < regex_groups(re); i++) {
        REQUIRE(regex_group(a, i).start == regex_group(b, i).start);
        REQUIRE(regex_group(a, i).end == regex_group(b, i).end);
    }
}

static void expand(const struct regex *re, const struct regex_scratch *s, struct sv text)
{
    struct arena *arena = arena_new(1 << 20);
    struct expansion t;
    struct buf out;
    buf_init(&out, 1 << 16);
    if (arena != NULL && expansion_init(&t, arena, text, re) &&
        expansion_write(&t, s, text, &out)) {
        REQUIRE(utf8_valid((struct sv){out.data, out.len}));
    }
    buf_done(&out);
    arena_free(arena);
}

static void run(const struct regex *fast, const struct regex *slow, struct sv text)
{
    struct err err = ERR_INIT;
    struct regex_scratch *a = regex_scratch_new();
    struct regex_scratch *b = regex_scratch_new();
    REQUIRE(a != NULL && b != NULL);
    enum regex_result x = regex_match(fast, a, text, &err);
    enum regex_result y = regex_match(slow, b, text, &err);
    REQUIRE(x == y && x != REGEX_FAILED);
    if (x == REGEX_MATCH) {
        check_groups(fast, a, text);
        expand(fast, a, text);
    }
    if (x == REGEX_MATCH && y == REGEX_MATCH) {
        same_groups(fast, a, b);
    }
    regex_scratch_free(a);
    regex_scratch_free(b);
}

FUZZ(input)
{
    struct sv pattern = input;
    struct sv rest = SV("");
    sv_cut(input, '\n', &pattern, &rest);
    struct err err = ERR_INIT;
    struct regex *fast = regex_new(pattern, 0, &err);
    struct regex *slow =
        fast == NULL ? NULL : regex_new(pattern, REGEX_NO_FAST | REGEX_NO_JIT, &err);
    struct regex *linear =
        slow == NULL ? NULL : regex_new(pattern, REGEX_NO_FAST | REGEX_NO_PCRE2, &err);
    REQUIRE(fast != NULL || err.msg[0] != '\0');
    struct buf text;
    buf_init(&text, 4096);
    buf_puts(&text, "");
    if (linear != NULL && utf8_repair(rest, &text)) {
        REQUIRE(regex_groups(fast) == regex_groups(slow));
        run(fast, slow, (struct sv){text.data, text.len});
        run(fast, linear, (struct sv){text.data, text.len});
    }
    buf_done(&text);
    regex_free(fast);
    regex_free(slow);
    regex_free(linear);
}
