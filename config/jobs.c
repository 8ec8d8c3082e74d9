/* The list scrape_configs. */
#include <string.h>

#include "config/dump.h"
#include "config/parts.h"

/* The largest values of the limits; anything beyond is a typing error. */
#define BODY_LIMIT_MAX (UINT64_C(1) << 30)
#define TARGET_LIMIT_MAX 1000000
/* The most protocols in a message. */
#define PROTOCOLS_MAX 32

static bool check_scheme(struct sv v)
{
    return sv_eq_str(v, "http") || sv_eq_str(v, "https");
}

static const struct text_kind text_scheme = {
    .expected = "\"http\" or \"https\"", .ok = check_scheme, .word = true};

/* ---- forward_to ------------------------------------------------------------------------------ */

static uint64_t endpoint_bit(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (c->endpoints[i].name != NULL && strcmp(c->endpoints[i].name, name) == 0) {
            return UINT64_C(1) << i;
        }
    }
    return 0;
}

static void unknown_endpoint(struct reader *r, const struct place *at, const struct config *c,
                             const char *name)
{
    const char *names[CONFIG_ENDPOINTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (c->endpoints[i].name != NULL) {
            names[n++] = c->endpoints[i].name;
        }
    }
    reader_error(r, at, "no endpoint in write has the name %s%s", reader_quote(r, sv_from(name)),
                 reader_hint(r, sv_from(name), names, n));
}

/* An entry with rules of its own. */
struct way_entry {
    const char *name;
    struct config_rules rules;
};

static const struct field way_rows[] = {
    ROW(way_entry, "name", name, &kind_text, .arg = &text_nonempty, .required = true),
    ROW(way_entry, "profile_relabel_configs", rules, &kind_rules, .arg = &schema_rule),
};
static const struct schema schema_way = SCHEMA(way_rows, sizeof(struct way_entry));

/* Returns the bit of the endpoint that an entry (a name or a mapping) names; 0 after an error. */
static uint64_t read_entry(struct reader *r, const struct place *element, const struct config *c,
                           struct config_way *ret_way, const char **ret_name)
{
    struct way_entry entry = {.name = NULL};
    if (element->node->kind == YAML_MAPPING) {
        schema_read(r, element, &schema_way, &entry);
    } else {
        entry.name = reader_text(r, element, &text_nonempty);
    }
    *ret_way = (struct config_way){.rules = entry.rules};
    *ret_name = entry.name;
    if (entry.name == NULL) {
        return 0;
    }
    ret_way->endpoint = endpoint_bit(c, entry.name);
    /* without endpoints, that error was reported already */
    if (ret_way->endpoint == 0 && c->n_endpoints > 0) {
        unknown_endpoint(r, element, c, entry.name);
    }
    return ret_way->endpoint;
}

/* Returns the bits of the endpoints that get recordings of Java unchanged. */
static uint64_t recording_bits(const struct config *c)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        bits |= (uint64_t)config_endpoint_takes_recordings(&c->endpoints[i]) << i;
    }
    return bits;
}

void read_forward_to(struct reader *r, const struct place *job_place, const struct config *c,
                     struct config_job *job)
{
    struct place at = place_of_key(job_place, "forward_to");
    job->forward_to =
        c->n_endpoints >= CONFIG_ENDPOINTS_MAX ? UINT64_MAX : (UINT64_C(1) << c->n_endpoints) - 1;
    job->recordings_to = job->forward_to & recording_bits(c);
    if (at.node == job_place->node || !reader_enter(r, &at, YAML_LIST)) {
        return;
    }
    struct config_way *ways = reader_alloc(r, at.node->n_items + 1, sizeof(*ways));
    uint64_t set = 0;
    for (size_t i = 0; ways != NULL && i < at.node->n_items; i++) {
        struct place element = place_of_element(&at, i);
        struct config_way *way = &ways[job->n_ways];
        const char *name = NULL;
        uint64_t bit = read_entry(r, &element, c, way, &name);
        if ((set & bit) != 0) {
            reader_error(r, &element, "%s is named twice", reader_quote(r, sv_from(name)));
        }
        job->n_ways += bit != 0 && way->rules.n > 0;
        set |= bit;
    }
    if (at.node->n_items == 0) {
        reader_error(r, &at, "expected at least one endpoint, got none");
    }
    job->ways = ways;
    job->forward_to = set;
    job->recordings_to &= set;
}

static const struct config_way *find_way(const struct config_job *job, uint64_t endpoint)
{
    for (size_t i = 0; i < job->n_ways; i++) {
        if (job->ways[i].endpoint == endpoint) {
            return &job->ways[i];
        }
    }
    return NULL;
}

static void write_forward_to(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    const struct config *c = dump_config(d);
    const struct config_job *job = value;
    dump_begin_list(d, key, job->n_ways == 0);
    for (size_t i = 0; i < c->n_endpoints; i++) {
        uint64_t bit = UINT64_C(1) << c->endpoints[i].slot;
        const struct config_way *way = find_way(job, bit);
        if (way != NULL) {
            const struct way_entry entry = {.name = c->endpoints[i].name, .rules = way->rules};
            kind_mapping.write(d, NULL, &schema_way, &entry);
        } else if ((job->forward_to & bit) != 0) {
            dump_text(d, NULL, &text_any, c->endpoints[i].name);
        }
    }
    dump_end_list(d);
}

const struct kind kind_forward_to = {.read = read_nothing, .write = write_forward_to};

/* ---- a job ----------------------------------------------------------------------------------- */

static const struct range range_percent = {1, 100};
static const struct range range_targets = {1, TARGET_LIMIT_MAX};

/* The keys of `sampling`: the part of the processes of each service that is scraped. */
static const struct field sampling_rows[] = {
    ROW(config_job, "percent", sample_percent, &kind_unsigned, .arg = &range_percent,
        .initial.number = 100),
    ROW(config_job, "max_per_service", sample_max, &kind_unsigned, .arg = &range_targets,
        .optional = true),
};
static const struct schema schema_sampling = SCHEMA(sampling_rows, 0);

static const struct range range_body = {1, BODY_LIMIT_MAX};

static const char *const compression_names[] = {
    [COMPRESSION_FAST] = "fast", [COMPRESSION_BEST] = "best", [COMPRESSION_NONE] = "none"};
static const struct choices compressions = CHOICES(compression_names);

static bool has_symbols(const void *record)
{
    return ((const struct config_job *)record)->symbols.given;
}

/* A job that sets servers of debug information needs the cache of the section `symbols`. */
static void check_symbols_cache(struct reader *r, const struct place *at, const struct config *c,
                                const struct config_job *job)
{
    if (job->symbols.given && job->symbols.debuginfod.n > 0 && c->symbols.cache_directory == NULL) {
        struct place key = place_of_key(at, "symbols");
        reader_error(r, &key,
                     "debuginfod needs the key \"cache.directory\" of the section symbols");
    }
}

static const struct field job_rows[] = {
    ROW(config_job, "job_name", name, &kind_text, .arg = &text_nonempty, .required = true),
    ROW(config_job, "job_label", job_label, &kind_text, .arg = &text_any),
    ROW(config_job, "scrape_interval", interval_ms, &kind_duration, .arg = &range_interval),
    ROW(config_job, "scrape_timeout", timeout_ms, &kind_duration, .arg = &range_interval),
    ROW(config_job, "scheme", scheme, &kind_text, .arg = &text_scheme, .initial.text = "http"),
    ROW(config_job, "params", params, &kind_pairs, .arg = &pairs_params),
    ROW(config_job, "body_size_limit", body_size_limit, &kind_size, .arg = &range_body,
        .initial.size = UINT64_C(16) << 20),
    ROW(config_job, "delta_compression", delta_compression, &kind_choice, .arg = &compressions),
    ROW(config_job, "target_limit", target_limit, &kind_number, .arg = &range_targets,
        .initial.size = 20000),
    ROW(config_job, "pod_scrape_limit", pod_scrape_limit, &kind_number, .arg = &range_targets,
        .initial.size = 256),
    PART("sampling", &kind_mapping, .arg = &schema_sampling, .optional = true),
    PART("profiles", &kind_profiles),
    ROW(config_job, "symbols", symbols, &kind_mapping, .arg = &schema_symbols_sources,
        .when = has_symbols),
    PART(NULL, &kind_mapping, .arg = &schema_sources),
    ROW(config_job, "relabel_configs", relabel, &kind_rules, .arg = &schema_rule),
    ROW(config_job, "profile_relabel_configs", profile_relabel, &kind_rules, .arg = &schema_rule),
    PART("forward_to", &kind_forward_to),
    ROW(config_job, "sharding", shared, &kind_bool, .initial.on = true, .optional = true),
    ROW(config_job, "allow_foreign_address", allow_foreign_address, &kind_bool),
    ROW(config_job, "allow_special_address", allow_special_address, &kind_bool),
    ROW(config_job, "allow_host_network", allow_host_network, &kind_bool, .initial.on = true),
    ROW(config_job, "allow_plain_credentials", allow_plain_credentials, &kind_bool),
    ROW(config_job, NULL, http, &kind_mapping, .arg = &schema_target_http),
};
const struct schema schema_job = SCHEMA(job_rows, sizeof(struct config_job));

/* arg: the struct config, whose endpoints and global settings are complete. */
static void read_job(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const struct config *c = arg;
    struct config_job *job = out;
    *job = (struct config_job){.pos = place_pos(r, at), .path_prefix = ""};
    schema_defaults(&schema_job, job);
    job->interval_ms = c->global.scrape_interval_ms;
    job->timeout_ms = c->global.scrape_timeout_ms;
    job->symbols = c->symbols.sources;
    job->symbols.given = false;
    schema_read(r, at, &schema_job, job);
    if (at->node->kind != YAML_MAPPING) {
        return; /* an error was reported: a null element has no job_name */
    }
    read_profiles(r, at, job);
    if (r->partial) {
        return;
    }
    read_forward_to(r, at, c, job);
    check_symbols_cache(r, at, c, job);
}

static void check_names(struct reader *r, const struct place *list, const struct config_job *jobs)
{
    struct map *seen = map_new();
    if (seen == NULL) {
        r->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < list->node->n_items; i++) {
        if (jobs[i].name != NULL) {
            struct place at = place_of_element(list, i);
            struct place name = place_of_key(&at, "job_name");
            check_unique(r, &name, jobs[i].name, seen);
        }
    }
    map_free(seen, NULL);
}

bool config_has_store(const struct config *c)
{
    bool any = false;
    for (size_t i = 0; i < c->n_endpoints && !any; i++) {
        const struct config_endpoint *e = &c->endpoints[i];
        any = e->protocol != NULL && e->protocol->is_store;
    }
    return any;
}

bool config_works_without_jobs(const struct config *c)
{
    return c->receive.server.listen[0] != '\0' || config_has_store(c);
}

/* Reports an empty list if the process has no other work. Nothing is reported after an error in
 * another key, because that key may be the other work. */
static void check_any_work(struct reader *r, const struct place *at, const struct config *c)
{
    if (!r->partial && !config_works_without_jobs(c) && (r->reported == 0 || c->n_endpoints == 0)) {
        reader_error(r, at,
                     "at least one job is needed without receive.listen and without an endpoint "
                     "store:///DIRECTORY");
    }
}

void read_jobs(struct reader *r, const struct place *root, struct config *c)
{
    struct place at = place_of_key(root, "scrape_configs");
    struct array list = {0};
    size_t before = r->reported;
    if (at.node != root->node) {
        read_list(r, &at, sizeof(struct config_job), read_job, c, &list);
    }
    if (list.n == 0 && r->reported == before && !r->out_of_memory) {
        check_any_work(r, &at, c);
    }
    c->jobs = list.at;
    c->n_jobs = list.n;
    if (list.at != NULL) {
        check_names(r, &at, c->jobs);
    }
}
