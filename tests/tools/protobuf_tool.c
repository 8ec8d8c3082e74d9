/* CPU of checking a profile with our own reader and of unpacking it with protobuf-c, by turns:
 *
 *   build/tests/protobuf-tool FILE [RUNS]
 *
 * FILE is a profile that is not compressed. Prints milliseconds of each and the ratio, and the
 * bytes that the unpacked messages take.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/proto/profile.pb-c.h"
#include "base/clock.h"
#include "base/err.h"
#include "pprof/check.h"
#include "tests/tools/read_file.h"

#define RUNS_DEFAULT 200
#define TURNS 5

static double cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * MS_PER_S + (double)t.tv_nsec / NS_PER_MS;
}

static double check_ms(struct sv plain, int runs, struct err *err)
{
    struct pprof_summary summary;
    double start_ms = cpu_ms();
    for (int i = 0; i < runs; i++) {
        if (!pprof_check(plain, &summary, err)) {
            return -1;
        }
    }
    return (cpu_ms() - start_ms) / runs;
}

static double unpack_ms(struct sv plain, int runs, size_t *ret_bytes)
{
    size_t before = mallinfo2().uordblks;
    double start_ms = cpu_ms();
    for (int i = 0; i < runs; i++) {
        Api__Profile *p = api__profile__unpack(NULL, plain.n, (const uint8_t *)plain.p);
        if (p == NULL) {
            return -1;
        }
        if (i == 0) {
            *ret_bytes = mallinfo2().uordblks - before;
        }
        api__profile__free_unpacked(p, NULL);
    }
    return (cpu_ms() - start_ms) / runs;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct buf file;
    int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : RUNS_DEFAULT;
    if (argc < 2 || runs < 1) {
        (void)fprintf(stderr, "usage: protobuf-tool FILE [RUNS]\n");
        return 2;
    }
    if (!read_file(argv[1], &file)) {
        return 1;
    }
    bool ok = true;
    struct sv plain = {file.data, file.len};
    for (int turn = 0; ok && turn < TURNS; turn++) {
        size_t bytes = 0;
        double ours = check_ms(plain, runs, &err);
        double theirs = ours < 0 ? -1 : unpack_ms(plain, runs, &bytes);
        ok = ours >= 0 && theirs >= 0;
        if (ok) {
            printf("%zu bytes: check %.3f ms; protobuf-c %.3f ms, %.1f times as much, %zu bytes\n",
                   plain.n, ours, theirs, theirs / ours, bytes);
        }
    }
    if (!ok) {
        (void)fprintf(stderr, "protobuf-tool: %s: %s\n", argv[1],
                      err.msg[0] != '\0' ? err.msg : "protobuf-c cannot read it");
    }
    buf_done(&file);
    return ok ? 0 : 1;
}
