#include "cli/secret_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/contents.h"

/* Whose settings are looked at. */
struct owner {
    const struct config_pos *pos;
    const char *kind; /* "job", "endpoint" */
    const char *name;
};

static size_t check_file(const struct owner *o, const char *key, const char *file)
{
    if (file == NULL || http_content_named(file)) { /* of the cluster: nobody knows it here */
        return 0;
    }
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    fprintf(stderr, "%s:%d:%d: warning: %s of the %s \"%s\": cannot open %s: %s\n", o->pos->file,
            o->pos->line, o->pos->column, key, o->kind, o->name, file, strerror(errno));
    return 1;
}

static size_t check_own_files(const struct owner *o, const struct http_settings *h)
{
    return check_file(o, "username_file", h->username_file) +
           check_file(o, "password_file", h->password_file) +
           check_file(o, "credentials_file", h->credentials_file) +
           check_file(o, "ca_file", h->tls.ca_file) + check_file(o, "cert_file", h->tls.cert_file) +
           check_file(o, "key_file", h->tls.key_file);
}

static size_t check_settings(const struct owner *o, const struct http_settings *h)
{
    size_t n = check_own_files(o, h);
    if (h->auth == HTTP_AUTH_OAUTH2 && h->oauth2 != NULL) {
        n += check_file(o, "client_secret_file", h->oauth2->client_secret_file);
        n += check_own_files(o, &h->oauth2->transport);
    }
    return n;
}

static size_t check_job(const struct config_job *job)
{
    struct owner o = {&job->pos, "job", job->name};
    size_t n = check_settings(&o, &job->http);
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_source *s = &job->sources[i];
        o.pos = &s->pos;
        if (s->kind == SOURCE_HTTP) {
            n += check_settings(&o, &s->http.http);
        } else if (s->kind == SOURCE_KUBERNETES) {
            n += check_settings(&o, &s->kubernetes.http);
            n += check_file(&o, "kubeconfig_file", s->kubernetes.kubeconfig_file);
        }
    }
    return n;
}

size_t secret_files_check(const struct config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_jobs; i++) {
        n += check_job(&config->jobs[i]);
    }
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        struct owner o = {&e->pos, "endpoint", e->name};
        n += check_settings(&o, &e->http);
    }
    return n;
}
