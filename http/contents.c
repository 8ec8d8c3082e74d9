#include "http/contents.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "http/files.h"

struct content {
    char *text; /* NULL: not known */
    size_t len;
    struct err why; /* why the text is not known */
    uint64_t version;
    bool refused;
};

struct http_contents {
    pthread_mutex_t lock;
    struct map *by_name; /* values are struct content */
};

static char *wipe(char *text, size_t len)
{
    if (text != NULL) {
        explicit_bzero(text, len);
        free(text);
    }
    return NULL;
}

static void content_free(void *arg)
{
    struct content *content = arg;
    wipe(content->text, content->len);
    free(content);
}

struct http_contents *http_contents_new(void)
{
    struct http_contents *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    c->by_name = map_new();
    return c->by_name != NULL ? c : http_contents_free(c);
}

struct http_contents *http_contents_free(struct http_contents *c)
{
    if (c != NULL) {
        map_free(c->by_name, content_free);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

bool http_content_named(const char *path)
{
    return path != NULL && sv_starts_with(sv_from(path), SV(HTTP_CONTENT_PREFIX));
}

/* Takes the lock and finds the content of a name. Returns NULL if the name was not added; the lock
 * is held then too. */
static struct content *lock(struct http_contents *c, const char *name)
{
    pthread_mutex_lock(&c->lock);
    return map_get(c->by_name, sv_from(name));
}

bool http_contents_add(struct http_contents *c, const char *name, struct err *err)
{
    struct content *content = lock(c, name);
    bool ok = content != NULL;
    if (!ok) {
        content = calloc(1, sizeof(*content));
        ok = content != NULL && map_put(c->by_name, sv_from(name), content, NULL);
    }
    if (!ok) {
        free(content);
        err_memory(err);
    } else if (content->version == 0) {
        content->version = 1;
        err_set(&content->why, ERR_NETWORK, "not read yet");
    }
    pthread_mutex_unlock(&c->lock);
    return ok;
}

bool http_contents_put(struct http_contents *c, const char *name, struct sv text, struct err *err)
{
    if (text.n > HTTP_CONTENT_MAX) {
        return err_set(err, ERR_LIMIT, "expected at most %zu bytes, got %zu", HTTP_CONTENT_MAX,
                       text.n);
    }
    char *copy = malloc(text.n + 1);
    if (copy == NULL) {
        return err_memory(err);
    }
    memcpy(copy, text.p, text.n);
    struct content *content = lock(c, name);
    bool same = content == NULL || (content->text != NULL && content->len == text.n &&
                                    memcmp(content->text, copy, text.n) == 0);
    if (!same) {
        wipe(content->text, content->len);
        content->text = copy;
        content->len = text.n;
        content->version++;
        copy = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    wipe(copy, text.n);
    return true;
}

void http_contents_fail(struct http_contents *c, const char *name, const struct err *why)
{
    struct content *content = lock(c, name);
    if (content != NULL && content->text == NULL && strcmp(content->why.msg, why->msg) != 0) {
        content->why = *why;
        content->version++;
    }
    pthread_mutex_unlock(&c->lock);
}

bool http_contents_refused(struct http_contents *c, const char *name)
{
    struct content *content = lock(c, name);
    bool refused = content != NULL && content->refused;
    if (refused) {
        content->refused = false;
    }
    pthread_mutex_unlock(&c->lock);
    return refused;
}

void http_contents_refuse(struct http_contents *c, const char *name)
{
    struct content *content = lock(c, name);
    if (content != NULL) {
        content->refused = true;
    }
    pthread_mutex_unlock(&c->lock);
}

uint64_t http_contents_version(struct http_contents *c, const char *name)
{
    if (c == NULL) {
        return 0;
    }
    const struct content *content = lock(c, name);
    uint64_t version = content != NULL ? content->version : 0;
    pthread_mutex_unlock(&c->lock);
    return version;
}

struct http_file *http_contents_copy(struct http_contents *c, const char *name,
                                     uint64_t *ret_version, struct err *err)
{
    struct http_file *file = NULL;
    *ret_version = 0;
    if (c == NULL) {
        err_set(err, ERR_INPUT,
                "only `profpull run` and `profpull discover` read what is in "
                "Kubernetes");
        return NULL;
    }
    const struct content *content = lock(c, name);
    if (content == NULL) {
        err_set(err, ERR_INPUT, "this object is not among those that are read");
    } else if (content->text == NULL) {
        *ret_version = content->version;
        *err = content->why;
    } else if ((file = malloc(sizeof(*file) + content->len + 1)) == NULL) {
        err_memory(err);
    } else {
        *file = (struct http_file){.refs = 1, .len = content->len};
        memcpy(file->data, content->text, content->len);
        file->data[file->len] = '\0';
        *ret_version = content->version;
    }
    pthread_mutex_unlock(&c->lock);
    return file;
}
