#include "agent/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The most arenas of the allocator: more than there are threads that allocate much. Threads that
 * share an arena wait for each other's calls, and a thread of low priority that holds the lock of
 * an arena may not get a core for a long time: beside a crowd of queries on a busy machine, the
 * thread that scrapes waited up to 90 ms for it. */
#define ARENAS 32
/* Blocks of this size and more are mappings of their own, which go back to the system as soon as
 * they are freed: bodies, baselines, blocks to work in. Left alone, the allocator raises this
 * threshold up to 32 MiB with each large block that is freed, and free memory between used blocks
 * stays resident. */
#define MMAP_THRESHOLD (256 * 1024)
/* Free memory at the end of an arena goes back to the system if there is more of it than this. With
 * 1,000 targets, this keeps as much memory as two arenas with 1 MiB each did. */
#define TRIM_THRESHOLD (256 * 1024)
/* Free memory between used blocks is given back if there is more of it than this, and than this
 * part of the used memory. Memory that is given back must be taken again page by page. */
#define FREE_MAX ((size_t)8 * 1024 * 1024)
#define FREE_MAX_PART 4

void memory_tune_allocator(void)
{
    mallopt(M_ARENA_MAX, ARENAS);
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
}

/* The parts of a file that were mapped and never written: text and constants. */
static int memory_on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    (void)arg;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) == 0) {
            uintptr_t start = (info->dlpi_addr + part->p_vaddr) & ~(page - 1);
            uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
            (void)madvise((void *)start, end - start, MADV_DONTNEED);
        }
    }
    return 0;
}

void memory_release_text(void)
{
    (void)dl_iterate_phdr(memory_on_object, NULL);
}

void memory_release_free(void)
{
    const struct mallinfo2 now = mallinfo2();
    if (now.fordblks > FREE_MAX && now.fordblks > now.uordblks / FREE_MAX_PART) {
        malloc_trim(0);
    }
}

static void register_shares(const struct config_memory *m, struct metrics *metrics)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } shares[] = {
        {"overhead", m->overhead}, {"bodies", m->bodies},       {"pending", m->pending},
        {"work", m->work},         {"baselines", m->baselines}, {"merging", m->merging},
        {"queues", m->queues},     {"queries", m->queries},     {"received", m->received},
    };
    struct metric *family = metrics_family(
        metrics, METRIC_GAUGE, "profpull_memory_share_bytes",
        "Memory ceilings of the parts of the process; overhead: the memory without a ceiling.",
        "share", NULL);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        metric_set(metric_cell_of(family, shares[i].name), (int64_t)shares[i].bytes);
    }
    metric_set(metrics_single(metrics, METRIC_GAUGE, "profpull_memory_limit_bytes",
                              "Memory limit of the process; 0 if nothing limits it."),
               (int64_t)m->limit);
}

void memory_report(const struct config_memory *m, struct log *log, struct metrics *metrics)
{
    register_shares(m, metrics);
    if (m->limit == 0) {
        return;
    }
    const struct log_field fields[] = {
        LOG_INT("memory_limit", m->limit),  LOG_INT("sum", m->sum),
        LOG_INT("overhead", m->overhead),   LOG_INT("bodies", m->bodies),
        LOG_INT("pending", m->pending),     LOG_INT("work", m->work),
        LOG_INT("baselines", m->baselines), LOG_INT("merging", m->merging),
        LOG_INT("queues", m->queues),       LOG_INT("queries", m->queries),
        LOG_INT("received", m->received),   LOG_END,
    };
    if (m->sum > m->limit) {
        log_write(
            log, LOG_WARN,
            "the configured ceilings add up to more than the memory limit: the process may be "
            "killed",
            fields);
    } else {
        log_write(log, LOG_INFO, "memory is shared out", fields);
    }
}
