/* Files that are damaged, or made to do harm: each gives names or a failure with its reason, and
 * the next question works. The files are made of this very program. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/helper.h"
#include "tests/unit/lib/testing.h"

/* The bytes of this program, which a test may change. */
struct program {
    unsigned char *bytes;
    size_t n;
};

static struct program read_self(void)
{
    struct program p = {.n = 0};
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    p.bytes = testing_memory((size_t)st.st_size);
    while (p.n < (size_t)st.st_size) {
        ssize_t got = read(fd, p.bytes + p.n, (size_t)st.st_size - p.n);
        assert_true(got > 0);
        p.n += (size_t)got;
    }
    close(fd);
    return p;
}

static Elf64_Shdr *sections(const struct program *p, size_t *ret_n)
{
    const Elf64_Ehdr *head = (const void *)p->bytes;
    *ret_n = head->e_shnum;
    return (Elf64_Shdr *)(void *)(p->bytes + head->e_shoff);
}

static Elf64_Shdr *section(const struct program *p, const char *name)
{
    size_t n;
    const Elf64_Ehdr *head = (const void *)p->bytes;
    Elf64_Shdr *s = sections(p, &n);
    const char *names = (const char *)p->bytes + s[head->e_shstrndx].sh_offset;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names + s[i].sh_name, name) == 0) {
            return &s[i];
        }
    }
    fail_msg("no section %s", name);
    return NULL;
}

__attribute__((noinline)) int hostile_wanted(int x);
__attribute__((noinline)) int hostile_wanted(int x)
{
    return x * 3 + (int)getpid();
}

/* The virtual address of the function above, from the symbol table. */
static uint64_t wanted_address(const struct program *p)
{
    const Elf64_Shdr *table = section(p, ".symtab");
    const char *names = (const char *)p->bytes + section(p, ".strtab")->sh_offset;
    const Elf64_Sym *symbols = (const void *)(p->bytes + table->sh_offset);
    for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
        if (strcmp(names + symbols[i].st_name, "hostile_wanted") == 0) {
            return symbols[i].st_value;
        }
    }
    fail();
    return 0;
}

static struct symbols_helper *start(uint64_t memory)
{
    const struct symbols_helper_options options = {.max_memory = memory, .timeout_ms = 20000};
    struct symbols_helper *h = symbols_helper_start(&options, NULL);
    assert_non_null(h);
    return h;
}

/* Asks about one address. A failure has to have a reason for people. Returns the function's name in
 * `name`, "" if there is none. */
static enum symbols_failure ask(struct symbols_helper *h, const void *bytes, size_t n,
                                uint64_t address, char name[64])
{
    struct err err = ERR_INIT;
    struct symbol_frames frames;
    enum symbols_failure failure;
    struct symbols_question q = {
        .fd = memfd_create("hostile", MFD_CLOEXEC), .addresses = &address, .count = 1};
    assert_true(q.fd >= 0);
    for (size_t at = 0; at < n;) {
        ssize_t done = write(q.fd, (const char *)bytes + at, n - at);
        assert_true(done > 0);
        at += (size_t)done;
    }
    name[0] = '\0';
    if (symbols_helper_ask(h, &q, &frames, &failure, &err)) {
        size_t found;
        const struct symbol_frame *f = symbol_frames_of(&frames, 0, &found);
        (void)snprintf(name, 64, "%.63s", found > 0 ? f->function : "");
        symbol_frames_free(&frames);
    } else {
        assert_true(err.msg[0] != '\0');
        assert_true(failure != SYMBOLS_OK && failure != SYMBOLS_START && failure != SYMBOLS_ANSWER);
    }
    close(q.fd);
    return failure;
}

/* Checks that the whole program still gives its name. */
static void check_sound(struct symbols_helper *h, const struct program *p, uint64_t address)
{
    char name[64];
    CHECK_INT(ask(h, p->bytes, p->n, address, name), SYMBOLS_OK, "");
    CHECK_STR(name, "hostile_wanted", "");
}

TEST(files_cut_at_every_section_do_no_harm)
{
    struct program p = read_self();
    uint64_t address = wanted_address(&p);
    struct symbols_helper *h = start(SYMBOLS_MEMORY_DEFAULT);
    size_t n;
    const Elf64_Shdr *s = sections(&p, &n);
    char name[64];
    for (size_t i = 0; i < n; i++) {
        const uint64_t ends[] = {s[i].sh_offset, s[i].sh_offset + 1,
                                 s[i].sh_offset + s[i].sh_size / 2};
        for (size_t j = 0; j < sizeof(ends) / sizeof(ends[0]); j++) {
            (void)ask(h, p.bytes, ends[j] < p.n ? ends[j] : p.n, address, name);
        }
    }
    for (size_t end = 0; end <= sizeof(Elf64_Ehdr); end++) {
        CHECK_INT(ask(h, p.bytes, end, address, name), SYMBOLS_UNREADABLE, "");
    }
    check_sound(h, &p, address);
    symbols_helper_stop(h);
    free(p.bytes);
}

TEST(section_headers_with_wild_numbers_do_no_harm)
{
    static const uint64_t wild[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_C(1) << 40};
    struct program p = read_self();
    uint64_t address = wanted_address(&p);
    struct symbols_helper *h = start(SYMBOLS_MEMORY_DEFAULT);
    size_t n;
    Elf64_Shdr *s = sections(&p, &n);
    char name[64];
    for (size_t i = 0; i < n; i++) {
        Elf64_Shdr whole = s[i];
        size_t value = i % (sizeof(wild) / sizeof(wild[0]));
        s[i].sh_size = wild[value];
        (void)ask(h, p.bytes, p.n, address, name);
        s[i] = whole;
        s[i].sh_offset = wild[value];
        (void)ask(h, p.bytes, p.n, address, name);
        s[i] = whole;
        s[i].sh_link = (uint32_t)i; /* a circle */
        s[i].sh_info = (uint32_t)i;
        s[i].sh_entsize = wild[value];
        (void)ask(h, p.bytes, p.n, address, name);
        s[i] = whole;
    }
    check_sound(h, &p, address);
    symbols_helper_stop(h);
    free(p.bytes);
}

/* Makes a section one that says to be compressed in some way and to inflate to some size. */
static void compress_in_name(const struct program *p, const char *name, uint32_t type,
                             uint64_t size)
{
    Elf64_Shdr *s = section(p, name);
    const Elf64_Chdr head = {.ch_type = type, .ch_size = size, .ch_addralign = 1};
    s->sh_flags |= SHF_COMPRESSED;
    memcpy(p->bytes + s->sh_offset, &head, sizeof(head));
}

TEST(sections_that_cannot_be_inflated_leave_the_symbol_table)
{
    static const struct {
        uint32_t type;
        uint64_t size;
    } rows[] = {
        {2, 1000},                /* zstd, which elfutils 0.188 does not know; this is none */
        {77, 1000},               /* nobody knows it */
        {ELFCOMPRESS_ZLIB, 1000}, /* no stream of zlib */
        {ELFCOMPRESS_ZLIB, UINT64_C(1) << 45},
        {ELFCOMPRESS_ZLIB, UINT64_MAX},
    };
    struct symbols_helper *h = start(SYMBOLS_MEMORY_DEFAULT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct program p = read_self();
        uint64_t address = wanted_address(&p);
        char name[64];
        compress_in_name(&p, ".debug_info", rows[i].type, rows[i].size);
        compress_in_name(&p, ".debug_line", rows[i].type, rows[i].size);
        enum symbols_failure failure = ask(h, p.bytes, p.n, address, name);
#ifndef INSTRUMENTED
        /* Sanitizers end a process that asks for so much memory. */
        CHECK_INT(failure, SYMBOLS_OK, "");
#endif
        CHECK_STR(name, failure == SYMBOLS_OK ? "hostile_wanted" : "", "");
        free(p.bytes);
    }
#ifndef INSTRUMENTED
    struct symbols_counters c;
    symbols_helper_counters(h, &c);
    CHECK_INT(c.partial, sizeof(rows) / sizeof(rows[0]), "");
#endif
    symbols_helper_stop(h);
}

/* Changes of DWARF itself: circles of siblings, unknown forms, lengths past the end. */
TEST(changed_debug_information_does_no_harm)
{
    static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_line",
                                        ".debug_aranges"};
    struct program p = read_self();
    uint64_t address = wanted_address(&p);
    struct symbols_helper *h = start(SYMBOLS_MEMORY_DEFAULT);
    struct rng rng;
    char name[64];
    rng_seed(&rng, 20240501);
    for (int i = 0; i < 200; i++) {
        const Elf64_Shdr *s = section(&p, names[i % 4]);
        unsigned char *at =
            p.bytes + s->sh_offset + (uint64_t)rng_range(&rng, 0, (int64_t)s->sh_size);
        unsigned char before = *at;
        *at = (unsigned char)rng_next(&rng);
        (void)ask(h, p.bytes, p.n, address, name);
        *at = before;
    }
    check_sound(h, &p, address);
    symbols_helper_stop(h);
    free(p.bytes);
}
