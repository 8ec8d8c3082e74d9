#include "api/receive/profefe_post.h"

#include <stdlib.h>

#include "api/profefe_params.h"
#include "api/receive/reply.h"
#include "api/served.h"
#include "base/arena.h"
#include "base/clock.h"
#include "store/store.h"

#define LABELS_MAX_READ 256
/* Number of labels that are added to those of the query. */
#define LABELS_ADDED 2
/* The label in which profpull's profefe destination sends the name of a profile whose type profefe
 * calls "other". */
#define TYPE_LABEL "profile_type"
/* Limit of the memory for the decoded labels. */
#define TEXTS_MAX ((size_t)256 * 1024)

struct post {
    struct exchange *x;
    struct arena *arena;
    struct label labels[LABELS_MAX_READ + LABELS_ADDED];
    size_t n_labels; /* number of the labels in the query */
    struct sv service;
    struct sv type;
    const char *name;   /* __name__ */
    int64_t created_ns; /* 0: unknown */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void refuse(struct exchange *x, int status, const char *message)
{
    x->status = status;
    x->content_type = "application/json";
    buf_clear(&x->reply);
    buf_printf(&x->reply, "{\"code\":%d", status);
    json_member("error", sv_from(message), &x->reply);
    buf_puts(&x->reply, "}\n");
}

static void finish(struct post *p, enum receive_result result, const struct err *err)
{
    struct exchange *x = p->x;
    receive_count(x->options->served->receiver, RECEIVE_PROFEFE, result, x->body.n, err);
    if (result >= RECEIVE_BAD_REQUEST) {
        refuse(x,
               receive_is_transient(result)  ? STATUS_UNAVAILABLE
               : result == RECEIVE_TOO_LARGE ? STATUS_TOO_LARGE
                                             : STATUS_BAD_REQUEST,
               err->msg);
    }
}

static void settle(struct exchange *x, enum exchange_wait result)
{
    const char *message;
    if (receive_end_wait(x, result, &message)) {
        refuse(x, STATUS_UNAVAILABLE, message);
    }
}

static void reply_taken(struct post *p, int64_t time_ns, uint64_t hash)
{
    struct buf *out = &p->x->reply;
    char id[PROFEFE_ID_LENGTH + 1];
    char time[32];
    profefe_id_format(time_ns, hash, id);
    clock_format_rfc3339(time_ns, time, sizeof(time));
    p->x->content_type = "application/json";
    buf_printf(out, "{\"code\":200,\"body\":{\"id\":\"%s\"", id);
    json_member("type", p->type, out);
    json_member("service", p->service, out);
    if (p->n_labels > 0) {
        json_key("labels", out);
        for (size_t i = 0; i < p->n_labels; i++) {
            buf_puts(out, i == 0 ? "[{" : ",{");
            json_member("key", p->labels[i].name, out);
            json_member("value", p->labels[i].value, out);
            buf_putc(out, '}');
        }
        buf_putc(out, ']');
    }
    buf_printf(out, ",\"created_at\":\"%.19sZ\"}}\n", time);
}

/* ---- the query ------------------------------------------------------------------------------- */

static struct sv param(const struct post *p, const char *name)
{
    struct sv v = request_param(p->x->request, name);
    return v.p == NULL ? (struct sv){"", 0} : v;
}

static bool read_type(struct post *p, struct err *err)
{
    static const struct {
        const char *type;
        const char *name;
    } types[] = {
        {"cpu", "process_cpu"}, {"heap", "memory"},         {"block", "block"},
        {"mutex", "mutex"},     {"goroutine", "goroutine"}, {"threadcreate", "threadcreate"},
        {"other", "other"},
    };
    p->type = sv_trim(param(p, "type"));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_str(p->type, types[i].type)) {
            p->name = types[i].name;
            return true;
        }
    }
    return sv_eq_str(p->type, "trace")
               ? err_set(err, ERR_INPUT,
                         "bad request: execution traces are not profiles, and are "
                         "not kept here")
               : err_set(err, ERR_INPUT, "bad request: unknown profile type");
}

/* Reads the time, which may be missing; if it has no zone, it is UTC. */
static bool read_created_at(struct post *p, struct err *err)
{
    struct sv text = param(p, "created_at");
    return text.n == 0 || profefe_time(text, &p->created_ns, err) ||
           profefe_wrap(err, "created_at", "", text) || err_wrap(err, "bad request");
}

/* Reads the labels. If several have the same name, the last one counts. */
static bool read_labels(struct post *p, struct err *err)
{
    struct sv text = param(p, "labels");
    struct label *all;
    size_t n;
    if (!profefe_labels(text, p->arena, &all, &n, err)) {
        return profefe_wrap(err, "labels", "", text) || err_wrap(err, "bad request");
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && sv_eq(all[i].name, all[i + 1].name)) {
            continue;
        }
        if (p->n_labels == LABELS_MAX_READ) {
            return err_set(err, ERR_LIMIT, "bad request: more than %d labels", LABELS_MAX_READ);
        }
        p->labels[p->n_labels++] = all[i];
    }
    return true;
}

static bool read_query(struct post *p, struct err *err)
{
    p->service = param(p, "service");
    if (p->service.n == 0) {
        return err_set(err, ERR_INPUT, "bad request: missing \"service\"");
    }
    return read_type(p, err) && read_labels(p, err) && read_created_at(p, err);
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* Makes the labels of the profile: those of the query that may be set, the service, and the name.
 * If the type is "other", the label TYPE_LABEL, if there is one, is the name. */
static struct receive_facts facts_of(struct post *p, struct label out[])
{
    struct sv name = sv_from(p->name);
    size_t n = 0;
    for (size_t i = 0; i < p->n_labels; i++) {
        const struct label *l = &p->labels[i];
        if (sv_eq_str(l->name, TYPE_LABEL) && sv_eq_str(p->type, "other") && l->value.n > 0) {
            name = l->value;
        } else if (!sv_starts_with(l->name, SV("__")) && !sv_eq_str(l->name, LABEL_SERVICE_NAME)) {
            out[n++] = *l;
        }
    }
    out[n] = (struct label){SV(LABEL_SERVICE_NAME), p->service};
    n++;
    out[n] = (struct label){SV(LABEL_NAME), name};
    n++;
    return (struct receive_facts){.labels = out,
                                  .n_labels = n,
                                  .from_ns = p->created_ns,
                                  .keep_equal = true,
                                  .receipt = p->x->receipt};
}

static bool has_samples(const struct receive_item *item, struct err *err)
{
    return item->summary.n[PROFILE_SAMPLE] > 0 ||
           err_set(err, ERR_INPUT, "profile is empty: no samples");
}

static void take(struct post *p)
{
    struct receive *r = p->x->options->served->receiver;
    struct err err = ERR_INIT;
    struct receive_item item;
    struct label labels[LABELS_MAX_READ + LABELS_ADDED];
    enum receive_result result =
        receive_open(r, RECEIVE_PROFEFE, PROFILE_PPROF, p->x->body, &item, &err);
    if (result == RECEIVE_ACCEPTED && !has_samples(&item, &err)) {
        result = RECEIVE_BAD_PROFILE;
    }
    if (result == RECEIVE_BAD_PROFILE || result == RECEIVE_TOO_LARGE) {
        err_wrap(&err, "malformed profile (could not parse pprof profile");
        err_append(&err, ")");
    }
    if (result == RECEIVE_ACCEPTED) {
        const struct receive_facts facts = facts_of(p, labels);
        result = receive_put(r, &item, &facts, &err);
    }
    finish(p, result, &err);
    if (result < RECEIVE_BAD_REQUEST) {
        reply_taken(p, item.from_ns, store_hash(item.data, item.salt));
    }
    receive_close(r, &item);
}

void profefe_post_work(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct post *p = calloc(1, sizeof(*p));
    struct arena *arena = arena_new(TEXTS_MAX);
    if (p == NULL || arena == NULL || !receive_begin_wait(x, settle)) {
        receive_reply_error(x, STATUS_UNAVAILABLE, "unavailable", "out of memory");
    } else {
        p->x = x;
        p->arena = arena;
        if (read_query(p, &err)) {
            take(p);
        } else {
            finish(p, err.kind == ERR_MEMORY ? RECEIVE_NO_MEMORY : RECEIVE_BAD_REQUEST, &err);
        }
    }
    arena_free(arena);
    free(p);
}
