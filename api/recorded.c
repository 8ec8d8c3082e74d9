#include "api/recorded.h"

#include "api/served.h"
#include "base/ascii.h"
#include "record/record.h"
#include "server/exchange.h"

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS_TYPE "application/openmetrics-text"
/* Weights are counted in thousandths. */
#define WEIGHT_FULL 1000
#define WEIGHT_DIGITS 3
#define OPENMETRICS_REPLY OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8"

/* Reads a weight such as "0.75" in thousandths. Anything else counts as 1. */
static uint64_t read_weight(struct sv value)
{
    struct sv whole;
    struct sv fraction;
    uint64_t q = 0;
    if (!sv_cut(value, '.', &whole, &fraction)) {
        return sv_eq_str(value, "0") ? 0 : WEIGHT_FULL;
    }
    for (size_t i = 0; i < WEIGHT_DIGITS; i++) {
        bool digit = i < fraction.n && ascii_is_digit(fraction.p[i]);
        q = q * 10 + (digit ? (uint64_t)(fraction.p[i] - '0') : 0);
    }
    return sv_eq_str(whole, "0") ? q : WEIGHT_FULL;
}

/* Returns the parameter q of a media range in thousandths. */
static uint64_t weight_of(struct sv params)
{
    while (params.n > 0) {
        struct sv param = params;
        struct sv name;
        struct sv value;
        if (!sv_cut(params, ';', &param, &params)) {
            params.n = 0;
        }
        if (sv_cut(param, '=', &name, &value) && sv_eq_nocase(sv_trim(name), "q")) {
            return read_weight(sv_trim(value));
        }
    }
    return WEIGHT_FULL;
}

/* Returns true if a client prefers OpenMetrics to the text format (RFC 9110, section 12.5.1). With
 * equal weights the format that it names first is used. */
static bool prefers_openmetrics(struct sv accept)
{
    uint64_t openmetrics = 0;
    uint64_t text = 0;
    while (accept.n > 0) {
        struct sv range;
        struct sv params = {"", 0};
        if (!sv_cut(accept, ',', &range, &accept)) {
            range = accept;
            accept = (struct sv){"", 0};
        }
        struct sv type;
        if (!sv_cut(range, ';', &type, &params)) {
            type = range;
        }
        type = sv_trim(type);
        uint64_t weight = weight_of(params);
        if (sv_eq_nocase(type, OPENMETRICS_TYPE) && weight > openmetrics && weight > text) {
            openmetrics = weight;
        } else if (sv_eq_nocase(type, "text/plain") && weight > text) {
            text = weight;
        }
    }
    return openmetrics > 0 && openmetrics >= text;
}

static void recorded(struct exchange *x)
{
    struct record *record = x->options->served->record;
    bool openmetrics = prefers_openmetrics(request_header(x->request, "accept"));
    if (record != NULL && !record_render(record, openmetrics, &x->reply)) {
        buf_clear(&x->reply);
        exchange_text(x, STATUS_UNAVAILABLE, "text/plain; charset=utf-8",
                      SV("the recorded metrics do not fit into the memory of a request "
                         "(query.max_bytes)\n"));
        return;
    }
    x->content_type = openmetrics ? OPENMETRICS_REPLY : TEXT_TYPE;
    exchange_deflate(x);
}

static const char *const no_params[] = {NULL};

const struct route recorded_routes[] = {
    {"/metrics/recorded", .set = ROUTE_ADMIN, .params = no_params, .work = recorded,
     .about = "recorded metrics: sums of profiles, by the rules of <code>record</code>"},
    {.path = NULL},
};
