/* The key `receive`: profiles that senders push. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

/* The label `job` in the counters of profile_relabel_configs. */
#define JOB_NAME "receive"
#define ENRICH_NAME "receive.enrich"
#define PROFILE_SIZE_MAX (UINT64_C(256) << 20)

static const struct range range_profile = {UINT64_C(1) << 10, PROFILE_SIZE_MAX};
static const struct range range_names = {2, 1000};
static const struct range range_length = {16, 65536};
static const struct range range_age = {0, (uint64_t)(10 * 365 * 24 * MS_PER_HOUR)};
static const struct range range_ahead = {0, (uint64_t)(24 * MS_PER_HOUR)};

static bool has_enrich(const void *record)
{
    return config_enriches(&((const struct config_receive *)record)->enrich);
}

/* Checks `enrich`. If profiles_match_label is not given, it is the label of the targets. Without
 * either, profiles are matched by the ids that discovery finds (agent/enrich.h). */
static void check_enrich(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct config_enrich *e = out;
    if (e->profile_label == NULL) {
        e->profile_label = e->target_label;
    } else if (clean && e->target_label == NULL) {
        struct place key = place_of_key(at, "profiles_match_label");
        reader_error(r, &key, "expected the key target_match_label beside it");
    }
    if (clean && e->job.n_sources == 0 && !yaml_is_null(at->node)) {
        reader_error(r, at, "expected a source of targets, such as kubernetes_sd_configs");
    }
}

static const struct field enrich_rows[] = {
    ROW(config_enrich, "target_match_label", target_label, &kind_text, .arg = &text_label_name),
    ROW(config_enrich, "profiles_match_label", profile_label, &kind_text, .arg = &text_label_name),
    ROW(config_enrich, "labels_to_copy", labels, &kind_strings, .arg = &text_label_name),
    ROW(config_enrich, NULL, job, &kind_mapping, .arg = &schema_sources),
    ROW(config_enrich, "relabel_configs", job.relabel, &kind_rules, .arg = &schema_rule),
};
const struct schema schema_enrich =
    SCHEMA(enrich_rows, sizeof(struct config_enrich), .check = check_enrich);

static const char *const acknowledge_names[] = {
    [ACKNOWLEDGE_QUEUED] = "queued", [ACKNOWLEDGE_STORED] = "stored"};
static const struct choices acknowledges = CHOICES(acknowledge_names);

/* The defaults are Pyroscope's, except that larger and older profiles are accepted. */
static const struct field receive_rows[] = {
    ROW(config_receive, NULL, server, &kind_mapping, .arg = &schema_receive_server),
    ROW(config_receive, "acknowledge", acknowledge, &kind_choice, .arg = &acknowledges),
    ROW(config_receive, "max_profile_size", max_profile_size, &kind_size, .arg = &range_profile,
        .initial.size = UINT64_C(32) << 20),
    ROW(config_receive, "max_label_names", max_label_names, &kind_unsigned, .arg = &range_names,
        .initial.number = 30),
    ROW(config_receive, "max_label_name_length", max_label_name_length, &kind_unsigned,
        .arg = &range_length, .initial.number = 1024),
    ROW(config_receive, "max_label_value_length", max_label_value_length, &kind_unsigned,
        .arg = &range_length, .initial.number = 2048),
    ROW(config_receive, "max_age", max_age_ms, &kind_duration, .arg = &range_age,
        .initial.ms = 7 * 24 * MS_PER_HOUR),
    ROW(config_receive, "max_ahead", max_ahead_ms, &kind_duration, .arg = &range_ahead,
        .initial.ms = 10 * 60 * MS_PER_S),
    ROW(config_receive, "profile_relabel_configs", job.profile_relabel, &kind_rules,
        .arg = &schema_rule),
    ROW(config_receive, "forward_to", job, &kind_forward_to),
    ROW(config_receive, "enrich", enrich, &kind_mapping, .arg = &schema_enrich, .when = has_enrich),
};
const struct schema schema_receive = SCHEMA(receive_rows, sizeof(struct config_receive));

/* Returns true if an endpoint reports when a profile is synced to disk. */
static bool reports_sync(const struct config_endpoint *e)
{
    bool is_store = e->protocol != NULL && e->protocol->is_store;
    return is_store || (e->spool_directory != NULL && e->spool_fsync_ms != CONFIG_FSYNC_NEVER);
}

/* Reports endpoints that cannot confirm that a profile is on disk. Among the others, stores are set
 * to sync each commit. */
static void check_acknowledge(struct reader *r, const struct place *at, struct config *c)
{
    /* Casting const away is safe: the array is ours, and not shared yet. */
    struct config_endpoint *all = (struct config_endpoint *)(uintptr_t)c->endpoints;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if ((c->receive.job.forward_to >> i & 1) == 0) {
            continue;
        }
        if (!reports_sync(&all[i])) {
            struct place key = place_of_key(at, "acknowledge");
            reader_error(
                r, &key,
                "the endpoint \"%s\" cannot say when a profile is on disk: expected that it "
                "has queue.spool_directory, without fsync: never, or is store:///DIRECTORY",
                all[i].name);
        }
        all[i].store_sync = true;
    }
}

void read_receive(struct reader *r, const struct place *root, struct config *c)
{
    struct place at = place_of_key(root, "receive");
    c->receive.job.pos = place_pos(r, &at);
    c->receive.job.name = JOB_NAME;
    c->receive.job.symbols = c->symbols.sources;
    struct place enrich = place_of_key(&at, "enrich");
    c->receive.enrich.job.pos = place_pos(r, &enrich);
    if (at.node->kind == YAML_MAPPING && !r->partial) {
        read_forward_to(r, &at, c, &c->receive.job);
        if (c->receive.acknowledge == ACKNOWLEDGE_STORED && r->reported == 0) {
            check_acknowledge(r, &at, c);
        }
    }
}

void append_enrich_job(struct reader *r, struct config *c)
{
    struct config_enrich *e = &c->receive.enrich;
    if (!config_enriches(e) || r->partial) {
        return;
    }
    struct config_job *all = reader_alloc(r, c->n_jobs + 1, sizeof(*all));
    if (all == NULL) {
        return;
    }
    for (size_t i = 0; i < c->n_jobs; i++) {
        all[i] = c->jobs[i];
        if (all[i].name != NULL && strcmp(all[i].name, ENRICH_NAME) == 0) {
            config_errors_add(r->errors, all[i].pos.line, all[i].pos.column, "scrape_configs",
                              "the name \"" ENRICH_NAME "\" belongs to the key receive.enrich");
            r->reported++;
        }
    }
    struct config_job *job = &all[c->n_jobs];
    schema_defaults(&schema_job, job);
    job->pos = e->job.pos;
    job->name = ENRICH_NAME;
    job->path_prefix = "";
    job->interval_ms = c->global.scrape_interval_ms;
    job->timeout_ms = c->global.scrape_timeout_ms;
    job->sources = e->job.sources;
    job->n_sources = e->job.n_sources;
    job->relabel = e->job.relabel;
    job->enriches = true;
    job->shared = false; /* senders may push to any replica */
    c->jobs = all;
    c->n_jobs++;
}

size_t config_scrape_jobs(const struct config *c)
{
    return c->n_jobs - (c->n_jobs > 0 && c->jobs[c->n_jobs - 1].enriches);
}
