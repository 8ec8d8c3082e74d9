#include "scraper/names.h"

#include <stdlib.h>

#include "pprof/gzip.h"
#include "scraper/engine.h"

/* The largest inflated body that gets names. */
#define INFLATED_MAX ((size_t)32 * 1024 * 1024)

static bool rewrite_run(void *arg, struct scratch *s, struct sv plain, struct buf *out)
{
    struct names_of *n = arg;
    return n->names->rewrite(n->names->arg, n->target, n->entry, s, plain, out, &n->result);
}

struct names_of *names_of_body(struct engine *e, struct target *target, size_t entry,
                               struct sv body)
{
    const struct scraper_names *names = &e->options.names;
    if (names->rewrite == NULL || e->io.submit == NULL ||
        !names->wants(names->arg, target, entry, body)) {
        return NULL;
    }
    struct names_of *n = calloc(1, sizeof(*n));
    if (n != NULL) {
        *n = (struct names_of){.names = names,
                               .target = target_ref(target),
                               .entry = entry,
                               .rewrite = {.run = rewrite_run, .arg = n}};
    }
    return n;
}

struct names_of *names_of_free(struct names_of *n)
{
    if (n != NULL) {
        target_unref(n->target);
        free(n);
    }
    return NULL;
}

bool names_rewrite_body(const struct names_of *names, struct scratch *scratch, struct sv body,
                        char **ret, size_t *ret_size)
{
    struct sv plain;
    struct buf out;
    buf_init(&out, PPROF_REWRITTEN_MAX);
    bool ok = gzip_plain(scratch, body, INFLATED_MAX, 0, &plain, NULL) &&
              names->rewrite.run(names->rewrite.arg, scratch, plain, &out) &&
              scratch_charge(scratch, out.len) &&
              gzip_pack_at(scratch, (struct sv){out.data, out.len}, GZIP_QUICK, ret, ret_size);
    buf_done(&out);
    return ok;
}

bool names_need_more(struct offload *o, const struct names_of *names, const struct scratch *scratch)
{
    if (names == NULL || o->err.kind != ERR_NONE || !scratch_is_over(scratch) ||
        o->reserved >= o->most) {
        return false;
    }
    err_set(&o->err, ERR_LIMIT, "names need more than %zu bytes of working memory", o->reserved);
    return true;
}

static void names_run(struct offload *o, struct scratch *scratch)
{
    struct names_work *w = (struct names_work *)o;
    if (scratch != NULL &&
        !names_rewrite_body(w->names, scratch, (struct sv){o->body, o->size}, &w->data, &w->size)) {
        (void)names_need_more(o, w->names, scratch);
    }
}

static void names_release(struct offload *o)
{
    struct names_work *w = (struct names_work *)o;
    free(w->data);
    names_of_free(w->names);
}

struct offload *names_start(struct engine *e, struct names_of *names, char *body, size_t size,
                            bool has_place, void (*done)(void *arg, struct offload *o), void *arg,
                            enum reason *ret_reason, struct err *err)
{
    static const struct offload_kind kind = {
        .size = sizeof(struct names_work),
        .run = names_run,
        .release = names_release,
    };
    struct names_work *w = offload_new(e, &kind, body, size, has_place, ret_reason, err);
    if (w == NULL) {
        return NULL;
    }
    w->names = names;
    offload_reserve_more(&w->offload, NAMES_ROOM);
    offload_submit(&w->offload, done, arg);
    return &w->offload;
}
