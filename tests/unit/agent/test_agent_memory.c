/* The shares of memory as metrics and in the log; and memory that is given back. */
#include "tests/unit/lib/testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/memory.h"
#include "config/memory.h"

#define MIB (UINT64_C(1) << 20)
#define SHARE(name) testing_metric(metrics, "profpull_memory_share_bytes{share=\"" name "\"}")

static void report(struct memory_input *in, const char *warning, const char *line)
{
    struct config_memory m;
    SCOPED(metrics) *metrics = metrics_new();
    SCOPED(testing_log) *log = testing_log_new();
    if (warning != NULL) {
        testing_log_expect(log, warning);
    }
    memory_plan(in, &m);
    memory_report(&m, testing_log(log), metrics);
    CHECK_CONTAINS(testing_log_text(log), line, "");
    CHECK_INT(testing_metric(metrics, "profpull_memory_limit_bytes"), in->limit, "");
    CHECK_INT(SHARE("overhead"), m.overhead, "");
    CHECK_INT(SHARE("bodies"), m.bodies, "");
    CHECK_INT(SHARE("pending"), m.pending, "");
    CHECK_INT(SHARE("work"), m.work, "");
    CHECK_INT(SHARE("baselines"), m.baselines, "");
    CHECK_INT(SHARE("merging"), m.merging, "");
    CHECK_INT(SHARE("queues"), m.queues, "");
    CHECK_INT(SHARE("queries"), m.queries, "");
    CHECK_INT(SHARE("received"), m.received, "");
}

TEST(shares_are_said)
{
    report(&(struct memory_input){.limit = 200 * MIB, .n_queues = 1}, NULL,
           "msg=\"memory is shared out\" memory_limit=209715200 ");
    report(&(struct memory_input){.n_queues = 1}, NULL, "");
}

TEST(too_much_is_a_warning)
{
    report(&(struct memory_input){.limit = 200 * MIB, .baselines = 256 * MIB, .n_queues = 1},
           "the configured ceilings add up to more than the memory limit", "baselines=268435456 ");
}

#define PAGE ((size_t)4096)
#define PRESENT (UINT64_C(1) << 63)

/* Constants of the program: more than what the kernel maps around a page that is needed. */
static const unsigned char constants[64 * 4096] __attribute__((aligned(4096))) = {1};

/* Counts the present pages among those in the middle of the constants. */
static size_t count_present(int pagemap)
{
    size_t n = 0;
    for (size_t i = 24; i < 40; i++) {
        uint64_t entry = 0;
        off_t at = (off_t)(((uintptr_t)constants / PAGE + i) * sizeof(entry));
        assert_int_equal(pread(pagemap, &entry, sizeof(entry), at), sizeof(entry));
        n += (entry & PRESENT) != 0;
    }
    return n;
}

TEST(text_is_given_back)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0 || sysconf(_SC_PAGESIZE) != (long)PAGE) {
        skip();
    }
    const volatile unsigned char *bytes = constants;
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(constants); i += PAGE) {
        sum += bytes[i];
    }
    assert_true(count_present(pagemap) > 0);
    memory_release_text();
    CHECK_INT(count_present(pagemap), 0, "");
    CHECK_INT(bytes[0], 1, "read from the file again");
    CHECK_INT(sum, 1, "");
    close(pagemap);
}

static size_t resident_pages(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return pages;
}

/* A peak leaves small blocks, one of many of which is still used. */
TEST(free_memory_is_given_back)
{
    enum { BLOCKS = 64 * 1024, SIZE = 1000, KEPT = 64 };
    static char *blocks[BLOCKS];
#ifdef INSTRUMENTED
    skip(); /* it has an allocator of its own */
#endif
    if (getenv("PROFPULL_VALGRIND") != NULL) {
        skip(); /* scripts/valgrind.sh: so has valgrind */
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = testing_memory(SIZE);
        memset(blocks[i], 1, SIZE);
    }
    size_t peak = resident_pages();
    memory_release_free();
    size_t used = resident_pages();
    assert_true(used + 1024 > peak); /* nothing is free */
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % KEPT != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    memory_release_free();
    assert_true(resident_pages() * PAGE + 48 * MIB < peak * PAGE);
    for (size_t i = 0; i < BLOCKS; i += KEPT) {
        assert_int_equal(blocks[i][SIZE - 1], 1);
        free(blocks[i]);
    }
}
