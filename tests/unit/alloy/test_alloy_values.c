/* Alloy expressions -> values: operators, functions, conversions, errors and their places. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "alloy/convert.h"
#include "alloy/eval.h"
#include "config/config.h"

#define ARENA_MAX ((size_t)512 * 1024 * 1024)

/* ---- the scope of the tests ------------------------------------------------------------------ */

struct scope {
    struct alloy_eval ev;
    struct alloy_member names[8];
    size_t n;
};

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "A") == 0 ? "va" : strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static const struct alloy_value *resolve(void *arg, const struct alloy_chain *chain,
                                         size_t *ret_used)
{
    const struct scope *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        if (sv_eq(s->names[i].key, chain->names[0])) {
            *ret_used = 1;
            return s->names[i].value;
        }
    }
    return NULL;
}

static const struct alloy_value *eval_text(struct scope *s, const char *text)
{
    const struct alloy_expr *e = alloy_parse_expr(sv_from(text), s->ev.arena, s->ev.errors);
    return e != NULL ? alloy_eval(&s->ev, e) : &alloy_unknown;
}

static void define(struct scope *s, const char *name, const struct alloy_value *v)
{
    s->names[s->n++] = (struct alloy_member){.key = sv_from(name), .value = v};
}

static void open_scope(struct scope *s)
{
    *s = (struct scope){.ev = {.arena = arena_new(ARENA_MAX),
                               .errors = config_errors_new(),
                               .env = env,
                               .module_path = "/etc/alloy",
                               .resolve = resolve,
                               .arg = s}};
    define(s, "obj", eval_text(s, "{a = 1, c = {d = true}}"));
    define(s, "arr", eval_text(s, "[1, \"two\", null]"));
    struct alloy_value *secret = alloy_value_new(s->ev.arena, VALUE_SECRET);
    secret->text = SV("hush");
    define(s, "sec", secret);
    struct alloy_value *maybe = alloy_string(s->ev.arena, SV("plain"));
    maybe->maybe_secret = true;
    define(s, "opt", maybe);
    struct alloy_value *splice = alloy_value_new(s->ev.arena, VALUE_SPLICE);
    struct alloy_member *one = arena_array(s->ev.arena, 1, sizeof(*one));
    one->value = splice;
    define(s, "targets", alloy_array(s->ev.arena, one, 1));
}

static void close_scope(struct scope *s)
{
    arena_free(s->ev.arena);
    config_errors_free(s->ev.errors);
}

/* ---- values as text -------------------------------------------------------------------------- */

static void show(const struct alloy_value *v, struct buf *out)
{
    switch (v->kind) {
    case VALUE_BOOL:
        buf_puts(out, v->truth ? "true" : "false");
        break;
    case VALUE_NUMBER:
        alloy_number_put(v->number, out);
        break;
    case VALUE_STRING:
        json_quote(v->text, out);
        break;
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        buf_putc(out, v->kind == VALUE_ARRAY ? '[' : '{');
        for (size_t i = 0; i < v->n_members; i++) {
            buf_puts(out, i > 0 ? "," : "");
            if (v->kind == VALUE_OBJECT) {
                buf_printf(out, "%.*s=", SV_ARG(v->members[i].key));
            }
            show(v->members[i].value, out);
        }
        buf_putc(out, v->kind == VALUE_ARRAY ? ']' : '}');
        break;
    default:
        buf_printf(out, "<%s>", alloy_what(v));
    }
}

static void show_as(struct scope *s, const char *wanted, const struct alloy_value *v,
                    struct buf *out)
{
    struct config_place place = {.line = 1, .column = 1};
    const struct alloy_value *r;
    int64_t i;
    bool b;
    if (strcmp(wanted, "any") == 0) {
        show(v, out);
    } else if (strcmp(wanted, "string") == 0 && alloy_as_string(&s->ev, place, v, &r)) {
        show(r, out);
    } else if (strcmp(wanted, "secret") == 0 && alloy_as_secret(&s->ev, place, v, &r)) {
        buf_append(out, r->text.p, r->text.n);
    } else if (strcmp(wanted, "int") == 0 && alloy_as_int(&s->ev, place, v, &i)) {
        buf_printf(out, "%lld", (long long)i);
    } else if (strcmp(wanted, "duration") == 0 && alloy_as_duration(&s->ev, place, v, &i)) {
        buf_printf(out, "%lldns", (long long)i);
    } else if (strcmp(wanted, "bool") == 0 && alloy_as_bool(&s->ev, place, v, &b)) {
        buf_puts(out, b ? "true" : "false");
    } else if (strcmp(wanted, "list") == 0 && alloy_as_array(&s->ev, place, v, &r)) {
        show(r, out);
    } else if (strcmp(wanted, "form") == 0) {
        buf_append(out, v->form.p, v->form.n);
    }
}

struct eval_case {
    const char *wanted;
    const char *text;
    const char *want; /* the value, or "! LINE:COLUMN MESSAGE" */
};

static void check(const struct eval_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct scope s;
        SCOPED(buf) got = testing_buf(ALLOY_STRING_MAX * 2);
        open_scope(&s);
        const struct alloy_value *v = eval_text(&s, cases[i].text);
        show_as(&s, cases[i].wanted, v, &got);
        for (size_t k = 0; k < config_errors_count(s.ev.errors); k++) {
            const struct config_error *e = config_errors_at(s.ev.errors, k);
            if (k == 0) {
                buf_clear(&got);
            }
            buf_printf(&got, "! %d:%d %s", e->pos.line, e->pos.column, e->message);
        }
        if (strcmp(got.data != NULL ? got.data : "", cases[i].want) != 0) {
            fail_msg("%s as %s\n  got:  %s\n  want: %s", cases[i].text, cases[i].wanted, got.data,
                     cases[i].want);
        }
        close_scope(&s);
    }
}

#define CHECK_ALL(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(literals)
{
    static const struct eval_case cases[] = {
        {"any", "010", "8"},
        {"any", "08", "8"},
        {"any", ".5 + 5.", "5.5"},
        {"any", "18446744073709551615", "18446744073709551615"},
        {"any", "18446744073709551616", "18446744073709552000"},
        {"any", "1e400", "! 1:1 expected a number in the range of a double, got 1e400"},
        {"any", "\"a\\tb\\x41\\u00e9\\U0001F600\\101\"",
         "\"a\\tbA\xc3\xa9\xf0\x9f\x98\x80"
         "A\""},
        {"any", "`raw\\n\"x\"`", "\"raw\\\\n\\\"x\\\"\""},
        {"any", "{\"a\\n\" = 1}", "{a\\n=1}"},
        {"any", "{a = 1, a = 2}", "{a=2}"},
        {"any", "[null, {b = 1, a = []}]", "[<null>,{a=[],b=1}]"},
    };
    CHECK_ALL(cases);
}

TEST(operators)
{
    static const struct eval_case cases[] = {
        {"any", "1 + 2 * 3 - 4 / 3", "6"},
        {"any", "2 ^ 3 ^ 2", "512"},
        {"any", "-2 ^ 2", "4"},
        {"any", "2 ^ -1", "2"},
        {"any", "2 ^ -1.0", "0.5"},
        {"any", "2 ^ 100000000000", "0"},
        {"any", "-7 % 3", "-1"},
        {"any", "7 / 2", "3"},
        {"any", "7 / 2.0", "3.5"},
        {"any", "9223372036854775807 + 1", "-9223372036854775808"},
        {"any", "1 / 0", "! 1:5 a division by zero"},
        {"any", "1 % 0.0", "! 1:5 a division by zero"},
        {"any", "-9223372036854775807 - 1 / -1", "-9223372036854775806"},
        {"any", "\"a\" + 1", "! 1:7 expected a string after \"+\", got a number"},
        {"any", "[1] + [2]", "! 1:1 expected a number or a string, got an array"},
        {"any", "true || (1/0 == 1)", "! 1:12 a division by zero"},
        {"any", "1 && true", "! 1:1 expected true or false, got a number"},
        {"any", "!\"x\"", "! 1:2 expected true or false, got a string"},
        {"any", "1 == \"1\"", "false"},
        {"any", "[1, {a = 1}] == [1.0, {a = 1}]", "true"},
        {"any", "sec == \"hush\"", "true"},
        {"any", "null == null", "true"},
        {"any", "concat == concat", "false"},
        {"any", "1 < 2 == true", "true"},
        {"any", "\"B\" < \"a\"", "true"},
        {"any", "1 < \"a\"",
         "! 1:1 expected two numbers or two strings, got a number and a string"},
        {"any", "\"a\" + \"b\"", "\"ab\""},
        {"any", "sec + \"!\"", "<a secret>"},
        {"any", "targets == []",
         "! 1:1 comparing discovered targets is not supported: the targets change while profpull "
         "runs"},
    };
    CHECK_ALL(cases);
}

TEST(fields_and_indices)
{
    static const struct eval_case cases[] = {
        {"any", "obj.c.d", "true"},
        {"any", "obj.z", "! 1:5 the object has no field \"z\""},
        {"any", "arr.z", "! 1:5 no field \"z\" in an array"},
        {"any", "obj[\"z\"]", "<null>"},
        {"any", "obj[\"z\"][\"y\"]", "! 1:1 expected an array or an object before \"[\", got null"},
        {"any", "obj[1]", "! 1:5 expected a string as key, got a number"},
        {"any", "arr[1.7]", "\"two\""},
        {"any", "arr[-1]", "! 1:5 index -1 is out of range of an array of 3"},
        {"any", "arr[3]", "! 1:5 index 3 is out of range of an array of 3"},
        {"any", "\"x\"[0]", "! 1:1 expected an array or an object before \"[\", got a string"},
        {"any", "targets[0]",
         "! 1:9 an index of discovered targets is not supported: the targets change while profpull "
         "runs"},
        {"any", "{a = [1, {b = 2}]}.a[1].b", "2"},
    };
    CHECK_ALL(cases);
}

TEST(names)
{
    static const struct eval_case cases[] = {
        {"any", "nope", "! 1:1 no component, function or variable \"nope\""},
        {"any", "a.b.c", "! 1:1 no component, function or variable \"a.b.c\""},
        {"any", "sys.enf(\"A\")", "! 1:1 no function \"sys.enf\"; did you mean \"sys.env\"?"},
        {"any", "to_loer(\"A\")",
         "! 1:1 no component, function or variable \"to_loer\"; did you mean \"to_lower\"?"},
        {"any", "\"x\"(\"y\")", "! 1:1 expected a function before \"(\", got a string"},
        {"any", "sys.env()", "! 1:1 sys.env: expected 1 argument, got 0"},
        {"any", "coalesce", "<a function>"},
        {"any", "constants.os", "\"linux\""},
        {"any", "constants.nope", "! 1:11 the object has no field \"nope\""},
        {"any", "constants[\"nope\"]", "<null>"},
        {"any", "module_path", "\"/etc/alloy\""},
        /* One error, not one for each use of the unknown value. */
        {"any", "string.join([nope + \"a\"], nope2)[0].x == 1",
         "! 1:14 no component, function or variable \"nope\""
         "! 1:27 no component, function or variable \"nope2\""},
    };
    CHECK_ALL(cases);
}

TEST(environment)
{
    static const struct eval_case cases[] = {
        {"any", "sys.env(\"NOPE\")", "\"\""},
        {"any", "env(\"A\")", "\"va\""},
        {"any", "coalesce(sys.env(\"NOPE\"), \"b\")", "\"b\""},
        {"any", "coalesce(null, 0, \"\", [], {}, false)", "false"},
        {"any", "coalesce([], [1])", "[1]"},
        {"any", "coalesce()", "<null>"},
        {"form", "sys.env(\"A\")", "${A:-}"},
        {"form", "\"http://\" + sys.env(\"A\") + \":4040/${x}\"", "http://${A:-}:4040/$${x}"},
        {"form", "coalesce(sys.env(\"A\"), \"b\")", "${A:-b}"},
        {"form", "coalesce(sys.env(\"A\"), sys.env(\"B\"), \"x\")", "${A:-}"},
        {"form", "string.to_lower(sys.env(\"A\"))", ""},
        {"form", "[sys.env(\"A\")][0]", "${A:-}"},
    };
    CHECK_ALL(cases);
}

TEST(functions_of_arrays)
{
    static const struct eval_case cases[] = {
        {"any", "concat([1], [2, 3], [])", "[1,2,3]"},
        {"any", "array.concat()", "[]"},
        {"any", "concat([1], null)", "! 1:13 array.concat: expected an array, got null"},
        {"any", "array.concat(targets, [{a = 1}])", "[<a list of targets>,{a=1}]"},
        {"any", "coalesce(targets, [])",
         "! 1:10 coalesce: discovered targets are not supported here: they change while profpull "
         "runs"},
        {"any", "array.combine_maps([{a = 1, b = 2}, {a = 2}], [{a = 1, c = 3}], [\"a\"])",
         "[{a=1,b=2,c=3}]"},
        {"any", "array.combine_maps([{a = 1}, {a = 2}], [{a = 1, c = 3}], [\"a\"], true)",
         "[{a=1,c=3},{a=2}]"},
        {"any", "array.combine_maps([], [], [])",
         "! 1:28 array.combine_maps: expected at least one key"},
        {"any",
         "array.group_by([{k = \"x\", v = 1}, {k = \"y\"}, {k = \"x\", v = 2}, {v = 3}], \"k\", "
         "true)",
         "[{items=[{k=\"x\",v=1},{k=\"x\",v=2}],k=\"x\"},{items=[{k=\"y\"}],k=\"y\"}]"},
        {"any", "array.group_by([{v = 3}], \"k\", false)", "[{items=[{v=3}],k=\"\"}]"},
    };
    CHECK_ALL(cases);
}

TEST(functions_of_strings)
{
    static const struct eval_case cases[] = {
        {"any", "string.join([\"a\", 1], \"-\")", "\"a-1\""},
        {"any", "string.join([true], \"-\")", "! 1:13 string.join: expected a string, got a bool"},
        {"any", "string.split(\"a,b,,c\", \",\")", "[\"a\",\"b\",\"\",\"c\"]"},
        {"any", "string.split(\"\", \",\")", "[\"\"]"},
        {"any", "string.split(\"a\xc3\xa9\", \"\")", "[\"a\",\"\xc3\xa9\"]"},
        {"any", "string.split(\"\", \"\")", "[]"},
        {"any", "string.trim(\"abcba\", \"ab\")", "\"c\""},
        {"any", "string.trim_space(\" \\t\\u00a0x \\n\")", "\"x\""},
        {"any", "string.trim_prefix(\"aab\", \"a\")", "\"ab\""},
        {"any", "string.trim_suffix(\"abb\", \"b\")", "\"ab\""},
        {"any", "string.replace(\"aXbX\", \"X\", \"y\")", "\"ayby\""},
        {"any", "string.replace(\"ab\", \"\", \"-\")", "\"-a-b-\""},
        {"any",
         "string.to_upper(\"stra\xc3\x9f"
         "e\xc3\xa9\")",
         "\"STRA\xc3\x9f"
         "E\xc3\x89\""},
        {"any", "file.path_join(\"a\", \"b\", \"../c\")", "\"a/c\""},
        {"any", "file.path_join(\"/\", \"..\", \"a\", \"\", \"./b\")", "\"/a/b\""},
        {"any", "file.path_join(\"..\", \"a\", \"..\", \"..\")", "\"../..\""},
        {"any", "file.path_join()", "\"\""},
        {"string", "convert.nonsensitive(sec)", "\"hush\""},
        {"any", "string.to_lower(sec)", "! 1:17 string.to_lower: expected a string, got a secret"},
    };
    CHECK_ALL(cases);
}

TEST(encodings)
{
    static const struct eval_case cases[] = {
        {"any", "encoding.from_json(\"{\\\"a\\\":1}\").a", "1"},
        {"any", "encoding.from_json(\"\")",
         "! 1:20 encoding.from_json: expected JSON, got an empty string"},
        {"any", "encoding.from_json(\"{} x\")",
         "! 1:20 encoding.from_json: expected JSON, got a mistake at 1:4 of the text"},
        {"any", "encoding.from_yaml(\"a: 017\\nb: yes\")", "{a=15,b=\"yes\"}"},
        {"any", "encoding.from_yaml(\"[0x1f, 1.5, ~, 'x', true]\")", "[31,1.5,<null>,\"x\",true]"},
        {"any", "encoding.from_yaml(\"\")", "<null>"},
        {"string", "encoding.from_base64(\"aGk=\")", "\"hi\""},
        {"any", "\"x\" + encoding.from_base64(\"aGk=\")",
         "! 1:7 expected a string after \"+\", got an array of bytes"},
        {"any", "encoding.from_base64(\"aGk\")",
         "! 1:22 encoding.from_base64: expected text in base64 with padding"},
        {"string", "encoding.from_URLbase64(\"-_8=\")", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"any", "encoding.to_base64(\"hi\")", "\"aGk=\""},
        {"any", "encoding.to_json({b = 1, a = [1, null]})", "\"{\\\"a\\\":[1,null],\\\"b\\\":1}\""},
        {"any", "encoding.to_json({a = \"<&>\"})",
         "\"{\\\"a\\\":\\\"\\\\u003c\\\\u0026\\\\u003e\\\"}\""},
        {"any", "encoding.to_json({a = sec})",
         "! 1:18 encoding.to_json: a secret cannot be written as JSON"},
        {"any", "encoding.to_json([1])",
         "! 1:18 encoding.to_json: expected an object, got an array"},
        {"any", "encoding.url_encode(\"a b/c\")", "\"a+b%2Fc\""},
        {"any", "encoding.url_decode(\"a+b%2Fc\")", "\"a b/c\""},
        {"any", "encoding.url_decode(\"%2\")",
         "! 1:21 encoding.url_decode: expected two hexadecimal digits after \"%\""},
    };
    CHECK_ALL(cases);
}

#define BOOKS "{\\\"a\\\":[{\\\"b\\\":1},{\\\"b\\\":2}],\\\"c-d\\\":5,\\\"n\\\":{\\\"b\\\":7}}"

TEST(json_paths)
{
    static const struct eval_case cases[] = {
        {"any", "json_path(\"" BOOKS "\", \".a[*].b\")", "[1,2]"},
        {"any", "json_path(\"" BOOKS "\", \"$.a[-1].b\")", "[2]"},
        {"any", "json_path(\"" BOOKS "\", \"..b\")", "[1,2,7]"},
        {"any", "json_path(\"" BOOKS "\", \"a[0:1].b\")", "[1]"},
        {"any", "json_path(\"" BOOKS "\", \"a[0,1].b\")", "[1,2]"},
        {"any", "json_path(\"" BOOKS "\", \"['c-d']\")", "[5]"},
        {"any", "json_path(\"" BOOKS "\", \".nope\")", "[]"},
        {"any", "json_path(\"\", \".a\")", "[]"},
        {"string", "json_path(\"" BOOKS "\", \"n.b\")[0]", "\"7\""},
        {"any", "json_path(\"{\\\"p\\\":{}}\", \".p.url\")[0]",
         "! 1:35 index 0 is out of range of an array of 0"},
        {"any", "json_path(\"{}\", \"[?(@.x)]\")",
         "! 1:17 json_path: in the path \"[?(@.x)]\" at character 2: filters and scripts are not "
         "supported"},
    };
    CHECK_ALL(cases);
}

TEST(formats)
{
    static const struct eval_case cases[] = {
        {"any", "string.format(\"%s-%d-%v\", \"a\", 5, true)", "\"a-5-true\""},
        {"any", "string.format(\"%5s|%-5s|%05d\", \"a\", \"b\", 42)", "\"    a|b    |00042\""},
        {"any", "string.format(\"%+d %x %X %o %b %c %q %t%%\", 1, 255, 255, 8, 5, 65, \"q\", true)",
         "\"+1 ff FF 10 101 A \\\"q\\\" true%\""},
        {"any", "string.format(\"%.2f %e %g %v\", 1.5, 1.5, 1e21, 0.00001)",
         "\"1.50 1.500000e+00 1e+21 1e-05\""},
        {"any", "string.format(\"%[2]s %[1]s\", \"a\", \"b\")", "\"b a\""},
        {"any", "string.format(\"%v %v %v\", [1, \"a\"], {b = 1, a = 2}, null)",
         "\"[1 a] map[a:2 b:1] <nil>\""},
        {"any", "string.format(\"%06.1f|%-6d|%6d\", -1.5, 3, -3)", "\"-001.5|3     |    -3\""},
        {"any", "string.format(\"%d\", \"x\")",
         "! 1:21 string.format: expected an integer for \"%d\", got a string"},
        {"any", "string.format(\"%.2f\", 1)",
         "! 1:23 string.format: expected a number with a fraction for \"%f\", got a number"},
        {"any", "string.format(\"%s\")", "! 1:15 string.format: no argument for \"%s\""},
        {"any", "string.format(\"x\", 1)",
         "! 1:20 string.format: an argument too many for the format"},
        {"any", "string.format(\"%s\", sec)",
         "! 1:21 string.format: expected a string for \"%s\", got a secret"},
        {"any", "string.format(\"%s\", opt)",
         "! 1:21 string.format: expected a string for \"%s\", got a string"},
        {"any", "string.format(\"%99999d\", 1)",
         "! 1:15 string.format: a width or precision over 10000"},
    };
    CHECK_ALL(cases);
}

TEST(conversions)
{
    static const struct eval_case cases[] = {
        {"string", "1.50", "\"1.5\""},
        {"string", "1e21", "\"1000000000000000000000\""},
        {"string", "0.1", "\"0.1\""},
        {"string", "-0.00125", "\"-0.00125\""},
        {"string", "123.0", "\"123\""},
        {"string", "null", "\"\""},
        {"string", "true", "! 1:1 expected a string, got a bool"},
        {"string", "sec",
         "! 1:1 expected a string, got a secret; convert.nonsensitive() makes a string of it"},
        {"string", "opt + \"!\"", "\"plain!\""},
        {"secret", "opt", "plain"},
        {"secret", "sec", "hush"},
        {"secret", "1", "! 1:1 expected a string or a secret, got a number"},
        {"int", "\"1e2\"", "100"},
        {"int", "\"-12\"", "-12"},
        {"int", "1.9", "1"},
        {"int", "\"0x10\"", "! 1:1 expected a number, got \"0x10\""},
        {"int", "\"\"", "! 1:1 expected a number, got \"\""},
        {"bool", "null", "false"},
        {"bool", "\"true\"", "! 1:1 expected true or false, got \"true\""},
        {"bool", "1", "! 1:1 expected true or false, got a number"},
        {"duration", "\"1.5h\"", "5400000000000ns"},
        {"duration", "\"1h30m\"", "5400000000000ns"},
        {"duration", "\".5s\"", "500000000ns"},
        {"duration", "\"-1us\"", "-1000ns"},
        {"duration", "\"0\"", "0ns"},
        {"duration", "null", "0ns"},
        {"duration", "\"1d\"",
         "! 1:1 expected a duration in h, m, s and ms, got \"1d\"; did you mean \"24h\"?"},
        {"duration", "\"15\"",
         "! 1:1 expected a duration such as \"15s\", got \"15\"; did you mean \"15s\"?"},
        {"duration", "\"1 s\"", "! 1:1 expected a duration in h, m, s and ms, got \"1 s\""},
        {"duration", "15", "! 1:1 expected a duration such as \"15s\", got a number"},
        {"list", "\"a\"", "! 1:1 expected a list, got a string"},
        {"list", "null", "[]"},
    };
    CHECK_ALL(cases);
}

TEST(too_many_values_are_one_error)
{
    struct scope s;
    SCOPED(buf) text = testing_buf(ALLOY_STRING_MAX * 2);
    open_scope(&s);
    /* Each level makes twenty times as many. */
    buf_puts(&text, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
    struct alloy_member *ten = arena_array(s.ev.arena, 1, sizeof(*ten));
    assert_non_null(ten);
    define(&s, "x", eval_text(&s, text.data));
    for (int i = 0; i < 5; i++) {
        s.names[s.n - 1].value = eval_text(&s, "concat(x, x, x, x, x, x, x, x, x, x)");
    }
    (void)eval_text(&s, "nope");
    assert_int_equal(config_errors_count(s.ev.errors), 1);
    assert_string_equal(config_errors_at(s.ev.errors, 0)->message,
                        "the configuration makes more than 200000 values");
    close_scope(&s);
}
