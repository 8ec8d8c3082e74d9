/* The peak memory of one request of OTLP: the largest profile that is accepted, the most profiles
 * that one request takes, and profiles that need more than there is. */
#include "tests/tools/peak.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/write/requests.h"

#include "pprof/gzip.h"
#include "write/batch.h"
#include "write/protocols/otlp.h"

#define MIB ((size_t)1024 * 1024)
/* The default of otlp.max_request_size. */
#define REQUEST_SIZE (4 * MIB)
/* Bytes of one stack of a profile that fill() makes, at least. */
#define STACK_BYTES 70

/* Appends a profile of n stacks that no profile with another seed has. */
static void fill(struct buf *out, size_t seed, size_t n)
{
    char name[64];
    SCOPED(buf) m = testing_buf(1024);
    SCOPED(buf) line = testing_buf(1024);
    put_num(&m, 1, 1);
    put_num(&m, 2, 2);
    put_sub(out, 1, &m); /* sample_type */
    for (size_t i = 1; i <= n; i++) {
        put_num(&m, 1, i);
        put_num(&m, 2, 1);
        put_sub(out, 2, &m); /* sample */
        put_num(&m, 1, i);
        put_num(&line, 1, i);
        put_sub(&m, 4, &line);
        put_sub(out, 4, &m); /* location */
        put_num(&m, 1, i);
        put_num(&m, 2, i + 2);
        put_sub(out, 5, &m); /* function */
    }
    put_msg(out, 6, "", 0);
    put_msg(out, 6, "samples", 7);
    put_msg(out, 6, "count", 5);
    for (size_t i = 1; i <= n; i++) {
        int len =
            snprintf(name, sizeof(name), "example.com/service-%zu/pkg.function%08zu", seed, i);
        put_msg(out, 6, name, (size_t)len);
    }
    assert_true(buf_ok(out));
}

/* A profile whose inflated size is just below a limit, in gzip. */
static struct profile *profile_below(size_t limit, size_t seed)
{
    SCOPED_MEMORY char *packed = NULL;
    size_t size = 0;
    static const struct pair labels[] = {{"__name__", "memory"}, {"service_name", "s"}};
    SCOPED(buf) plain = testing_buf(64 * MIB);
    size_t n = limit / (2 * (size_t)STACK_BYTES);
    fill(&plain, seed, n);
    n = (size_t)((double)n * ((double)limit / (double)plain.len) * 0.99);
    buf_clear(&plain);
    fill(&plain, seed, n);
    assert_true(plain.len < limit && plain.len > limit / 10 * 9);
    struct scratch *s = scratch_new();
    assert_true(gzip_pack(s, (struct sv){plain.data, plain.len}, &packed, &size));
    scratch_free(s);
    struct profile *p = profile_of(labels_of(labels, 2), packed, size);
    return p;
}

/* ---- the peak -------------------------------------------------------------------------------- */

/* The sanitizers and valgrind take memory of their own for each block. */
static bool is_measurable(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return false;
#endif
#endif
    return getenv("PROFPULL_VALGRIND") == NULL && peak_begin() != 0;
}

/* Makes one request of n profiles and returns what that took beyond them at its peak. */
static size_t peak_of(struct profile *const *profiles, size_t n, unsigned compression,
                      size_t *ret_added)
{
    static const struct config_endpoint endpoint = {
        .url = "http://collector:4318/", .protocol = &protocol_otlp.config, .tenant_id = ""};
    struct config_endpoint e = endpoint;
    struct series series[BATCH_PROFILES_MAX];
    struct request_part parts[BATCH_PROFILES_MAX];
    struct request r;
    struct request_memory memory = {.kept = NULL};
    e.otlp_compression = compression;
    e.otlp_request_bytes = REQUEST_SIZE;
    for (size_t i = 0; i < n; i++) {
        assert_true(series_build(&series[i], profiles[i]->labels, &no_external, &default_limits,
                                 &protocol_otlp.labels));
        parts[i] = (struct request_part){.series = &series[i], .profile = profiles[i]};
    }
    size_t before = peak_begin();
    assert_int_equal(request_build_many(&r, &e, parts, n, &memory), REQUEST_OK);
    size_t peak = peak_status("VmHWM:");
    assert_true(peak > 0);
    peak -= before;
    *ret_added = 0;
    for (size_t i = 0; i < n; i++) {
        *ret_added += parts[i].status == REQUEST_OK;
        series_done(&series[i]);
    }
    request_done(&r);
    request_memory_done(&memory);
    return peak;
}

static void check_peak(size_t n, size_t size, size_t most_added, size_t most, const char *row)
{
    static const struct {
        unsigned compression;
        const char *name;
    } ways[] = {{OTLP_GZIP, "gzip"}, {OTLP_PLAIN, "plain"}};
    struct profile *profiles[BATCH_PROFILES_MAX];
    for (size_t i = 0; i < n; i++) {
        profiles[i] = profile_below(size, i);
    }
    for (size_t i = 0; i < 2; i++) {
        size_t added = 0;
        size_t peak = peak_of(profiles, n, ways[i].compression, &added);
        print_message("%s, %s: %zu of %zu profiles, %.1f MiB\n", row, ways[i].name, added, n,
                      (double)peak / (double)MIB);
        assert_true(added > 0 && added <= most_added);
        assert_in_range(peak, 1, most);
    }
    for (size_t i = 0; i < n; i++) {
        profile_unref(profiles[i]);
    }
}

/* A request takes as many profiles as max_request_size allows. */
TEST_WITH(a_full_request, setup, teardown)
{
    if (!is_measurable()) {
        skip();
    }
    check_peak(BATCH_PROFILES_MAX, REQUEST_SIZE / BATCH_PROFILES_MAX, BATCH_PROFILES_MAX, 32 * MIB,
               "a full request");
}

/* The largest profile that is accepted is a request of its own. */
TEST_WITH(the_largest_profile, setup, teardown)
{
    if (!is_measurable()) {
        skip();
    }
    check_peak(1, OTLP_PROFILE_MAX, 1, 256 * MIB, "the largest profile");
}

/* Profiles beyond the memory that a request is made in are left out of it. The batcher puts up to
 * 64 MiB of profiles into one, or a single one that is larger. */
TEST_WITH(more_than_there_is, setup, teardown)
{
    if (!is_measurable()) {
        skip();
    }
    check_peak(3, OTLP_PROFILE_MAX, 2, 352 * MIB, "more than there is");
}
