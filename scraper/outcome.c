/* The end of a scrape: what is counted, shown and logged. */
#include "scraper/engine.h"

#define URL_MAX ((size_t)16 * 1024)
/* The number of warnings about failures in each period; further ones are counted. */
#define FAILURES_LOGGED 50
#define FAILURES_PERIOD_MS 10000

static void log_scrape(struct engine *e, struct scrape *sc, enum log_level level, const char *msg,
                       enum reason reason, const char *sentence)
{
    uint32_t suppressed = 0;
    if (!log_enabled(e->options.log, level) ||
        !log_limit_allow(&e->failures_limit, engine_now_ms(e), FAILURES_PERIOD_MS, FAILURES_LOGGED,
                         &suppressed)) {
        return;
    }
    const char *advice = reason_advice(reason);
    struct buf url;
    buf_init(&url, URL_MAX);
    target_shown_url(sc->target, sc->entry, &url);
    const struct log_field fields[] = {
        LOG_STR("job", sc->target->job_config->name),
        LOG_STR("source", group_source(sc->group)),
        LOG_SV("service", labels_get(target_labels(sc->target), SV(LABEL_SERVICE_NAME))),
        LOG_STR("type", scrape_type(sc)->name),
        LOG_STR("url", buf_ok(&url) ? url.data : ""),
        LOG_INT("suppressed", suppressed),
        reason == REASON_NONE ? LOG_END : LOG_STR("reason", reason_name(reason)),
        LOG_STR("err", sentence),
        advice[0] == '\0' ? LOG_END : LOG_STR("hint", advice),
        LOG_END,
    };
    log_write(e->options.log, level, msg, fields);
    buf_done(&url);
}

void outcome_failed(struct engine *e, struct scrape *sc, struct scrape_time time,
                    enum reason reason, const struct err *err)
{
    bool news = sc->reason != reason;
    bool gone = sc->history.absent && sc->health != SCRAPE_ABSENT;
    claims_failed(e, sc, reason);
    status_ended(e, sc, reason, err->msg, time, 0);
    if (news) {
        log_scrape(e, sc, LOG_WARN, "scrape failed", reason, err->msg);
    }
    if (gone) {
        log_scrape(e, sc, LOG_INFO, "profile type is absent, backing off", reason, err->msg);
    }
}

void outcome_no_memory(struct engine *e, struct scrape *sc)
{
    struct err err = ERR_INIT;
    err_memory(&err);
    outcome_failed(e, sc, (struct scrape_time){.duration_ns = -1}, REASON_MEMORY, &err);
}

void outcome_succeeded(struct engine *e, struct scrape *sc, struct scrape_time time, size_t size)
{
    enum scrape_health before = (enum scrape_health)sc->health;
    claims_count(sc, SCRAPE_OK, 1);
    metric_observe(sc->metrics->duration, (double)time.duration_ns / (double)NS_PER_S);
    metric_observe(sc->metrics->size, (double)size);
    scrape_metrics_learn(sc->metrics, size);
    status_ended(e, sc, REASON_NONE, NULL, time, size);
    if (before == SCRAPE_DOWN) {
        log_scrape(e, sc, LOG_INFO, "scrape works again", REASON_NONE, "");
    } else if (before == SCRAPE_ABSENT) {
        log_scrape(e, sc, LOG_INFO, "profile type exists again", REASON_NONE, "");
    }
}
