/* The list `write`: the endpoints that profiles are sent to. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/dump.h"
#include "config/memory.h"
#include "config/parts.h"
#include "http/url.h"

#define DEFAULT_NAME "main"

const struct config_protocol *const *reader_protocols(const struct reader *r)
{
    static const struct config_protocol *const none[] = {NULL};
    return r->options != NULL && r->options->protocols != NULL ? r->options->protocols : none;
}

/* Reads the name of a protocol, or "auto", with which the URL decides. "pyroscope" means push. */
static void read_protocol(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const struct config_protocol *const *all = reader_protocols(r);
    size_t n = 0;
    while (all[n] != NULL) {
        n++;
    }
    const char **names = arena_array(r->scratch, n + 1, sizeof(names[0]));
    if (names == NULL) {
        r->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = all[i]->name;
    }
    names[n] = "auto";
    unsigned index = (unsigned)n;
    struct yaml_node push = *at->node;
    struct place place = *at;
    if (sv_eq(push.text, SV("pyroscope"))) { /* the server that most people push to */
        push.text = SV("push");
        place.node = &push;
    }
    kind_choice.read(r, &place, &(struct choices){names, n + 1}, &index);
    if (index < n) {
        *(const struct config_protocol **)out = all[index];
    }
}

static void write_protocol(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    const struct config_protocol *p = *(const struct config_protocol *const *)value;
    if (p != NULL) {
        dump_word(d, key, p->name);
    }
}

static const struct kind kind_protocol = {.read = read_protocol, .write = write_protocol};

/* Returns true for the scheme, "://" and an absolute path other than "/". */
static bool is_directory_url(struct sv v, const char *scheme)
{
    struct sv name = sv_from(scheme);
    if (!sv_starts_with(v, name) || !sv_starts_with(sv_skip(v, name.n), SV("://"))) {
        return false;
    }
    struct sv path = sv_skip(v, name.n + strlen("://"));
    while (path.n > 0 && path.p[path.n - 1] == '/') {
        path.n--;
    }
    return path.n > 0 && path.p[0] == '/' && !sv_starts_with(path, SV("//"));
}

/* Returns the scheme of a URL if it is neither http nor https; NULL otherwise. */
static const char *own_scheme(struct sv v)
{
    static const char *const directories[] = {"file", "store"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        if (is_directory_url(v, directories[i])) {
            return directories[i];
        }
    }
    return s3_is_url(v) ? S3_SCHEME : NULL;
}

static bool has_scheme(const struct config_protocol *p, struct sv url)
{
    const char *scheme = own_scheme(url);
    return scheme == p->scheme ||
           (scheme != NULL && p->scheme != NULL && strcmp(scheme, p->scheme) == 0);
}

static bool check_url(struct sv v)
{
    return own_scheme(v) != NULL || check_http_url(v);
}

/* Refuses a bucket: it needs keys for its access, which a command line cannot give. */
static bool check_option(struct sv v)
{
    return check_url(v) && !s3_is_url(v);
}

#define URL_EXPECTED                                                                               \
    "a URL such as \"http://host:4040\" without user, query and fragment, or "                     \
    "\"file:///directory\""

static const struct text_kind text_url = {.expected = URL_EXPECTED
                                          ", \"store:///directory\" or \"s3://bucket/prefix\" "
                                          "(" BUCKET_NAMES ")",
                                          .ok = check_url,
                                          .url = true};
static const struct text_kind text_option_url = {
    .expected = URL_EXPECTED " or \"store:///directory\"", .ok = check_option, .url = true};

/* ---- retry ----------------------------------------------------------------------------------- */

static void check_retry(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_endpoint *e = out;
    if (clean && e->min_backoff_ms > e->max_backoff_ms) {
        struct place place = place_of_key(
            at, yaml_get(at->node, "min_backoff") != NULL ? "min_backoff" : "max_backoff");
        char min[32];
        char max[32];
        format_duration_ms(e->min_backoff_ms, min, sizeof(min));
        format_duration_ms(e->max_backoff_ms, max, sizeof(max));
        reader_error(r, &place, "min_backoff (%s) is greater than max_backoff (%s)", min, max);
    }
}

static const struct range range_backoff = {1, MS_PER_HOUR * 24};
static const struct range range_age = {1, MS_PER_HOUR * 24 * 7};
static const struct range range_attempts = {0, 1000000};

static const struct field retry_rows[] = {
    ROW(config_endpoint, "min_backoff", min_backoff_ms, &kind_duration, .arg = &range_backoff,
        .initial.ms = 500),
    ROW(config_endpoint, "max_backoff", max_backoff_ms, &kind_duration, .arg = &range_backoff,
        .initial.ms = 5 * 60 * 1000),
    ROW(config_endpoint, "max_age", max_age_ms, &kind_duration, .arg = &range_age,
        .initial.ms = 55 * 60 * 1000),
    ROW(config_endpoint, "on_429", retry_on_429, &kind_bool, .initial.on = true),
    ROW(config_endpoint, "max_attempts", max_attempts, &kind_unsigned, .arg = &range_attempts,
        .optional = true),
};
static const struct schema schema_retry = SCHEMA(retry_rows, 0, .check = check_retry);

/* ---- queue ----------------------------------------------------------------------------------- */

#define FSYNC_MAX_MS 60000

/* Parses a duration, "always" or "never". */
static bool parse_fsync(struct sv v, int64_t *ret_ms)
{
    if (sv_eq_str(v, "always")) {
        *ret_ms = CONFIG_FSYNC_ALWAYS;
        return true;
    }
    if (sv_eq_str(v, "never")) {
        *ret_ms = CONFIG_FSYNC_NEVER;
        return true;
    }
    return parse_duration_ms(v, ret_ms, NULL) && *ret_ms >= 1 && *ret_ms <= FSYNC_MAX_MS;
}

static bool check_fsync(struct sv v)
{
    int64_t ms;
    return parse_fsync(v, &ms);
}

static void read_fsync(struct reader *r, const struct place *at, const void *arg, void *out)
{
    static const struct text_kind kind = {
        .expected = "\"always\", \"never\" or a duration from 1ms to 1m", .ok = check_fsync};
    (void)arg;
    const char *text = reader_text(r, at, &kind);
    if (text != NULL) {
        (void)parse_fsync(sv_from(text), out);
    }
}

static void write_fsync(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    int64_t ms = *(const int64_t *)value;
    if (ms == CONFIG_FSYNC_ALWAYS || ms == CONFIG_FSYNC_NEVER) {
        dump_word(d, key, ms == CONFIG_FSYNC_ALWAYS ? "always" : "never");
    } else {
        dump_duration(d, key, ms);
    }
}

static const struct kind kind_fsync = {read_fsync, write_fsync, .size = sizeof(int64_t)};

static bool has_spool(const void *record)
{
    return ((const struct config_endpoint *)record)->spool_directory != NULL;
}

static const struct range range_spool_bytes = {1 << 20, UINT64_C(1) << 44};

/* Keys that have no effect without spool_directory. */
static const struct field spool_rows[] = {
    ROW(config_endpoint, "spool_max_bytes", spool_max_bytes, &kind_size, .arg = &range_spool_bytes,
        .initial.size = UINT64_C(1) << 30),
    ROW(config_endpoint, "fsync", spool_fsync_ms, &kind_fsync, .initial.ms = 500),
};
static const struct schema schema_spool = SCHEMA(spool_rows, 0);

static void check_queue(struct reader *r, const struct place *at, bool clean, void *out)
{
    for (size_t i = 0; clean && !has_spool(out) && i < schema_spool.n; i++) {
        struct place place = place_of_key(at, spool_rows[i].key);
        if (place.node != at->node) {
            reader_error(r, &place, "has no effect without spool_directory");
        }
    }
}

static const struct range range_queue_bytes = {1024, UINT64_C(1) << 40};

static const struct field queue_rows[] = {
    /* If it is not given, the endpoint gets a share of memory_limit: see endpoints_complete(). */
    ROW(config_endpoint, "max_bytes", queue_max_bytes, &kind_size, .arg = &range_queue_bytes),
    ROW(config_endpoint, "spool_directory", spool_directory, &kind_text, .arg = &text_file_name),
    PART(NULL, &kind_mapping, .arg = &schema_spool, .when = has_spool),
};
static const struct schema schema_queue = SCHEMA(queue_rows, 0, .check = check_queue);

/* ---- directories ----------------------------------------------------------------------------- */

/* The value of a key that is not given, which endpoints_complete() replaces by that of the
 * protocol. */
#define UNSET_MS INT64_C(-1)
#define UNSET_BYTES UINT64_MAX

static const struct range range_kept_age = {0, 100 * 366 * MS_PER_DAY};
static const struct range range_kept_bytes = {0, UINT64_C(1) << 50};
static const struct range range_stretch = {60 * 1000, 7 * MS_PER_DAY};
static const struct range range_merge = {0, MS_PER_DAY};
static const struct range range_percent = {1, 100};

static const struct field retention_rows[] = {
    ROW(config_endpoint, "max_age", retention_max_age_ms, &kind_duration, .arg = &range_kept_age,
        .initial.ms = UNSET_MS),
    ROW(config_endpoint, "max_bytes", retention_max_bytes, &kind_size, .arg = &range_kept_bytes,
        .initial.size = UNSET_BYTES),
};
static const struct schema schema_retention = SCHEMA(retention_rows, 0);

static bool has_archive(const void *record)
{
    const struct config_endpoint *e = record;
    return e->archive.url != NULL;
}

static void check_store(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_endpoint *e = out;
    if (clean && e->store_stretch_ms % 1000 != 0) {
        struct place place = place_of_key(at, "stretch");
        reader_error(r, &place, "expected whole seconds");
    }
    if (clean && e->store_read_only && e->archive.url == NULL) {
        struct place place = place_of_key(at, "read_only");
        reader_error(r, &place,
                     "a store that is only read needs an archive: missing key "
                     "\"archive\"");
    }
}

static const struct field store_rows[] = {
    ROW(config_endpoint, "stretch", store_stretch_ms, &kind_duration, .arg = &range_stretch,
        .initial.ms = 60 * 60 * 1000),
    ROW(config_endpoint, "merge", store_merge_ms, &kind_duration, .arg = &range_merge,
        .initial.ms = 5 * 60 * 1000),
    ROW(config_endpoint, "merge_cpu", store_merge_cpu, &kind_unsigned, .arg = &range_percent,
        .initial.number = 25),
    ROW(config_endpoint, "archive", archive, &kind_mapping, .arg = &schema_archive,
        .when = has_archive),
    ROW(config_endpoint, "read_only", store_read_only, &kind_bool, .optional = true),
};
static const struct schema schema_store = SCHEMA(store_rows, 0, .check = check_store);

/* ---- OTLP ------------------------------------------------------------------------------------ */

static const struct range range_request_bytes = {64 * 1024, 64 << 20};
static const char *const compression_names[] = {[OTLP_GZIP] = "gzip", [OTLP_PLAIN] = "none"};
static const struct choices compressions = CHOICES(compression_names);
static const struct pairs_kind pairs_attributes = {.name = &text_nonempty, .value = &text_any};

static const struct field otlp_rows[] = {
    ROW(config_endpoint, "max_request_size", otlp_request_bytes, &kind_size,
        .arg = &range_request_bytes, .initial.size = 4 << 20),
    ROW(config_endpoint, "compression", otlp_compression, &kind_choice, .arg = &compressions),
    ROW(config_endpoint, "original_payload", otlp_original_payload, &kind_bool),
    ROW(config_endpoint, "resource_attributes", otlp_attributes, &kind_pairs,
        .arg = &pairs_attributes),
};
static const struct schema schema_otlp = SCHEMA(otlp_rows, 0);

static bool is_otlp(const void *record)
{
    const struct config_protocol *p = ((const struct config_endpoint *)record)->protocol;
    return p != NULL && p->is_otlp;
}

bool config_endpoint_takes_recordings(const struct config_endpoint *e)
{
    return e->protocol != NULL && e->protocol->takes_jfr && e->jfr == RECORDINGS_ORIGINAL;
}

static bool can_take_recordings(const void *record)
{
    const struct config_protocol *p = ((const struct config_endpoint *)record)->protocol;
    return p != NULL && p->takes_jfr;
}

bool config_endpoint_is_directory(const struct config_endpoint *e)
{
    return e->protocol != NULL && e->protocol->scheme != NULL && !e->protocol->is_s3;
}

static bool is_directory(const void *record)
{
    return config_endpoint_is_directory(record);
}

static bool is_s3(const void *record)
{
    const struct config_protocol *p = ((const struct config_endpoint *)record)->protocol;
    return p != NULL && p->is_s3;
}

static bool is_store(const void *record)
{
    const struct config_protocol *p = ((const struct config_endpoint *)record)->protocol;
    return p != NULL && p->is_store;
}

/* ---- labels of samples ----------------------------------------------------------------------- */

#define SAMPLE_NAMES_DEFAULT 6 /* Pyroscope's 30, less the 24 of label_limits.max_names */
#define SAMPLE_NAMES_UNSET UINT32_MAX

static const struct range range_sample_names = {0, 1024};
static const struct pairs_kind pairs_renamed = {.name = &text_nonempty, .value = &text_nonempty};

static const struct field sample_rows[] = {
    ROW(config_endpoint, "drop", sample_drop, &kind_strings, .arg = &text_nonempty,
        .optional = true),
    ROW(config_endpoint, "keep", sample_keep, &kind_strings, .arg = &text_nonempty,
        .optional = true),
    ROW(config_endpoint, "rename", sample_rename, &kind_pairs, .arg = &pairs_renamed),
    ROW(config_endpoint, "max_names", sample_names_max, &kind_unsigned, .arg = &range_sample_names,
        .initial.number = SAMPLE_NAMES_UNSET),
    ROW(config_endpoint, "repair", sample_repair, &kind_bool, .initial.on = true),
};
static const struct schema schema_sample_labels = SCHEMA(sample_rows, 0);

/* ---- an endpoint ----------------------------------------------------------------------------- */

static bool has_path(const struct config_protocol *p, struct sv url)
{
    for (size_t i = 0; i < CONFIG_PROTOCOL_PATHS && p->paths[i] != NULL; i++) {
        if (sv_ends_with(url, sv_from(p->paths[i]))) {
            return true;
        }
    }
    return false;
}

const struct config_protocol *config_protocol_of_url(const struct config_protocol *const *all,
                                                     const char *url)
{
    struct sv text = sv_from(url);
    const char *scheme = own_scheme(text);
    while (text.n > 0 && text.p[text.n - 1] == '/') {
        text.n--;
    }
    for (; all != NULL && *all != NULL; all++) {
        if (scheme != NULL ? has_scheme(*all, text) : has_path(*all, text)) {
            return *all;
        }
    }
    return NULL;
}

/* The protocol stays as it is if the URL does not name one. */
static void take_protocol_of_url(struct reader *r, struct config_endpoint *e)
{
    const struct config_protocol *p = config_protocol_of_url(reader_protocols(r), e->url);
    if (p != NULL) {
        e->protocol = p;
    }
}

/* Returns true if the file names a protocol other than "auto". */
static bool names_protocol(const struct yaml_node *endpoint)
{
    const struct yaml_node *given = yaml_get(endpoint, "protocol");
    return given != NULL && given->kind == YAML_SCALAR && !sv_eq_str(given->text, "auto");
}

/* Checks that URL and protocol fit together. */
static void check_protocol(struct reader *r, const struct place *at, struct config_endpoint *e)
{
    bool given = names_protocol(at->node);
    struct place place = place_of_key(at, given ? "protocol" : "url");
    struct sv url = sv_from(e->url);
    if (!given) {
        take_protocol_of_url(r, e);
        return;
    }
    if (e->protocol != NULL && !has_scheme(e->protocol, url)) {
        const char *scheme = own_scheme(url);
        reader_error(r, &place, "protocol \"%s\" does not go with a URL that begins with %s%s",
                     e->protocol->name, scheme != NULL ? scheme : "http",
                     scheme != NULL ? "://" : "");
    }
}

/* Reports keys that belong to another kind of destination. */
static void check_own_keys(struct reader *r, const struct place *at,
                           const struct config_endpoint *e)
{
    static const struct {
        const char *key;
        const char *problem;
    } keys[] = {{"retention", "has no effect: only file:// and store:// keep profiles"},
                {"store", "has no effect without a URL that begins with store://"},
                {"otlp", "has no effect without protocol: otlp"},
                {"s3", "has no effect without a URL that begins with s3://"}};
    bool has[] = {config_endpoint_is_directory(e), e->protocol->is_store, e->protocol->is_otlp,
                  e->protocol->is_s3};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct place place = place_of_key(at, keys[i].key);
        if (!has[i] && place.node != at->node) {
            reader_error(r, &place, "%s", keys[i].problem);
        }
    }
}

static void check_recordings(struct reader *r, const struct place *at,
                             const struct config_endpoint *e)
{
    struct place place = place_of_key(at, "jfr");
    if (place.node != at->node && e->jfr == RECORDINGS_ORIGINAL && !e->protocol->takes_jfr) {
        reader_error(r, &place, "protocol \"%s\" cannot carry recordings: expected convert",
                     e->protocol->name);
    }
}

static void check_http2(struct reader *r, const struct place *at, const struct config_endpoint *e)
{
    if (e->protocol->needs_http2 && !e->http.enable_http2) {
        struct place place = place_of_key(at, "enable_http2");
        reader_error(r, &place, "protocol \"%s\" needs HTTP/2: expected true, got false",
                     e->protocol->name);
    }
}

static void check_tenant(struct reader *r, const struct place *at, const struct config_endpoint *e)
{
    for (size_t i = 0; e->tenant_id[0] != '\0' && i < e->headers.n; i++) {
        if (strcasecmp(e->headers.at[i].name, "X-Scope-OrgID") == 0) {
            struct place place = place_of_key(at, "headers");
            reader_error(r, &place, "X-Scope-OrgID is set by tenant_id already");
        }
    }
}

static void check_endpoint(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct config_endpoint *e = out;
    if (yaml_is_null(at->node)) {
        reader_error(r, at, "expected a mapping, got null");
        return;
    }
    size_t before = r->reported;
    check_tenant(r, at, e);
    if (e->url != NULL && clean && r->reported == before) {
        check_protocol(r, at, e);
        if (e->protocol != NULL && r->reported == before) {
            check_own_keys(r, at, e);
            check_recordings(r, at, e);
            check_http2(r, at, e);
        }
        if (is_s3(e) && r->reported == before) {
            s3_complete(r, at, e);
        }
        if (e->archive.url != NULL) {
            bucket_complete(&e->archive.bucket, e->archive.url, &e->http);
        }
    }
}

static const struct pairs_kind pairs_headers = {
    .name = &text_any, .value = &text_header_value, .check = check_header_name};
static const struct range range_concurrency = {1, 256};
static const char *const recording_names[] = {
    [RECORDINGS_ORIGINAL] = "original", [RECORDINGS_CONVERT] = "convert"};
static const struct choices recordings = CHOICES(recording_names);

static const struct field endpoint_rows[] = {
    ROW(config_endpoint, "name", name, &kind_text, .arg = &text_nonempty),
    ROW(config_endpoint, "url", url, &kind_text, .arg = &text_url),
    ROW(config_endpoint, "protocol", protocol, &kind_protocol),
    ROW(config_endpoint, "tenant_id", tenant_id, &kind_text, .arg = &text_tenant,
        .initial.text = ""),
    ROW(config_endpoint, "headers", headers, &kind_pairs, .arg = &pairs_headers),
    ROW(config_endpoint, "external_labels", own_labels, &kind_pairs, .arg = &pairs_external),
    ROW(config_endpoint, "remote_timeout", remote_timeout_ms, &kind_duration,
        .arg = &range_interval, .initial.ms = 10000),
    PART("retry", &kind_mapping, .arg = &schema_retry),
    PART("queue", &kind_mapping, .arg = &schema_queue),
    PART("retention", &kind_mapping, .arg = &schema_retention, .when = is_directory),
    PART("store", &kind_mapping, .arg = &schema_store, .when = is_store),
    PART("otlp", &kind_mapping, .arg = &schema_otlp, .when = is_otlp),
    ROW(config_endpoint, "s3", bucket, &kind_mapping, .arg = &schema_s3, .when = is_s3),
    /* If it is not given, the protocol's value is used: see endpoints_complete(). */
    ROW(config_endpoint, "concurrency", concurrency, &kind_unsigned, .arg = &range_concurrency),
    ROW(config_endpoint, "jfr", jfr, &kind_choice, .arg = &recordings, .when = can_take_recordings),
    PART("sample_labels", &kind_mapping, .arg = &schema_sample_labels),
    ROW(config_endpoint, "label_limits", label_limits, &kind_mapping, .arg = &schema_label_limits),
    ROW(config_endpoint, NULL, http, &kind_mapping, .arg = &schema_http),
};
const struct schema schema_endpoint =
    SCHEMA(endpoint_rows, sizeof(struct config_endpoint), .check = check_endpoint);

static void endpoint_defaults(struct reader *r, const struct config *c, struct config_endpoint *e)
{
    *e = (struct config_endpoint){.protocol = reader_protocols(r)[0]};
    schema_defaults(&schema_endpoint, e);
    e->external_labels = c->global.external_labels;
    e->label_limits = c->global.label_limits;
}

static bool has_name(const struct config_pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->n; i++) {
        if (strcmp(pairs->at[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The endpoint's own labels, and the global ones that it does not replace. */
static void join_labels(struct reader *r, const struct config *c, struct config_endpoint *e)
{
    const struct config_pairs *global = &c->global.external_labels;
    if (e->own_labels.n == 0) {
        return;
    }
    struct config_pair *all = reader_alloc(r, global->n + e->own_labels.n, sizeof(*all));
    size_t n = 0;
    for (size_t i = 0; all != NULL && i < global->n; i++) {
        if (!has_name(&e->own_labels, global->at[i].name)) {
            all[n++] = global->at[i];
        }
    }
    for (size_t i = 0; all != NULL && i < e->own_labels.n; i++) {
        all[n++] = e->own_labels.at[i];
    }
    e->external_labels = (struct config_pairs){all, n};
}

/* arg: the struct config, whose global settings are complete. */
static void read_endpoint(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct config_endpoint *e = out;
    endpoint_defaults(r, arg, e);
    e->pos = place_pos(r, at);
    schema_read(r, at, &schema_endpoint, e);
    join_labels(r, arg, e);
}

/* ---- the list -------------------------------------------------------------------------------- */

struct endpoints {
    struct config_endpoint *at;
    size_t n;
};

static void check_names(struct reader *r, const struct place *list, struct endpoints *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct place at = place_of_element(list, i);
        if (at.node->kind != YAML_MAPPING) {
            continue;
        }
        struct place name = place_of_key(&at, "name");
        bool given = name.node != at.node;
        if (!given && all->n == 1) {
            all->at[i].name = DEFAULT_NAME;
        } else if (!given) {
            reader_error(r, &at, "missing required key \"name\" (there is more than one endpoint)");
        }
        for (size_t j = 0; j < i && all->at[i].name != NULL; j++) {
            if (all->at[j].name != NULL && strcmp(all->at[i].name, all->at[j].name) == 0) {
                complain_twice(r, &name, all->at[i].name, all->at[j].pos.line);
                break;
            }
        }
    }
}

static struct config_endpoint *find_main(const struct endpoints *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].name != NULL && strcmp(all->at[i].name, DEFAULT_NAME) == 0) {
            return &all->at[i];
        }
    }
    return NULL;
}

/* Returns the name of a setting that only the endpoint's own server may receive, such as its
 * credentials; NULL if it has none. */
static const char *confidential(const struct config_endpoint *e)
{
    const struct http_settings *http = &e->http;
    const struct {
        const char *what;
        bool has;
    } parts[] = {
        {"credentials", http->auth != HTTP_AUTH_NONE},
        {"client certificate", http->tls.cert_pem != NULL || http->tls.cert_file != NULL},
        {"headers", e->headers.n > 0},
        {"http_headers", http->n_headers > 0},
        {"tenant_id", e->tenant_id[0] != '\0'},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].has) {
            return parts[i].what;
        }
    }
    return NULL;
}

/* Returns true if two URLs have the same scheme, host and port. */
static bool same_server(const char *a, const char *b)
{
    struct url one;
    struct url other;
    bool same = false;
    if (!url_parse(a, &one, NULL)) {
        return false;
    }
    if (url_parse(b, &other, NULL)) {
        same =
            one.https == other.https && one.port == other.port && strcmp(one.host, other.host) == 0;
        url_done(&other);
    }
    url_done(&one);
    return same;
}

/* Refuses a URL that would send the credentials of an endpoint to another server than the file
 * names, or to the same server over plain HTTP. An endpoint without a URL accepts any server. */
static bool check_server(struct reader *r, const struct config_endpoint *e, const char *url)
{
    char message[1024];
    const char *what = confidential(e);
    if (e->url == NULL || what == NULL || own_scheme(sv_from(url)) != NULL ||
        same_server(e->url, url)) {
        return true;
    }
    snprintf(message, sizeof(message),
             "%.200s is not the server of the endpoint \"%s\", %.200s, and must not get its %s: "
             "leave --write.url out, or its %s, or rename the endpoint",
             url, e->name, e->url, what, what);
    r->reported++;
    config_errors_add(r->errors, 0, 0, "--write.url", message);
    return false;
}

/* Replaces the URL of "main" by that of the command line, or adds "main", for which the array has
 * room. */
static void apply_write_url(struct reader *r, const struct config *c, struct endpoints *all)
{
    const char *url = reader_option(r, "--write.url", &text_option_url, r->options->write_url);
    if (url == NULL) {
        return;
    }
    struct config_endpoint *e = find_main(all);
    if (e == NULL) {
        e = &all->at[all->n++];
        endpoint_defaults(r, c, e);
        e->name = DEFAULT_NAME;
        e->pos = (struct config_pos){.file = r->file};
    }
    if (!check_server(r, e, url)) {
        return;
    }
    e->url = url;
    e->protocol = reader_protocols(r)[0];
    take_protocol_of_url(r, e);
}

/* Reports endpoints without a URL that got none from the command line either. */
static void check_urls(struct reader *r, const struct place *list, const struct endpoints *all,
                       size_t n_in_file)
{
    for (size_t i = 0; i < n_in_file; i++) {
        struct place at = place_of_element(list, i);
        if (at.node->kind == YAML_MAPPING && yaml_get(at.node, "url") == NULL &&
            all->at[i].url == NULL) {
            reader_error(r, &at, "missing required key \"url\"");
        }
    }
}

/* Fills in what depends on the protocol. */
static void complete(struct config_endpoint *e)
{
    static const struct config_protocol none = {.concurrency = 0};
    const struct config_protocol *p = e->protocol != NULL ? e->protocol : &none;
    if (e->concurrency == 0) {
        e->concurrency = p->concurrency != 0 ? p->concurrency : CONFIG_CONCURRENCY;
    }
    e->sample_names_given = e->sample_names_max != SAMPLE_NAMES_UNSET;
    if (!e->sample_names_given) {
        bool limited = p->reads_sample_labels && e->sample_repair;
        e->sample_names_max = limited ? SAMPLE_NAMES_DEFAULT : 0;
    }
    if (e->retention_max_age_ms == UNSET_MS) {
        e->retention_max_age_ms = p->max_age_ms;
    }
    if (e->retention_max_bytes == UNSET_BYTES) {
        e->retention_max_bytes = p->max_bytes;
    }
}

void endpoints_complete(struct config *c)
{
    /* Casting const away is safe: the array is ours, and not shared yet. */
    struct config_endpoint *at = (struct config_endpoint *)(uintptr_t)c->endpoints;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (at[i].queue_max_bytes == 0) {
            at[i].queue_max_bytes = c->memory.queue;
        }
        at[i].config = c;
        complete(&at[i]);
    }
}

void read_one_endpoint(struct reader *r, const struct place *at, struct config *c)
{
    struct config_endpoint *e = reader_alloc(r, 1, sizeof(*e));
    if (e == NULL) {
        return;
    }
    read_endpoint(r, at, c, e);
    if (yaml_get(at->node, "url") == NULL) {
        reader_error(r, at, "missing required key \"url\"");
    }
    c->endpoints = e;
    c->n_endpoints = 1;
    c->memory.queue = MEMORY_QUEUE_DEFAULT;
    endpoints_complete(c);
}

void read_endpoints(struct reader *r, const struct place *root, struct config *c)
{
    struct place at = place_of_key(root, "write");
    struct array list = {0};
    size_t before = r->reported;
    bool given = at.node != root->node;
    if (given && at.node->n_items > CONFIG_ENDPOINTS_MAX) {
        reader_error(r, &at, "at most %d endpoints are possible", CONFIG_ENDPOINTS_MAX);
    } else if (given) {
        read_list(r, &at, sizeof(struct config_endpoint), read_endpoint, c, &list);
    }
    if (r->partial) {
        return;
    }
    struct endpoints all = {reader_alloc(r, list.n + 1, sizeof(*all.at)), list.n};
    if (all.at == NULL) {
        return;
    }
    if (list.at != NULL) {
        memcpy(all.at, list.at, list.n * sizeof(*all.at));
        check_names(r, &at, &all);
    }
    if (r->options != NULL && r->options->write_url != NULL) {
        apply_write_url(r, c, &all);
    } else if (all.n == 0 && r->reported == before && !r->out_of_memory) {
        reader_error(r, &at, "at least one endpoint is needed");
    }
    check_urls(r, &at, &all, list.n);
    if (all.n > CONFIG_ENDPOINTS_MAX) {
        reader_error(r, &at, "at most %d endpoints are possible, with that of the command line",
                     CONFIG_ENDPOINTS_MAX);
    }
    c->endpoints = all.at;
    c->n_endpoints = all.n > CONFIG_ENDPOINTS_MAX ? CONFIG_ENDPOINTS_MAX : all.n;
}
