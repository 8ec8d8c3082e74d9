/* The delta of two profiles by hand, for tests and figures.
 *
 *   delta-tool BEFORE AFTER OUT     writes the delta; prints the result and the number of samples
 *   delta-tool -b N BEFORE AFTER    makes it N times; prints the time of one
 *
 * OUT is empty if all values are zero. Exit status 1 when a profile is bad.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "pprof/delta.h"
#include "pprof/gzip.h"
#include "tests/tools/read_file.h"

#define SEED 42

static enum delta_result make(const struct buf *body, const struct delta_state *baseline,
                              struct scratch *scratch, struct delta_output *out)
{
    struct err err = ERR_INIT;
    struct scratch *own = scratch == NULL ? scratch_new() : NULL;
    struct delta_input in = {.body = {body->data, body->len},
                             .baseline = baseline,
                             .any_counter = true,
                             .seed = SEED,
                             .scratch = own == NULL ? scratch : own};
    enum delta_result r = delta_make(&in, out, &err);
    scratch_free(own);
    if (r > DELTA_PASSED) {
        (void)fprintf(stderr, "%s: %s\n", delta_result_name(r), err.msg);
    }
    return r;
}

static int write_delta(const struct buf *after, struct delta_state *baseline, const char *path)
{
    struct delta_output out;
    enum delta_result r = make(after, baseline, NULL, &out);
    if (r > DELTA_PASSED) {
        return 1;
    }
    FILE *f = fopen(path, "wbe");
    bool ok = f != NULL && (out.size == 0 || fwrite(out.data, out.size, 1, f) == 1);
    ok = f != NULL && fclose(f) == 0 && ok;
    (void)printf("%s samples=%zu\n", delta_result_name(r), out.samples_out);
    delta_output_done(&out);
    return ok ? 0 : 1;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Deltas in one scratch, as a worker makes them. took[n]: the time of each. */
static bool measure(const struct buf *after, const struct delta_state *baseline, double *took,
                    size_t n, struct delta_output *out, size_t *ret_scratch)
{
    struct scratch *scratch = scratch_new();
    bool ok = scratch != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        double from = cpu_ms();
        delta_output_done(out);
        ok = make(after, baseline, scratch, out) < DELTA_PASSED;
        scratch_reset(scratch);
        took[i] = cpu_ms() - from;
    }
    *ret_scratch = ok ? scratch_bytes(scratch) : 0;
    scratch_free(scratch);
    return ok;
}

static int bench(const struct buf *after, const struct delta_state *baseline, size_t n)
{
    struct delta_output out = {.data = NULL};
    double *took = calloc(n, sizeof(*took));
    size_t scratch = 0;
    bool ok = took != NULL && measure(after, baseline, took, n, &out, &scratch);
    if (ok) {
        qsort(took, n, sizeof(*took), by_size);
        (void)printf("cpu_ms median=%.3f best=%.3f p90=%.3f in=%zu out=%zu stacks=%zu "
                     "samples_out=%zu state_bytes=%zu live=%zu bytes_per_stack=%.1f "
                     "scratch=%zu\n",
                     took[n / 2], took[0], took[n * 9 / 10], after->len, out.size, out.stacks_in,
                     out.samples_out, out.next->bytes, out.next->n,
                     out.next->n == 0 ? 0.0 : (double)out.next->bytes / (double)out.next->n,
                     scratch);
    }
    delta_output_done(&out);
    free(took);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool is_bench = argc == 5 && strcmp(argv[1], "-b") == 0;
    uint64_t n = 0;
    if (!is_bench && argc != 4) {
        (void)fprintf(stderr, "usage: delta-tool BEFORE AFTER OUT | -b N BEFORE AFTER\n");
        return 2;
    }
    if (is_bench && (!parse_u64(sv_from(argv[2]), 1000000, &n) || n == 0)) {
        return 2;
    }
    struct buf before;
    struct buf after;
    struct delta_output first;
    int at = is_bench ? 3 : 1;
    if (!read_file(argv[at], &before) || !read_file(argv[at + 1], &after) ||
        make(&before, NULL, NULL, &first) > DELTA_PASSED) {
        return 1;
    }
    int rc = is_bench ? bench(&after, first.next, (size_t)n)
                      : write_delta(&after, first.next, argv[at + 2]);
    delta_output_done(&first);
    buf_done(&before);
    buf_done(&after);
    return rc;
}
