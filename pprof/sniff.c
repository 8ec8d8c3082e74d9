/* The work is bounded: only the start of a gzip is inflated, and only so many fields of a plain
 * profile are walked. */
#include <stdio.h>
#include <string.h>

#include "pprof/sniff.h"

#include "pprof/fields.h"
#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/summary.h"

/* The most bytes of a gzip that are inflated, and the most bytes of the result. */
#define INPUT_MAX ((size_t)16 * 1024)
#define OUTPUT_MAX 1024
/* The most top-level fields that are walked. */
#define FIELDS_MAX 4096
/* A body with this many printable bytes at its start is a text. */
#define TEXT_PREFIX 64
/* The most characters of a body that an error message shows. */
#define EXCERPT_MAX 80
/* The most bytes of a gzip in which the magic of JFR is searched: the header of a gzip may hold a
 * file name. */
#define JFR_INPUT_MAX ((size_t)4096)

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_printable(unsigned char c)
{
    return (c >= ' ' && c < 0x7f) || is_space(c);
}

static struct sv skip_space(struct sv v)
{
    while (v.n > 0 && is_space((unsigned char)v.p[0])) {
        v = sv_skip(v, 1);
    }
    return v;
}

static bool looks_like_html(struct sv v)
{
    v = skip_space(v);
    return v.n >= 2 && v.p[0] == '<' && strchr("!?hHbBtT", v.p[1]) != NULL && v.p[1] != '\0';
}

static bool looks_like_json(struct sv v)
{
    v = skip_space(v);
    if (v.n < 2 || (v.p[0] != '{' && v.p[0] != '[')) {
        return false;
    }
    struct sv inside = skip_space((struct sv){.p = v.p + 1, .n = v.n - 1});
    return inside.n > 0 && is_printable((unsigned char)inside.p[0]);
}

static bool looks_like_text(struct sv v)
{
    size_t n = v.n < TEXT_PREFIX ? v.n : TEXT_PREFIX;
    for (size_t i = 0; i < n; i++) {
        if (!is_printable((unsigned char)v.p[i])) {
            return false;
        }
    }
    return true;
}

/* Writes the first bytes of a body as a line of plain text. */
static void excerpt(struct sv v, char out[EXCERPT_MAX + 1])
{
    v = skip_space(v);
    size_t n = v.n < EXCERPT_MAX ? v.n : EXCERPT_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        char printable = is_space(c) ? ' ' : v.p[i];
        out[i] = is_printable(c) ? printable : '.';
    }
    out[n] = '\0';
}

/* Returns true for a text form of pprof, which `debug=1` asks for. Its first words say so. */
static bool looks_like_text_of_pprof(struct sv v)
{
    static const char *const starts[] = {
        "heap profile:", "goroutine profile:", "threadcreate profile:", "--- ", "heap_v2/",
    };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (sv_starts_with(v, sv_from(starts[i]))) {
            return true;
        }
    }
    return false;
}

/* The kinds of texts. The first one that matches counts. */
static const struct {
    bool (*is)(struct sv v);
    enum sniff_result result;
    const char *what;
} texts[] = {
    {looks_like_html, SNIFF_HTML, "an HTML page"},
    {looks_like_json, SNIFF_JSON, "JSON"},
    {looks_like_text_of_pprof, SNIFF_TEXT, "pprof's text form (is debug=1 set?)"},
    {looks_like_text, SNIFF_TEXT, "text"},
};

/* Recognises a text. Returns SNIFF_PPROF_PLAIN if the body is no known text. */
static enum sniff_result check_text(struct sv v, struct err *err)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].is(v)) {
            char text[EXCERPT_MAX + 1];
            excerpt(v, text);
            err_set(err, ERR_INPUT, "not a profile but %s: \"%s\"", texts[i].what, text);
            return texts[i].result;
        }
    }
    return SNIFF_PPROF_PLAIN;
}

/* ---- protobuf -------------------------------------------------------------------------------- */

static enum sniff_result fail_wire(struct sv v, const struct wire_reader *r, struct err *err)
{
    char hex[3 * 16 + 1] = "";
    for (size_t i = 0; i < v.n && i < 16; i++) {
        snprintf(hex + 3 * i, 4, " %02x", (unsigned)(unsigned char)v.p[i]);
    }
    err_set(err, ERR_INPUT, "not a pprof profile: %s at byte %zu; it starts with%s", r->problem,
            r->field_start, hex);
    return SNIFF_BAD_WIRE;
}

/* Walks the top-level fields. whole: v is the whole profile, so no field may end beyond it. */
static enum sniff_result check_wire(struct sv v, bool whole, struct err *err)
{
    struct wire_reader r = wire_reader_of(v);
    struct wire_field f = {.number = 0};
    for (size_t i = 0; i < FIELDS_MAX && wire_next(&r, &f); i++) {
        if (!profile_field_fits(&f)) {
            r.problem = "a known field of another wire type";
            return fail_wire(v, &r, err);
        }
    }
    if (r.problem != NULL && (whole || !r.cut)) {
        return fail_wire(v, &r, err);
    }
    return SNIFF_PPROF_PLAIN;
}

/* Recognises a body that is not compressed, or inflated already. */
static enum sniff_result check_plain(struct sv v, bool whole, struct err *err)
{
    if (v.n <= 2) {
        err_set(err, ERR_INPUT, "not a profile: %zu bytes only", v.n);
        return SNIFF_TOO_SHORT;
    }
    if (legacy_is(v)) {
        return SNIFF_LEGACY;
    }
    if (legacy_is_cut_cpu(v)) {
        err_set(err, ERR_INPUT,
                "not a pprof profile but the start of an old binary one (a CPU profile of "
                "gperftools that is cut, or one of another profiler)");
        return SNIFF_BAD_WIRE;
    }
    enum sniff_result r = check_text(v, err);
    return r == SNIFF_PPROF_PLAIN ? check_wire(v, whole, err) : r;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

static enum sniff_result fail_gzip(struct err *err, enum err_kind kind, const char *why)
{
    err_set(err, kind, "damaged gzip: %s", why);
    return SNIFF_BAD_GZIP;
}

/* Recognises an inflated body. out: its start. whole: out is the whole body. */
static enum sniff_result check_inflated(struct sv out, bool whole, struct err *err)
{
    if (out.n == 0 && whole) {
        err_set(err, ERR_INPUT, "an empty gzip");
        return SNIFF_EMPTY;
    }
    if (out.n <= 2 && !whole) {
        return fail_gzip(err, ERR_LIMIT, "almost no data in its first 16 KiB");
    }
    if (gzip_is(out)) {
        return fail_gzip(err, ERR_INPUT, "a gzip within the gzip");
    }
    enum sniff_result r = check_plain(out, whole, err);
    if (r == SNIFF_PPROF_PLAIN || r == SNIFF_LEGACY) {
        return r == SNIFF_LEGACY ? r : SNIFF_PPROF_GZIP;
    }
    err_wrap(err, "inflated");
    return r;
}

static enum sniff_result check_gzip(struct sv v, struct err *err)
{
    char out[OUTPUT_MAX];
    bool all_given = v.n <= INPUT_MAX;
    struct sv input = {.p = v.p, .n = all_given ? v.n : INPUT_MAX};
    struct gzip_start start = gzip_inflate_start(input, out, sizeof(out));
    if (start.no_memory) {
        return fail_gzip(err, ERR_MEMORY, "out of memory");
    }
    if (start.problem != NULL) {
        return fail_gzip(err, ERR_INPUT, start.problem);
    }
    if (all_given && start.cut) {
        return fail_gzip(err, ERR_INPUT, "it ends too early");
    }
    return check_inflated(start.plain, all_given && start.end, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum sniff_result sniff_profile(struct sv body, struct err *err)
{
    if (body.n == 0) {
        err_set(err, ERR_INPUT, "empty body");
        return SNIFF_EMPTY;
    }
    return gzip_is(body) ? check_gzip(body, err) : check_plain(body, true, err);
}

/* Returns true if the body, inflated if it is gzip, begins with the magic of JFR. */
static bool begins_as_jfr(struct sv v)
{
    char start[sizeof(JFR_MAGIC)];
    if (gzip_is(v)) {
        struct sv input = {.p = v.p, .n = v.n < JFR_INPUT_MAX ? v.n : JFR_INPUT_MAX};
        v = gzip_inflate_start(input, start, sizeof(start)).plain;
    }
    return sv_starts_with(v, (struct sv){.p = JFR_MAGIC, .n = sizeof(JFR_MAGIC)});
}

static bool is_jfr(struct sv v)
{
    return begins_as_jfr(v) && (gzip_is(v) || v.n >= JFR_CHUNK_HEADER_SIZE);
}

enum sniff_result sniff_any(struct sv body, struct err *err)
{
    return is_jfr(body) ? SNIFF_JFR : sniff_profile(body, err);
}

enum sniff_result sniff_jfr(struct sv body, struct err *err)
{
    if (is_jfr(body)) {
        return SNIFF_JFR;
    }
    if (begins_as_jfr(body)) {
        err_set(err, ERR_INPUT, "not a JFR recording: %zu bytes only", body.n);
        return SNIFF_NOT_JFR;
    }
    enum sniff_result r = sniff_profile(body, err);
    if (r == SNIFF_BAD_WIRE || sniff_is_profile(r)) {
        err_set(err, ERR_INPUT, "not a JFR recording%s",
                r == SNIFF_BAD_WIRE ? ": \"FLR\" expected at its start" : " but a pprof profile");
        return SNIFF_NOT_JFR;
    }
    return r;
}

bool sniff_is_profile(enum sniff_result r)
{
    return r < SNIFF_EMPTY;
}
