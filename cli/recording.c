#include "cli/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "pprof/gzip.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool begin(unsigned sample_rate, struct recording *ret, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    const struct jfr_options options = {
        .sample_rate = sample_rate, .seed = rng_next(&rng), .count_types = true};
    *ret = (struct recording){.damage = ERR_INIT};
    ret->reader = jfr_reader_new(&options, err);
    return ret->reader != NULL;
}

static bool note_head(struct recording *r, const struct jfr_head *head)
{
    struct recording_chunks *c = &r->chunks;
    if (c->n == c->cap) {
        size_t cap = c->cap == 0 ? 16 : 2 * c->cap;
        struct jfr_head *grown = reallocarray(c->heads, cap, sizeof(*grown));
        if (grown == NULL) {
            return err_memory(&r->damage);
        }
        c->heads = grown;
        c->cap = cap;
    }
    c->heads[c->n++] = *head;
    return true;
}

/* Reads up to size bytes. *ret_n is less at the end of the file. */
static bool read_bytes(gzFile in, char *to, size_t size, size_t *ret_n, struct err *err)
{
    *ret_n = 0;
    while (*ret_n < size) {
        size_t left = size - *ret_n;
        int n = gzread(in, to + *ret_n, (unsigned)(left < (1U << 20) ? left : 1U << 20));
        if (n < 0) {
            int code;
            const char *text = gzerror(in, &code);
            return code == Z_ERRNO ? err_sys(err, "cannot read")
                                   : err_set(err, ERR_INPUT, "damaged gzip: %s", text);
        }
        if (n == 0) {
            break;
        }
        *ret_n += (size_t)n;
    }
    return true;
}

/* A chunk that is being read. Its storage is reused for the next one. */
struct chunk {
    char *data;
    size_t cap;
};

static bool make_room(struct chunk *c, size_t size, struct err *err)
{
    if (size > c->cap) {
        char *grown = realloc(c->data, size);
        if (grown == NULL) {
            return err_memory(err);
        }
        c->data = grown;
        c->cap = size;
    }
    return true;
}

/* Reads the next chunk. Returns false at the end, or if the recording is damaged. */
static bool next_chunk(struct recording *r, gzFile in, struct chunk *c)
{
    struct jfr_head head;
    size_t n;
    size_t more = 0;
    if (!make_room(c, JFR_HEAD_SIZE, &r->damage) ||
        !read_bytes(in, c->data, JFR_HEAD_SIZE, &n, &r->damage) || (n == 0 && r->chunks.n > 0)) {
        return false;
    }
    if (n == JFR_HEAD_SIZE && jfr_head_read((struct sv){c->data, n}, &head, NULL)) {
        if (!note_head(r, &head) || !make_room(c, (size_t)head.size, &r->damage) ||
            !read_bytes(in, c->data + n, (size_t)head.size - n, &more, &r->damage)) {
            return false;
        }
    }
    return jfr_reader_chunk(r->reader, (struct sv){c->data, n + more}, &r->damage);
}

bool recording_read_file(const char *path, unsigned sample_rate, struct recording *ret,
                         struct err *err)
{
    struct chunk chunk = {.data = NULL};
    if (!begin(sample_rate, ret, err)) {
        return false;
    }
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    gzFile in = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    if (in == NULL) {
        err_sys(err, "%s", path);
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    while (next_chunk(ret, in, &chunk)) {
        ;
    }
    (void)gzclose_r(in);
    free(chunk.data);
    return true;
}

bool recording_read_bytes(struct sv body, unsigned sample_rate, struct recording *ret,
                          struct err *err)
{
    struct sv plain;
    if (!begin(sample_rate, ret, err)) {
        return false;
    }
    struct scratch *scratch = scratch_new();
    bool ok = gzip_plain(scratch, body, JFR_PLAIN_MAX, 0, &plain, err);
    bool more = ok;
    while (more) {
        struct jfr_head head = {.size = plain.n};
        bool known = jfr_head_read(plain, &head, NULL);
        size_t size = head.size < plain.n ? (size_t)head.size : plain.n;
        more = (!known || note_head(ret, &head)) &&
               jfr_reader_chunk(ret->reader, (struct sv){plain.p, size}, &ret->damage) &&
               size < plain.n;
        plain = sv_skip(plain, size);
    }
    scratch_free(scratch);
    return ok;
}

void recording_done(struct recording *r)
{
    r->reader = jfr_reader_free(r->reader);
    free(r->chunks.heads);
    r->chunks = (struct recording_chunks){.n = 0};
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_value(const char *unit, int64_t value, struct buf *out)
{
    if (strcmp(unit, "nanoseconds") == 0) {
        buf_printf(out, "%.3f s", (double)value / (double)NS_PER_S);
    } else if (strcmp(unit, "bytes") == 0 && value >= 1000000) {
        buf_printf(out, "%.3f MB", (double)value / 1e6);
    } else {
        buf_printf(out, "%lld", (long long)value);
    }
}

void recording_print_profiles(const struct recording *r, const char *indent, struct buf *out)
{
    struct jfr_facts facts;
    jfr_reader_facts(r->reader, &facts);
    for (size_t i = 0; i < facts.profiles; i++) {
        struct jfr_profile p;
        jfr_reader_profile(r->reader, i, &p);
        buf_printf(out, "%s%-12s %6zu stacks", indent, p.name, p.stacks);
        for (size_t k = 0; k < p.n_columns; k++) {
            buf_printf(out, ", %s ", p.columns[k].type);
            print_value(p.columns[k].unit, p.sums[k], out);
        }
        buf_putc(out, '\n');
    }
}

static void print_chunks(const struct recording *r, struct buf *out)
{
    buf_printf(out, "\n%-6s %-8s %12s %-22s %12s %14s\n", "CHUNK", "VERSION", "BYTES", "START",
               "DURATION", "TICKS/S");
    for (size_t i = 0; i < r->chunks.n; i++) {
        const struct jfr_head *h = &r->chunks.heads[i];
        char start[32];
        char version[24];
        clock_format_rfc3339(h->start_ns / NS_PER_S * NS_PER_S, start, sizeof(start));
        snprintf(version, sizeof(version), "%u.%u", h->major, h->minor);
        buf_printf(out, "%-6zu %-8s %12llu %-22s %10.3f s %14lld\n", i + 1, version,
                   (unsigned long long)h->size, start, (double)h->duration_ns / (double)NS_PER_S,
                   (long long)h->ticks_per_second);
    }
}

static void print_types(const struct recording *r, struct buf *out)
{
    struct jfr_type type;
    buf_printf(out, "\n%-44s %10s %12s\n", "EVENT", "COUNT", "BYTES");
    for (size_t i = 0; jfr_reader_type(r->reader, i, &type); i++) {
        struct buf name;
        buf_init(&name, (size_t)64 * 1024);
        json_escape(type.name, &name);
        buf_printf(out, "%-44s %10llu %12llu\n", name.data, (unsigned long long)type.events,
                   (unsigned long long)type.bytes);
        buf_done(&name);
    }
}

void recording_print(const struct recording *r, struct buf *out)
{
    struct jfr_facts f;
    jfr_reader_facts(r->reader, &f);
    buf_printf(out, "chunks:     %zu\n", f.chunks);
    if (f.end_ns > f.start_ns) {
        char start[32];
        clock_format_rfc3339(f.start_ns, start, sizeof(start));
        buf_printf(out, "time:       %s, %.3f s\n", start,
                   (double)(f.end_ns - f.start_ns) / (double)NS_PER_S);
    }
    buf_printf(out, "events:     %llu\n", (unsigned long long)f.events);
    buf_printf(out, "samples:    %llu, %llu with a truncated stack\n",
               (unsigned long long)f.samples, (unsigned long long)f.truncated);
    buf_printf(out,
               "left out:   %llu events without a stack, %llu frames without a method, %llu failed "
               "samples\n",
               (unsigned long long)f.no_stack, (unsigned long long)f.no_method,
               (unsigned long long)f.failed);
    if (f.event.n > 0) {
        buf_puts(out, "jfr_event:  ");
        json_escape(f.event, out);
        buf_putc(out, '\n');
    }
    print_chunks(r, out);
    print_types(r, out);
    buf_puts(out, "\nPROFILES\n");
    recording_print_profiles(r, "", out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_number(const char *key, long long value, struct buf *out)
{
    json_key(key, out);
    buf_printf(out, "%lld", value);
}

static void json_chunks(const struct recording *r, struct buf *out)
{
    json_key("chunks", out);
    buf_putc(out, '[');
    for (size_t i = 0; i < r->chunks.n; i++) {
        const struct jfr_head *h = &r->chunks.heads[i];
        buf_printf(out, "%s{\"version\":\"%u.%u\"", i > 0 ? "," : "", h->major, h->minor);
        json_number("size", (long long)h->size, out);
        json_number("start_ns", h->start_ns, out);
        json_number("duration_ns", h->duration_ns, out);
        json_number("ticks_per_second", h->ticks_per_second, out);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void json_types(const struct recording *r, struct buf *out)
{
    struct jfr_type type;
    json_key("types", out);
    buf_putc(out, '[');
    for (size_t i = 0; jfr_reader_type(r->reader, i, &type); i++) {
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("name", type.name, out);
        json_number("events", (long long)type.events, out);
        json_number("bytes", (long long)type.bytes, out);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void json_profiles(const struct recording *r, size_t n, struct buf *out)
{
    json_key("profiles", out);
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        struct jfr_profile p;
        jfr_reader_profile(r->reader, i, &p);
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("name", sv_from(p.name), out);
        json_key("sample_types", out);
        for (size_t k = 0; k < p.n_columns; k++) {
            buf_puts(out, k > 0 ? ",{" : "[{");
            json_member("type", sv_from(p.columns[k].type), out);
            json_member("unit", sv_from(p.columns[k].unit), out);
            json_number("sum", p.sums[k], out);
            buf_putc(out, '}');
        }
        buf_putc(out, ']');
        json_number("stacks", (long long)p.stacks, out);
        json_number("period", p.period, out);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

void recording_print_json(const struct recording *r, const char *path, struct buf *out)
{
    struct jfr_facts f;
    jfr_reader_facts(r->reader, &f);
    buf_putc(out, '{');
    json_member("file", sv_from(path), out);
    json_number("start_ns", f.start_ns, out);
    json_number("end_ns", f.end_ns, out);
    json_number("events", (long long)f.events, out);
    json_number("samples", (long long)f.samples, out);
    json_number("truncated_stacks", (long long)f.truncated, out);
    json_number("events_without_stack", (long long)f.no_stack, out);
    json_number("frames_without_method", (long long)f.no_method, out);
    json_number("failed_samples", (long long)f.failed, out);
    json_member("jfr_event", f.event, out);
    json_member("error", sv_from(r->damage.msg), out);
    json_chunks(r, out);
    json_types(r, out);
    json_profiles(r, f.profiles, out);
    buf_puts(out, "}\n");
}
