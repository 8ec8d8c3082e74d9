/* Judges bodies by what they are. The work is bounded: of a gzip only the start is inflated, of a
 * plain profile only so many fields are walked. */
#include <stdio.h>
#include <string.h>

#include "pprof/check.h"

#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/wire.h"

/* Most bytes of a gzip that are looked at, and most that come out of them. */
#define CHECK_INPUT_MAX ((size_t)16 * 1024)
#define CHECK_OUTPUT_MAX 4096
/* Most top-level fields that are walked. */
#define CHECK_FIELDS_MAX 4096
/* As many printable bytes at the start make it a text. */
#define CHECK_TEXT_PREFIX 64
/* What an error shows of a body. */
#define EXCERPT_MAX 80
/* A chunk of a recording of Java's Flight Recorder begins with the magic, two shorts for the
 * version and eight longs. */
#define JFR_MAGIC "FLR"
#define JFR_MAGIC_SIZE 4 /* with its NUL */
#define JFR_CHUNK_HEADER_SIZE 68
/* Most bytes of a gzip that are looked at for the magic: its header may hold a file name. */
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
        v.p++;
        v.n--;
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
    size_t n = v.n < CHECK_TEXT_PREFIX ? v.n : CHECK_TEXT_PREFIX;
    for (size_t i = 0; i < n; i++) {
        if (!is_printable((unsigned char)v.p[i])) {
            return false;
        }
    }
    return true;
}

/* The first bytes as a line of plain text. */
static void excerpt(struct sv v, char out[EXCERPT_MAX + 1])
{
    v = skip_space(v);
    size_t n = v.n < EXCERPT_MAX ? v.n : EXCERPT_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        out[i] = is_space(c) ? ' ' : v.p[i];
        if (!is_printable(c)) {
            out[i] = '.';
        }
    }
    out[n] = '\0';
}

static enum check_result fail_text(enum check_result r, const char *what, struct sv v,
                                   struct err *err)
{
    char text[EXCERPT_MAX + 1];
    excerpt(v, text);
    err_set(err, ERR_INPUT, "not a profile but %s: \"%s\"", what, text);
    return r;
}

/* The text forms of pprof, which `debug=1` asks for, say what they are in their first words. */
static bool is_legacy_profile(struct sv v)
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

/* CHECK_PPROF_PLAIN if it is none of the texts that are known. */
static enum check_result check_text(struct sv v, struct err *err)
{
    if (looks_like_html(v)) {
        return fail_text(CHECK_HTML, "an HTML page", v, err);
    }
    if (looks_like_json(v)) {
        return fail_text(CHECK_JSON, "JSON", v, err);
    }
    if (is_legacy_profile(v)) {
        return fail_text(CHECK_TEXT, "pprof's text form (is debug=1 set?)", v, err);
    }
    if (looks_like_text(v)) {
        return fail_text(CHECK_TEXT, "text", v, err);
    }
    return CHECK_PPROF_PLAIN;
}

/* ---- protobuf -------------------------------------------------------------------------------- */

static enum check_result fail_wire(struct sv v, const struct wire_reader *r, struct err *err)
{
    char hex[3 * 16 + 1] = "";
    for (size_t i = 0; i < v.n && i < 16; i++) {
        snprintf(hex + 3 * i, 4, " %02x", (unsigned)(unsigned char)v.p[i]);
    }
    err_set(err, ERR_INPUT, "not a pprof profile: %s at byte %zu; it starts with%s", r->problem,
            r->field_start, hex);
    return CHECK_BAD_WIRE;
}

/* Walks the top-level fields. whole: v is all there is, so that no field may end behind it. */
static enum check_result check_wire(struct sv v, bool whole, struct err *err)
{
    struct wire_reader r = wire_reader_of(v);
    struct wire_field f;
    for (size_t i = 0; i < CHECK_FIELDS_MAX && wire_next(&r, &f); i++) {
        if (!profile_field_fits(&f)) {
            r.problem = "a known field of another wire type";
            return fail_wire(v, &r, err);
        }
    }
    if (r.problem != NULL && (whole || !r.cut)) {
        return fail_wire(v, &r, err);
    }
    return CHECK_PPROF_PLAIN;
}

/* Words of 4 or 8 bytes in either order, 0 and 3 at first: the family that the CPU profiles of
 * gperftools belong to. What comes here of it is cut, or is of another kind. */
static bool is_old_binary(struct sv v)
{
    static const struct {
        size_t n;
        size_t three; /* where the 3 stands */
    } forms[] = {{8, 4}, {8, 7}, {16, 8}, {16, 15}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t zeros = 0;
        while (zeros < forms[i].n && zeros < v.n &&
               v.p[zeros] == (zeros == forms[i].three ? 3 : 0)) {
            zeros++;
        }
        if (zeros == forms[i].n) {
            return true;
        }
    }
    return false;
}

/* What is not compressed, or no longer. */
static enum check_result check_plain(struct sv v, bool whole, struct err *err)
{
    if (v.n <= 2) {
        err_set(err, ERR_INPUT, "not a profile: %zu bytes only", v.n);
        return CHECK_TOO_SHORT;
    }
    if (legacy_format_of(v) != LEGACY_NONE) {
        return CHECK_LEGACY;
    }
    if (is_old_binary(v)) {
        err_set(err, ERR_INPUT,
                "not a pprof profile but the start of an old binary one (a CPU profile of "
                "gperftools that is cut, or one of another profiler)");
        return CHECK_BAD_WIRE;
    }
    enum check_result r = check_text(v, err);
    return r == CHECK_PPROF_PLAIN ? check_wire(v, whole, err) : r;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

static enum check_result fail_gzip(struct err *err, enum err_kind kind, const char *why)
{
    err_set(err, kind, "damaged gzip: %s", why);
    return CHECK_BAD_GZIP;
}

/* out: what came of the first bytes. whole: it is all there is. */
static enum check_result check_inflated(struct sv out, bool whole, struct err *err)
{
    if (out.n == 0 && whole) {
        err_set(err, ERR_INPUT, "an empty gzip");
        return CHECK_EMPTY;
    }
    if (out.n <= 2 && !whole) {
        return fail_gzip(err, ERR_LIMIT, "next to nothing in its first 16 KiB");
    }
    if (gzip_is(out)) {
        return fail_gzip(err, ERR_INPUT, "a gzip within the gzip");
    }
    enum check_result r = check_plain(out, whole, err);
    if (r == CHECK_PPROF_PLAIN || r == CHECK_LEGACY) {
        return r == CHECK_LEGACY ? r : CHECK_PPROF_GZIP;
    }
    err_wrap(err, "inflated");
    return r;
}

static enum check_result check_gzip(struct sv v, struct err *err)
{
    char out[CHECK_OUTPUT_MAX];
    bool all_given = v.n <= CHECK_INPUT_MAX;
    struct sv input = {.p = v.p, .n = all_given ? v.n : CHECK_INPUT_MAX};
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

enum check_result check_profile(const void *data, size_t size, struct err *err)
{
    struct sv v = {.p = size == 0 ? "" : data, .n = size};
    if (size == 0) {
        err_set(err, ERR_INPUT, "empty body");
        return CHECK_EMPTY;
    }
    return gzip_is(v) ? check_gzip(v, err) : check_plain(v, true, err);
}

/* Does it begin with the magic of JFR, once inflated? */
static bool begins_as_jfr(struct sv v)
{
    char start[JFR_MAGIC_SIZE];
    if (gzip_is(v)) {
        struct sv input = {.p = v.p, .n = v.n < JFR_INPUT_MAX ? v.n : JFR_INPUT_MAX};
        v = gzip_inflate_start(input, start, sizeof(start)).plain;
    }
    return sv_starts_with(v, (struct sv){.p = JFR_MAGIC, .n = JFR_MAGIC_SIZE});
}

static enum check_result fail_jfr(struct err *err, const char *what)
{
    err_set(err, ERR_INPUT, "not a JFR recording%s", what);
    return CHECK_NOT_JFR;
}

enum check_result check_jfr(const void *data, size_t size, struct err *err)
{
    struct sv v = {.p = size == 0 ? "" : data, .n = size};
    if (begins_as_jfr(v)) {
        if (gzip_is(v) || size >= JFR_CHUNK_HEADER_SIZE) {
            return CHECK_JFR;
        }
        err_set(err, ERR_INPUT, "not a JFR recording: %zu bytes only", size);
        return CHECK_NOT_JFR;
    }
    enum check_result r = check_profile(data, size, err);
    if (r == CHECK_BAD_WIRE) {
        return fail_jfr(err, ": \"FLR\" expected at its start");
    }
    return check_is_good(r) ? fail_jfr(err, " but a pprof profile") : r;
}

bool check_is_good(enum check_result r)
{
    return r == CHECK_PPROF_GZIP || r == CHECK_PPROF_PLAIN || r == CHECK_JFR || r == CHECK_LEGACY;
}
