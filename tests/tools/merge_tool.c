/* Merges profiles by hand, for tests and figures.
 *
 *   merge-tool OUT PROFILE...          writes the merged profile, gzip
 *   merge-tool -window OUT PROFILE...  the same, as deltas in the order of time
 *   merge-tool -b N PROFILE...         merges them N times; prints the time of one round
 *
 * Exit status 1 when a profile is bad or does not fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "pprof/merge.h"
#include "tests/tools/read_file.h"

static bool read_files(char **paths, size_t n, struct buf *bodies)
{
    for (size_t i = 0; i < n; i++) {
        if (!read_file(paths[i], &bodies[i])) {
            return false;
        }
    }
    return true;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One merge of all bodies, in a scratch as a worker has it. */
static bool merge_all(const struct buf *bodies, size_t n, enum merge_mode mode,
                      struct scratch *scratch, struct buf *out, size_t *ret_bytes)
{
    struct err err = ERR_INIT;
    const struct merge_options o = {
        .bytes_max = FILE_MAX, .mode = mode, .any_counter = true, .scratch = scratch};
    struct merge *m = merge_new(&o, &err);
    bool ok = m != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        ok = merge_add(m, (struct sv){bodies[i].data, bodies[i].len}, &err) ||
             err_wrap(&err, "profile %zu", i + 1);
    }
    ok = ok && merge_write(m, out, &err);
    if (!ok) {
        (void)fprintf(stderr, "%s\n", err.msg);
    }
    *ret_bytes = ok ? merge_bytes(m) : 0;
    merge_free(m);
    return ok;
}

static int bench(const struct buf *bodies, size_t n, size_t rounds, struct scratch *scratch)
{
    size_t bytes = 0;
    size_t out_size = 0;
    double from = cpu_ms();
    for (size_t i = 0; i < rounds; i++) {
        struct buf out;
        buf_init(&out, FILE_MAX);
        if (!merge_all(bodies, n, MERGE_SUM, scratch, &out, &bytes)) {
            return 1;
        }
        out_size = out.len;
        buf_done(&out);
    }
    (void)printf("cpu_ms mean=%.3f out=%zu bytes=%zu scratch=%zu\n",
                 (cpu_ms() - from) / (double)rounds, out_size, bytes, scratch_bytes(scratch));
    return 0;
}

static int write_merged(const struct buf *bodies, size_t n, enum merge_mode mode,
                        struct scratch *scratch, const char *path)
{
    struct buf out;
    size_t bytes;
    buf_init(&out, FILE_MAX);
    bool ok = merge_all(bodies, n, mode, scratch, &out, &bytes);
    if (ok) {
        FILE *f = fopen(path, "wbe");
        ok = f != NULL && (out.len == 0 || fwrite(out.data, out.len, 1, f) == 1);
        ok = f != NULL && fclose(f) == 0 && ok;
    }
    buf_done(&out);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool is_bench = argc > 3 && strcmp(argv[1], "-b") == 0;
    bool is_window = argc > 3 && strcmp(argv[1], "-window") == 0;
    int first = is_bench || is_window ? 3 : 2;
    uint64_t rounds = 0;
    if (argc <= first || (is_bench && !parse_u64(sv_from(argv[2]), 1000000, &rounds))) {
        (void)fprintf(stderr, "usage: merge-tool [-window] OUT PROFILE... | -b N PROFILE...\n");
        return 2;
    }
    size_t n = (size_t)(argc - first);
    struct buf *bodies = calloc(n, sizeof(*bodies));
    struct scratch *scratch = scratch_new();
    enum merge_mode mode = is_window ? MERGE_WINDOW : MERGE_SUM;
    int rc = 1;
    if (bodies != NULL && scratch != NULL && read_files(argv + first, n, bodies)) {
        rc = is_bench ? bench(bodies, n, rounds, scratch)
                      : write_merged(bodies, n, mode, scratch, argv[first - 1]);
    }
    for (size_t i = 0; i < n && bodies != NULL; i++) {
        buf_done(&bodies[i]);
    }
    free(bodies);
    scratch_free(scratch);
    return rc;
}
