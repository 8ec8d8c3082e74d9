/* Turns profiles into one OTLP request by hand, for tests and figures.
 *
 *   otlp-tool OUT PROFILE...   writes the request, not compressed; service_name is the file's name
 *   otlp-tool -b N PROFILE...  makes it N times; prints the time for each profile
 *   otlp-tool -read IN PREFIX  writes the profiles that a request becomes when it is received, not
 *                              compressed: PREFIX0, PREFIX1, ...
 *
 * Exit status 1 when a profile is bad or does not fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pprof/otlp/otlp.h"
#include "tests/tools/read_file.h"
#include "write/protocols/otlp.h"

/* 2026-11-21T03:00:00Z, the start of profiles that have no time. */
#define START_NS (INT64_C(1795230000) * NS_PER_S)

static const struct config_pairs none = {.at = NULL, .n = 0};
static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;

static struct profile *read_profile(struct intern *table, const char *path)
{
    struct buf body;
    size_t size = 0;
    struct labels_builder *b = labels_builder_new(table);
    if (b == NULL || !read_file(path, &body)) {
        exit(1);
    }
    labels_builder_set(b, SV("__name__"), SV("corpus"));
    labels_builder_set(b, SV("pod"), SV("pod-1"));
    labels_builder_set(b, SV("team"), SV("blue"));
    labels_builder_set(b, SV("service_name"), sv_from(path));
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    char *data = buf_take(&body, &size);
    struct profile *p = l != NULL && data != NULL ? profile_new(l, data, size) : NULL;
    if (p == NULL) {
        exit(1);
    }
    p->from_ns = START_NS;
    p->until_ns = START_NS + 10 * NS_PER_S;
    return p;
}

static bool add(struct otlp_encoder *e, const struct profile *p, struct err *err)
{
    static const struct series_rules rules = {.names = SERIES_NAMES_ALL, .unlimited = true};
    struct series s;
    if (!series_build(&s, p->labels, &none, &limits, &rules)) {
        return err_memory(err);
    }
    bool ok = otlp_encoder_add(e, &s, p, err);
    series_done(&s);
    return ok;
}

static bool encode(struct profile **profiles, size_t n, struct buf *out)
{
    struct err err = ERR_INIT;
    const struct otlp_options o = {.attributes = &none, .work_max = OTLP_WORK_MAX};
    struct otlp_encoder *e = otlp_encoder_new(&o, &err);
    bool ok = e != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        ok = add(e, profiles[i], &err) || err_wrap(&err, "profile %zu", i + 1);
    }
    ok = ok && otlp_encoder_write(e, out, &err);
    if (!ok) {
        (void)fprintf(stderr, "%s\n", err.msg);
    }
    otlp_encoder_free(e);
    return ok;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool bench(struct profile **profiles, size_t n, size_t rounds, struct buf *out)
{
    size_t bytes = 0;
    double start = cpu_ms();
    for (size_t i = 0; i < n; i++) {
        bytes += profiles[i]->size;
    }
    for (size_t i = 0; i < rounds; i++) {
        buf_clear(out);
        if (!encode(profiles, n, out)) {
            return false;
        }
    }
    double each = (cpu_ms() - start) / (double)(rounds * n);
    printf("%zu profiles of %zu bytes: %.3f ms each, %zu bytes of request each\n", n, bytes / n,
           each, out->len / n);
    return true;
}

static bool write_file(const char *path, struct sv bytes)
{
    FILE *f = fopen(path, "wb");
    return f != NULL && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && fclose(f) == 0;
}

/* Writes the profiles of a request. Returns false if one of them is bad. */
static bool read_request(const char *in, const char *prefix)
{
    static const struct otlp_limits no_limits = {.profile_max = OTLP_PROFILE_MAX,
                                                 .total_max = SIZE_MAX};
    struct err err = ERR_INIT;
    struct buf body;
    enum otlp_step step = OTLP_STEP_END;
    if (!read_file(in, &body)) {
        return false;
    }
    struct otlp_reader *r = otlp_reader_new((struct sv){body.data, body.len}, &no_limits, &err);
    bool ok = r != NULL;
    for (unsigned n = 0; ok; n += step == OTLP_STEP_PROFILE) {
        char path[4096];
        struct otlp_profile p;
        step = otlp_reader_next(r, &p, &err);
        if (step == OTLP_STEP_END) {
            break;
        }
        (void)snprintf(path, sizeof(path), "%s%u", prefix, n);
        ok = step != OTLP_STEP_BAD && (step != OTLP_STEP_PROFILE || write_file(path, p.pprof));
    }
    if (!ok) {
        (void)fprintf(stderr, "%s\n", err.msg);
    }
    otlp_reader_free(r);
    buf_done(&body);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "-read") == 0) {
        return read_request(argv[2], argv[3]) ? 0 : 1;
    }
    struct intern *table = intern_new();
    bool is_bench = argc > 3 && strcmp(argv[1], "-b") == 0;
    int first = is_bench ? 3 : 2;
    if (argc <= first || table == NULL) {
        (void)fprintf(stderr,
                      "usage: otlp-tool OUT PROFILE... | -b N PROFILE... | -read IN PREFIX\n");
        return 2;
    }
    size_t n = (size_t)(argc - first);
    struct profile **profiles = calloc(n, sizeof(*profiles));
    struct buf out;
    buf_init(&out, 2 * OTLP_WORK_MAX);
    for (size_t i = 0; profiles != NULL && i < n; i++) {
        profiles[i] = read_profile(table, argv[(size_t)first + i]);
    }
    bool ok = profiles != NULL;
    if (ok && is_bench) {
        ok = bench(profiles, n, strtoul(argv[2], NULL, 10), &out);
    } else if (ok && encode(profiles, n, &out)) {
        ok = write_file(argv[1], (struct sv){out.data, out.len});
    } else {
        ok = false;
    }
    for (size_t i = 0; profiles != NULL && i < n; i++) {
        profile_unref(profiles[i]);
    }
    free(profiles);
    buf_done(&out);
    intern_free(table);
    return ok ? 0 : 1;
}
