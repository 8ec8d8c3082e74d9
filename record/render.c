/* The page of recorded metrics. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "record/private.h"

#define WAIT_MS 1000
/* A number of 128 bits has 39 digits. */
#define SUM_TEXT_MAX 48
#define TEN_TO_19 UINT64_C(10000000000000000000)
#define NS UINT64_C(1000000000)

void record_expire(struct record *r, int64_t now_ms)
{
    size_t n = 0;
    for (size_t i = 0; i < r->set.n; i++) {
        rule_expire(r->set.at[i], now_ms, r->stale_ms);
        n += map_count(r->set.at[i]->series);
    }
    metric_set(r->series_cell, (int64_t)n);
}

static void put_whole(struct buf *out, record_sum n)
{
    if (n >= TEN_TO_19) {
        put_whole(out, n / TEN_TO_19);
        buf_printf(out, "%019llu", (unsigned long long)(n % TEN_TO_19));
    } else {
        buf_printf(out, "%llu", (unsigned long long)n);
    }
}

/* Appends a sum exactly: nanoseconds as decimal seconds without zeros at the end. */
static void put_sum(struct buf *out, record_sum sum, enum record_unit unit)
{
    char fraction[16];
    if (unit != RECORD_UNIT_SECONDS) {
        put_whole(out, sum);
        return;
    }
    put_whole(out, sum / NS);
    int n = snprintf(fraction, sizeof(fraction), ".%09llu", (unsigned long long)(sum % NS));
    while (n > 0 && (fraction[n - 1] == '0' || fraction[n - 1] == '.')) {
        n--;
        if (fraction[n] == '.') {
            break;
        }
    }
    buf_append(out, fraction, (size_t)n);
}

/* Appends the text of HELP: line breaks and backslashes are escaped, and in OpenMetrics quotes. */
static void put_help(struct buf *out, const char *help, bool openmetrics)
{
    for (const char *c = help; *c != '\0'; c++) {
        if (*c == '\n') {
            buf_puts(out, "\\n");
        } else {
            buf_puts(out, *c == '\\' || (*c == '"' && openmetrics) ? "\\" : "");
            buf_putc(out, *c);
        }
    }
}

static void put_family(struct buf *out, const struct rule *r, bool openmetrics)
{
    static const char *const units[] = {
        [RECORD_UNIT_SECONDS] = "seconds", [RECORD_UNIT_BYTES] = "bytes"};
    /* The name of a counter's family ends with "_total" in the text format only. */
    const char *suffix = r->is_counter && !openmetrics ? "_total" : "";
    buf_printf(out, "# HELP %s%s ", r->family, suffix);
    put_help(out, r->help, openmetrics);
    buf_printf(out, "\n# TYPE %s%s %s\n", r->family, suffix, r->is_counter ? "counter" : "gauge");
    if (openmetrics && r->unit != RECORD_UNIT_NONE) {
        buf_printf(out, "# UNIT %s %s\n", r->family, units[r->unit]);
    }
}

static void put_series(struct buf *out, const struct rule *r)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(r->series, &cursor, &key, &value)) {
        const struct rule_series *s = value;
        buf_printf(out, "%s%s{", r->family, r->is_counter ? "_total" : "");
        buf_puts(out, s->labels);
        buf_puts(out, "} ");
        put_sum(out, s->sum, r->unit);
        buf_putc(out, '\n');
    }
}

/* Returns true if an earlier rule has this family: the series of a family stay together. */
static bool is_repeated(const struct record_set *set, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(set->at[k]->family, set->at[i]->family) == 0) {
            return true;
        }
    }
    return false;
}

static void render(const struct record_set *set, bool openmetrics, struct buf *out)
{
    for (size_t i = 0; i < set->n; i++) {
        if (is_repeated(set, i)) {
            continue;
        }
        put_family(out, set->at[i], openmetrics);
        for (size_t k = i; k < set->n; k++) {
            if (strcmp(set->at[k]->family, set->at[i]->family) == 0) {
                put_series(out, set->at[k]);
            }
        }
    }
    buf_puts(out, openmetrics ? "# EOF\n" : "");
}

bool record_render(struct record *r, bool openmetrics, struct buf *out)
{
    record_thread_wait(r, WAIT_MS);
    pthread_mutex_lock(&r->lock);
    record_expire(r, clock_mono_ms());
    render(&r->set, openmetrics, out);
    pthread_mutex_unlock(&r->lock);
    return buf_ok(out);
}
