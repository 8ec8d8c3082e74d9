/* Configuration -> normalised YAML. Strings are double-quoted with escapes, "${" in them is
 * escaped, secrets become "<secret>". What the file may leave out because it is the default of an
 * HTTP client key or empty is left out; everything else is written. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

#define SECRET "<secret>"

struct dumper {
    struct buf *out;
    int indent;      /* levels of two spaces */
    bool after_dash; /* the next key stands behind "- " */
};

/* ---- the writer
 * ----------------------------------------------------------------------------------------- */

static void begin_line(struct dumper *d)
{
    if (d->after_dash) {
        d->after_dash = false;
        return;
    }
    for (int i = 0; i < d->indent; i++) {
        buf_puts(d->out, "  ");
    }
}

/* Opens an element of a list, which must be a mapping; close it with dump_end(). */
static void dump_element(struct dumper *d)
{
    begin_line(d);
    buf_puts(d->out, "- ");
    d->indent++;
    d->after_dash = true;
}

static void dump_end(struct dumper *d)
{
    d->indent--;
}

/* Opens a mapping or a list under a key; close it with dump_end(). */
static void dump_begin(struct dumper *d, const char *key)
{
    begin_line(d);
    buf_printf(d->out, "%s:\n", key);
    d->indent++;
}

static void dump_plain(struct dumper *d, const char *key, const char *value)
{
    begin_line(d);
    buf_printf(d->out, "%s: %s\n", key, value);
}

static void dump_bool(struct dumper *d, const char *key, bool value)
{
    dump_plain(d, key, value ? "true" : "false");
}

static void dump_number(struct dumper *d, const char *key, uint64_t value)
{
    begin_line(d);
    buf_printf(d->out, "%s: %llu\n", key, (unsigned long long)value);
}

static void dump_duration(struct dumper *d, const char *key, int64_t ms)
{
    char text[32];
    format_duration_ms(ms, text, sizeof(text));
    dump_plain(d, key, text);
}

static void dump_size(struct dumper *d, const char *key, uint64_t bytes)
{
    char text[32];
    format_size(bytes, text, sizeof(text));
    dump_plain(d, key, text);
}

/* One character; *i goes on. The text is valid UTF-8. */
static uint32_t next_char(const char *s, size_t n, size_t *i)
{
    unsigned char c = (unsigned char)s[*i];
    int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    uint32_t code = more == 0 ? c : c & (0x3fU >> more);
    (*i)++;
    for (; more > 0 && *i < n; more--) {
        code = (code << 6) | ((unsigned char)s[*i] & 0x3fU);
        (*i)++;
    }
    return code;
}

/* What YAML lets stand in double quotes and does not read as a line break. */
static bool stands_for_itself(uint32_t c)
{
    if (c < 0x80) {
        return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    }
    return c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

static void put_escaped(struct buf *out, const char *s, bool expands)
{
    size_t n = strlen(s);
    buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t from = i;
        uint32_t c = next_char(s, n, &i);
        if (expands && c == '$' && s[i] == '{') {
            buf_puts(out, "$$");
        } else if (stands_for_itself(c)) {
            buf_append(out, s + from, i - from);
        } else if (c == '"' || c == '\\') {
            buf_printf(out, "\\%c", (int)c);
        } else if (c == '\n') {
            buf_puts(out, "\\n");
        } else {
            buf_printf(out, "\\u%04X", (unsigned)c);
        }
    }
    buf_putc(out, '"');
}

static void put_quoted(struct buf *out, const char *s)
{
    put_escaped(out, s, false);
}

/* A value in which environment variables are filled in at load. */
static void put_text(struct buf *out, const char *s)
{
    put_escaped(out, s, true);
}

/* NULL is left out. */
static void dump_text(struct dumper *d, const char *key, const char *value)
{
    if (value != NULL) {
        begin_line(d);
        buf_printf(d->out, "%s: ", key);
        put_text(d->out, value);
        buf_putc(d->out, '\n');
    }
}

static void dump_raw(struct dumper *d, const char *key, const char *value)
{
    if (value != NULL) {
        begin_line(d);
        buf_printf(d->out, "%s: ", key);
        put_quoted(d->out, value);
        buf_putc(d->out, '\n');
    }
}

static void dump_secret(struct dumper *d, const char *key, const char *value)
{
    dump_text(d, key, value == NULL ? NULL : SECRET);
}

static void dump_strings(struct dumper *d, const char *key, const struct config_strings *strings)
{
    begin_line(d);
    buf_printf(d->out, "%s: [", key);
    for (size_t i = 0; i < strings->n; i++) {
        buf_puts(d->out, i == 0 ? "" : ", ");
        put_text(d->out, strings->at[i]);
    }
    buf_puts(d->out, "]\n");
}

/* Pairs with different names; none are left out. */
static void dump_pairs(struct dumper *d, const char *key, const struct config_pairs *pairs,
                       bool secret)
{
    if (pairs->n == 0) {
        return;
    }
    dump_begin(d, key);
    for (size_t i = 0; i < pairs->n; i++) {
        begin_line(d);
        put_quoted(d->out, pairs->at[i].name);
        buf_puts(d->out, ": ");
        put_text(d->out, secret ? SECRET : pairs->at[i].value);
        buf_putc(d->out, '\n');
    }
    dump_end(d);
}

/* Pairs of which neighbours may have the same name: each name with a list. */
static void dump_params(struct dumper *d, const char *key, const struct config_pairs *pairs)
{
    if (pairs->n == 0) {
        return;
    }
    dump_begin(d, key);
    for (size_t i = 0; i < pairs->n; i++) {
        bool first = i == 0 || strcmp(pairs->at[i].name, pairs->at[i - 1].name) != 0;
        bool last = i + 1 == pairs->n || strcmp(pairs->at[i].name, pairs->at[i + 1].name) != 0;
        if (first) {
            begin_line(d);
            put_quoted(d->out, pairs->at[i].name);
        }
        buf_puts(d->out, first ? ": [" : ", ");
        put_text(d->out, pairs->at[i].value);
        buf_puts(d->out, last ? "]\n" : "");
    }
    dump_end(d);
}

/* ---- HTTP client keys
 * ---------------------------------------------------------------------------------------- */

static void dump_auth(struct dumper *d, const struct http_settings *h)
{
    switch (h->auth) {
    case HTTP_AUTH_NONE:
    case HTTP_AUTH_OAUTH2: /* see dump_oauth2() */
        break;
    case HTTP_AUTH_BASIC:
        dump_begin(d, "basic_auth");
        dump_text(d, "username", h->username);
        dump_text(d, "username_file", h->username_file);
        dump_secret(d, "password", h->password);
        dump_text(d, "password_file", h->password_file);
        dump_end(d);
        break;
    case HTTP_AUTH_HEADER:
        dump_begin(d, "authorization");
        dump_text(d, "type", h->auth_type == NULL ? "Bearer" : h->auth_type);
        dump_secret(d, "credentials", h->credentials);
        dump_text(d, "credentials_file", h->credentials_file);
        dump_end(d);
        break;
    }
}

static bool any_tls(const struct http_settings *h)
{
    return h->tls.ca_pem != NULL || h->tls.ca_file != NULL || h->tls.cert_pem != NULL ||
           h->tls.cert_file != NULL || h->tls.key_pem != NULL || h->tls.key_file != NULL ||
           h->tls.server_name != NULL || h->tls.insecure_skip_verify ||
           h->tls.min_version != HTTP_TLS_DEFAULT || h->tls.max_version != HTTP_TLS_DEFAULT;
}

static void dump_tls(struct dumper *d, const struct http_settings *h)
{
    static const char *const versions[] = {NULL, "TLS10", "TLS11", "TLS12", "TLS13"};
    if (!any_tls(h)) {
        return;
    }
    dump_begin(d, "tls_config");
    dump_text(d, "ca", h->tls.ca_pem);
    dump_text(d, "ca_file", h->tls.ca_file);
    dump_text(d, "cert", h->tls.cert_pem);
    dump_text(d, "cert_file", h->tls.cert_file);
    dump_secret(d, "key", h->tls.key_pem);
    dump_text(d, "key_file", h->tls.key_file);
    dump_text(d, "server_name", h->tls.server_name);
    if (h->tls.insecure_skip_verify) {
        dump_bool(d, "insecure_skip_verify", true);
    }
    if (h->tls.min_version != HTTP_TLS_DEFAULT) {
        dump_plain(d, "min_version", versions[h->tls.min_version]);
    }
    if (h->tls.max_version != HTTP_TLS_DEFAULT) {
        dump_plain(d, "max_version", versions[h->tls.max_version]);
    }
    dump_end(d);
}

/* The password of a proxy URL is between "//" and the last "@". */
static void dump_proxy_url(struct dumper *d, const char *url)
{
    const char *at = url == NULL ? NULL : strrchr(url, '@');
    const char *slashes = at == NULL ? NULL : strstr(url, "//");
    if (slashes == NULL) {
        dump_text(d, "proxy_url", url);
        return;
    }
    struct buf hidden;
    buf_init(&hidden, d->out->max);
    buf_append(&hidden, url, (size_t)(slashes + 2 - url));
    buf_printf(&hidden, SECRET "%s", at);
    dump_text(d, "proxy_url", buf_ok(&hidden) ? hidden.data : SECRET);
    buf_done(&hidden);
}

/* Neighbours have the same name where one has several values. */
static void dump_http_headers(struct dumper *d, const char *key, const struct http_header *at,
                              size_t n)
{
    if (n == 0) {
        return;
    }
    dump_begin(d, key);
    for (size_t i = 0; i < n; i++) {
        const char *name = at[i].name;
        bool first = i == 0 || strcmp(name, at[i - 1].name) != 0;
        bool last = i + 1 == n || strcmp(name, at[i + 1].name) != 0;
        if (first) {
            begin_line(d);
            put_quoted(d->out, name);
        }
        buf_puts(d->out, first ? ": [" : ", ");
        put_quoted(d->out, SECRET);
        buf_puts(d->out, last ? "]\n" : "");
    }
    dump_end(d);
}

static void dump_transport(struct dumper *d, const struct http_settings *h)
{
    dump_tls(d, h);
    dump_proxy_url(d, h->proxy_url);
    dump_text(d, "no_proxy", h->no_proxy);
    if (h->proxy_from_environment) {
        dump_bool(d, "proxy_from_environment", true);
    }
    dump_http_headers(d, "proxy_connect_header", h->proxy_headers, h->n_proxy_headers);
}

static void dump_oauth2(struct dumper *d, const struct http_oauth2 *o)
{
    struct config_strings scopes = {.at = o->scopes, .n = o->n_scopes};
    dump_begin(d, "oauth2");
    dump_text(d, "client_id", o->client_id);
    dump_secret(d, "client_secret", o->client_secret);
    dump_text(d, "client_secret_file", o->client_secret_file);
    dump_text(d, "token_url", o->token_url);
    if (o->n_scopes > 0) {
        dump_strings(d, "scopes", &scopes);
    }
    if (o->n_params > 0) {
        dump_begin(d, "endpoint_params");
        for (size_t i = 0; i < o->n_params; i++) {
            begin_line(d);
            put_quoted(d->out, o->params[i].name);
            buf_puts(d->out, ": ");
            put_quoted(d->out, SECRET);
            buf_putc(d->out, '\n');
        }
        dump_end(d);
    }
    dump_transport(d, &o->transport);
    dump_end(d);
}

static void dump_http(struct dumper *d, const struct http_settings *h)
{
    dump_auth(d, h);
    if (h->auth == HTTP_AUTH_OAUTH2) {
        dump_oauth2(d, h->oauth2);
    }
    dump_transport(d, h);
    if (!h->follow_redirects) {
        dump_bool(d, "follow_redirects", false);
    }
    if (!h->enable_http2) {
        dump_bool(d, "enable_http2", false);
    }
    dump_http_headers(d, "http_headers", h->headers, h->n_headers);
}

/* ---- jobs
 * ------------------------------------------------------------------------------------------------------
 */

static void dump_type(struct dumper *d, const struct config_type *t)
{
    dump_bool(d, "enabled", t->enabled);
    dump_text(d, "path", t->path);
    dump_duration(d, "interval", t->interval_ms);
    dump_duration(d, "timeout", t->timeout_ms);
    if (t->seconds > 0) {
        dump_duration(d, "seconds", t->seconds * MS_PER_S);
    }
    if (t->continuous) {
        dump_bool(d, "continuous", true);
    }
    dump_params(d, "params", &t->params);
    dump_plain(d, "delta", config_delta_name(t->delta));
}

static void dump_profiles(struct dumper *d, const struct config_job *job)
{
    dump_begin(d, "profiles");
    dump_text(d, "path_prefix", job->path_prefix);
    size_t i = 0;
    for (; i < job->n_types && i < CONFIG_BUILTIN_TYPES; i++) {
        dump_begin(d, job->types[i].key);
        dump_type(d, &job->types[i]);
        dump_end(d);
    }
    if (i < job->n_types) {
        dump_begin(d, "custom");
        for (; i < job->n_types; i++) {
            dump_element(d);
            dump_text(d, "name", job->types[i].name);
            dump_bool(d, "sampling", job->types[i].sampling && job->types[i].delta != DELTA_SERVER);
            dump_plain(d, "format", config_format_name(job->types[i].format));
            dump_type(d, &job->types[i]);
            dump_end(d);
        }
        dump_end(d);
    }
    dump_end(d);
}

static void dump_kubernetes(struct dumper *d, const struct config_kubernetes *k)
{
    dump_text(d, "role", config_role_name(k->role));
    dump_begin(d, "namespaces");
    dump_bool(d, "own_namespace", k->own_namespace);
    dump_strings(d, "names", &k->namespaces);
    dump_end(d);
    if (k->n_selectors > 0) {
        dump_begin(d, "selectors");
    }
    for (size_t i = 0; i < k->n_selectors; i++) {
        dump_element(d);
        dump_text(d, "role", config_role_name(k->selectors[i].role));
        dump_text(d, "label", k->selectors[i].label);
        dump_text(d, "field", k->selectors[i].field);
        dump_end(d);
    }
    if (k->n_selectors > 0) {
        dump_end(d);
    }
    if (k->attach_node || k->attach_namespace) {
        dump_begin(d, "attach_metadata");
        dump_bool(d, "node", k->attach_node);
        dump_bool(d, "namespace", k->attach_namespace);
        dump_end(d);
    }
    dump_text(d, "api_server", k->api_server);
    dump_text(d, "kubeconfig_file", k->kubeconfig_file);
    dump_http(d, &k->http);
}

/* The query of a URL may hold a token. */
static void dump_query_url(struct dumper *d, const char *key, const char *url)
{
    const char *query = strchr(url, '?');
    if (query == NULL) {
        dump_text(d, key, url);
        return;
    }
    struct buf hidden;
    buf_init(&hidden, d->out->max);
    buf_append(&hidden, url, (size_t)(query + 1 - url));
    buf_puts(&hidden, SECRET);
    dump_text(d, key, buf_ok(&hidden) ? hidden.data : SECRET);
    buf_done(&hidden);
}

static void dump_source(struct dumper *d, const struct config_source *s)
{
    switch (s->kind) {
    case SOURCE_STATIC:
        dump_strings(d, "targets", &s->fixed.targets);
        dump_pairs(d, "labels", &s->fixed.labels, false);
        break;
    case SOURCE_FILE:
        dump_strings(d, "files", &s->file.files);
        dump_duration(d, "refresh_interval", s->file.refresh_ms);
        break;
    case SOURCE_HTTP:
        dump_query_url(d, "url", s->http.url);
        dump_duration(d, "refresh_interval", s->http.refresh_ms);
        dump_http(d, &s->http.http);
        break;
    case SOURCE_KUBERNETES:
        dump_kubernetes(d, &s->kubernetes);
        break;
    }
}

static void dump_sources(struct dumper *d, const struct config_job *job,
                         enum config_source_kind kind, const char *key)
{
    bool open = false;
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_source *s = &job->sources[i];
        if (s->kind != kind) {
            continue;
        }
        if (!open) {
            dump_begin(d, key);
            open = true;
        }
        dump_element(d);
        dump_source(d, s);
        dump_end(d);
    }
    if (open) {
        dump_end(d);
    }
}

static void dump_rules(struct dumper *d, const char *key, const struct config_rules *rules)
{
    if (rules->n == 0) {
        return;
    }
    dump_begin(d, key);
    for (size_t i = 0; i < rules->n; i++) {
        const struct config_rule *rule = &rules->at[i];
        dump_element(d);
        dump_plain(d, "action", config_action_name(rule->action));
        if (rule->source_labels.n > 0) {
            dump_strings(d, "source_labels", &rule->source_labels);
        }
        dump_raw(d, "separator", rule->separator);
        dump_raw(d, "regex", rule->regex);
        if (rule->has_modulus) {
            dump_number(d, "modulus", rule->modulus);
        }
        dump_raw(d, "target_label", rule->target_label);
        dump_raw(d, "replacement", rule->replacement);
        dump_end(d);
    }
    dump_end(d);
}

static void dump_forward_to(struct dumper *d, const struct config *c, uint64_t set)
{
    bool first = true;
    begin_line(d);
    buf_puts(d->out, "forward_to: [");
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if ((set >> i & 1) != 0) {
            buf_puts(d->out, first ? "" : ", ");
            put_text(d->out, c->endpoints[i].name);
            first = false;
        }
    }
    buf_puts(d->out, "]\n");
}

static void dump_sampling(struct dumper *d, const struct config_job *job)
{
    if (job->sample_percent == 100 && job->sample_max == 0) {
        return;
    }
    dump_begin(d, "sampling");
    dump_number(d, "percent", job->sample_percent);
    if (job->sample_max > 0) {
        dump_number(d, "max_per_service", job->sample_max);
    }
    dump_end(d);
}

static void dump_job(struct dumper *d, const struct config *c, const struct config_job *job)
{
    dump_element(d);
    dump_text(d, "job_name", job->name);
    dump_duration(d, "scrape_interval", job->interval_ms);
    dump_duration(d, "scrape_timeout", job->timeout_ms);
    dump_plain(d, "scheme", job->scheme);
    dump_params(d, "params", &job->params);
    dump_size(d, "body_size_limit", job->body_size_limit);
    dump_number(d, "target_limit", job->target_limit);
    dump_sampling(d, job);
    dump_profiles(d, job);
    dump_sources(d, job, SOURCE_STATIC, "static_configs");
    dump_sources(d, job, SOURCE_FILE, "file_sd_configs");
    dump_sources(d, job, SOURCE_HTTP, "http_sd_configs");
    dump_sources(d, job, SOURCE_KUBERNETES, "kubernetes_sd_configs");
    dump_rules(d, "relabel_configs", &job->relabel);
    dump_rules(d, "profile_relabel_configs", &job->profile_relabel);
    dump_forward_to(d, c, job->forward_to);
    dump_bool(d, "allow_foreign_address", job->allow_foreign_address);
    dump_http(d, &job->http);
    dump_end(d);
}

/* ---- the rest
 * ----------------------------------------------------------------------------------------------------
 */

static void dump_spool(struct dumper *d, const struct config_endpoint *e)
{
    dump_text(d, "spool_directory", e->spool_directory);
    dump_size(d, "spool_max_bytes", e->spool_max_bytes);
    if (e->spool_fsync_ms == CONFIG_FSYNC_ALWAYS) {
        dump_plain(d, "fsync", "always");
    } else if (e->spool_fsync_ms == CONFIG_FSYNC_NEVER) {
        dump_plain(d, "fsync", "never");
    } else {
        dump_duration(d, "fsync", e->spool_fsync_ms);
    }
}

static void dump_label_limits(struct dumper *d, const struct config_label_limits *l)
{
    dump_begin(d, "label_limits");
    dump_number(d, "max_names", l->max_names);
    dump_number(d, "max_name_length", l->max_name_length);
    dump_number(d, "max_value_length", l->max_value_length);
    dump_end(d);
}

static void dump_endpoint(struct dumper *d, const struct config_endpoint *e)
{
    dump_element(d);
    dump_text(d, "name", e->name);
    dump_text(d, "url", e->url);
    if (e->protocol != NULL) {
        dump_plain(d, "protocol", e->protocol->name);
    }
    dump_text(d, "tenant_id", e->tenant_id);
    dump_pairs(d, "headers", &e->headers, true);
    dump_duration(d, "remote_timeout", e->remote_timeout_ms);
    dump_begin(d, "retry");
    dump_duration(d, "min_backoff", e->min_backoff_ms);
    dump_duration(d, "max_backoff", e->max_backoff_ms);
    dump_duration(d, "max_age", e->max_age_ms);
    dump_bool(d, "on_429", e->retry_on_429);
    dump_end(d);
    dump_begin(d, "queue");
    dump_size(d, "max_bytes", e->queue_max_bytes);
    if (e->spool_directory != NULL) {
        dump_spool(d, e);
    }
    dump_end(d);
    dump_number(d, "concurrency", e->concurrency);
    dump_label_limits(d, &e->label_limits);
    dump_http(d, &e->http);
    dump_end(d);
}

static void dump_globals(struct dumper *d, const struct config *c)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    dump_begin(d, "global");
    dump_duration(d, "scrape_interval", c->global.scrape_interval_ms);
    dump_duration(d, "scrape_timeout", c->global.scrape_timeout_ms);
    dump_pairs(d, "external_labels", &c->global.external_labels, false);
    dump_size(d, "delta_state_max_bytes", c->global.delta_state_max_bytes);
    dump_size(d, "bodies_max_bytes", c->global.bodies_max_bytes);
    dump_label_limits(d, &c->global.label_limits);
    dump_end(d);
    dump_begin(d, "server");
    dump_text(d, "listen", c->server.listen);
    dump_end(d);
    dump_begin(d, "log");
    dump_plain(d, "level", levels[c->log.level]);
    dump_plain(d, "format", c->log.format == LOG_JSON ? "json" : "logfmt");
    dump_end(d);
}

static void dump_sharding(struct dumper *d, const struct config_sharding *s)
{
    if (s->mode == SHARDING_NONE) {
        return;
    }
    dump_begin(d, "sharding");
    dump_plain(d, "mode", config_sharding_mode_name(s->mode));
    if (s->mode == SHARDING_STATIC) {
        dump_number(d, "replicas", s->replicas);
        dump_number(d, "index", s->index);
    } else {
        dump_text(d, "service", s->service);
        dump_text(d, "namespace", s->namespace);
        dump_text(d, "pod_name", s->pod_name);
        if (s->kubernetes.kubeconfig_file != NULL) {
            dump_text(d, "kubeconfig_file", s->kubernetes.kubeconfig_file);
        }
        dump_duration(d, "handover", s->handover_ms);
        dump_duration(d, "isolation_timeout", s->isolation_ms);
    }
    dump_end(d);
}

bool config_dump(const struct config *c, struct buf *out)
{
    struct dumper d = {.out = out};
    dump_globals(&d, c);
    dump_sharding(&d, &c->sharding);
    dump_begin(&d, "scrape_configs");
    for (size_t i = 0; i < c->n_jobs; i++) {
        dump_job(&d, c, &c->jobs[i]);
    }
    dump_end(&d);
    dump_begin(&d, "write");
    for (size_t i = 0; i < c->n_endpoints; i++) {
        dump_endpoint(&d, &c->endpoints[i]);
    }
    dump_end(&d);
    return buf_ok(out);
}
