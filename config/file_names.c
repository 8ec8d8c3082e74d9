#include "config/file_names.h"

#include "config/content.h"

struct visit {
    struct file_name name;
    file_name_fn *fn;
    void *arg;
};

static void visit_file(const struct visit *v, const char *key, const char *file)
{
    if (file != NULL && !content_is_named(sv_from(file))) {
        struct file_name name = v->name;
        name.key = key;
        name.file = file;
        v->fn(v->arg, &name);
    }
}

static void visit_own(const struct visit *v, const struct http_settings *h)
{
    bool s3 = h->auth == HTTP_AUTH_S3;
    visit_file(v, s3 ? "access_key_id_file" : "username_file", h->username_file);
    visit_file(v, s3 ? "secret_access_key_file" : "password_file", h->password_file);
    visit_file(v, "credentials_file", h->credentials_file);
    visit_file(v, "session_token_file", h->session_token_file);
    visit_file(v, "ca_file", h->tls.ca_file);
    visit_file(v, "cert_file", h->tls.cert_file);
    visit_file(v, "key_file", h->tls.key_file);
}

static void visit_settings(const struct visit *v, const struct http_settings *h)
{
    visit_own(v, h);
    if (h->auth == HTTP_AUTH_OAUTH2 && h->oauth2 != NULL) {
        visit_file(v, "client_secret_file", h->oauth2->client_secret_file);
        visit_own(v, &h->oauth2->transport);
    }
}

void config_file_names_of(const struct http_settings *settings, const struct file_name *owner,
                          file_name_fn *fn, void *arg)
{
    visit_settings(&(struct visit){.name = *owner, .fn = fn, .arg = arg}, settings);
}

static void visit_kubernetes(const struct visit *v, const struct config_kubernetes *k)
{
    visit_settings(v, &k->http);
    visit_file(v, "kubeconfig_file", k->kubeconfig_file);
}

static void visit_job(struct visit *v, const struct config_job *job)
{
    v->name = (struct file_name){.pos = job->pos, .kind = "job", .owner = job->name};
    visit_settings(v, &job->http);
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_source *s = &job->sources[i];
        v->name.pos = s->pos;
        if (s->kind == SOURCE_HTTP) {
            visit_settings(v, &s->http.http);
        } else if (s->kind == SOURCE_KUBERNETES) {
            visit_kubernetes(v, &s->kubernetes);
        }
    }
}

static void visit_server(struct visit *v, const struct config *config, const char *section,
                         const struct config_server *s)
{
    v->name =
        (struct file_name){.pos = {.file = config->file}, .kind = "section", .owner = section};
    visit_settings(v, &s->access);
    visit_file(v, "cert_file", s->tls.cert_file);
    visit_file(v, "key_file", s->tls.key_file);
    visit_file(v, "client_ca_file", s->tls.client_ca_file);
    visit_file(v, "web_config_file", s->web_config_file);
}

void config_file_names(const struct config *config, file_name_fn *fn, void *arg)
{
    struct visit v = {.fn = fn, .arg = arg};
    for (size_t i = 0; i < config->n_jobs; i++) {
        visit_job(&v, &config->jobs[i]);
    }
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        v.name = (struct file_name){.pos = e->pos, .kind = "endpoint", .owner = e->name};
        visit_settings(&v, &e->http);
        if (e->archive.url != NULL) {
            visit_settings(&v, &e->archive.bucket.http);
            visit_file(&v, "credentials_file", e->archive.bucket.service_account_file);
        }
    }
    visit_server(&v, config, "server", &config->server);
    visit_server(&v, config, "query", &config->query);
    visit_server(&v, config, "receive", &config->receive.server);
    v.name =
        (struct file_name){.pos = {.file = config->file}, .kind = "section", .owner = "sharding"};
    visit_kubernetes(&v, &config->sharding.kubernetes);
    v.name.owner = "symbols";
    visit_settings(&v, &config->symbols.http);
}
