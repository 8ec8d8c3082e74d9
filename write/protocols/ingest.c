#include "write/protocols/ingest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "http/url.h"

/* Ten digits: from 2001-09-09 to 2286-11-20. DeepFlow agents read other lengths as other units. */
#define SECONDS_MIN INT64_C(1000000000)
#define SECONDS_MAX INT64_C(9999999999)

void ingest_boundary_new(struct ingest_boundary *b, struct rng *rng)
{
    uint64_t high = rng_next(rng);
    uint64_t low = rng_next(rng);
    (void)snprintf(b->text, sizeof(b->text), "profpull%016" PRIx64 "%016" PRIx64, high, low);
}

bool ingest_boundary_fits(const struct ingest_boundary *b, const void *data, size_t size)
{
    return size == 0 || memmem(data, size, b->text, strlen(b->text)) == NULL;
}

/* ---- the name -------------------------------------------------------------------------------- */

static bool app_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static void put_app(struct sv service, struct buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < service.n && out->len - start < INGEST_APP_MAX; i++) {
        char c = service.p[i];
        bool continuation = ((unsigned char)c & 0xc0) == 0x80;
        if (!continuation) {
            buf_putc(out, app_char(c) ? c : c == '/' ? '.' : '_');
        }
    }
}

static char value_char(char c)
{
    return c == ',' || c == '}' ? '_' : c;
}

/* A label that the server's parser gives back: it trims values, and drops `__*`. */
static bool in_braces(const struct series_label *l)
{
    return !sv_starts_with(l->name, SV("__")) && !sv_eq_str(l->name, LABEL_SERVICE_NAME) &&
           sv_trim(l->value).n > 0;
}

static size_t encoded_size(struct sv v)
{
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        n += url_is_unreserved(value_char(v.p[i])) ? 1 : 3;
    }
    return n;
}

/* Size of the name when percent-encoded; "{", "}", "=" and "," take three bytes each. */
static size_t encoded_name_size(const struct series *s)
{
    size_t n = INGEST_APP_MAX + 3;
    for (size_t i = 0; i < s->n; i++) {
        if (in_braces(&s->at[i])) {
            n += 6 + s->at[i].name.n + encoded_size(sv_trim(s->at[i].value));
        }
    }
    return n;
}

static void put_value(struct series *s, struct sv value, struct buf *out)
{
    bool repaired = false;
    for (size_t i = 0; i < value.n; i++) {
        char c = value_char(value.p[i]);
        repaired = repaired || c != value.p[i];
        buf_putc(out, c);
    }
    if (repaired) {
        s->changes[SERIES_REPAIRED]++;
    }
}

bool ingest_name(struct series *s, struct buf *out)
{
    while (encoded_name_size(s) > INGEST_NAME_MAX && series_drop_least(s)) {
        ;
    }
    put_app(s->service, out);
    char before = '{';
    for (size_t i = 0; i < s->n; i++) {
        const struct series_label *l = &s->at[i];
        if (!in_braces(l)) {
            continue;
        }
        buf_putc(out, before);
        buf_append(out, l->name.p, l->name.n);
        buf_putc(out, '=');
        put_value(s, sv_trim(l->value), out);
        before = ',';
    }
    if (before == ',') {
        buf_putc(out, '}');
    }
    return buf_ok(out);
}

/* ---- the query ------------------------------------------------------------------------------- */

static int64_t ten_digits(int64_t ns)
{
    int64_t s = ns / NS_PER_S;
    return s < SECONDS_MIN ? SECONDS_MIN : s > SECONDS_MAX ? SECONDS_MAX : s;
}

unsigned ingest_sample_rate(int64_t period_ns)
{
    if (period_ns <= 0 || period_ns > NS_PER_S) {
        return INGEST_SAMPLE_RATE;
    }
    int64_t rate = (NS_PER_S + period_ns / 2) / period_ns;
    return rate <= INGEST_SAMPLE_RATE_MAX ? (unsigned)rate : INGEST_SAMPLE_RATE;
}

bool ingest_query(struct series *s, int64_t from_ns, int64_t until_ns, enum profile_format format,
                  unsigned sample_rate, struct buf *out)
{
    struct buf name;
    buf_init(&name, 2 * INGEST_NAME_MAX);
    bool ok = ingest_name(s, &name);
    buf_puts(out, "name=");
    url_encode((struct sv){.p = name.data, .n = name.len}, out);
    buf_done(&name);

    int64_t until = ten_digits(until_ns);
    int64_t from = from_ns / NS_PER_S < SECONDS_MIN ? until : ten_digits(from_ns);
    bool is_goroutine = sv_eq_str(s->type, "goroutine");
    buf_printf(out, "&from=%" PRId64 "&until=%" PRId64, from, from > until ? from : until);
    if (format == PROFILE_JFR) {
        buf_printf(out, "&format=jfr&spyName=javaspy&sampleRate=%u", sample_rate);
    } else {
        buf_printf(out, "&spyName=gospy&sampleRate=%u&units=samples&aggregationType=%s",
                   sample_rate, is_goroutine ? "average" : "sum");
    }
    return ok && buf_ok(out);
}

/* ---- the body -------------------------------------------------------------------------------- */

struct sv ingest_sample_type_config(struct sv type)
{
    static const struct {
        const char *type;
        const char *json;
    } configs[] = {
        {"memory", "{\"alloc_objects\":{\"units\":\"objects\"},"
                   "\"alloc_space\":{\"units\":\"bytes\"},"
                   "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
                   "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}"},
        {"mutex",
         "{\"contentions\":{\"display-name\":\"mutex_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"mutex_duration\",\"units\":\"lock_nanoseconds\"}}"},
        {"block",
         "{\"contentions\":{\"display-name\":\"block_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"block_duration\",\"units\":\"lock_nanoseconds\"}}"},
        {"goroutine", "{\"goroutine\":{\"display-name\":\"goroutines\",\"units\":\"goroutines\","
                      "\"aggregation\":\"average\"}}"},
        {"fgprof", "{\"samples\":{\"display-name\":\"fgprof\"},"
                   "\"time\":{\"display-name\":\"fgprof\"}}"},
    };
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        if (sv_eq_str(type, configs[i].type)) {
            return sv_from(configs[i].json);
        }
    }
    return SV("");
}

static void put_part_head(const char *boundary, const char *name, const char *filename,
                          struct buf *out)
{
    buf_printf(out,
               "--%s\r\n"
               "Content-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
               "Content-Type: application/octet-stream\r\n"
               "\r\n",
               boundary, name, filename);
}

bool ingest_body(const char *boundary, enum profile_format format, struct sv config,
                 struct buf *head, struct buf *tail)
{
    bool jfr = format == PROFILE_JFR;
    put_part_head(boundary, jfr ? "jfr" : "profile", jfr ? "jfr" : "profile.pprof", head);
    buf_puts(tail, "\r\n");
    if (config.n > 0 && !jfr) {
        put_part_head(boundary, "sample_type_config", "sample_type_config.json", tail);
        buf_append(tail, config.p, config.n);
        buf_puts(tail, "\r\n");
    }
    buf_printf(tail, "--%s--\r\n", boundary);
    return buf_ok(head) && buf_ok(tail);
}
