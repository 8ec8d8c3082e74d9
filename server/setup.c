#include "server/setup.h"

#include <stdlib.h>

#include "server/access.h"

static void take_web(struct server_setup *s)
{
    const struct web_tls *tls = &web_settings(s->web)->tls;
    s->options.tls = (struct server_tls){.cert_file = tls->cert_file,
                                         .key_file = tls->key_file,
                                         .client_ca_file = tls->client_ca_file,
                                         .web = tls,
                                         .no_http2 = !web_settings(s->web)->http2,
                                         .version = web_version(s->web)};
}

void setup_renew(struct server_setup *s)
{
    if (s->web != NULL) {
        web_renew(s->web);
        take_web(s);
    }
}

static bool open_files(struct server_setup *s, struct metric_cell *failures, struct err *err)
{
    const struct server_options *o = &s->options;
    s->files = http_files_new(o->log, failures, NULL);
    if (s->files == NULL) {
        return err_memory(err);
    }
    if (o->web_config_file != NULL) {
        s->web = web_new(o->web_config_file, s->files, o->log, failures, err);
        if (s->web == NULL) {
            return false;
        }
        take_web(s);
    }
    if (o->tls.cert_file != NULL) {
        s->tls = tls_new(&o->tls, s->files, o->log, failures, err);
    }
    return (o->tls.cert_file == NULL || s->tls != NULL) &&
           access_is_ready(o->access, s->files, err) &&
           access_is_ready(o->query.access, s->files, err) &&
           access_is_ready(o->receive.access, s->files, err);
}

void setup_release(const struct server_options *options)
{
    if (options->release != NULL) {
        options->release(options->owner);
    }
}

struct server_setup *setup_new(const struct server_options *options, struct metric_cell *failures,
                               struct err *err)
{
    struct server_setup *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        setup_release(options);
        return NULL;
    }
    s->options = *options;
    atomic_init(&s->refs, 1);
    return open_files(s, failures, err) ? s : setup_unref(s);
}

struct server_setup *setup_ref(struct server_setup *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

struct server_setup *setup_unref(struct server_setup *s)
{
    if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        setup_release(&s->options);
        tls_free(s->tls);
        web_free(s->web);
        http_files_free(s->files);
        free(s);
    }
    return NULL;
}
