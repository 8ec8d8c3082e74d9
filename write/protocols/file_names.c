#include "write/protocols/file_names.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "pprof/gzip.h"

static char path_char(char c, bool first)
{
    if (ascii_is_alnum(c) || c == '-' || (c == '.' && !first)) {
        return c;
    }
    return c == ':' ? '-' : '_';
}

void file_path_part(struct sv v, char out[FILE_PART_MAX + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < v.n && n < FILE_PART_MAX; i++) {
        bool continuation = ((unsigned char)v.p[i] & 0xc0) == 0x80;
        if (!continuation) {
            out[n] = path_char(v.p[i], n == 0);
            n++;
        }
    }
    if (n == 0) {
        memcpy(out, "unknown", sizeof("unknown"));
        return;
    }
    out[n] = '\0';
}

/* Writes a time as "20261121T032334.123Z". */
static void format_time(int64_t wall_ns, char out[32])
{
    char text[32];
    size_t n = 0;
    clock_format_rfc3339(wall_ns, text, sizeof(text));
    for (const char *p = text; *p != '\0'; p++) {
        if (*p != '-' && *p != ':') {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

void file_stem(const struct series *s, const struct profile *p, char out[FILE_STEM_SIZE])
{
    char time[32];
    char instance[FILE_PART_MAX + 1];
    format_time(p->until_ns, time);
    file_path_part(series_get(s, LABEL_INSTANCE), instance);
    (void)snprintf(out, FILE_STEM_SIZE, "%s_%s", time, instance);
}

static bool is_gzip(const struct profile *p)
{
    return gzip_is((struct sv){.p = p->data, .n = p->size});
}

const char *file_extension(const struct profile *p)
{
    if (p->format == PROFILE_JFR) {
        return is_gzip(p) ? "jfr.gz" : "jfr";
    }
    return "pb.gz";
}

bool file_is_plain(const struct profile *p)
{
    return p->format == PROFILE_PPROF && !is_gzip(p);
}

static void put_time(struct buf *out, const char *key, int64_t wall_ns)
{
    char text[32];
    clock_format_rfc3339(wall_ns, text, sizeof(text));
    json_member(key, sv_from(text), out);
}

void file_put_times(const struct profile *p, struct buf *out)
{
    put_time(out, "from", p->from_ns);
    put_time(out, "until", p->until_ns);
}

void file_put_labels(const struct series *s, struct buf *out)
{
    if (s->tenant.n > 0) {
        json_member("tenant", s->tenant, out);
    }
    json_key("labels", out);
    buf_putc(out, '{');
    for (size_t i = 0; i < s->n; i++) {
        if (i > 0) {
            buf_putc(out, ',');
        }
        json_quote(s->at[i].name, out);
        buf_putc(out, ':');
        json_quote(s->at[i].value, out);
    }
    buf_putc(out, '}');
}
