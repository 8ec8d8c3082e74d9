/* Recordings of Java by hand, for the scripts that compare and measure:
 *
 *     jfr-tool sums [-TIMES] FILE     the sums of each profile, and what reading it so often took
 *     jfr-tool stacks FILE            each stack: NAME TYPE... <tab> frame:line;... <tab> VALUE...
 *
 * Frames are in order from the top. A file is read chunk by chunk, so memory is that of a chunk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "jfr/jfr.h"
#include "pprof/wire.h"

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "jfr-tool: %s\n", what);
        exit(1);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct jfr_reader *read_file(const char *path, unsigned sample_rate)
{
    char *chunk = NULL;
    size_t cap = 0;
    const struct jfr_options options = {.sample_rate = sample_rate, .seed = 1};
    struct err err = ERR_INIT;
    struct jfr_head head;
    char start[JFR_HEAD_SIZE];
    FILE *f = fopen(path, "rb");
    must(f != NULL, path);
    struct jfr_reader *r = jfr_reader_new(&options, &err);
    must(r != NULL, err.msg);
    while (fread(start, 1, sizeof(start), f) == sizeof(start)) {
        must(jfr_head_read((struct sv){start, sizeof(start)}, &head, &err), err.msg);
        if (head.size > cap) {
            free(chunk);
            cap = (size_t)head.size;
            chunk = malloc(cap);
            must(chunk != NULL, "out of memory");
        }
        memcpy(chunk, start, sizeof(start));
        size_t left = (size_t)head.size - sizeof(start);
        must(fread(chunk + sizeof(start), 1, left, f) == left, "a cut chunk");
        must(jfr_reader_chunk(r, (struct sv){chunk, (size_t)head.size}, &err), err.msg);
    }
    free(chunk);
    fclose(f);
    return r;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static size_t write_profiles(struct jfr_reader *r)
{
    struct jfr_facts facts;
    jfr_reader_facts(r, &facts);
    for (size_t i = 0; i < facts.profiles; i++) {
        struct buf out;
        struct err err = ERR_INIT;
        buf_init(&out, JFR_PROFILE_MAX);
        must(jfr_reader_write(r, i, &out, &err), err.msg);
        buf_done(&out);
    }
    return facts.profiles;
}

static void print_sums(const struct jfr_reader *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct jfr_profile p;
        jfr_reader_profile(r, i, &p);
        printf("profile %s", p.name);
        for (size_t k = 0; k < p.n_columns; k++) {
            printf(" %s=%lld", p.columns[k].type, (long long)p.sums[k]);
        }
        putchar('\n');
    }
}

static void sums(const char *path, unsigned times)
{
    struct rusage u;
    for (unsigned i = 0; i < times; i++) {
        struct jfr_reader *r = read_file(path, JFR_SAMPLE_RATE_DEFAULT);
        size_t n = write_profiles(r);
        if (i + 1 == times) {
            print_sums(r, n);
        }
        jfr_reader_free(r);
    }
    getrusage(RUSAGE_SELF, &u);
    double us = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
                (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    printf("cpu_ms %.1f\nmax_rss_kb %ld\n", us / 1000 / times, u.ru_maxrss);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The tables of a profile, by number. */
struct tables {
    struct sv *strings;
    uint64_t *names;     /* of functions */
    uint64_t *functions; /* of locations */
    uint64_t *lines;
    size_t n_strings;
};

static void read_tables(struct sv plain, struct tables *t)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    size_t max = plain.n + 1; /* more entries than bytes there are not */
    t->strings = calloc(max, sizeof(*t->strings));
    t->names = calloc(max, sizeof(*t->names));
    t->functions = calloc(max, sizeof(*t->functions));
    t->lines = calloc(max, sizeof(*t->lines));
    must(t->strings != NULL && t->names != NULL && t->functions != NULL && t->lines != NULL,
         "out of memory");
    while (wire_next(&r, &f)) {
        uint64_t n[LOCATION_LINE + 1] = {0};
        uint64_t line[LINE_LINE + 1] = {0};
        if (f.number == PROFILE_STRING) {
            t->strings[t->n_strings++] = f.bytes;
        } else if (f.number == PROFILE_FUNCTION) {
            wire_read_numbers(f.bytes, n, LOCATION_LINE + 1);
            t->names[n[FUNCTION_ID]] = n[FUNCTION_NAME];
        } else if (f.number == PROFILE_LOCATION) {
            struct wire_reader inner = wire_reader_of(f.bytes);
            struct wire_field g;
            wire_read_numbers(f.bytes, n, LOCATION_LINE + 1);
            while (wire_next(&inner, &g)) {
                if (g.number == LOCATION_LINE) {
                    wire_read_numbers(g.bytes, line, LINE_LINE + 1);
                }
            }
            t->functions[n[LOCATION_ID]] = line[LINE_FUNCTION_ID];
            t->lines[n[LOCATION_ID]] = line[LINE_LINE];
        }
    }
}

static void print_sample(const struct tables *t, struct sv sample)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f;
    bool first = true;
    while (wire_next(&r, &f)) {
        struct wire_numbers n = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_LOCATION_ID && wire_numbers_next(&n, &v)) {
            printf("%s%.*s:%llu", first ? "" : ";", SV_ARG(t->strings[t->names[t->functions[v]]]),
                   (unsigned long long)t->lines[v]);
            first = false;
        }
        const char *separator = "\t";
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&n, &v)) {
            printf("%s%lld", separator, (long long)v);
            separator = " ";
        }
    }
    putchar('\n');
}

static void print_stacks(struct jfr_reader *r, size_t i)
{
    struct jfr_profile p;
    struct buf out;
    struct tables t = {.n_strings = 0};
    struct err err = ERR_INIT;
    struct wire_field f;
    buf_init(&out, JFR_PROFILE_MAX);
    jfr_reader_profile(r, i, &p);
    must(jfr_reader_write(r, i, &out, &err), err.msg);
    struct sv plain = {out.data, out.len};
    read_tables(plain, &t);
    struct wire_reader reader = wire_reader_of(plain);
    while (wire_next(&reader, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            printf("%s", p.name);
            for (size_t k = 0; k < p.n_columns; k++) {
                printf(" %s", p.columns[k].type);
            }
            putchar('\t');
            print_sample(&t, f.bytes);
        }
    }
    free(t.strings);
    free(t.names);
    free(t.functions);
    free(t.lines);
    buf_done(&out);
}

static void stacks(const char *path)
{
    struct jfr_facts facts;
    struct jfr_reader *r = read_file(path, 0);
    jfr_reader_facts(r, &facts);
    for (size_t i = 0; i < facts.profiles; i++) {
        print_stacks(r, i);
    }
    jfr_reader_free(r);
}

int main(int argc, char **argv)
{
    must(argc >= 3, "usage: jfr-tool sums [-TIMES] FILE | stacks FILE");
    if (strcmp(argv[1], "stacks") == 0) {
        stacks(argv[argc - 1]);
    } else {
        unsigned times = argc > 3 ? (unsigned)strtoul(argv[2] + 1, NULL, 10) : 1;
        sums(argv[argc - 1], times == 0 ? 1 : times);
    }
    return 0;
}
