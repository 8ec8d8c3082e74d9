#include "write/protocols/profefe.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "config/config.h"
#include "http/url.h"

/* Years of four digits. */
#define YEAR_9999_END INT64_C(253402300799)

const char *profefe_type(struct sv name)
{
    /* Names that only imported profiles have. */
    static const struct {
        const char *name;
        const char *type;
    } aliases[] = {
        {"cpu", "cpu"}, {"heap", "heap"}, {"allocs", "heap"}, {"goroutines", "goroutine"}};
    const struct config_builtin_type *t;
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        if (t->profefe != NULL && sv_eq_str(name, t->type.name)) {
            return t->profefe;
        }
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (sv_eq_str(name, aliases[i].name)) {
            return aliases[i].type;
        }
    }
    return "other";
}

/* `__*` is ours, and the service has a parameter of its own. */
static bool is_sent(const struct series_label *l)
{
    return !sv_starts_with(l->name, SV("__")) && !sv_eq_str(l->name, LABEL_SERVICE_NAME);
}

static void put_pair(struct sv name, struct sv value, struct buf *out)
{
    if (out->len > 0) {
        buf_putc(out, ',');
    }
    url_encode_pair(name, value, out);
}

/* "k=v,k=v", each key and value encoded, and then the whole once more; false if that is too long or
 * memory ran out. */
static bool put_labels(const struct series *s, bool other, struct buf *once, struct buf *twice)
{
    buf_clear(once);
    buf_clear(twice);
    for (size_t i = 0; i < s->n; i++) {
        if (is_sent(&s->at[i]) && !(other && sv_eq_str(s->at[i].name, PROFEFE_TYPE_LABEL))) {
            put_pair(s->at[i].name, s->at[i].value, once);
        }
    }
    if (other && s->type.n > 0) {
        put_pair(SV(PROFEFE_TYPE_LABEL), s->type, once);
    }
    url_encode((struct sv){.p = once->data, .n = once->len}, twice);
    return buf_ok(once) && buf_ok(twice);
}

static bool append_labels(struct series *s, bool other, struct buf *out)
{
    struct buf once;
    struct buf twice;
    buf_init(&once, PROFEFE_LABELS_MAX);
    buf_init(&twice, PROFEFE_LABELS_MAX);
    bool ok = put_labels(s, other, &once, &twice);
    while (!ok && (buf_too_big(&once) || buf_too_big(&twice)) && series_drop_least(s)) {
        ok = put_labels(s, other, &once, &twice);
    }
    buf_puts(out, "&labels=");
    buf_append(out, twice.data, twice.len);
    buf_done(&once);
    buf_done(&twice);
    return ok;
}

/* As much of the name as fits, cut between characters. */
static void put_service(struct sv service, struct buf *out)
{
    url_encode((struct sv){service.p, utf8_prefix(service, PROFEFE_SERVICE_MAX / 3)}, out);
}

bool profefe_query(struct series *s, int64_t from_ns, struct buf *out)
{
    const char *type = profefe_type(s->type);
    buf_puts(out, "service=");
    put_service(s->service, out);
    buf_printf(out, "&type=%s", type);
    bool ok = append_labels(s, strcmp(type, "other") == 0, out);
    time_t seconds = (time_t)(from_ns / NS_PER_S);
    struct tm tm;
    char text[sizeof("2026-11-21T01:51:23")];
    if (seconds > 0 && seconds <= YEAR_9999_END && gmtime_r(&seconds, &tm) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) > 0) {
        buf_puts(out, "&created_at=");
        url_encode(sv_from(text), out);
    }
    return ok && buf_ok(out);
}
