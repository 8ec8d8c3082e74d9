/* Prints the names of addresses of a native file, as the child of the agent finds them.
 *
 *   symbols-tool [-m START-LIMIT@OFFSET] [-b BUILDID] [-l MEMORY] [-t] FILE <ADDRESSES
 *
 * Standard input has an address in hex on each line. For each, prints a line with the address, then
 * one for each frame: raw name, name for people, file:line, line of the declaration, with tabs
 * between. -m: the addresses are those of a process, in this mapping (all in hex); otherwise
 * virtual ones. -l: the most bytes of memory of the child. -t: prints what it took, and no names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/helper.h"

struct tool {
    struct symbols_helper_options options;
    struct symbols_question question;
    bool times;
    uint64_t addresses[SYMBOLS_ADDRESSES_MAX];
};

static bool read_options(struct tool *t, int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "m:b:l:t")) != -1) {
        char *at = optarg;
        if (c == 'm') {
            t->question.mapping.start = strtoull(at, &at, 16);
            t->question.mapping.limit = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
            t->question.mapping.offset = *at == '@' ? strtoull(at + 1, &at, 16) : 0;
        } else if (c == 'b') {
            t->question.build_id = optarg;
        } else if (c == 'l') {
            t->options.max_memory = strtoull(optarg, NULL, 10);
        } else if (c == 't') {
            t->times = true;
        } else {
            return false;
        }
    }
    return optind + 1 == argc;
}

static size_t read_addresses(struct tool *t)
{
    char line[64];
    size_t n = 0;
    while (n < SYMBOLS_ADDRESSES_MAX && fgets(line, sizeof(line), stdin) != NULL) {
        t->addresses[n++] = strtoull(line, NULL, 16);
    }
    return n;
}

static void print(const struct tool *t, const struct symbol_frames *frames)
{
    for (size_t i = 0; i < frames->n; i++) {
        size_t n;
        const struct symbol_frame *f = symbol_frames_of(frames, i, &n);
        printf("0x%llx\n", (unsigned long long)t->addresses[i]);
        for (size_t j = 0; j < n; j++) {
            printf("\t%s\t%s\t%s:%lld\t%lld\n", f[j].system_name, f[j].function, f[j].file,
                   (long long)f[j].line, (long long)f[j].start_line);
        }
    }
}

/* Asks twice, so that the second time shows what a question to an open file takes. */
static bool print_times(struct symbols_helper *h, const struct tool *t, struct err *err)
{
    for (int i = 0; i < 2; i++) {
        struct symbol_frames frames;
        int64_t before = clock_mono_ns();
        if (!symbols_helper_ask(h, &t->question, &frames, NULL, err)) {
            return false;
        }
        printf("addresses=%zu frames=%zu ms=%.1f\n", frames.n, frames.n_frames,
               (double)(clock_mono_ns() - before) / (double)NS_PER_MS);
        symbol_frames_free(&frames);
    }
    struct symbols_counters c;
    symbols_helper_counters(h, &c);
    printf("opened=%llu\npartial=%llu\n", (unsigned long long)c.opened,
           (unsigned long long)c.partial);
    return true;
}

static bool run(struct tool *t, struct err *err)
{
    struct symbol_frames frames = {.n = 0};
    struct symbols_helper *h = symbols_helper_start(&t->options, err);
    if (h == NULL) {
        return false;
    }
    bool ok;
    if (t->times) {
        ok = print_times(h, t, err);
    } else {
        ok = symbols_helper_ask(h, &t->question, &frames, NULL, err);
        if (ok) {
            print(t, &frames);
            symbol_frames_free(&frames);
        }
    }
    symbols_helper_stop(h);
    return ok;
}

int main(int argc, char **argv)
{
    static struct tool t;
    struct err err = ERR_INIT;
    t.options = (struct symbols_helper_options){.max_memory = SYMBOLS_MEMORY_DEFAULT,
                                                .timeout_ms = 10 * SYMBOLS_TIMEOUT_DEFAULT_MS};
    if (!read_options(&t, argc, argv)) {
        (void)fprintf(stderr,
                      "usage: symbols-tool [-m START-LIMIT@OFFSET] [-b BUILDID] [-l MEMORY] "
                      "[-t] FILE <ADDRESSES\n");
        return 2;
    }
    t.question.fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
    t.question.addresses = t.addresses;
    t.question.count = read_addresses(&t);
    if (!run(&t, &err)) {
        (void)fprintf(stderr, "symbols-tool: %s\n", err.msg);
        return 1;
    }
    struct rusage used;
    if (t.times && getrusage(RUSAGE_CHILDREN, &used) == 0) {
        printf("cpu_ms=%lld max_rss_kib=%ld\n",
               (long long)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
                   (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000,
               used.ru_maxrss);
    }
    return 0;
}
