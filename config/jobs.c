/* The list scrape_configs. */
#include <string.h>

#include "base/map.h"
#include "config/parts.h"

#define DEFAULT_BODY_LIMIT (UINT64_C(16) * 1024 * 1024)
#define DEFAULT_TARGET_LIMIT 20000
/* Largest values that the limits may have: what is beyond is a slip of the keyboard. */
#define BODY_LIMIT_MAX (UINT64_C(1) * 1024 * 1024 * 1024)
#define TARGET_LIMIT_MAX 1000000

#define FIELD(key_, read_, member, arg_)                                                           \
    {                                                                                              \
        .key = (key_), .read = (read_), .offset = offsetof(struct config_job, member),             \
        .arg = (arg_)                                                                              \
    }

static void read_scheme(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const char *const names[] = {"http", "https"};
    static const struct choices choices = {names, 2};
    unsigned index = 2;
    read_choice(r, at, &choices, &index);
    if (index < 2) {
        *(const char **)out = names[index];
    }
}

static const struct range range_body = {1, BODY_LIMIT_MAX};
static const struct range range_targets = {1, TARGET_LIMIT_MAX};

static const struct range range_percent = {1, 100};
static const struct range range_per_service = {1, TARGET_LIMIT_MAX};

/* Which processes of each service are scraped. */
static void read_sampling(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct field fields[] = {
        FIELD("percent", read_unsigned, sample_percent, &range_percent),
        FIELD("max_per_service", read_unsigned, sample_max, &range_per_service),
    };
    const struct section section = SECTION(fields, out);
    read_sections(r, at, &section, 1);
}

/* The interval and the like come before what builds on them. */
static const struct field job_fields[] = {
    {.key = "job_name",
     .read = read_text,
     .offset = offsetof(struct config_job, name),
     .arg = &text_nonempty,
     .required = true},
    FIELD("scrape_interval", read_duration, interval_ms, &range_interval),
    FIELD("scrape_timeout", read_duration, timeout_ms, &range_interval),
    FIELD("scheme", read_scheme, scheme, NULL),
    FIELD("params", read_pairs, params, &pairs_params),
    FIELD("body_size_limit", read_size, body_size_limit, &range_body),
    FIELD("target_limit", read_number, target_limit, &range_targets),
    {.key = "sampling", .read = read_sampling},
    {.key = "profiles", .read = read_elsewhere},
    {.key = "static_configs", .read = read_elsewhere},
    {.key = "kubernetes_sd_configs", .read = read_elsewhere},
    {.key = "file_sd_configs", .read = read_elsewhere},
    {.key = "http_sd_configs", .read = read_elsewhere},
    FIELD("relabel_configs", read_rules, relabel, NULL),
    FIELD("profile_relabel_configs", read_rules, profile_relabel, NULL),
    {.key = "forward_to", .read = read_elsewhere},
    FIELD("allow_foreign_address", read_bool, allow_foreign_address, NULL),
};

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
    const char *near = suggest(sv_from(name), names, n);
    reader_error(r, at, "no endpoint in write has the name %s%s%s%s",
                 reader_quote(r, sv_from(name)), near == NULL ? "" : "; did you mean \"",
                 near == NULL ? "" : near, near == NULL ? "" : "\"?");
}

static void read_forward_to(struct reader *r, const struct place *job_place, const struct config *c,
                            struct config_job *job)
{
    struct place at = place_of_key(job_place, "forward_to");
    job->forward_to =
        c->n_endpoints >= CONFIG_ENDPOINTS_MAX ? UINT64_MAX : (UINT64_C(1) << c->n_endpoints) - 1;
    if (at.node == job_place->node || !reader_enter(r, &at, YAML_LIST)) {
        return;
    }
    uint64_t set = 0;
    size_t index = 0;
    for (const struct yaml_item *i = at.node->items; i != NULL; i = i->next) {
        struct place element = {.parent = &at, .index = index, .node = i->value};
        const char *name = reader_text(r, &element, &text_nonempty);
        uint64_t bit = name == NULL ? 0 : endpoint_bit(c, name);
        if (name != NULL && bit == 0 && c->n_endpoints > 0) { /* none: said already */
            unknown_endpoint(r, &element, c, name);
        } else if ((set & bit) != 0) {
            reader_error(r, &element, "%s is named twice", reader_quote(r, sv_from(name)));
        }
        set |= bit;
        index++;
    }
    if (index == 0) {
        reader_error(r, &at, "expected at least one endpoint, got none");
    }
    job->forward_to = set;
}

/* "a", "a and b", "a, b and c": the protocols that do or do not take JFR. */
static const char *protocol_names(struct reader *r, bool takes_jfr, const char *last)
{
    const struct config_protocol *const *all = reader_protocols(r);
    struct buf out;
    size_t left = 0;
    buf_init(&out, 4096);
    for (size_t i = 0; all[i] != NULL; i++) {
        left += all[i]->takes_jfr == takes_jfr;
    }
    for (size_t i = 0; all[i] != NULL; i++) {
        if (all[i]->takes_jfr == takes_jfr) {
            buf_printf(&out, "%s%s", out.len == 0 ? "" : left == 1 ? last : ", ", all[i]->name);
            left--;
        }
    }
    const char *text = buf_ok(&out) ? arena_strndup(r->scratch, out.data, out.len) : NULL;
    buf_done(&out);
    return text == NULL ? "" : text;
}

static void complain_jfr(struct reader *r, const struct place *job_place, const char *type)
{
    struct place place = place_of_key(job_place, "profiles");
    reader_error(r, &place,
                 "%s has the format jfr, which the protocols %s cannot carry: an endpoint "
                 "with protocol %s is needed in forward_to",
                 reader_quote(r, sv_from(type)), protocol_names(r, false, " and "),
                 protocol_names(r, true, " or "));
}

/* A type whose profiles no endpoint of the job would take. */
static void check_formats(struct reader *r, const struct place *job_place, const struct config *c,
                          const struct config_job *job)
{
    for (size_t i = 0; i < c->n_endpoints; i++) {
        const struct config_protocol *protocol = c->endpoints[i].protocol;
        if ((job->forward_to >> i & 1) != 0 && (protocol == NULL || protocol->takes_jfr)) {
            return;
        }
    }
    for (size_t i = 0; i < job->n_types && c->n_endpoints > 0; i++) {
        if (job->types[i].enabled && job->types[i].format == FORMAT_JFR) {
            complain_jfr(r, job_place, job->types[i].key);
        }
    }
}

static void read_job(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const struct config *c = arg;
    struct config_job *job = out;
    *job = (struct config_job){
        .pos = place_pos(r, at),
        .interval_ms = c->global.scrape_interval_ms,
        .timeout_ms = c->global.scrape_timeout_ms,
        .scheme = "http",
        .body_size_limit = DEFAULT_BODY_LIMIT,
        .target_limit = DEFAULT_TARGET_LIMIT,
        .sample_percent = 100,
        .path_prefix = "",
    };
    http_defaults(&job->http);
    const struct section sections[] = {SECTION(job_fields, job), http_section(&job->http)};
    read_sections(r, at, sections, 2);
    if (at->node->kind != YAML_MAPPING) {
        return; /* reported: null lacks the name */
    }
    http_check(r, at);
    read_profiles(r, at, job);
    read_sources(r, at, job);
    read_forward_to(r, at, c, job);
    check_formats(r, at, c, job);
}

static void check_names(struct reader *r, const struct place *list, const struct config_job *jobs)
{
    struct map *seen = map_new();
    if (seen == NULL) {
        r->out_of_memory = true;
        return;
    }
    size_t index = 0;
    for (const struct yaml_item *i = list->node->items; i != NULL; i = i->next, index++) {
        if (jobs[index].name == NULL) {
            continue;
        }
        struct place at = {.parent = list, .index = index, .node = i->value};
        struct place name = place_of_key(&at, "job_name");
        const struct yaml_node *first = map_get(seen, sv_from(jobs[index].name));
        if (first != NULL) {
            complain_twice(r, &name, jobs[index].name, first->line);
        } else if (!map_put(seen, sv_from(jobs[index].name), (void *)(uintptr_t)name.node, NULL)) {
            r->out_of_memory = true;
        }
    }
    map_free(seen, NULL);
}

void read_jobs(struct reader *r, const struct place *root, struct config *c)
{
    struct place at = place_of_key(root, "scrape_configs");
    bool given = at.node != root->node;
    void *array = NULL;
    size_t n = 0;
    size_t before = r->reported;
    if (given) {
        read_list(r, &at, sizeof(struct config_job), read_job, c, &array, &n);
    }
    if (n == 0 && r->reported == before && !r->out_of_memory) {
        reader_error(r, &at, "at least one job is needed");
    }
    if (array != NULL) {
        check_names(r, &at, array);
    }
    c->jobs = array;
    c->n_jobs = n;
}
