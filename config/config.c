/* Loading: file -> tree -> `struct config`, and its reference count. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/dump.h"
#include "config/expand.h"
#include "config/file.h"
#include "config/language.h"
#include "config/memory.h"
#include "config/parts.h"
#include "config/warnings.h"

/* The memory limit of a configuration, and of the scratch space while it is loaded. */
#define ARENA_MAX (UINT64_C(64) * 1024 * 1024)
/* The default address in a container, whose interfaces are its own: others may read its pages as
 * well. */
#define LISTEN_IN_CONTAINER "0.0.0.0:4041"

/* The allocation that contains a `struct config`. The arena holds it and everything it points to.
 */
struct box {
    struct config config; /* first: callers see only this */
    struct box *self;     /* gives access to the mutable box from a const pointer */
    struct arena *arena;
    atomic_uint refs;
};

static struct box *box_of(const struct config *c)
{
    return ((const struct box *)c)->self;
}

struct config *config_ref(const struct config *c)
{
    struct box *box = box_of(c);
    atomic_fetch_add_explicit(&box->refs, 1, memory_order_relaxed);
    return &box->config;
}

struct config *config_unref(const struct config *c)
{
    if (c != NULL) {
        struct box *box = box_of(c);
        if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) == 1) {
            arena_free(box->arena);
        }
    }
    return NULL;
}

static struct box *box_new(void)
{
    struct arena *arena = arena_new(ARENA_MAX);
    if (arena == NULL) {
        return NULL;
    }
    struct box *box = arena_alloc(arena, sizeof(*box));
    if (box == NULL) {
        arena_free(arena);
        return NULL;
    }
    box->self = box;
    box->arena = arena;
    atomic_init(&box->refs, 1);
    return box;
}

/* Casts const away: only the code that makes a configuration changes its lists. */
void config_number_slots(struct config *c)
{
    for (size_t i = 0; i < c->n_jobs; i++) {
        ((struct config_job *)(uintptr_t)&c->jobs[i])->slot = (unsigned)i;
    }
    for (size_t i = 0; i < c->n_endpoints; i++) {
        ((struct config_endpoint *)(uintptr_t)&c->endpoints[i])->slot = (unsigned)i;
    }
}

struct config *config_wrap(const struct config *values)
{
    struct box *box = box_new();
    if (box == NULL) {
        return NULL;
    }
    box->config = *values;
    return &box->config;
}

/* ---- global, log ----------------------------------------------------------------------------- */

static const struct range range_memory = {1024 * 1024, UINT64_C(1) << 40};
static const struct range range_limit = {UINT64_C(32) << 20, UINT64_C(1) << 40};

static const struct field global_rows[] = {
    ROW(config, "scrape_interval", global.scrape_interval_ms, &kind_duration,
        .arg = &range_interval, .initial.ms = 15000),
    ROW(config, "scrape_timeout", global.scrape_timeout_ms, &kind_duration, .arg = &range_interval,
        .initial.ms = CONFIG_TIMEOUT_MS),
    ROW(config, "external_labels", global.external_labels, &kind_pairs, .arg = &pairs_external),
    ROW(config, "memory_limit", global.memory_limit, &kind_size, .arg = &range_limit,
        .optional = true),
    /* If a file does not set these, they are shares of memory_limit: see share_memory(). */
    ROW(config, "delta_state_max_bytes", global.delta_state_max_bytes, &kind_size,
        .arg = &range_memory),
    ROW(config, "bodies_max_bytes", global.bodies_max_bytes, &kind_size, .arg = &range_memory),
    ROW(config, "mask_all_params", global.mask_all_params, &kind_bool),
    ROW(config, "label_limits", global.label_limits, &kind_mapping, .arg = &schema_label_limits),
};
static const struct schema schema_global = SCHEMA(global_rows, 0);

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};
static const struct choices levels = CHOICES(level_names);
static const char *const format_names[] = {[LOG_LOGFMT] = "logfmt", [LOG_JSON] = "json"};
static const struct choices formats = CHOICES(format_names);

static const struct field log_rows[] = {
    ROW(config, "level", log.level, &kind_choice, .arg = &levels, .initial.number = LOG_INFO),
    ROW(config, "format", log.format, &kind_choice, .arg = &formats, .initial.number = LOG_LOGFMT),
};
static const struct schema schema_log = SCHEMA(log_rows, 0);

static bool has_sharding(const void *record)
{
    return ((const struct config *)record)->sharding.mode != SHARDING_NONE;
}

static bool has_symbols(const void *record)
{
    const struct symbols_settings *s = &((const struct config *)record)->symbols;
    return s->sources.given;
}

static const struct field root_rows[] = {
    PART("global", &kind_mapping, .arg = &schema_global),
    ROW(config, "server", server, &kind_mapping, .arg = &schema_server),
    ROW(config, "query", query, &kind_mapping, .arg = &schema_query),
    ROW(config, "receive", receive, &kind_mapping, .arg = &schema_receive, .optional = true),
    ROW(config, "record", record, &kind_mapping, .arg = &schema_record, .optional = true),
    PART("log", &kind_mapping, .arg = &schema_log),
    ROW(config, "sharding", sharding, &kind_mapping, .arg = &schema_sharding, .when = has_sharding),
    ROW(config, "symbols", symbols, &kind_mapping, .arg = &schema_symbols, .when = has_symbols),
    ROW(config, "scrape_configs", jobs, &kind_deferred, .arg = &schema_job),
    ROW(config, "write", endpoints, &kind_deferred, .arg = &schema_endpoint),
};
const struct schema schema_root = SCHEMA(root_rows, sizeof(struct config));

void set_defaults(struct config *c)
{
    schema_defaults(&schema_root, c);
    schema_defaults(&schema_http, &c->sharding.kubernetes.http);
    c->global.label_limits = (struct config_label_limits)CONFIG_LABEL_LIMITS_DEFAULT;
}

static void apply_listen(struct reader *r, struct config *c)
{
    const char *listen = r->options == NULL ? NULL : r->options->listen;
    if (listen != NULL) {
        c->server.listen = reader_option(r, "--listen", &text_listen, listen);
    }
}

/* Returns true if a configuration without the key `scrape_configs` gets no jobs: the process does
 * not run in a cluster, which the built-in jobs need, and it has other work. */
static bool works_outside_of_clusters(const struct reader *r, const struct config *c)
{
    const char *host = expand_lookup(r->options, "KUBERNETES_SERVICE_HOST");
    return (host == NULL || host[0] == '\0') && config_works_without_jobs(c);
}

/* Reads the jobs of the built-in configuration. An error in them can only come from the environment
 * variables that they use. */
static void read_builtin_jobs(struct reader *r, struct config *c)
{
    r->file = CONFIG_BUILTIN_NAME;
    config_errors_set_file(r->errors, r->file);
    struct place at = {.node = reader_parse(r, config_builtin())};
    if (at.node != NULL) {
        read_jobs(r, &at, c);
    }
}

static struct memory_server memory_of_server(const struct config_server *s, bool used)
{
    return (struct memory_server){.used = used,
                                  .concurrency = s->concurrency,
                                  .request = s->max_bytes,
                                  .bodies = s->bodies_max_bytes};
}

/* Gives every ceiling of memory that the file does not set its share. */
static void share_memory(const struct reader *r, const struct yaml_node *root, struct config *c)
{
    uint64_t available = r->options == NULL ? 0 : r->options->memory_available;
    struct memory_input in = {
        .limit =
            c->global.memory_limit != 0 ? c->global.memory_limit : available / 100 * MEMORY_PERCENT,
        .bodies = c->global.bodies_max_bytes,
        .baselines = c->global.delta_state_max_bytes,
        .n_queues = c->n_endpoints,
        .query = memory_of_server(&c->query, config_has_store(c)),
        .receive = memory_of_server(&c->receive.server, c->receive.server.listen[0] != '\0'),
    };
    for (size_t i = 0; i < c->n_endpoints; i++) {
        in.queues += c->endpoints[i].queue_max_bytes;
        in.n_given += c->endpoints[i].queue_max_bytes != 0;
    }
    memory_plan(&in, &c->memory);
    c->global.bodies_max_bytes = c->memory.bodies;
    c->global.delta_state_max_bytes = c->memory.baselines;
    c->query.max_bytes = in.query.request;
    c->query.bodies_max_bytes = in.query.bodies;
    if (yaml_get(root, "receive") != NULL) { /* a section that is absent keeps its defaults */
        c->receive.server.max_bytes = in.receive.request;
        c->receive.server.bodies_max_bytes = in.receive.bodies;
    }
    endpoints_complete(c);
}

void config_read_tree(struct reader *r, const struct yaml_node *root, struct config *c)
{
    struct place at = {.node = root};
    set_defaults(c);
    if (r->options != NULL && r->options->in_container) {
        c->server.listen = LISTEN_IN_CONTAINER;
    }
    if (root->kind != YAML_MAPPING && !yaml_is_null(root)) {
        reader_error(r, &at, "expected a mapping, got %s", yaml_what(root));
        return;
    }
    schema_read(r, &at, &schema_root, c);
    apply_listen(r, c);
    check_servers(r, &at, c);
    apply_sharding_service(r, c);
    check_peers(r, &at, c);
    read_endpoints(r, &at, c);
    share_memory(r, root, c);
    read_receive(r, &at, c);
    if (yaml_get(root, "scrape_configs") != NULL) {
        read_jobs(r, &at, c);
    } else if (r->reported > 0) {
        return; /* the errors are about the user's file only */
    } else if (works_outside_of_clusters(r, c)) {
        c->lacks_cluster = true;
    } else {
        read_builtin_jobs(r, c);
    }
    append_enrich_job(r, c);
}

static void read_root(struct reader *r, const void *arg, struct config *c, void *out)
{
    (void)out;
    const struct yaml_node *root = reader_parse(r, *(const struct sv *)arg);
    if (root != NULL) {
        config_read_tree(r, root, c);
    }
}

static void reader_on_import(void *arg, const char *path)
{
    struct reader *r = arg;
    if (r->imports == NULL) {
        r->imports = reader_alloc(r, CONFIG_IMPORTS_MAX, sizeof(*r->imports));
    }
    const char *copy = r->imports != NULL && r->n_imports < CONFIG_IMPORTS_MAX
                           ? reader_strndup(r, path, strlen(path))
                           : NULL;
    if (copy != NULL) {
        r->imports[r->n_imports++] = copy;
    }
}

/* Texts in another language; they live longer than the reader. */
struct language_texts {
    const struct config_language *language;
    const struct config_texts *texts;
};

static void read_language_root(struct reader *r, const void *arg, struct config *c, void *out)
{
    const struct language_texts *from = arg;
    (void)out;
    const struct config_messages messages = {
        .errors = r->errors,
        .warnings = r->options != NULL ? r->options->warnings : NULL,
        .notes = r->options != NULL ? r->options->notes : NULL,
        .on_import = reader_on_import,
        .arg = r,
    };
    size_t before = config_errors_count(r->errors);
    const struct yaml_node *root =
        from->language->read(from->texts, r->options, r->scratch, &messages);
    r->partial = root != NULL && root->incomplete;
    if (root != NULL) {
        config_read_tree(r, root, c);
    }
    if (r->partial || config_errors_count(r->errors) > before) {
        r->reported++;
    } else if (root == NULL) {
        r->out_of_memory = true;
    }
}

/* A list of rules, or a mapping with the key relabel_configs. */
static void read_rules_root(struct reader *r, const void *arg, struct config *c, void *out)
{
    static const struct field rows[] = {
        PART("relabel_configs", &kind_rules, .arg = &schema_rule, .required = true),
    };
    static const struct schema schema = SCHEMA(rows, 0);
    const struct yaml_node *root = reader_parse(r, *(const struct sv *)arg);
    struct place at = {.node = root};
    if (root == NULL) {
        return;
    }
    set_defaults(c);
    if (root->kind == YAML_MAPPING) {
        schema_read(r, &at, &schema, out);
    } else if (root->kind == YAML_LIST) {
        kind_rules.read(r, &at, &schema_rule, out);
    } else {
        reader_error(r, &at,
                     "expected a list of rules or a mapping with the key relabel_configs, "
                     "got %s",
                     yaml_what(root));
    }
}

bool config_dump(const struct config *c, struct buf *out)
{
    struct config shown = *c;
    shown.n_jobs = config_scrape_jobs(c);
    return dump_document(c, &schema_root, &shown, schema_write, out);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Returns "dir/" for "dir/file"; "" if the name has no directory. */
static const char *directory_of(struct reader *r, const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash == NULL ? "" : reader_strndup(r, name, (size_t)(slash - name) + 1);
}

static void out_of_memory(struct reader *r)
{
    config_errors_add(r->errors, 0, 0, "", "not enough memory for this file");
    r->reported++;
}

struct config *config_read(const char *name, const struct config_options *options,
                           struct config_errors *errors, root_fn *fn, const void *arg, void *out)
{
    struct box *box = box_new();
    struct reader r = {.errors = errors, .options = options, .scratch = arena_new(ARENA_MAX)};
    config_errors_set_file(errors, name);
    if (box == NULL || r.scratch == NULL) {
        out_of_memory(&r);
    } else {
        r.arena = box->arena;
        r.file = reader_strndup(&r, name, strlen(name));
        r.directory = directory_of(&r, name);
        box->config.file = r.file;
        if (!r.out_of_memory) {
            fn(&r, arg, &box->config, out);
            box->config.contents = (struct config_strings){r.contents, r.n_contents};
            box->config.imports = (struct config_strings){r.imports, r.n_imports};
            config_number_slots(&box->config);
        }
        if (r.out_of_memory) {
            out_of_memory(&r);
        }
    }
    arena_free(r.scratch);
    if (r.reported > 0 && box != NULL) {
        arena_free(box->arena);
        box = NULL;
    }
    return box == NULL ? NULL : &box->config;
}

void config_name_file(const struct config_options *options, struct config_errors *errors,
                      const char *name)
{
    config_errors_set_file(errors, name);
    if (options->warnings != NULL && options->notes != NULL) {
        config_errors_set_file(options->warnings, name);
        config_errors_set_file(options->notes, name);
    }
}

struct config *config_read_language(const struct config_language *language,
                                    const struct config_texts *texts,
                                    const struct config_options *options,
                                    struct config_errors *errors)
{
    const struct language_texts from = {language, texts};
    config_name_file(options, errors, texts->at[0].name);
    return config_read(texts->at[0].name, options, errors, read_language_root, &from, NULL);
}

const struct config_language *config_first_language(const struct config_options *options)
{
    return options == NULL || options->languages == NULL ? NULL : options->languages[0];
}

bool config_read_texts(const char *path, const struct config_options *options,
                       struct config_errors *errors, struct arena **ret_arena,
                       struct config_texts *ret_texts)
{
    struct err err = ERR_INIT;
    const struct config_language *language = config_first_language(options);
    *ret_arena = arena_new(ARENA_MAX);
    bool ok = false;
    if (*ret_arena == NULL) {
        err_memory(&err);
    } else if (strcmp(path, "-") == 0) {
        ok = config_texts_read_stdin(*ret_arena, ret_texts, &err);
    } else {
        ok = config_texts_read(path, language == NULL ? NULL : language->suffix, *ret_arena,
                               ret_texts, &err);
    }
    if (!ok) {
        config_errors_set_file(errors, path);
        config_errors_add(errors, 0, 0, "", err.msg);
    }
    return ok;
}

static struct config *load(const char *path, const struct config_options *options,
                           struct config_errors *errors, root_fn *fn, void *out)
{
    struct err err = ERR_INIT;
    struct buf text;
    struct config *c = NULL;
    if (path == NULL) {
        const struct sv builtin = config_builtin();
        return config_read(CONFIG_BUILTIN_NAME, options, errors, fn, &builtin, out);
    }
    buf_init(&text, CONFIG_FILE_MAX + 1);
    if (file_read(path, CONFIG_FILE_MAX, &text, &err)) {
        c = config_read(path, options, errors, fn, &(struct sv){text.data, text.len}, out);
    } else {
        config_errors_set_file(errors, path);
        config_errors_add(errors, 0, 0, "", err.msg);
    }
    buf_done(&text);
    return c;
}

/* Adds warnings about the configuration, if the options have a list for them. */
static struct config *doubted(struct config *c, const struct config_options *options)
{
    if (c != NULL && options != NULL && options->warnings != NULL) {
        config_warn(c, options->warnings);
    }
    return c;
}

/* Returns the language that recognises the texts; NULL: they are YAML. */
static const struct config_language *language_of(const char *path,
                                                 const struct config_options *options,
                                                 const struct config_texts *texts)
{
    const struct config_language *const *at = options == NULL ? NULL : options->languages;
    while (at != NULL && *at != NULL && !(*at)->recognises(path, texts)) {
        at++;
    }
    return at == NULL ? NULL : *at;
}

struct config *config_load(const char *path, const struct config_options *options,
                           struct config_errors *errors)
{
    struct arena *arena;
    struct config_texts texts;
    struct config *c = NULL;
    if (path == NULL) {
        return doubted(load(path, options, errors, read_root, NULL), options);
    }
    if (config_read_texts(path, options, errors, &arena, &texts)) {
        const struct config_text *first = &texts.at[0];
        const struct config_language *language = language_of(path, options, &texts);
        c = language != NULL
                ? config_read_language(language, &texts, options, errors)
                : config_read(first->name, options, errors, read_root, &first->text, NULL);
    }
    arena_free(arena);
    return doubted(c, options);
}

struct config *config_parse(const char *name, struct sv text, const struct config_options *options,
                            struct config_errors *errors)
{
    return doubted(config_read(name, options, errors, read_root, &text, NULL), options);
}

struct config *config_load_rules(const char *path, const struct config_options *options,
                                 struct config_errors *errors, struct config_rules *ret_rules)
{
    struct config_rules rules = {0};
    struct config *c = load(path, options, errors, read_rules_root, &rules);
    if (c != NULL) {
        *ret_rules = rules;
    }
    return c;
}
