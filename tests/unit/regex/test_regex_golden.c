/* Replays what Go's regexp says (tests/unit/data/regex.jsonl, made by tests/tools/regexgen) against
 * ours: which patterns are refused and why, what matches, and where the groups lie. Each pattern
 * runs in up to four ways (direct comparison, JIT, interpreter, linear program), which must agree.
 *
 * Exempt, and counted: patterns that only pass in Go because the parentheses of the anchors around
 * them complete them, such as a)|(b: refused here.
 */
#include <jansson.h>
#include <stdlib.h>

#include "regex/regex.h"
#include "tests/unit/lib/testing.h"

#define LINES_MIN 3000
#define MATCHES_MIN 3000
#define FAST_MIN 40

struct totals {
    size_t lines;
    size_t refused;
    size_t completed;
    size_t matches;
    size_t fast;
    size_t wrong;
};

static struct sv sv_of(const json_t *string)
{
    return (struct sv){json_string_value(string), json_string_length(string)};
}

static void report(struct totals *t, const char *pattern, struct sv subject, const char *what)
{
    if (t->wrong++ < 50) {
        print_error("pattern %.200s subject \"%.*s\": %s\n", pattern, SV_ARG(subject), what);
    }
}

static void check_refused(struct totals *t, const json_t *line, const char *pattern)
{
    struct err err = ERR_INIT;
    struct regex *re = regex_new(sv_of(json_object_get(line, "p")), 0, &err);
    char want[256];
    snprintf(want, sizeof(want), "error parsing regexp: %s",
             json_string_value(json_object_get(line, "e")));
    t->refused++;
    t->completed += json_is_true(json_object_get(line, "u"));
    /* Ours is that of the pattern alone; a \Q without \E is only wrong with anchors around it. */
    bool quoted = strstr(err.msg, "missing closing \\E") != NULL &&
                  strcmp(want, "error parsing regexp: missing closing )") == 0;
    if (re != NULL) {
        report(t, pattern, SV(""), "accepted, but Go refuses it");
    } else if (strncmp(err.msg, want, strlen(want)) != 0 && !quoted) {
        report(t, pattern, SV(want), err.msg);
    }
    regex_free(re);
}

static bool same_groups(const struct regex *re, const struct regex_scratch *s, const json_t *want)
{
    if (json_array_size(want) != 2 * regex_groups(re)) {
        return false;
    }
    for (size_t i = 0; i < regex_groups(re); i++) {
        json_int_t start = json_integer_value(json_array_get(want, 2 * i));
        json_int_t end = json_integer_value(json_array_get(want, 2 * i + 1));
        struct regex_span span = regex_group(s, i);
        bool unset = span.start == REGEX_UNSET;
        if (unset != (start < 0) ||
            (!unset && (span.start != (size_t)start || span.end != (size_t)end))) {
            return false;
        }
    }
    return true;
}

static void check_subject(struct totals *t, const struct regex *re, struct regex_scratch *s,
                          const json_t *row, const json_t *line)
{
    const char *pattern = json_string_value(json_object_get(line, "p"));
    struct sv subject = sv_of(json_array_get(row, 0));
    const json_t *want = json_array_get(row, 1);
    struct err err = ERR_INIT;
    enum regex_result result = regex_match(re, s, subject, &err);
    if (result == REGEX_FAILED) {
        report(t, pattern, subject, err.msg);
    } else if ((result == REGEX_MATCH) != json_is_array(want)) {
        report(t, pattern, subject, result == REGEX_MATCH ? "matches" : "does not match");
    } else if (result == REGEX_MATCH) {
        t->matches++;
        if (!same_groups(re, s, want)) {
            report(t, pattern, subject, "groups differ");
        }
    }
}

static void check_line(struct totals *t, struct regex_scratch *s, const json_t *line)
{
    static const unsigned ways[] = {0, REGEX_NO_FAST, REGEX_NO_FAST | REGEX_NO_JIT,
                                    REGEX_NO_FAST | REGEX_NO_PCRE2};
    const char *pattern = json_string_value(json_object_get(line, "p"));
    t->lines++;
    if (json_object_get(line, "e") != NULL) {
        check_refused(t, line, pattern);
        return;
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct err err = ERR_INIT;
        struct regex *re = regex_new(sv_of(json_object_get(line, "p")), ways[i], &err);
        if (re == NULL) {
            report(t, pattern, SV(""), err.msg);
            return;
        }
        t->fast += regex_is_fast(re);
        const json_t *rows = json_object_get(line, "s");
        for (size_t j = 0; j < json_array_size(rows); j++) {
            check_subject(t, re, s, json_array_get(rows, j), line);
        }
        regex_free(re);
    }
}

TEST(matches_of_go)
{
    FILE *f = fopen("tests/unit/data/regex.jsonl", "re");
    assert_non_null(f);
    struct regex_scratch *s = regex_scratch_new();
    struct totals t = {0};
    SCOPED_MEMORY char *text = NULL;
    size_t cap = 0;
    while (getline(&text, &cap, f) > 0) {
        json_auto_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);
        assert_non_null(line);
        check_line(&t, s, line);
    }
    fclose(f);
    regex_scratch_free(s);
    print_message("%zu patterns (%zu refused, %zu fast), %zu matches\n", t.lines, t.refused, t.fast,
                  t.matches);
    CHECK_INT(t.wrong, 0, "");
    assert_true(t.lines >= LINES_MIN);
    assert_true(t.matches >= MATCHES_MIN);
    assert_true(t.fast >= FAST_MIN);
    assert_true(t.completed >= 1);
}
