#include "server/api/receive/profefe_post.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "http/url.h"
#include "server/api/receive/reply.h"

#define LABELS_MAX_READ 256
/* Labels that are added to those of the query. */
#define LABELS_ADDED 2
/* Where our own profefe destination keeps the type that profefe calls "other". */
#define TYPE_LABEL "profile_type"
/* What the labels are decoded into. */
#define TEXTS_MAX ((size_t)256 * 1024)
#define ID_SIZE 20
#define ERROR_MAX 256

struct post {
    struct exchange *x;
    struct arena *arena;
    struct label labels[LABELS_MAX_READ + LABELS_ADDED];
    size_t n_labels; /* of the query */
    struct sv service;
    struct sv type;
    const char *name;   /* __name__ */
    int64_t created_ns; /* 0: unknown */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void finish(struct post *p, enum receive_result result, const struct err *err)
{
    struct exchange *x = p->x;
    receive_count(x->options->receiver, RECEIVE_PROFEFE, result, x->body.n, err);
    if (result < RECEIVE_BAD_REQUEST) {
        return;
    }
    x->status = receive_is_transient(result)  ? STATUS_UNAVAILABLE
                : result == RECEIVE_TOO_LARGE ? STATUS_TOO_LARGE
                                              : STATUS_BAD_REQUEST;
    x->content_type = "application/json";
    buf_clear(&x->reply);
    buf_printf(&x->reply, "{\"code\":%d", x->status);
    json_member("error", sv_from(err->msg), &x->reply);
    buf_puts(&x->reply, "}\n");
}

/* 20 characters of 32, as profefe's own ids; the time of the profile, then what nobody guesses. */
static void make_id(int64_t time_ns, char out[ID_SIZE + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    struct rng rng;
    rng_seed_random(&rng);
    uint64_t bits[2] = {(uint64_t)(time_ns / NS_PER_S) << 32 | rng_next(&rng) >> 32,
                        rng_next(&rng)};
    for (size_t i = 0; i < ID_SIZE; i++) {
        size_t at = 5 * i;
        uint64_t word = bits[at / 64] << at % 64;
        word |= at / 64 == 0 && at % 64 > 59 ? bits[1] >> (64 - at % 64) : 0;
        out[i] = digits[word >> 59];
    }
    out[ID_SIZE] = '\0';
}

static int by_name(const void *a, const void *b)
{
    return sv_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static void reply_taken(struct post *p, int64_t time_ns)
{
    struct buf *out = &p->x->reply;
    char id[ID_SIZE + 1];
    char time[32];
    make_id(time_ns, id);
    clock_format_rfc3339(time_ns, time, sizeof(time));
    p->x->content_type = "application/json";
    buf_printf(out, "{\"code\":200,\"body\":{\"id\":\"%s\"", id);
    json_member("type", p->type, out);
    json_member("service", p->service, out);
    if (p->n_labels > 0) {
        qsort(p->labels, p->n_labels, sizeof(p->labels[0]), by_name);
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

/* A time without a zone, which is UTC; it may be missing. */
static bool read_created_at(struct post *p, struct err *err)
{
    char text[64];
    struct sv v = param(p, "created_at");
    if (v.n == 0) {
        return true;
    }
    int n = snprintf(text, sizeof(text), "%.*sZ", SV_ARG(v));
    struct sv rest = {text, n < (int)sizeof(text) ? (size_t)n : 0};
    if (v.n >= 19 && v.p[10] == 'T' && clock_take_rfc3339(&rest, 9, &p->created_ns) &&
        rest.n == 0) {
        return true;
    }
    struct buf quoted;
    buf_init(&quoted, ERR_MSG_MAX);
    json_quote((struct sv){v.p, v.n < ERROR_MAX ? v.n : ERROR_MAX}, &quoted);
    err_set(err, ERR_INPUT, "bad request: bad \"created_at\" %s: time in unsupported format %s",
            quoted.data, quoted.data);
    buf_done(&quoted);
    return false;
}

/* Decodes a piece of the labels once more: %XX and "+". False at an escape that is none. */
static bool decode(struct post *p, struct sv v, struct sv *ret, struct err *err)
{
    char *out = arena_alloc(p->arena, v.n + 1);
    size_t n = 0;
    if (out == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < v.n; i++) {
        int byte = v.p[i] == '%' ? url_decode_byte(sv_skip(v, i)) : v.p[i];
        if (v.p[i] == '%' && byte < 0) {
            return err_set(err, ERR_INPUT, "invalid URL escape \"%.*s\"",
                           (int)(v.n - i < 3 ? v.n - i : 3), v.p + i);
        }
        out[n++] = v.p[i] == '+' ? ' ' : (char)byte;
        i += v.p[i] == '%' ? 2 : 0;
    }
    *ret = (struct sv){out, n};
    return true;
}

/* A label replaces one of the same name. */
static bool add_label(struct post *p, struct sv name, struct sv value, struct err *err)
{
    size_t i = 0;
    while (i < p->n_labels && !sv_eq(p->labels[i].name, name)) {
        i++;
    }
    if (i == LABELS_MAX_READ) {
        return err_set(err, ERR_LIMIT, "more than %d labels", LABELS_MAX_READ);
    }
    p->labels[i] = (struct label){name, value};
    p->n_labels += i == p->n_labels;
    return true;
}

static bool read_pair(struct post *p, struct sv pair, struct err *err)
{
    struct sv name = pair;
    struct sv value = {"", 0};
    (void)sv_cut(pair, '=', &name, &value);
    name = sv_trim(name);
    if (name.n == 0) {
        return true;
    }
    return decode(p, name, &name, err) && decode(p, sv_trim(value), &value, err) &&
           add_label(p, name, value, err);
}

static bool read_labels(struct post *p, struct err *err)
{
    struct sv all = param(p, "labels");
    struct sv rest = all;
    bool more = rest.n > 0;
    while (more) {
        struct sv pair = rest;
        more = sv_cut(rest, ',', &pair, &rest);
        if (!read_pair(p, pair, err)) {
            struct buf quoted;
            buf_init(&quoted, ERR_MSG_MAX);
            json_quote((struct sv){all.p, all.n < ERROR_MAX ? all.n : ERROR_MAX}, &quoted);
            err_wrap(err, "bad request: bad \"labels\" %s", quoted.data);
            buf_done(&quoted);
            return false;
        }
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

/* The labels of the query that count, with the service and the type. What profefe calls "other" may
 * have its name among them. */
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
    return (struct receive_facts){.labels = out, .n_labels = n, .from_ns = p->created_ns};
}

static bool has_samples(const struct receive_item *item, struct err *err)
{
    return item->summary.n[PROFILE_SAMPLE] > 0 ||
           err_set(err, ERR_INPUT, "profile is empty: no samples");
}

static void take(struct post *p)
{
    struct receive *r = p->x->options->receiver;
    struct err err = ERR_INIT;
    struct receive_item item;
    struct label labels[LABELS_MAX_READ + LABELS_ADDED];
    enum receive_result result =
        receive_open(r, RECEIVE_PROFEFE, PROFILE_PPROF, p->x->body, &item, &err);
    int64_t time_ns = item.summary.time_ns > 0 ? item.summary.time_ns : p->created_ns;
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
    receive_close(r, &item);
    finish(p, result, &err);
    if (result < RECEIVE_BAD_REQUEST) {
        reply_taken(p, time_ns > 0 ? time_ns : clock_wall_ns());
    }
}

void profefe_post_work(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct post *p = calloc(1, sizeof(*p));
    struct arena *arena = arena_new(TEXTS_MAX);
    if (p == NULL || arena == NULL) {
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
