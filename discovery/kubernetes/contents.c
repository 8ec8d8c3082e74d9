#include "discovery/kubernetes/contents.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "config/content.h"
#include "discovery/kubernetes/api_status.h"
#include "http/http.h"

#define TICK_MS 1000
#define READ_EVERY_MS 60000
/* The pause after a failure, and the shortest time before an object is read again because a server
 * has refused a credential from it. */
#define RETRY_MS 5000
#define TIMEOUT_MS 15000
/* An object of Kubernetes holds 1.5 MiB at most, base64 included. */
#define OBJECT_MAX ((size_t)2 << 20)
/* The most objects that are read at the same time. */
#define RUNNING_MAX 4
/* The most objects that kube_contents_missing() names. */
#define SHOWN 4

struct object {
    struct kube_contents *owner;
    struct content_name name; /* the name of the object; its key is empty */
    char *url;
    struct http_transfer *transfer; /* NULL: no request is under way */
    int64_t asked_ms;
    int64_t due_ms;
    bool asked;
    bool read; /* it was read at least once */
    bool bad;  /* the last attempt failed */
    struct err why;
};

/* A name in the configuration, and its object. */
struct value {
    const char *name;
    struct sv key;
    size_t object;
};

struct kube_contents {
    struct kube_contents_options options;
    struct loop_timer *tick;
    struct object *objects;
    size_t n_objects;
    struct value *values;
    size_t n_values;
    size_t n_asked; /* objects for which a first attempt has ended */
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Puts one value of an object's data where the clients find it. */
static bool put_value(struct http_contents *contents, const struct object *o, const struct value *v,
                      const json_t *data, struct err *err)
{
    const json_t *given = json_object_getn(data, v->key.p, v->key.n);
    struct sv text = {json_string_value(given), json_string_length(given)};
    struct buf decoded;
    if (text.n == 0) {
        return err_set(err, ERR_INPUT, "it has %s \"%.*s\"",
                       given == NULL ? "no key" : "no text under the key", SV_ARG(v->key));
    }
    if (o->name.kind != CONTENT_SECRET) {
        return http_contents_put(contents, v->name, text, err);
    }
    buf_init(&decoded, HTTP_CONTENT_MAX + 1);
    bool ok = base64_decode(text, &decoded);
    if (!ok) {
        err_set(err, ERR_INPUT, "expected base64 of at most %zu bytes under the key \"%.*s\"",
                HTTP_CONTENT_MAX, SV_ARG(v->key));
    } else {
        ok = http_contents_put(contents, v->name, (struct sv){decoded.data, decoded.len}, err);
    }
    buf_wipe(&decoded);
    return ok;
}

/* Puts all values of an object; if several fail, err has the last error. */
static bool put_values(const struct object *o, const json_t *data, struct err *err)
{
    const struct kube_contents *c = o->owner;
    bool all = true;
    for (size_t i = 0; i < c->n_values; i++) {
        const struct value *v = &c->values[i];
        struct err why = ERR_INIT;
        if (&c->objects[v->object] == o && !put_value(c->options.contents, o, v, data, &why)) {
            http_contents_fail(c->options.contents, v->name, &why);
            *err = why;
            all = false;
        }
    }
    return all;
}

/* Notes the reason why the values of an object are missing. */
static void fail_values(const struct object *o, const struct err *why)
{
    const struct kube_contents *c = o->owner;
    for (size_t i = 0; i < c->n_values; i++) {
        if (&c->objects[c->values[i].object] == o) {
            http_contents_fail(c->options.contents, c->values[i].name, why);
        }
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static void report(struct object *o, bool ok, const struct err *err)
{
    const struct kube_contents_options *options = &o->owner->options;
    bool was_bad = o->bad;
    bool was_read = o->read;
    metric_inc(options->counters->content_reads[ok ? CONTENT_READ_OK : CONTENT_READ_FAILED]);
    o->bad = !ok;
    o->read = o->read || ok;
    if (!ok && !was_bad) {
        log_warn(options->log,
                 was_read ? "cannot read an object of Kubernetes again, keeping its old content"
                          : "cannot read an object of Kubernetes that the configuration names",
                 LOG_STR("kind", content_kind_title(o->name.kind)),
                 LOG_SV("namespace", o->name.namespace), LOG_SV("name", o->name.object),
                 LOG_ERR(err));
    } else if (ok && was_bad) {
        log_info(options->log, "an object of Kubernetes can be read again",
                 LOG_STR("kind", content_kind_title(o->name.kind)),
                 LOG_SV("namespace", o->name.namespace), LOG_SV("name", o->name.object));
    }
    bool changed = was_read != o->read || strcmp(o->why.msg, err->msg) != 0;
    o->why = *err;
    if (changed) {
        options->on_change(options->arg);
    }
}

static void finish(struct object *o, bool ok, const struct err *err)
{
    loop_timer_after(o->owner->tick, 0); /* other objects may wait for their turn */
    o->due_ms = clock_mono_ms() + (ok ? READ_EVERY_MS : o->owner->options.retry_ms);
    report(o, ok, err);
    struct kube_contents *c = o->owner;
    if (!o->asked) {
        o->asked = true;
        c->n_asked++;
        if (c->n_asked == c->n_objects) {
            c->options.on_asked(c->options.arg);
        }
    }
}

static bool take(const struct object *o, const struct http_response *response, struct err *err)
{
    if (response->result != HTTP_DONE) {
        return err_set(err, ERR_NETWORK, "%s", response->error);
    }
    if (response->status != 200) {
        struct api_status status;
        api_status_parse((struct sv){response->body->data, response->body->len}, false, &status);
        return err_set(err, ERR_REFUSED, "the API server answered %ld%s%s", response->status,
                       status.message[0] == '\0' ? "" : ": ", status.message);
    }
    json_t *json = json_loadb(response->body->data, response->body->len, 0, NULL);
    bool ok = json_is_object(json) ? put_values(o, json_object_get(json, "data"), err)
                                   : err_set(err, ERR_INPUT, "the response is not a JSON object");
    json_decref(json);
    return ok;
}

static void contents_on_done(void *arg, const struct http_response *response)
{
    struct object *o = arg;
    struct err err = ERR_INIT;
    o->transfer = NULL;
    bool ok = take(o, response, &err);
    buf_wipe(response->body);
    if (!ok) {
        err_wrap(&err, "%s %.*s/%.*s", content_kind_title(o->name.kind), SV_ARG(o->name.namespace),
                 SV_ARG(o->name.object));
        fail_values(o, &err);
    }
    finish(o, ok, &err);
}

static void request(struct object *o, int64_t now_ms)
{
    static const struct http_header accept = {.name = "Accept", .value = "application/json"};
    o->asked_ms = now_ms;
    o->transfer = http_start(o->owner->options.http, &(struct http_request){
                                                         .url = o->url,
                                                         .settings = o->owner->options.access,
                                                         .headers = &accept,
                                                         .n_headers = 1,
                                                         .timeout_ms = TIMEOUT_MS,
                                                         .max_body = OBJECT_MAX,
                                                         .on_done = contents_on_done,
                                                         .arg = o,
                                                     });
    if (o->transfer == NULL) {
        struct err err = ERR_INIT;
        err_memory(&err);
        finish(o, false, &err);
    }
}

/* Reads objects again whose credentials a server has refused, because they may have been
 * replaced. */
static void look_for_refusals(struct kube_contents *c)
{
    for (size_t i = 0; i < c->n_values; i++) {
        struct object *o = &c->objects[c->values[i].object];
        if (http_contents_refused(c->options.contents, c->values[i].name) &&
            o->due_ms > o->asked_ms + c->options.retry_ms) {
            o->due_ms = o->asked_ms + c->options.retry_ms;
        }
    }
}

static void contents_on_tick(void *arg)
{
    struct kube_contents *c = arg;
    int64_t now_ms = clock_mono_ms();
    size_t running = 0;
    loop_timer_after(c->tick, TICK_MS);
    look_for_refusals(c);
    for (size_t i = 0; i < c->n_objects; i++) {
        running += c->objects[i].transfer != NULL;
    }
    for (size_t i = 0; i < c->n_objects && running < RUNNING_MAX; i++) {
        if (c->objects[i].transfer == NULL && now_ms >= c->objects[i].due_ms) {
            request(&c->objects[i], now_ms);
            running++;
        }
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

static char *url_of(const char *server, const struct content_name *name)
{
    char *url = NULL;
    int n = asprintf(&url, "%s/api/v1/namespaces/%.*s/%ss/%.*s", server, SV_ARG(name->namespace),
                     content_kind_word(name->kind), SV_ARG(name->object));
    return n < 0 ? NULL : url;
}

static bool find_object(struct kube_contents *c, const struct content_name *name, size_t *ret)
{
    size_t i = 0;
    while (i < c->n_objects && !(c->objects[i].name.kind == name->kind &&
                                 sv_eq(c->objects[i].name.namespace, name->namespace) &&
                                 sv_eq(c->objects[i].name.object, name->object))) {
        i++;
    }
    *ret = i;
    if (i < c->n_objects) {
        return true;
    }
    c->objects[i] =
        (struct object){.owner = c, .name = *name, .url = url_of(c->options.server, name)};
    err_set(&c->objects[i].why, ERR_NETWORK, "%s %.*s/%.*s: not read yet",
            content_kind_title(name->kind), SV_ARG(name->namespace), SV_ARG(name->object));
    c->n_objects++;
    return c->objects[i].url != NULL;
}

static bool add_value(struct kube_contents *c, const char *text, struct err *err)
{
    struct content_name name;
    struct value *v = &c->values[c->n_values];
    if (!content_name_parse(sv_from(text), &name)) {
        return err_set(err, ERR_INPUT, "%s: not the name of a content", text);
    }
    *v = (struct value){.name = text, .key = name.key};
    if (!find_object(c, &name, &v->object)) {
        return err_memory(err);
    }
    c->n_values++;
    return http_contents_add(c->options.contents, text, err);
}

struct kube_contents *kube_contents_new(const struct kube_contents_options *options,
                                        struct err *err)
{
    struct kube_contents *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->options = *options;
    if (c->options.retry_ms == 0) {
        c->options.retry_ms = RETRY_MS;
    }
    c->tick = loop_timer_new(options->loop, contents_on_tick, c);
    c->objects = calloc(options->names->n + 1, sizeof(*c->objects));
    c->values = calloc(options->names->n + 1, sizeof(*c->values));
    if (c->tick == NULL || c->objects == NULL || c->values == NULL) {
        err_memory(err);
        return kube_contents_free(c);
    }
    for (size_t i = 0; i < options->names->n; i++) {
        if (!add_value(c, options->names->at[i], err)) {
            return kube_contents_free(c);
        }
    }
    return c;
}

void kube_contents_start(struct kube_contents *c)
{
    contents_on_tick(c);
}

void kube_contents_missing(const struct kube_contents *c, struct buf *out)
{
    size_t n = 0;
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < c->n_objects; i++) {
        if (!c->objects[i].read && n++ < SHOWN) {
            buf_printf(out, "%s%s", out->len == 0 ? "" : "; ", c->objects[i].why.msg);
        }
    }
    if (n > SHOWN) {
        buf_printf(out, "; and %zu more Secrets and ConfigMaps", n - SHOWN);
    }
}

struct kube_contents *kube_contents_free(struct kube_contents *c)
{
    if (c == NULL) {
        return NULL;
    }
    for (size_t i = 0; c->objects != NULL && i < c->n_objects; i++) {
        if (c->objects[i].transfer != NULL) {
            http_cancel(c->objects[i].transfer);
        }
        free(c->objects[i].url);
    }
    loop_timer_free(c->tick);
    free(c->objects);
    free(c->values);
    free(c);
    return NULL;
}
