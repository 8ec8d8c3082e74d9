#include "agent/confinement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/files.h"
#include "base/str.h"
#include "config/file.h"
#include "config/file_names.h"
#include "config/web_config.h"
#include "discovery/kubernetes/access.h"
#include "http/url.h"

/* The most memory for reading a kubeconfig. */
#define KUBECONFIG_MAX ((size_t)64 << 20)
#define PATH_BYTES_MAX ((size_t)64 * 1024)
/* A disk that has not answered after this time is taken to hang. */
#define HANGING_MS 1000

/* ---- what is needed -------------------------------------------------------------------------- */

/* Paths that libc, OpenSSL and profpull read. They are directories where programs replace a file by
 * another one with the same name, as resolv.conf is. */
static const char *const system_paths[] = {
    "/etc",           /* resolv.conf, hosts, nsswitch.conf, localtime, ssl */
    "/usr",           /* zoneinfo, CA certificates, libraries that libc loads when it needs them */
    "/lib",           /* the same where /usr is not merged */
    "/lib64",         /* the same */
    "/nix/store",     /* the same on NixOS */
    "/proc",          /* our own memory, descriptors and limits; Landlock guards those of others */
    "/sys/fs/cgroup", /* our limits */
    "/sys/devices/system/cpu",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/var/lib/ca-certificates",
    "/dev/urandom",
    "/dev/random",
    "/dev/null",
    KUBE_SERVICE_ACCOUNT_DIR,
};
/* Files that may be symbolic links to other directories. */
static const char *const system_files[] = {
    "/etc/resolv.conf", "/etc/hosts",     "/etc/nsswitch.conf",
    "/etc/gai.conf",    "/etc/localtime", "/etc/ssl/certs/ca-certificates.crt",
};
/* Environment variables with the paths of further files and directories. */
static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF",
                                        KUBE_SERVICE_ACCOUNT_ENV};

static void add_system(struct sandbox *s)
{
    for (size_t i = 0; i < sizeof(system_paths) / sizeof(system_paths[0]); i++) {
        if (access(system_paths[i], F_OK) == 0) {
            sandbox_read(s, system_paths[i]);
        }
    }
    for (size_t i = 0; i < sizeof(system_files) / sizeof(system_files[0]); i++) {
        if (access(system_files[i], F_OK) == 0) {
            sandbox_read_file(s, system_files[i]);
        }
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no other threads yet */
        const char *value = getenv(variables[i]);
        if (value != NULL && value[0] != '\0') {
            sandbox_read(s, value);
        }
    }
}

static void confinement_on_name(void *arg, const struct file_name *n)
{
    sandbox_read_file(arg, n->file);
}

/* Allows the files of a kubeconfig or a service account. If a file cannot be read, discovery
 * reports the error. */
static void add_cluster(struct sandbox *s, const struct config_kubernetes *k)
{
    struct kube_env env = {.get = NULL};
    struct kube_access found;
    struct arena *arena = arena_new(KUBECONFIG_MAX);
    if (arena != NULL && kube_access_find(k, &env, arena, &found, NULL)) {
        config_file_names_of(&found.http, &(struct file_name){.kind = "kubeconfig"},
                             confinement_on_name, s);
        if (found.exec != NULL) {
            sandbox_start_programs(s);
        }
    }
    arena_free(arena);
}

/* Allows the files with tokens for the credentials of buckets, which the environment names. */
static void add_credentials(struct sandbox *s, const struct bucket_settings *b)
{
    static const char *const token_files[] = {"AWS_WEB_IDENTITY_TOKEN_FILE",
                                              "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                              "GOOGLE_APPLICATION_CREDENTIALS"};
    for (size_t i = 0; i < sizeof(token_files) / sizeof(token_files[0]); i++) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no other threads yet */
        const char *value = getenv(token_files[i]);
        if (b->credentials != CREDENTIALS_CONFIGURED && value != NULL && value[0] != '\0') {
            sandbox_read_file(s, value);
        }
    }
}

static void add_symbols(struct sandbox *s, const struct symbols_sources *sources)
{
    for (size_t i = 0; i < sources->directories.n; i++) {
        sandbox_read(s, sources->directories.at[i]);
    }
}

static void add_source(struct sandbox *s, const struct config_source *source)
{
    if (source->kind == SOURCE_KUBERNETES) {
        add_cluster(s, &source->kubernetes);
    } else if (source->kind == SOURCE_FILE) {
        for (size_t i = 0; i < source->file.files.n; i++) {
            sandbox_read_file(s, source->file.files.at[i]);
        }
    }
}

/* Appends the directory in which an endpoint keeps profiles; returns false if the endpoint has
 * none. */
static bool local_directory(const struct config_endpoint *e, struct buf *ret)
{
    buf_init(ret, PATH_BYTES_MAX);
    return config_endpoint_is_directory(e) && !e->store_read_only &&
           url_to_directory(sv_from(e->url), ret, NULL);
}

/* Calls fn for each directory that a configuration writes to, with the mode to make it with. */
static void each_written(const struct config *config,
                         void (*fn)(void *arg, const char *path, mode_t mode), void *arg)
{
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        struct buf directory;
        if (local_directory(e, &directory)) {
            fn(arg, directory.data, 0777);
        }
        if (e->spool_directory != NULL) {
            fn(arg, e->spool_directory, 0700);
        }
        buf_done(&directory);
        if (e->archive.cache_directory != NULL) {
            fn(arg, e->archive.cache_directory, 0777);
        }
    }
    if (config->symbols.cache_directory != NULL) {
        fn(arg, config->symbols.cache_directory, 0700);
    }
}

static const struct hung_directory *find_hung(const struct confinement *c, const char *path)
{
    for (size_t i = 0; i < c->n_hung; i++) {
        if (strcmp(c->hung[i].path, path) == 0) {
            return &c->hung[i];
        }
    }
    return NULL;
}

static void note_hung(struct confinement *c, const char *path)
{
    char root[PATH_BYTES_MAX];
    if (c->n_hung < sizeof(c->hung) / sizeof(c->hung[0])) {
        bool known = disk_hanging_root(path, root, sizeof(root), HANGING_MS);
        struct hung_directory *h = &c->hung[c->n_hung];
        *h = (struct hung_directory){strdup(path), known ? strdup(root) : NULL};
        c->n_hung += h->path != NULL;
    }
}

/* Makes a directory with the mode that its owner (a spool, a store) uses as well. Errors are
 * ignored here: the owner makes the directory again later and reports them. The owner also deals
 * with a disk that does not answer: the start does not wait for it. */
static void make_written(void *arg, const char *path, mode_t mode)
{
    struct confinement *c = arg;
    if (find_hung(c, path) == NULL && !disk_answers_child(path, HANGING_MS)) {
        note_hung(c, path);
    } else if (find_hung(c, path) == NULL) {
        (void)make_directories(path, mode, NULL);
    }
}

struct listing {
    const struct confinement *confinement;
    struct sandbox *sandbox;
};

static void list_written(void *arg, const char *path, mode_t mode)
{
    const struct listing *l = arg;
    const struct hung_directory *hung = find_hung(l->confinement, path);
    (void)mode;
    if (hung == NULL) {
        sandbox_write(l->sandbox, path);
    } else if (hung->root != NULL) {
        sandbox_write_hanging(l->sandbox, hung->root);
    }
}

/* Allows the files that a web configuration file names. If that file is wrong, the server reports
 * the error.
 */
static void add_web_config(struct sandbox *s, const char *file)
{
    struct buf text;
    struct web_config web;
    buf_init(&text, WEB_CONFIG_MAX + 1);
    if (file_read(file, WEB_CONFIG_MAX, &text, NULL) &&
        web_config_parse(file, (struct sv){text.data, text.len}, &web, NULL)) {
        const char *const named[] = {web.tls.cert_file, web.tls.key_file, web.tls.client_ca_file};
        for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
            if (named[i] != NULL) {
                sandbox_read_file(s, named[i]);
            }
        }
        web_config_done(&web);
    }
    buf_done(&text);
}

static void add_server(struct sandbox *s, const struct config_server *server)
{
    if (server->web_config_file != NULL) {
        add_web_config(s, server->web_config_file);
    }
    const char *colon = strrchr(server->listen, ':');
    uint64_t port;
    if (colon != NULL && parse_u64(sv_from(colon + 1), UINT16_MAX, &port)) {
        sandbox_listen(s, (uint16_t)port);
    }
}

/* Allows a configuration file, unless its name is not that of a file, as for the built-in
 * configuration. */
static void add_config_file(struct sandbox *s, const char *file)
{
    if (access(file, F_OK) == 0) {
        sandbox_read_file(s, file);
        sandbox_read(s, file);
    }
}

static struct sandbox *sandbox_of(const struct confinement *c, const struct config *config)
{
    struct sandbox *s = sandbox_new();
    if (s == NULL) {
        return NULL;
    }
    add_system(s);
    add_config_file(s, config->file);
    for (size_t i = 0; i < config->imports.n; i++) {
        add_config_file(s, config->imports.at[i]);
    }
    config_file_names(config, confinement_on_name, s);
    for (size_t i = 0; i < config->n_endpoints; i++) {
        add_credentials(s, &config->endpoints[i].bucket);
        if (config->endpoints[i].archive.url != NULL) {
            add_credentials(s, &config->endpoints[i].archive.bucket);
        }
    }
    add_symbols(s, &config->symbols.sources);
    for (size_t i = 0; i < config->n_jobs; i++) {
        add_symbols(s, &config->jobs[i].symbols);
        for (size_t j = 0; j < config->jobs[i].n_sources; j++) {
            add_source(s, &config->jobs[i].sources[j]);
        }
    }
    if (config->sharding.mode == SHARDING_KUBERNETES) {
        add_cluster(s, &config->sharding.kubernetes);
    }
    each_written(config, list_written, &(struct listing){c, s});
    add_server(s, &config->server);
    add_server(s, &config->query);
    add_server(s, &config->receive.server);
    return s;
}

/* ---- modes ----------------------------------------------------------------------------------- */

const char *confinement_mode_name(size_t i)
{
    static const char *const names[CONFINEMENT_MODES] = {
        [CONFINEMENT_ON] = "on",
        [CONFINEMENT_OFF] = "off",
        [CONFINEMENT_REQUIRED] = "required",
    };
    return i < CONFINEMENT_MODES ? names[i] : NULL;
}

enum confinement_mode confinement_mode_named(const char *name)
{
    enum confinement_mode mode = CONFINEMENT_ON;
    while (mode < CONFINEMENT_REQUIRED && strcmp(confinement_mode_name(mode), name) != 0) {
        mode++;
    }
    return mode;
}

/* ---- in force -------------------------------------------------------------------------------- */

/* Returns true if all parts of the sandbox are in force; false with an error that names the first
 * part that is not. */
static bool check_report(const struct sandbox_report *report, struct err *err)
{
    for (enum sandbox_part i = 0; i < SANDBOX_PARTS; i++) {
        if (!report->on[i]) {
            return err_set(err, ERR_SYSTEM, "--sandbox=required: %s: %s", sandbox_part_name(i),
                           report->why[i].msg);
        }
    }
    return true;
}

bool confinement_enter(struct confinement *c, enum confinement_mode mode,
                       const struct config *config, struct err *err)
{
    *c = (struct confinement){.mode = mode};
    if (mode == CONFINEMENT_OFF) {
        return true;
    }
    each_written(config, make_written, c);
    c->sandbox = sandbox_of(c, config);
    if (c->sandbox == NULL) {
        return err_memory(err);
    }
    return sandbox_enter(c->sandbox, &c->report, err) &&
           (mode != CONFINEMENT_REQUIRED || check_report(&c->report, err));
}

void confinement_done(struct confinement *c)
{
    c->sandbox = sandbox_free(c->sandbox);
    for (size_t i = 0; i < c->n_hung; i++) {
        free(c->hung[i].path);
        free(c->hung[i].root);
    }
    c->n_hung = 0;
}

void confinement_report(const struct confinement *c, struct log *log, struct metrics *metrics)
{
    struct metric *family = metrics_family(
        metrics, METRIC_GAUGE, "profpull_sandbox",
        "1 if this part of the sandbox is in force: no_new_privs, seccomp, landlock.", "part",
        NULL);
    struct log_field fields[SANDBOX_PARTS + 1] = {[SANDBOX_PARTS] = LOG_END};
    char version[32];
    (void)snprintf(version, sizeof(version), "version %d", c->report.landlock_version);
    for (enum sandbox_part i = 0; i < SANDBOX_PARTS; i++) {
        const char *on = i == SANDBOX_LANDLOCK ? version : "on";
        const char *why = c->mode == CONFINEMENT_OFF ? "off" : c->report.why[i].msg;
        fields[i] = LOG_STR(sandbox_part_name(i), c->report.on[i] ? on : why);
        metric_set(metric_cell_of(family, sandbox_part_name(i)), c->report.on[i]);
    }
    log_write(log, LOG_INFO, "sandbox", fields);
}

bool confinement_allows(const struct confinement *c, const struct config *next, struct err *err)
{
    if (c->sandbox == NULL) {
        return true;
    }
    struct sandbox *wanted = sandbox_of(c, next);
    bool ok = wanted != NULL ? sandbox_covers(c->sandbox, wanted, err) : err_memory(err);
    sandbox_free(wanted);
    return ok || err_append(err, ": the sandbox does not allow it: restart profpull");
}
