/* The key `receive`: profiles that senders push. */
#include "base/clock.h"
#include "config/parts.h"

/* The label `job` in the counters of profile_relabel_configs. */
#define JOB_NAME "receive"
#define HOUR_MS (60 * 60 * MS_PER_S)
#define PROFILE_SIZE_MAX (UINT64_C(256) << 20)

static const struct range range_profile = {UINT64_C(1) << 10, PROFILE_SIZE_MAX};
static const struct range range_names = {2, 1000};
static const struct range range_length = {16, 65536};
static const struct range range_age = {0, (uint64_t)(10 * 365 * 24 * HOUR_MS)};
static const struct range range_ahead = {0, (uint64_t)(24 * HOUR_MS)};

static const char *const acknowledge_names[] = {
    [ACKNOWLEDGE_QUEUED] = "queued", [ACKNOWLEDGE_STORED] = "stored"};
static const struct choices acknowledges = CHOICES(acknowledge_names);

/* The defaults are Pyroscope's, except that larger and older profiles are taken. */
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
        .initial.ms = 7 * 24 * HOUR_MS),
    ROW(config_receive, "max_ahead", max_ahead_ms, &kind_duration, .arg = &range_ahead,
        .initial.ms = 10 * 60 * MS_PER_S),
    ROW(config_receive, "profile_relabel_configs", job.profile_relabel, &kind_rules,
        .arg = &schema_rule),
    ROW(config_receive, "forward_to", job, &kind_forward_to),
};
const struct schema schema_receive = SCHEMA(receive_rows, sizeof(struct config_receive));

/* Returns true if an endpoint reports when a profile is synced to disk. */
static bool reports_sync(const struct config_endpoint *e)
{
    bool is_store = e->protocol != NULL && e->protocol->is_store;
    return is_store || (e->spool_directory != NULL && e->spool_fsync_ms != CONFIG_FSYNC_NEVER);
}

/* Complains about endpoints that do not report when a profile is on disk, and makes the
 * stores among the others sync each commit. */
static void check_acknowledge(struct reader *r, const struct place *at, struct config *c)
{
    /* Our own array, which nobody else has seen yet. */
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
    if (at.node->kind == YAML_MAPPING && !r->partial) {
        read_forward_to(r, &at, c, &c->receive.job);
        if (c->receive.acknowledge == ACKNOWLEDGE_STORED && r->reported == 0) {
            check_acknowledge(r, &at, c);
        }
    }
}
