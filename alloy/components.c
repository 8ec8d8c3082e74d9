/* The table of components, and those that need no file of their own. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "alloy/profiles.h"
#include "config/config.h"
#include "config/content.h"
#include "config/file.h"
#include "http/contents.h"

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])
#define BLOCKS(table) .blocks = (table), .n_blocks = sizeof(table) / sizeof((table)[0])
/* Returns the content of a file as a value. */
#define CONTENT_MAX ((size_t)1024 * 1024)

/* ---- local.file ------------------------------------------------------------------------------ */

static const struct alloy_attr file_attrs[] = {
    {.name = "filename", .type = ATTR_STRING, .required = true, .not_null = true},
    {.name = "is_secret", .type = ATTR_BOOL},
    {.name = "detector", .type = ATTR_STRING, .ignored = true},
    {.name = "poll_frequency", .type = ATTR_DURATION, .ignored = true},
};
static const struct alloy_schema file_schema = {ROWS(file_attrs)};

/* Returns the content of a file; empty, with a warning, if it cannot be read. A key that takes the
 * name of the file does not need the content. */
static struct sv read_content(struct alloy_load *l, const struct alloy_node *n, const char *name)
{
    struct buf text;
    struct err err = ERR_INIT;
    buf_init(&text, CONTENT_MAX + 1);
    bool ok = file_read(name, CONTENT_MAX, &text, &err);
    const char *copy = ok ? arena_strndup(l->arena, text.len > 0 ? text.data : "", text.len) : "";
    size_t len = ok && copy != NULL ? text.len : 0;
    buf_wipe(&text);
    if (!ok) {
        config_tell(l->warnings, n->stmt->place, n->path, "%s", err.msg);
    } else if (copy == NULL) {
        alloy_no_memory(l);
    }
    return (struct sv){copy != NULL ? copy : "", len};
}

static const char *absolute(struct alloy_load *l, struct sv name)
{
    char here[PATH_MAX];
    if (name.n > 0 && name.p[0] == '/') {
        return alloy_text(l, "%.*s", SV_ARG(name));
    }
    return alloy_text(l, "%s/%.*s", realpath(".", here) != NULL ? here : ".", SV_ARG(name));
}

static const struct alloy_value *local_file(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_stmt *stmt;
    const struct alloy_value *name;
    bool secret = false;
    alloy_read_block(&r, &file_schema, n->stmt, n->path,
                     tree_mapping(&l->tree, n->stmt->place, n->path), &given);
    const struct alloy_value *v = alloy_given(&given, "is_secret", &stmt);
    if (v != NULL) {
        (void)alloy_as_bool(&l->ev, stmt->value->place, v, &secret);
    }
    v = alloy_given(&given, "filename", &stmt);
    l->ev.path = alloy_path(l->arena, n->path, SV("filename"));
    if (v == NULL || !alloy_as_string(&l->ev, stmt->value->place, v, &name)) {
        return &alloy_unknown;
    }
    const char *path = absolute(l, name->text);
    struct alloy_value *content = alloy_value_new(l->arena, secret ? VALUE_SECRET : VALUE_STRING);
    if (content == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    content->maybe_secret = true;
    content->file = path;
    content->text = read_content(l, n, path);
    return alloy_export(l, "content", content);
}

/* ---- remote.kubernetes ----------------------------------------------------------------------- */

/* The interval at which Secrets and ConfigMaps are read while running. */
#define CONTENT_EVERY_NS (INT64_C(60) * 1000 * 1000 * 1000)

static const struct alloy_attr object_attrs[] = {
    {.name = "namespace", .type = ATTR_STRING, .required = true, .not_null = true},
    {.name = "name", .type = ATTR_STRING, .required = true, .not_null = true},
    {.name = "poll_frequency", .type = ATTR_DURATION},
    {.name = "poll_timeout", .type = ATTR_DURATION, .ignored = true},
};
static const struct alloy_inner object_blocks[] = {{.name = "client", .ignored = true}};
static const struct alloy_schema object_schema = {ROWS(object_attrs), BLOCKS(object_blocks)};

static void check_object_settings(struct alloy_load *l, const struct alloy_node *n,
                                  const struct alloy_given *given)
{
    const struct alloy_stmt *stmt;
    int64_t ns;
    const struct alloy_value *v = alloy_given(given, "poll_frequency", &stmt);
    if (v != NULL && alloy_as_duration(&l->ev, stmt->value->place, v, &ns) &&
        ns != CONTENT_EVERY_NS) {
        config_tell(l->notes, stmt->place, n->path,
                    "poll_frequency has no effect: it is read every minute, and soon after a "
                    "server has refused it");
    }
    for (const struct alloy_stmt *s = n->stmt->body.first; s != NULL; s = s->next) {
        if (s->value == NULL && sv_eq_str(s->name, "client")) {
            (void)alloy_fail(&l->ev, s->place,
                             "client is not supported: Secrets and ConfigMaps are read with the "
                             "rights of profpull's pod");
        }
    }
}

/* The value of an attribute as a string; NULL after an error. */
static const struct alloy_value *given_string(struct alloy_load *l, const struct alloy_given *given,
                                              const char *path, const char *name,
                                              struct config_place *ret_place)
{
    const struct alloy_stmt *stmt;
    const struct alloy_value *s;
    const struct alloy_value *v = alloy_given(given, name, &stmt);
    l->ev.path = alloy_path(l->arena, path, sv_from(name));
    if (v == NULL || !alloy_as_string(&l->ev, stmt->value->place, v, &s)) {
        return NULL;
    }
    *ret_place = stmt->value->place;
    return s;
}

static const struct alloy_value *kubernetes_object(struct alloy_load *l, struct alloy_node *n,
                                                   enum content_kind kind)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct config_place place;
    struct content_name parsed;
    alloy_read_block(&r, &object_schema, n->stmt, n->path,
                     tree_mapping(&l->tree, n->stmt->place, n->path), &given);
    check_object_settings(l, n, &given);
    const struct alloy_value *namespace = given_string(l, &given, n->path, "namespace", &place);
    const struct alloy_value *name = given_string(l, &given, n->path, "name", &place);
    struct alloy_value *data = alloy_value_new(l->arena, VALUE_HANDLE);
    if (data == NULL) {
        alloy_no_memory(l);
    }
    if (data == NULL || namespace == NULL || name == NULL) {
        return &alloy_unknown;
    }
    data->holder = alloy_text(l, HTTP_CONTENT_PREFIX "%s/%.*s/%.*s", content_kind_word(kind),
                              SV_ARG(namespace->text), SV_ARG(name->text));
    data->what = alloy_text(l, "the data of a %s", content_kind_title(kind));
    l->ev.path = n->path;
    if (!content_name_parse(sv_from(alloy_text(l, "%s/key", data->holder)), &parsed)) {
        return alloy_fail(&l->ev, place,
                          "expected the names of a namespace and of a %s in it, got \"%.*s\" and "
                          "\"%.*s\"",
                          content_kind_title(kind), SV_ARG(namespace->text), SV_ARG(name->text));
    }
    return alloy_export(l, "data", data);
}

static const struct alloy_value *kubernetes_secret(struct alloy_load *l, struct alloy_node *n)
{
    return kubernetes_object(l, n, CONTENT_SECRET);
}

static const struct alloy_value *kubernetes_configmap(struct alloy_load *l, struct alloy_node *n)
{
    return kubernetes_object(l, n, CONTENT_CONFIGMAP);
}

/* ---- services -------------------------------------------------------------------------------- */

static const struct alloy_attr logging_attrs[] = {
    {.name = "level", .type = ATTR_STRING, .key = "level"},
    {.name = "format", .type = ATTR_STRING, .key = "format"},
    {.name = "write_to", .type = ATTR_VALUE, .ignored = true},
    {.name = "destination", .type = ATTR_STRING, .ignored = true},
};
static const struct alloy_schema logging_schema = {ROWS(logging_attrs)};

static const struct alloy_value *logging(struct alloy_load *l, struct alloy_node *n)
{
    static const char *const keys[] = {"level", "format"};
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct yaml_node *log = tree_mapping(&l->tree, n->stmt->place, n->path);
    alloy_read_block(&r, &logging_schema, n->stmt, n->path, log, &given);
    for (size_t i = 0; log != NULL && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct yaml_node *value = yaml_get(log, keys[i]);
        if (value != NULL && value->text.n == 0) {
            tree_remove(log, keys[i]); /* the same as the default */
        }
    }
    if (log != NULL && log->n_items > 0) {
        tree_put(&l->tree, l->root, "log", log);
    }
    return NULL;
}

static const struct alloy_value *server(struct alloy_load *l, struct alloy_node *n)
{
    config_tell(
        l->warnings, n->stmt->place, n->path,
        "configures Alloy's own server and has no effect here: for TLS or a password, convert the "
        "file to YAML and set server.tls or server.basic_auth");
    return NULL;
}

static const struct alloy_value *remote_config(struct alloy_load *l, struct alloy_node *n)
{
    config_tell(l->warnings, n->stmt->place, n->path,
                "is not supported: no further configuration is fetched");
    return NULL;
}

static const struct alloy_value *tracing(struct alloy_load *l, struct alloy_node *n)
{
    config_tell(l->notes, n->stmt->place, n->path, "is about Alloy itself and has no effect here");
    return NULL;
}

static const struct alloy_value *no_effect(struct alloy_load *l, struct alloy_node *n)
{
    (void)l;
    (void)n;
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define NOT_PULLED "is left out: profpull pulls pprof over HTTP"
#define NO_CONTENT "is not supported; mount its content as a file and use local.file"

static const struct alloy_component components[] = {
    {.name = "discovery.kubernetes", .evaluate = alloy_discovery_kubernetes},
    {.name = "discovery.file", .evaluate = alloy_discovery_file},
    {.name = "discovery.http", .evaluate = alloy_discovery_http},
    {.name = "discovery.relabel", .evaluate = alloy_discovery_relabel},
    {.name = "pyroscope.scrape", .evaluate = alloy_pyroscope_scrape},
    {.name = "pyroscope.relabel", .evaluate = alloy_pyroscope_relabel},
    {.name = "pyroscope.write", .evaluate = alloy_pyroscope_write},
    {.name = "local.file", .evaluate = local_file},
    {.name = "foreach", .evaluate = alloy_foreach},
    {.name = "logging", .evaluate = logging, .service = true},
    {.name = "http", .evaluate = server, .service = true},
    {.name = "remotecfg", .evaluate = remote_config, .service = true},
    {.name = "tracing", .evaluate = tracing, .service = true},
    {.name = "livedebugging", .evaluate = no_effect, .service = true},
    {.name = "pyroscope.ebpf", .unsupported = NOT_PULLED},
    {.name = "pyroscope.java", .unsupported = NOT_PULLED},
    {.name = "pyroscope.receive_http", .evaluate = alloy_pyroscope_receive},
    {.name = "pyroscope.enrich", .evaluate = alloy_pyroscope_enrich},
    {.name = "local.file_match", .evaluate = alloy_discovery_left_out},
    {.name = "remote.kubernetes.secret", .evaluate = kubernetes_secret},
    {.name = "remote.kubernetes.configmap", .evaluate = kubernetes_configmap},
    {.name = "remote.http", .unsupported = NO_CONTENT, .quiet = true},
    {.name = "remote.s3", .unsupported = NO_CONTENT, .quiet = true},
    {.name = "remote.vault", .unsupported = NO_CONTENT, .quiet = true},
};
#define N_COMPONENTS (sizeof(components) / sizeof(components[0]))

/* Discoveries without a source here: their targets are left out. */
static const char *const other_discoveries[] = {
    "discovery.aws",          "discovery.azure",     "discovery.consul",  "discovery.consulagent",
    "discovery.digitalocean", "discovery.dns",       "discovery.docker",  "discovery.dockerswarm",
    "discovery.ec2",          "discovery.eureka",    "discovery.gce",     "discovery.hetzner",
    "discovery.ionos",        "discovery.kubelet",   "discovery.kuma",    "discovery.lightsail",
    "discovery.linode",       "discovery.marathon",  "discovery.nerve",   "discovery.nomad",
    "discovery.openstack",    "discovery.ovhcloud",  "discovery.process", "discovery.puppetdb",
    "discovery.scaleway",     "discovery.serverset", "discovery.triton",  "discovery.uyuni",
};
#define N_OTHERS (sizeof(other_discoveries) / sizeof(other_discoveries[0]))

const struct alloy_component *alloy_component_find(struct sv name)
{
    static const struct alloy_component left_out = {.name = "discovery",
                                                    .evaluate = alloy_discovery_left_out};
    for (size_t i = 0; i < N_COMPONENTS; i++) {
        if (sv_eq_str(name, components[i].name)) {
            return &components[i];
        }
    }
    return sv_in(name, other_discoveries, N_OTHERS) ? &left_out : NULL;
}

bool alloy_component_known_family(struct sv name)
{
    static const char *const families[] = {"discovery", "pyroscope", "local", "remote"};
    struct sv head;
    struct sv tail;
    return sv_cut(name, '.', &head, &tail) &&
           sv_in(head, families, sizeof(families) / sizeof(families[0]));
}

const char *alloy_component_suggest(struct sv name)
{
    const char *names[N_COMPONENTS + N_OTHERS];
    size_t n = 0;
    for (size_t i = 0; i < N_COMPONENTS; i++) {
        names[n++] = components[i].name;
    }
    for (size_t i = 0; i < N_OTHERS; i++) {
        names[n++] = other_discoveries[i];
    }
    return suggest(name, names, n);
}
