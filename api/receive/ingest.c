#include "api/receive/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "api/attime.h"
#include "api/receive/folded.h"
#include "api/receive/ingest_name.h"
#include "api/receive/multipart.h"
#include "api/receive/prefix_trees.h"
#include "api/receive/profile_name.h"
#include "api/receive/reply.h"
#include "api/receive/speedscope.h"
#include "api/served.h"
#include "base/clock.h"
#include "pprof/sniff.h"

#define SAMPLE_RATE_DEFAULT 100
#define NAME_MAX_BYTES ((size_t)1024)
/* Number of labels that are added to those in the name. */
#define LABELS_ADDED 6
/* The label with the name of a profile of speedscope. */
#define PROFILE_NAME "profile_name"
/* `__name__` of a recording, which holds profiles of several types. */
#define JFR_NAME "jfr"

/* The format of a body. */
enum form {
    FORM_PPROF,
    FORM_JFR,
    FORM_GROUPS, /* stacks, as are those that follow */
    FORM_LINES,
    FORM_TRIE,
    FORM_TREE,
    FORM_SPEEDSCOPE,
};

struct ingest {
    struct exchange *x;
    struct receive *receive;
    enum receive_protocol protocol;
    struct ingest_name name;
    struct sv body; /* without its Content-Encoding */
    enum form form;
    struct sv profile;  /* the body, or the part of it that has the profile */
    struct sv config;   /* the content of the part sample_type_config */
    struct sv contexts; /* the content of the part labels, which belongs to a recording */
    struct sv title;    /* the name of a profile of speedscope */
    int64_t from_ns;
    int64_t until_ns;
    struct label labels[INGEST_PAIRS_MAX + LABELS_ADDED];
    size_t n_labels;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void finish(struct ingest *in, enum receive_result result, int status, const char *code,
                   const struct err *err)
{
    receive_count(in->receive, in->protocol, result, in->profile.n, err);
    if (result >= RECEIVE_BAD_REQUEST) {
        receive_reply_error(in->x, status, code, err->msg);
    }
}

/* Returns true if the body has stacks, from which a profile is made. */
static bool is_stacks(const struct ingest *in)
{
    return in->form >= FORM_GROUPS;
}

/* Answers that a profile is refused: 422 for a binary profile, 400 for stacks, 503 if another try
 * may succeed. */
static void refuse(struct ingest *in, enum receive_result result, const char *where,
                   struct err *err)
{
    if (receive_is_transient(result)) {
        finish(in, result, STATUS_UNAVAILABLE, "unavailable", err);
        return;
    }
    if (is_stacks(in)) {
        finish(in, result, STATUS_BAD_REQUEST, "invalid_argument", err);
        return;
    }
    err_wrap(err, "%s", where);
    finish(in, result, STATUS_UNPROCESSABLE, "unknown", err);
}

/* ---- the query ------------------------------------------------------------------------------- */

static struct sv param(const struct ingest *in, const char *name)
{
    struct sv v = request_param(in->x->request, name);
    return v.p == NULL ? (struct sv){"", 0} : v;
}

/* Returns the parameter sampleRate; its default if it is 0 or no number. */
static unsigned sample_rate(const struct ingest *in)
{
    uint64_t rate;
    bool ok = parse_u64(sv_trim(param(in, "sampleRate")), 1000000, &rate) && rate > 0;
    return ok ? (unsigned)rate : SAMPLE_RATE_DEFAULT;
}

static bool read_name(struct ingest *in)
{
    struct err err = ERR_INIT;
    struct sv text = param(in, "name");
    if (ingest_name_read(text, &in->name, &err)) {
        return true;
    }
    if (in->protocol == RECEIVE_DEEPFLOW) {
        in->name = (struct ingest_name){.app = text};
        return true;
    }
    finish(in, RECEIVE_BAD_REQUEST, STATUS_BAD_REQUEST, "invalid_argument", &err);
    return false;
}

/* ---- the body -------------------------------------------------------------------------------- */

static enum form form_of(const struct ingest *in, struct sv content_type)
{
    static const struct {
        const char *format;
        enum form form;
    } formats[] = {
        {"pprof", FORM_PPROF},   {"jfr", FORM_JFR},   {"lines", FORM_LINES},
        {"trie", FORM_TRIE},     {"tree", FORM_TREE}, {"speedscope", FORM_SPEEDSCOPE},
        {"groups", FORM_GROUPS},
    };
    struct sv format = param(in, "format");
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (sv_eq_str(format, formats[i].format)) {
            return formats[i].form;
        }
    }
    if (sv_starts_with(content_type, SV("binary/octet-stream+trie"))) {
        return FORM_TRIE;
    }
    if (sv_starts_with(content_type, SV("binary/octet-stream+tree"))) {
        return FORM_TREE;
    }
    bool pprof = multipart_is_type(content_type) || sniff_is_profile(sniff_profile(in->body, NULL));
    return pprof ? FORM_PPROF : FORM_GROUPS;
}

/* Takes the parts of a form; if several parts have the same name, the first one counts. False with
 * err. */
static bool take_parts(struct ingest *in, struct sv boundary, struct err *err)
{
    struct multipart m;
    struct multipart_part part;
    struct sv previous = {"", 0};
    const struct {
        const char *name;
        struct sv *into;
    } parts[] = {
        {in->form == FORM_JFR ? "jfr" : "profile", &in->profile},
        {"sample_type_config", &in->config},
        {"prev_profile", &previous},
        {"labels", &in->contexts},
    };
    if (!multipart_start(&m, in->body, boundary, err)) {
        return false;
    }
    while (multipart_next(&m, &part, err)) {
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            if (sv_eq_str(part.name, parts[i].name) && parts[i].into->n == 0) {
                *parts[i].into = part.content;
            }
        }
    }
    if (err->kind == ERR_NONE && previous.n > 0) {
        return err_set(err, ERR_INPUT,
                       "the part prev_profile is not supported: unsupported client version");
    }
    return err->kind == ERR_NONE;
}

/* Returns true if the body is a form. Its bytes decide, because Content-Type is often wrong. */
static bool is_form(const struct ingest *in, struct sv content_type)
{
    bool binary = in->form == FORM_PPROF || in->form == FORM_JFR;
    return binary && in->body.n > 0 && multipart_is_type(content_type) &&
           !sniff_is_profile(sniff_profile(in->body, NULL));
}

/* Finds the profile in the body. */
static bool find_profile(struct ingest *in, struct err *err)
{
    struct sv type = request_header(in->x->request, "Content-Type");
    struct sv boundary;
    type = type.p == NULL ? (struct sv){"", 0} : type;
    in->form = form_of(in, type);
    in->profile = in->body;
    if (!is_form(in, type)) {
        return true;
    }
    in->profile = (struct sv){"", 0};
    return multipart_boundary(type, &boundary)
               ? take_parts(in, boundary, err)
               : err_set(err, ERR_INPUT, "Content-Type: the form has no boundary");
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void add_label(struct ingest *in, struct sv name, struct sv value)
{
    in->labels[in->n_labels++] = (struct label){name, value};
}

/* Collects the labels, each name once: a label that the server sets replaces one with the same name
 * in the request. */
static void make_labels(struct ingest *in, struct sv service, struct sv name)
{
    in->n_labels = 0;
    struct sv spy = param(in, "spyName");
    bool text = is_stacks(in);
    bool renamed = ingest_name_get(&in->name, SV(LABEL_SERVICE_NAME)).n > 0;
    for (size_t i = 0; i < in->name.n; i++) {
        struct label *l = &in->name.pairs[i];
        bool replaced = sv_eq_str(l->name, "pyroscope_spy") ||
                        (in->title.n > 0 && sv_eq_str(l->name, PROFILE_NAME)) ||
                        (text && renamed && sv_eq_str(l->name, "app_name"));
        if (!replaced) {
            add_label(in, l->name, l->value);
        }
    }
    if (!renamed) {
        add_label(in, SV(LABEL_SERVICE_NAME), service);
    } else if (text) {
        add_label(in, SV("app_name"), service);
    }
    if (in->title.n > 0) {
        add_label(in, SV(PROFILE_NAME), in->title);
    }
    add_label(in, SV("pyroscope_spy"), spy.n > 0 ? spy : SV("unknown"));
    add_label(in, SV(LABEL_NAME), name);
    add_label(in, SV(LABEL_DELTA), SV("false"));
}

static void put(struct ingest *in, struct receive_item *item, struct sv service, struct sv name)
{
    struct err err = ERR_INIT;
    make_labels(in, service, name);
    const struct receive_facts facts = {
        .labels = in->labels,
        .n_labels = in->n_labels,
        .from_ns = in->from_ns,
        .until_ns = in->until_ns,
        .receipt = in->x->receipt,
        .sample_rate = sample_rate(in),
        .jfr_labels = in->contexts,
    };
    enum receive_result result = receive_put(in->receive, item, &facts, &err);
    if (result < RECEIVE_BAD_REQUEST) {
        finish(in, result, STATUS_OK, "", NULL);
    } else {
        refuse(in, result,
               "pushing IngestInput-pprof failed invalid_argument: push series with index 0 and id "
               " failed",
               &err);
    }
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void take_binary(struct ingest *in)
{
    static const char *const where = "parsing IngestInput-pprof failed invalid_argument";
    struct err err = ERR_INIT;
    struct receive_item item;
    struct buf name;
    bool jfr = in->form == FORM_JFR;
    buf_init(&name, NAME_MAX_BYTES);
    enum receive_result result = receive_open(
        in->receive, in->protocol, jfr ? PROFILE_JFR : PROFILE_PPROF, in->profile, &item, &err);
    if (result != RECEIVE_ACCEPTED) {
        refuse(in, result, where, &err);
    } else if (jfr) {
        put(in, &item, in->name.app, SV(JFR_NAME));
    } else if (!profile_name_of(&item.summary, in->config, in->name.app, &name, &err)) {
        refuse(in, RECEIVE_BAD_REQUEST, where, &err);
    } else {
        put(in, &item, in->name.app, (struct sv){name.data, name.len});
    }
    receive_close(in->receive, &item);
    buf_done(&name);
}

/* Hands on a profile that was made of stacks. */
static void put_stacks(struct ingest *in, const struct buf *pprof, struct sv service,
                       const char *name)
{
    struct err err = ERR_INIT;
    struct receive_item item;
    enum receive_result result = receive_open(in->receive, in->protocol, PROFILE_PPROF,
                                              (struct sv){pprof->data, pprof->len}, &item, &err);
    if (result != RECEIVE_ACCEPTED) {
        refuse(in, result, "", &err);
    } else {
        put(in, &item, service, sv_from(name));
    }
    receive_close(in->receive, &item);
}

static void refuse_stacks(struct ingest *in, const struct err *err)
{
    receive_count(in->receive, in->protocol, RECEIVE_BAD_PROFILE, 0, err);
    receive_reply_error(in->x, STATUS_UNPROCESSABLE, "unknown", err->msg);
}

static bool convert(const struct ingest *in, const struct frames_options *o, struct buf *out,
                    size_t *ret_samples, struct err *err)
{
    if (in->form == FORM_TRIE) {
        return trie_convert(in->profile, o, out, ret_samples, err);
    }
    if (in->form == FORM_TREE) {
        return tree_convert(in->profile, o, out, ret_samples, err);
    }
    const struct folded_input text = {
        .text = in->profile, .o = *o, .counted = in->form == FORM_GROUPS};
    return folded_convert(&text, out, ret_samples, err);
}

/* Converts stacks to pprof, with the time of the request. */
static void take_text(struct ingest *in, const struct frames_options *o, struct sv service)
{
    struct err err = ERR_INIT;
    struct buf pprof;
    size_t samples = 0;
    buf_init(&pprof, receive_body_max(in->x));
    if (!convert(in, o, &pprof, &samples, &err)) {
        refuse_stacks(in, &err);
    } else if (samples == 0) {
        finish(in, RECEIVE_IGNORED, STATUS_OK, "", NULL);
    } else {
        put_stacks(in, &pprof, service, o->type->name);
    }
    buf_done(&pprof);
}

/* Returns the type of a profile of speedscope. If the file has several, or bytes, the unit decides,
 * and the service is the whole name. */
static const struct frames_type *speedscope_type(const struct ingest *in, bool is_many,
                                                 const char *suffix,
                                                 const struct frames_type *named,
                                                 struct sv *service)
{
    bool bytes = suffix != NULL && strcmp(suffix, "bytes") == 0 && named->is_time;
    if (suffix == NULL || (!is_many && !bytes)) {
        return named;
    }
    *service = is_many ? in->name.app : *service;
    return frames_type_find(sv_from(suffix));
}

/* Takes one profile after another. Once one is refused, the response is its error; the others are
 * taken nevertheless. */
static void take_speedscope(struct ingest *in, const struct frames_options *named,
                            struct sv service)
{
    struct err err = ERR_INIT;
    struct speedscope_profile p;
    struct speedscope *s = speedscope_new(in->profile, &err);
    if (s == NULL) {
        refuse_stacks(in, &err);
    }
    while (s != NULL && err.kind == ERR_NONE && speedscope_next(s, &p)) {
        struct frames_options o = *named;
        struct sv of = service;
        struct buf pprof;
        o.type = speedscope_type(in, speedscope_is_many(s), p.suffix, named->type, &of);
        in->title = p.name;
        buf_init(&pprof, receive_body_max(in->x));
        if (!speedscope_convert(s, &o, &pprof, &p, &err)) {
            refuse_stacks(in, &err);
        } else if (p.samples > 0) {
            put_stacks(in, &pprof, of, o.type->name);
        } else {
            finish(in, RECEIVE_IGNORED, STATUS_OK, "", NULL);
        }
        buf_done(&pprof);
    }
    speedscope_free(s);
}

static void take_stacks(struct ingest *in)
{
    struct err err = ERR_INIT;
    struct sv service;
    const struct frames_options o = {
        .type = frames_type_of(in->name.app, &service),
        .sample_rate = sample_rate(in),
        .time_ns = in->from_ns,
        .duration_ns = in->until_ns - in->from_ns,
    };
    if (o.type == NULL) {
        err_set(&err, ERR_INPUT, "unknown type of profile after the last dot of the name %.*s",
                in->name.app.n > 200 ? 200 : (int)in->name.app.n, in->name.app.p);
        refuse(in, RECEIVE_BAD_REQUEST, "", &err);
    } else if (in->form == FORM_SPEEDSCOPE) {
        take_speedscope(in, &o, service);
    } else {
        take_text(in, &o, service);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static void take_body(struct ingest *in)
{
    struct err err = ERR_INIT;
    if (!find_profile(in, &err)) {
        refuse(in, RECEIVE_BAD_REQUEST, "parsing IngestInput-pprof failed", &err);
    } else if (in->profile.n == 0 || in->name.has_profile_id) {
        finish(in, RECEIVE_IGNORED, STATUS_OK, "", NULL);
    } else if (in->form == FORM_PPROF || in->form == FORM_JFR) {
        take_binary(in);
    } else {
        take_stacks(in);
    }
}

static void bad_encoding(struct ingest *in, const struct err *err)
{
    enum receive_result result = err->kind == ERR_LIMIT    ? RECEIVE_TOO_LARGE
                                 : err->kind == ERR_MEMORY ? RECEIVE_NO_MEMORY
                                                           : RECEIVE_BAD_REQUEST;
    int status = err->kind == ERR_LIMIT     ? STATUS_TOO_LARGE
                 : err->kind == ERR_MEMORY  ? STATUS_UNAVAILABLE
                 : err->kind == ERR_REFUSED ? STATUS_UNSUPPORTED_TYPE
                                            : STATUS_UNPROCESSABLE;
    finish(in, result, status,
           err->kind == ERR_LIMIT || err->kind == ERR_REFUSED ? "invalid_argument" : "unknown",
           err);
}

static void work(struct exchange *x, enum receive_protocol protocol)
{
    struct err err = ERR_INIT;
    struct buf inflated;
    struct ingest *in = calloc(1, sizeof(*in));
    if (in == NULL || !receive_begin_wait(x, receive_settle)) {
        free(in);
        receive_reply_error(x, STATUS_UNAVAILABLE, "unavailable", "out of memory");
        return;
    }
    *in = (struct ingest){.x = x, .receive = x->options->served->receiver, .protocol = protocol};
    buf_init(&inflated, receive_body_max(x));
    int64_t now_ns = clock_wall_ns();
    in->from_ns = attime_read(param(in, "from"), now_ns);
    in->until_ns = attime_read(param(in, "until"), now_ns);
    if (read_name(in)) {
        if (exchange_inflate(x, &inflated, &in->body, &err)) {
            take_body(in);
        } else {
            bad_encoding(in, &err);
        }
    }
    buf_done(&inflated);
    free(in);
}

void ingest_work(struct exchange *x)
{
    work(x, RECEIVE_INGEST);
}

void deepflow_ingest_work(struct exchange *x)
{
    work(x, RECEIVE_DEEPFLOW);
}
