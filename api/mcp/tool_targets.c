/* The tool targets. */
#include <string.h>

#include "api/mcp/tools.h"
#include "api/served.h"
#include "base/clock.h"
#include "model/reason.h"

#define PAGE_SCRAPES 64
#define TEXT_MAX_BYTES 300

/* The states that pass: failing scrapes are listed before the others. */
enum { PASS_FAILING, PASS_OTHERS, PASSES };

struct filter {
    const char *health;
    const char *service;
    size_t counts[3]; /* up, down, others */
    size_t shown;
};

static bool is_down(const struct scrape_status *st)
{
    return strcmp(scrape_health_name(st->health), "down") == 0;
}

static bool matches(const struct filter *f, const struct scrape_status *st)
{
    struct sv service = labels_get(st->labels, SV(LABEL_SERVICE_NAME));
    return (f->health == NULL || strcmp(scrape_health_name(st->health), f->health) == 0) &&
           (f->service == NULL || sv_eq_str(service, f->service));
}

static void print_scrape(struct tool_call *call, const struct scrape_status *st)
{
    const char *advice = reason_advice(st->reason);
    bool down = is_down(st);
    (void)tool_row(call, "%s: %s %s of job %s, %s%s%s%s%s", scrape_health_name(st->health),
                   tool_name(call, labels_get(st->labels, SV(LABEL_SERVICE_NAME)), 100), st->type,
                   tool_name(call, sv_from(st->job), 100),
                   tool_name(call, sv_from(st->url), TEXT_MAX_BYTES), down ? ": " : "",
                   down ? tool_name(call, sv_from(st->last_error), TEXT_MAX_BYTES) : "",
                   down && advice[0] != '\0' ? ". " : "", down ? advice : "");
}

/* Counts a scrape, or prints it in its pass. */
static void visit(struct tool_call *call, struct filter *f, const struct scrape_status *st,
                  int pass)
{
    if (!matches(f, st)) {
        return;
    }
    if (pass < 0) {
        const char *health = scrape_health_name(st->health);
        f->counts[strcmp(health, "up") == 0 ? 0 : is_down(st) ? 1 : 2]++;
    } else if ((pass == PASS_FAILING) == is_down(st)) {
        if (f->shown++ < call->limit) {
            print_scrape(call, st);
        } else {
            call->left_out++;
        }
    }
}

static void walk(struct tool_call *call, struct filter *f, int pass)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    struct scraper *scraper = call->exchange->options->served->scraper;
    size_t cursor = 0;
    size_t n;
    while ((n = scraper_snapshot(scraper, &cursor, statuses, PAGE_SCRAPES)) > 0) {
        for (size_t i = 0; i < n; i++) {
            visit(call, f, &statuses[i], pass);
            scrape_status_done(&statuses[i]);
        }
    }
}

bool tool_targets(struct tool_call *call, struct err *err)
{
    struct filter f = {.health = NULL};
    if (!tool_text(call, "health", &f.health, err) ||
        !tool_text(call, "service", &f.service, err)) {
        return false;
    }
    if (call->exchange->options->served->scraper == NULL) {
        return err_set(err, ERR_INPUT, "this process scrapes nothing");
    }
    walk(call, &f, -1);
    size_t all = f.counts[0] + f.counts[1] + f.counts[2];
    if (all == 0) {
        return err_set(err, ERR_INPUT,
                       "no target matches: health is up, down or unknown, and service one of "
                       "list_services; without both, all targets are listed");
    }
    (void)tool_row(call,
                   "%zu scrapes (one for each target and type): %zu up, %zu down, %zu not "
                   "scraped yet.",
                   all, f.counts[0], f.counts[1], f.counts[2]);
    for (int pass = 0; pass < PASSES; pass++) {
        walk(call, &f, pass);
    }
    tool_page(call, "/targets");
    return true;
}
