/* The name parameter of /ingest, there and back.
 *
 * Input: a service name and labels, "service\0key\0value\0key\0value...". Whatever they hold, the
 * query that is made of them must decode to a name that a strict parser of the servers' grammar
 * takes, with the labels that the series has and nothing else.
 *
 *     name  = app [ "{" pair *( "," pair ) "}" ]
 *     app   = 1*( ALPHA / DIGIT / "_" / "." / "-" )
 *     pair  = key "=" value
 *     key   = ( ALPHA / "_" ) *( ALPHA / DIGIT / "_" )
 *     value = 1*( any byte but "," and "}" ), valid UTF-8, no white space at its ends
 */
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "write/protocols/ingest.h"
#include "write/protocols/table.h"

static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;

#define PAIRS_MAX 64

static struct sv next_text(const uint8_t **data, size_t *size)
{
    size_t n = strnlen((const char *)*data, *size);
    struct sv v = {.p = (const char *)*data, .n = n};
    size_t used = n < *size ? n + 1 : n;
    *data += used;
    *size -= used;
    return v;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of the first parameter, which must be name; strictly encoded. */
static void decode_name(const struct buf *query, struct buf *name)
{
    struct sv v = {.p = query->data, .n = query->len};
    REQUIRE(sv_starts_with(v, SV("name=")));
    size_t i = 5;
    for (; i < v.n && v.p[i] != '&'; i++) {
        char c = v.p[i];
        if (c == '%') {
            REQUIRE(i + 2 < v.n && hex(v.p[i + 1]) >= 0 && hex(v.p[i + 2]) >= 0);
            buf_putc(name, (char)(hex(v.p[i + 1]) * 16 + hex(v.p[i + 2])));
            i += 2;
        } else {
            REQUIRE(c != '+' && c != '{' && c != '}' && c != '=' && c != ',' && c > ' ');
            buf_putc(name, c);
        }
    }
    REQUIRE(i - 5 <= INGEST_NAME_MAX);
    REQUIRE(strstr(v.p + i, "format") == NULL);
}

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void check_app(struct sv app)
{
    REQUIRE(app.n > 0);
    for (size_t i = 0; i < app.n; i++) {
        REQUIRE(word_char(app.p[i]) || app.p[i] == '.' || app.p[i] == '-');
    }
}

static void check_key(struct sv key)
{
    REQUIRE(key.n > 0 && !(key.p[0] >= '0' && key.p[0] <= '9'));
    REQUIRE(!sv_starts_with(key, SV("__")));
    for (size_t i = 0; i < key.n; i++) {
        REQUIRE(word_char(key.p[i]));
    }
}

/* The value that was to be carried, as the grammar changes it. */
static void check_value(struct sv got, struct sv want)
{
    want = sv_trim(want);
    REQUIRE(got.n == want.n && got.n > 0);
    REQUIRE(utf8_valid(got));
    REQUIRE(sv_eq(got, sv_trim(got)));
    for (size_t i = 0; i < got.n; i++) {
        bool reserved = want.p[i] == ',' || want.p[i] == '}';
        REQUIRE(got.p[i] == (reserved ? '_' : want.p[i]));
        REQUIRE(got.p[i] != ',' && got.p[i] != '}');
    }
}

/* Labels of the series that are carried in the braces. */
static size_t expected_pairs(const struct series *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct sv name = s->at[i].name;
        n += !sv_starts_with(name, SV("__")) && !sv_eq_str(name, LABEL_SERVICE_NAME) &&
             sv_trim(s->at[i].value).n > 0;
    }
    return n;
}

static void check_name(struct sv name, const struct series *s)
{
    size_t brace = name.n > 0 && memchr(name.p, '{', name.n) != NULL
                       ? (size_t)((const char *)memchr(name.p, '{', name.n) - name.p)
                       : name.n;
    check_app((struct sv){.p = name.p, .n = brace});
    struct sv rest = {.p = name.p + brace, .n = name.n - brace};
    size_t pairs = 0;
    if (rest.n > 0) {
        REQUIRE(rest.n > 2 && rest.p[rest.n - 1] == '}');
        rest = (struct sv){.p = rest.p + 1, .n = rest.n - 2};
        while (rest.n > 0) {
            struct sv pair = rest;
            if (!sv_cut(rest, ',', &pair, &rest)) {
                rest.n = 0;
            }
            struct sv key;
            struct sv value;
            REQUIRE(sv_cut(pair, '=', &key, &value));
            check_key(key);
            char text[1024 + 2];
            (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(key));
            check_value(value, series_get(s, text));
            pairs++;
        }
    }
    REQUIRE(pairs == expected_pairs(s));
    REQUIRE(pairs <= 20);
}

static void check_series(const struct labels *l)
{
    static const struct config_pair external[] = {{"cluster", "prod"}, {"a-b", "x,y"}};
    struct config_pairs pairs = {.at = external, .n = 2};
    struct series s;
    struct buf query;
    struct buf name;
    buf_init(&query, 1 << 16);
    buf_init(&name, 1 << 16);
    REQUIRE(series_build(&s, l, &pairs, &limits, &protocol_ingest.labels));
    static const struct ingest_facts facts = {
        .format = PROFILE_PPROF, .sample_rate = 100, .spy = "gospy"};
    REQUIRE(ingest_query(&s, 1795230000 * NS_PER_S, 1795230015 * NS_PER_S, &facts, &query));
    decode_name(&query, &name);
    check_name((struct sv){.p = name.data, .n = name.len}, &s);
    series_done(&s);
    buf_done(&query);
    buf_done(&name);
}

/* The other protocols promise names and values as well. */
static void check_push(const struct labels *l)
{
    static const struct config_pairs none = {.at = NULL, .n = 0};
    struct series s;
    REQUIRE(series_build(&s, l, &none, &limits, &protocol_push.labels));
    REQUIRE(s.n <= 24);
    for (size_t i = 0; i < s.n; i++) {
        REQUIRE(s.at[i].value.n > 0 && s.at[i].value.n <= 2048);
        REQUIRE(utf8_valid(s.at[i].value));
        REQUIRE(i == 0 || sv_cmp(s.at[i - 1].name, s.at[i].name) < 0);
    }
    series_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct intern *in = intern_new();
    struct labels_builder *b = in != NULL ? labels_builder_new(in) : NULL;
    REQUIRE(b != NULL);
    labels_builder_reset(b, NULL);
    labels_builder_set(b, SV(LABEL_SERVICE_NAME), next_text(&data, &size));
    for (int i = 0; i < PAIRS_MAX && size > 0; i++) {
        struct sv key = next_text(&data, &size);
        struct sv value = next_text(&data, &size);
        labels_builder_set(b, key, value);
    }
    struct labels *l = labels_builder_build(b);
    if (l != NULL) {
        check_series(l);
        check_push(l);
    }
    labels_unref(l);
    labels_builder_free(b);
    intern_free(in);
    return 0;
}
