/* Who gets a transfer when they run short: targets that hang, jobs, pods with many scrapes. */
#include "tests/unit/scraper/scraper_world.h"

/* The transfers that 1,024 descriptors leave to scrapes. */
#define SLOTS 448
#define STEP_MS 20

static bool is_good(const struct http_transfer *t)
{
    return strstr(t->url, "good") != NULL;
}

/* Lets time pass: good targets answer after 50 ms, the others never. */
static void pass_time(struct world *w, int64_t ms)
{
    static const char none[] = "";
    for (int64_t at = 0; at < ms; at += STEP_MS) {
        turn(w, STEP_MS);
        for (size_t i = 0; i < w->n_transfers; i++) {
            struct http_transfer *t = &w->transfers[i];
            int64_t age_ms = (w->now_ns - t->start_ns) / NS_PER_MS;
            if (t->live && is_good(t) && age_ms >= 50) {
                succeed(w, t);
            } else if (t->live && age_ms >= t->timeout_ms) {
                answer(w, t, HTTP_ERR_TIMEOUT, 0, none, 0);
            }
        }
    }
}

static void add_hosts(struct world *w, size_t job, const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        char source[32];
        char address[32];
        snprintf(source, sizeof(source), "%s-%d", name, i);
        snprintf(address, sizeof(address), "%s-%d:1", name, i);
        set(w, job, source, "1", AT(address));
    }
}

/* A thousand targets that hang do not cost the good ones a single scrape: of another job at once,
 * of the same job when each of them has been tried. */
TEST_ON(struct world *w, hanging_targets)
{
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    for (size_t job = 0; job < 2; job++) {
        engine_free(w->e);
        make_engine(w, SLOTS);
        add_hosts(w, job, "bad", 1000);
        add_hosts(w, 0, "good", 60);
        if (job == 0) {
            pass_time(w, 45 * MS_PER_S);
            forget_profiles(w);
        }
        pass_time(w, 120 * MS_PER_S);
        CHECK_INT(w->n_profiles, 60 * 120 / 15, job == 0 ? "the same job" : "another job");
        CHECK_INT(metric(w, "profpull_scrape_slots{class=\"slow\"}"), SLOTS / 2, "slow ones");
        forget_profiles(w);
        engine_free(w->e);
        w->n_transfers = 0;
        make_engine(w, 0);
    }
}

/* Targets that become quick again get their whole share back. */
TEST_ON(struct world *w, slow_targets_recover)
{
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    engine_free(w->e);
    make_engine(w, 4);
    add_hosts(w, 0, "good", 4);
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 3, "new ones: three quarters");
    for (size_t i = 0; i < 4; i++) {
        turn(w, 3000);
        succeed(w, &w->transfers[i]);
    }
    size_t before = w->n_transfers;
    turn(w, 15000);
    CHECK_INT(w->n_transfers - before, 2, "slow ones: half");
    for (size_t i = before; i < w->n_transfers; i++) {
        succeed(w, &w->transfers[i]);
        turn(w, 10);
    }
    pass_time(w, 20000);
    before = w->n_transfers;
    turn(w, 15000);
    CHECK_INT(w->n_transfers - before, 4, "quick ones: all");
}

/* One type is enough to know whether a target answers. */
TEST_ON(struct world *w, other_types_of_a_target)
{
    w->types[DELTA].enabled = true;
    for (int hangs = 0; hangs < 2; hangs++) {
        const char *row = hangs == 1 ? "it hangs" : "it answers";
        set(w, 0, "s", "1", AT("h:1"));
        struct http_transfer *first = next_start(w);
        CHECK_INT(metric(w, "profpull_scrape_slots{class=\"new\"}"), 1, row);
        if (hangs == 1) {
            testing_log_expect(w->log, "scrape failed");
            w->now_ns += 10 * NS_PER_S;
            answer(w, first, HTTP_ERR_TIMEOUT, 0, "", 0);
        } else {
            succeed(w, first);
        }
        next_start(w);
        CHECK_INT(metric(w, "profpull_scrape_slots{class=\"new\"}"), 0, row);
        CHECK_INT(metric(w, "profpull_scrape_slots{class=\"quick\"}"), hangs == 0, row);
        CHECK_INT(metric(w, "profpull_scrape_slots{class=\"slow\"}"), hangs == 1, row);
        set(w, 0, "s", "1", NOTHING);
    }
}

/* The same while they wait. */
TEST_ON(struct world *w, waiting_types_of_a_target)
{
    testing_log_expect(w->log, "scrape failed");
    engine_free(w->e);
    make_engine(w, 1);
    w->types[DELTA].enabled = true;
    set(w, 0, "s", "1", AT("h:1"));
    struct http_transfer *first = next_start(w);
    while (metric(w, "profpull_scrapes_waiting") == 0) {
        turn(w, 1);
    }
    turn(w, SLOTS_SLOW_MS + 1);
    answer(w, first, HTTP_ERR_TIMEOUT, 0, "", 0);
    CHECK_INT(w->n_transfers, 2, "the other type has its turn");
    CHECK_INT(metric(w, "profpull_scrapes_waiting"), 0, "none waits");
    CHECK_INT(metric(w, "profpull_scrape_slots{class=\"new\"}"), 0, "known by now");
    CHECK_INT(metric(w, "profpull_scrape_slots{class=\"slow\"}"), 1, "to hang");
}

/* The number of scrapes in flight whose URL has this text. */
static size_t in_flight(const struct world *w, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_transfers; i++) {
        n += w->transfers[i].live && strstr(w->transfers[i].url, text) != NULL;
    }
    return n;
}

static struct http_transfer *first_live(struct world *w, const char *text)
{
    for (size_t i = 0; i < w->n_transfers; i++) {
        if (w->transfers[i].live && strstr(w->transfers[i].url, text) != NULL) {
            return &w->transfers[i];
        }
    }
    fail_msg("no transfer to %s", text);
    return NULL;
}

/* A job takes all slots while nobody else wants them, and gives them back as they end. */
TEST_ON(struct world *w, jobs_share)
{
    engine_free(w->e);
    make_engine(w, 8);
    add_hosts(w, 0, "one", 30);
    turn(w, 14999);
    CHECK_INT(in_flight(w, "one"), 6, "borrowed");
    add_hosts(w, 1, "two", 30);
    turn(w, 14999);
    for (int i = 0; i < 3; i++) {
        succeed(w, first_live(w, "one"));
    }
    CHECK_INT(in_flight(w, "one"), 3, "half of them");
    CHECK_INT(in_flight(w, "two"), 3, "the other half");
    succeed(w, first_live(w, "one"));
    CHECK_INT(in_flight(w, "one") + in_flight(w, "two"), 6, "no slot is idle");
}

/* A pod with many scrapes waits in line with the others as one. */
TEST_ON(struct world *w, pods_take_turns)
{
    engine_free(w->e);
    make_engine(w, 4);
    for (int i = 0; i < 20; i++) {
        char address[32];
        snprintf(address, sizeof(address), "many:%d", i + 1);
        set(w, 0, address, "1", AT(address));
    }
    turn(w, 14999);
    CHECK_INT(in_flight(w, "many"), 3, "borrowed");
    add_hosts(w, 0, "few", 3);
    turn(w, 14999);
    for (int i = 0; i < 6; i++) {
        succeed(w, first_live(w, ":"));
    }
    size_t few = 0;
    for (size_t i = 0; i < 9; i++) {
        few += strstr(w->transfers[i].url, "few") != NULL;
    }
    CHECK_INT(few, 3, "all of the others are among the next six");
}

/* Waiting scrapes leave without a trace. */
TEST_ON(struct world *w, waiting_scrapes_are_removed)
{
    engine_free(w->e);
    make_engine(w, 4);
    add_hosts(w, 0, "one", 10);
    turn(w, 14999);
    CHECK_INT(metric(w, "profpull_scrapes_waiting"), 7, "waiting");
    for (int i = 0; i < 10; i++) {
        char source[32];
        snprintf(source, sizeof(source), "one-%d", i);
        set(w, 0, source, "1", NOTHING);
    }
    CHECK_INT(metric(w, "profpull_scrapes_waiting"), 0, "none");
    CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 0, "none");
    CHECK_INT(metric(w, "profpull_scrape_slots{class=\"new\"}"), 0, "none");
    CHECK_INT(map_count(w->e->slots.lanes), 0, "lanes");
}
