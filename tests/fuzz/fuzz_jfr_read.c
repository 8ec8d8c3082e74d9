/* Recordings: whatever the input, the result is whole pprof profiles or an error, and memory is in
 * proportion to the input. */
#include "jfr/jfr.h"
#include "pprof/check.h"
#include "tests/fuzz/fuzz.h"

/* A reader holds at most this many bytes for each byte of a recording, besides a constant for
 * classes within classes (100,000 reads of 8 bytes). */
#define MEMORY_FACTOR 64
#define MEMORY_BASE ((size_t)2 * 1024 * 1024)

static void check_profiles(struct jfr_reader *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct jfr_profile p;
        struct pprof_summary summary;
        struct buf out;
        struct err err = ERR_INIT;
        buf_init(&out, JFR_PROFILE_MAX);
        jfr_reader_profile(r, i, &p);
        REQUIRE(jfr_reader_write(r, i, &out, &err));
        REQUIRE(pprof_check((struct sv){out.data, out.len}, &summary, &err));
        REQUIRE(summary.n[PROFILE_SAMPLE] == p.stacks &&
                summary.n[PROFILE_SAMPLE_TYPE] == p.n_columns);
        buf_done(&out);
    }
}

/* The first byte says how many of the bytes after it are labels; 0: the rest is a recording. */
FUZZ_BY(choice, bytes)
{
    struct err err = ERR_INIT;
    size_t n = choice <= bytes.n ? choice : 0;
    const struct jfr_options options = {
        .labels = {bytes.p, n}, .seed = 7, .count_types = true, .sample_rate = n > 0 ? 100 : 0};
    struct jfr_reader *r = jfr_reader_new(&options, &err);
    REQUIRE((r == NULL) == (err.kind != ERR_NONE));
    if (r != NULL) {
        struct jfr_facts facts;
        bool ok = jfr_reader_all(r, sv_skip(bytes, n), &err);
        REQUIRE(ok == (err.kind == ERR_NONE));
        jfr_reader_facts(r, &facts);
        REQUIRE(facts.memory <= MEMORY_FACTOR * (bytes.n + 1) + MEMORY_BASE);
        check_profiles(r, facts.profiles);
        jfr_reader_free(r);
    }
}
