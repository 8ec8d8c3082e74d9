/* Names of real programs, compared address by address with those that eu-addr2line prints: raw
 * names, files and lines, frame by frame. Names for people are compared with c++filt.
 *
 * For a few addresses, eu-addr2line prints callers that do not belong to the function: it takes
 * those at the first address of the line, which may lie in another function. There addr2line
 * of binutils has to agree in the files and lines of all frames.
 */
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sv.h"
#include "symbols/helper.h"
#include "tests/unit/lib/testing.h"

#define PROGRAMS "tests/unit/symbols/programs"
/* Where the code is mapped. */
#define START UINT64_C(0x7f1200000000)
#define FRAMES_MAX 64

struct fixture {
    char *dir;
    struct symbols_helper *helper;
};

/* Runs a command in the shell, in the root of the sources; fails the test if it fails. */
__attribute__((format(printf, 1, 2))) static void run(const char *fmt, ...)
{
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    if (system(command) != 0) {
        print_error("failed: %s\n(scripts/deps.sh test installs what the tests need)\n", command);
        fail();
    }
}

static void fixture_begin(struct fixture *f)
{
    static const struct symbols_helper_options options = {
        .max_memory = SYMBOLS_MEMORY_DEFAULT, .timeout_ms = 10 * SYMBOLS_TIMEOUT_DEFAULT_MS};
    f->helper = symbols_helper_start(&options, NULL);
    assert_non_null(f->helper);
    f->dir = testing_mkdtemp();
    run("for l in round sums; do g++ -O2 -g -fPIC -shared -o %s/lib$l.so " PROGRAMS
        "/$l.cc || exit 1; done",
        f->dir);
}

static void fixture_end(struct fixture *f)
{
    symbols_helper_stop(f->helper);
    testing_directory_leave(&f->dir);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* ---- the code of a file ---------------------------------------------------------------------- */

struct code {
    struct symbol_mapping mapping; /* of the whole segment, as the kernel maps it */
    uint64_t *addresses;           /* each byte of it */
    size_t n;
    uint64_t virtual; /* the address of the first byte in the file */
};

static struct code read_code(const char *path)
{
    struct code c = {.n = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    size_t n;
    assert_int_equal(elf_getphdrnum(elf, &n), 0);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr h;
        assert_non_null(gelf_getphdr(elf, (int)i, &h));
        if (h.p_type == PT_LOAD && (h.p_flags & PF_X) != 0) {
            uint64_t in_page = h.p_offset % 4096;
            c.virtual = h.p_vaddr;
            c.n = h.p_filesz;
            c.mapping = (struct symbol_mapping){
                START, START + (in_page + h.p_filesz + 4095) / 4096 * 4096, h.p_offset - in_page};
            c.addresses = calloc(c.n, sizeof(*c.addresses));
            for (size_t j = 0; j < c.n; j++) {
                c.addresses[j] = START + in_page + j;
            }
        }
    }
    elf_end(elf);
    close(fd);
    assert_in_range(c.n, 1, SYMBOLS_ADDRESSES_MAX);
    return c;
}

static void ask(struct fixture *f, const char *path, const struct code *c,
                struct symbol_frames *ret)
{
    struct err err = ERR_INIT;
    struct symbols_question q = {.fd = open(path, O_RDONLY | O_CLOEXEC),
                                 .mapping = c->mapping,
                                 .addresses = c->addresses,
                                 .count = c->n};
    symbols_helper_ask(f->helper, &q, ret, NULL, &err);
    CHECK_STR(err.msg, "", path);
    close(q.fd);
}

/* ---- the answers of other programs ----------------------------------------------------------- */

struct other_frame {
    char name[8192];
    char place[1024]; /* file:line; ":0" if unknown */
};

/* Reads the answers of an addr2line, one address at a time. */
struct other {
    FILE *lines;
    char line[16384]; /* the next one */
    bool end;
    struct other_frame frames[FRAMES_MAX];
    size_t n;
};

static void next_line(struct other *o)
{
    o->end = fgets(o->line, sizeof(o->line), o->lines) == NULL;
    o->line[strcspn(o->line, "\n")] = '\0';
}

/* Asks a program for the names of addresses, of which `wanted` has the index in the code. */
static struct other *other_new(const struct fixture *f, const char *program, const char *path,
                               const struct code *c, const size_t *wanted, size_t n)
{
    char file[4096];
    struct other *o = testing_memory(sizeof(*o));
    (void)snprintf(file, sizeof(file), "%s/addresses", f->dir);
    FILE *addresses = fopen(file, "we");
    assert_non_null(addresses);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(addresses, "0x%llx\n", (unsigned long long)(c->virtual + wanted[i]));
    }
    fclose(addresses);
    /* eu-addr2line fails if it has no name for some address. */
    run("%s -a -f -i -e %s <%s/addresses >%s/%s.out || [ $? -eq 1 ]", program, path, f->dir, f->dir,
        program);
    (void)snprintf(file, sizeof(file), "%s/%s.out", f->dir, program);
    o->lines = fopen(file, "re");
    assert_non_null(o->lines);
    next_line(o);
    return o;
}

static void other_free(struct other *o)
{
    fclose(o->lines);
    free(o);
}

/* Cuts the column and the discriminator, which follow the line. */
static void cut_place(char *place)
{
    char *space = strstr(place, " (discriminator");
    char *name = strrchr(place, '/');
    if (space != NULL) {
        *space = '\0';
    }
    char *line = strchr(name != NULL ? name : place, ':');
    char *column = line != NULL ? strchr(line + 1, ':') : NULL;
    if (column != NULL) {
        *column = '\0';
    }
    if (strcmp(place, "??:0") == 0 || strcmp(place, "??:?") == 0) {
        (void)snprintf(place, 3, ":0");
    }
}

/* Reads the frames of the next address. */
static void next_address(struct other *o)
{
    o->n = 0;
    assert_true(!o->end && strncmp(o->line, "0x", 2) == 0);
    next_line(o);
    while (!o->end && strncmp(o->line, "0x", 2) != 0) {
        struct other_frame *frame = &o->frames[o->n++];
        char *more = strstr(o->line, " inlined at ");
        if (more != NULL) {
            *more = '\0';
        }
        (void)snprintf(frame->name, sizeof(frame->name), "%.8191s", o->line);
        next_line(o);
        (void)snprintf(frame->place, sizeof(frame->place), "%.1023s", o->line);
        cut_place(frame->place);
        next_line(o);
        assert_true(o->n < FRAMES_MAX);
    }
}

static bool is_place(const struct symbol_frame *f, const char *place)
{
    char own[2048];
    (void)snprintf(own, sizeof(own), "%s:%lld", f->file, (long long)f->line);
    return strcmp(own, place) == 0;
}

/* Compares places, and names if asked to. */
static bool agrees(const struct symbol_frame *f, size_t n, const struct other *o, bool names)
{
    bool same = n == o->n;
    if (n == 0) {
        return o->n == 1 && strcmp(o->frames[0].name, "??") == 0;
    }
    for (size_t i = 0; i < n && same; i++) {
        same = is_place(&f[i], o->frames[i].place) &&
               (!names || strcmp(f[i].system_name, o->frames[i].name) == 0);
    }
    return same;
}

static void print_both(uint64_t address, const struct symbol_frame *f, size_t n,
                       const struct other *o)
{
    print_error("address 0x%llx:\n", (unsigned long long)address);
    for (size_t i = 0; i < n; i++) {
        print_error("   got %s %s:%lld\n", f[i].system_name, f[i].file, (long long)f[i].line);
    }
    for (size_t i = 0; i < o->n; i++) {
        print_error("   want %s %s\n", o->frames[i].name, o->frames[i].place);
    }
}

/* Returns true for code that gcc adds to each program: it has no debug information, and
 * eu-addr2line gives it a line of the unit in front of it. */
static bool is_startup(const struct symbol_frame *f, size_t n, const struct other *o)
{
    static const char *const names[] = {"_start", "deregister_tm_clones", "register_tm_clones",
                                        "__do_global_dtors_aux", "frame_dummy"};
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && n == 1; i++) {
        found = found || strcmp(f[0].system_name, names[i]) == 0;
    }
    return found && strcmp(f[0].system_name, o->frames[0].name) == 0 && is_place(f, ":0");
}

/* Compares every `step`-th address with eu-addr2line, which takes 3 ms for each. Writes the index
 * of each that differs to `ret`, and returns their number. Padding between two functions has a
 * line, but no name: it may differ. */
static size_t find_different(struct fixture *f, const char *path, const struct code *c,
                             const struct symbol_frames *frames, size_t step, size_t *ret)
{
    size_t different = 0;
    size_t count = 0;
    size_t *wanted = testing_memory(c->n * sizeof(*wanted));
    for (size_t i = 0; i < c->n; i += step) {
        wanted[count++] = i;
    }
    struct other *eu = other_new(f, "eu-addr2line", path, c, wanted, count);
    for (size_t i = 0; i < c->n; i += step) {
        size_t n;
        const struct symbol_frame *own = symbol_frames_of(frames, i, &n);
        next_address(eu);
        if (!agrees(own, n, eu, true) && !is_startup(own, n, eu) &&
            !(n == 0 && strcmp(eu->frames[0].name, "??") == 0)) {
            ret[different++] = i;
        }
    }
    assert_true(eu->end);
    other_free(eu);
    free(wanted);
    return different;
}

/* Compares every `step`-th address. Returns the deepest inlining. */
static size_t compare(struct fixture *f, const char *path, size_t step)
{
    struct code c = read_code(path);
    struct symbol_frames frames;
    size_t deepest = 0;
    size_t *different = testing_memory(c.n * sizeof(*different));
    ask(f, path, &c, &frames);
    size_t count = find_different(f, path, &c, &frames, step, different);
    struct other *gnu = other_new(f, "addr2line", path, &c, different, count);
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const struct symbol_frame *own = symbol_frames_of(&frames, different[i], &n);
        next_address(gnu);
        if (!agrees(own, n, gnu, false)) {
            print_both(c.virtual + different[i], own, n, gnu);
            fail();
        }
    }
    for (size_t i = 0; i < c.n; i++) {
        size_t n;
        symbol_frames_of(&frames, i, &n);
        deepest = n > deepest ? n : deepest;
    }
    assert_true(count * 100 < c.n / step);
    other_free(gnu);
    symbol_frames_free(&frames);
    free(different);
    free(c.addresses);
    return deepest;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Builds the program with these options and compares every fifth byte: instructions have one to
 * fifteen. */
static void check_program(struct fixture *f, const char *options)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/program", f->dir);
    run("%s -o %s " PROGRAMS "/main.cc -L%s -lround -lsums", options, path, f->dir);
    size_t deepest = compare(f, path, 5);
    assert_true(deepest >= 4);
}

TEST(addresses_of_a_program_agree)
{
    check_program(*state, "g++ -O2 -g -fPIE -pie");
}

TEST(addresses_of_a_program_with_a_fixed_place_agree)
{
    check_program(*state, "g++ -O2 -g -fno-pie -no-pie");
}

TEST(every_address_of_two_libraries_agrees)
{
    static const char *const libraries[] = {"round", "sums"};
    const struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/lib%s.so", f->dir, libraries[i]);
        assert_true(compare(*state, path, 1) >= 4);
    }
}

TEST(every_address_agrees_with_dwarf_4_and_compressed_sections)
{
    struct fixture *f = *state;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/older.so", f->dir);
    run("g++ -O2 -gdwarf-4 -gz=zlib -fPIC -shared -o %s " PROGRAMS "/round.cc", path);
    assert_true(compare(f, path, 1) >= 4);
}

static void check_same(struct fixture *f, const char *path, const struct code *c,
                       const struct symbol_frames *want)
{
    struct symbol_frames got;
    ask(f, path, c, &got);
    CHECK_INT(got.n_frames, want->n_frames, path);
    for (size_t i = 0; i < got.n_frames; i++) {
        CHECK_STR(got.frames[i].system_name, want->frames[i].system_name, path);
        CHECK_STR(got.frames[i].file, want->frames[i].file, path);
        CHECK_INT(got.frames[i].line, want->frames[i].line, path);
    }
    symbol_frames_free(&got);
}

/* A file made by objcopy has segments without a place in the file, one by eu-strip has them. */
TEST(debug_information_in_a_file_of_its_own_gives_the_same)
{
    static const char *const links[] = {"", "-Wl,-z,noseparate-code"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        char path[1024];
        struct symbol_frames frames;
        (void)snprintf(path, sizeof(path), "%s/whole", f->dir);
        run("g++ -O2 -g -fPIC -shared %s -o %s " PROGRAMS "/round.cc", links[i], path);
        run("objcopy --only-keep-debug %s %s/objcopy && eu-strip -f %s/eu -o %s/stripped %s", path,
            f->dir, f->dir, f->dir, path);
        struct code c = read_code(path);
        ask(f, path, &c, &frames);
        assert_true(frames.n_frames > 1000);
        (void)snprintf(path, sizeof(path), "%s/objcopy", f->dir);
        check_same(f, path, &c, &frames);
        (void)snprintf(path, sizeof(path), "%s/eu", f->dir);
        check_same(f, path, &c, &frames);
        symbol_frames_free(&frames);
        free(c.addresses);
    }
}

/* Returns true if some frame has this name for people. */
static bool has_function(const struct symbol_frames *frames, const char *function)
{
    for (size_t i = 0; i < frames->n_frames; i++) {
        if (strcmp(frames->frames[i].function, function) == 0) {
            return true;
        }
    }
    return false;
}

/* Asks for all of a file and looks for a function. */
static bool finds(struct fixture *f, const char *name, const char *function)
{
    char path[1024];
    struct symbol_frames frames;
    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    struct code c = read_code(path);
    ask(f, path, &c, &frames);
    bool found = has_function(&frames, function);
    symbol_frames_free(&frames);
    free(c.addresses);
    return found;
}

TEST(without_debug_information_there_are_symbols)
{
    struct fixture *f = *state;
    const char *d = f->dir;
    run("cd %s && strip -g -o symbols libsums.so && strip -o dynamic libsums.so", d);
    /* .gnu_debugdata is a file with .symtab, compressed with xz, in the stripped one. */
    run("cd %s && strip -g -o mini libround.so && objcopy --only-keep-debug mini mini.debug && "
        "xz -f mini.debug && strip -o bare libround.so && "
        "objcopy --add-section .gnu_debugdata=mini.debug.xz bare mini",
        d);
    assert_true(finds(f, "symbols", "shapes::describe[abi:cxx11]"));
    assert_true(finds(f, "dynamic", "shapes::describe[abi:cxx11]"));
    assert_false(finds(f, "bare", "shapes::(anonymous namespace)::Circle::area"));
    assert_true(finds(f, "mini", "shapes::(anonymous namespace)::Circle::area"));
}

TEST(names_for_people_are_those_of_cxxfilt)
{
    struct fixture *f = *state;
    char path[1024];
    char line[16384];
    struct symbol_frames frames;
    (void)snprintf(path, sizeof(path), "%s/libsums.so", f->dir);
    struct code c = read_code(path);
    ask(f, path, &c, &frames);
    (void)snprintf(path, sizeof(path), "%s/names", f->dir);
    FILE *names = fopen(path, "we");
    assert_non_null(names);
    for (size_t i = 0; i < frames.n_frames; i++) {
        (void)fprintf(names, "%s\n", frames.frames[i].system_name);
    }
    fclose(names);
    run("c++filt -p <%s >%s.filtered", path, path);
    (void)snprintf(path, sizeof(path), "%s/names.filtered", f->dir);
    names = fopen(path, "re");
    assert_non_null(names);
    for (size_t i = 0; i < frames.n_frames; i++) {
        assert_non_null(fgets(line, sizeof(line), names));
        line[strcspn(line, "\n")] = '\0';
        CHECK_STR(frames.frames[i].function, line, frames.frames[i].system_name);
    }
    fclose(names);
    symbol_frames_free(&frames);
    free(c.addresses);
}

/* clang lists no ranges of its units, and neither does rustc. */
TEST(units_without_a_list_of_ranges_are_found)
{
    struct fixture *f = *state;
    run("cd %s && objcopy --remove-section .debug_aranges libsums.so unlisted", f->dir);
    char path[1024];
    struct symbol_frames frames;
    (void)snprintf(path, sizeof(path), "%s/libsums.so", f->dir);
    struct code c = read_code(path);
    ask(f, path, &c, &frames);
    (void)snprintf(path, sizeof(path), "%s/unlisted", f->dir);
    check_same(f, path, &c, &frames);
    symbol_frames_free(&frames);
    free(c.addresses);
}

/* Code of clang, rustc or Go can stand after code of gcc. eu-addr2line 0.188 takes it for code of
 * the unit in front of it, so the library with a whole list says what is right: the lists are not
 * loaded, and the addresses of both are the same. */
TEST(units_between_listed_ones_are_found)
{
    static const char *const unlisted[] = {"round", "sums"};
    struct fixture *f = *state;
    run("for l in round sums; do g++ -O2 -g -fPIC -c -o %s/$l.o " PROGRAMS
        "/$l.cc || exit 1; done && cd %s && g++ -shared -o listed.so sums.o round.o",
        f->dir, f->dir);
    char path[1024];
    struct symbol_frames frames;
    (void)snprintf(path, sizeof(path), "%s/listed.so", f->dir);
    struct code c = read_code(path);
    ask(f, path, &c, &frames);
    assert_true(frames.n_frames > 1000);
    (void)snprintf(path, sizeof(path), "%s/mixed.so", f->dir);
    for (size_t i = 0; i < sizeof(unlisted) / sizeof(unlisted[0]); i++) {
        run("cd %s && rm -rf mixed && mkdir mixed && cp sums.o round.o mixed && cd mixed && "
            "objcopy --remove-section .debug_aranges %s.o && g++ -shared -o ../mixed.so sums.o "
            "round.o",
            f->dir, unlisted[i]);
        check_same(f, path, &c, &frames);
    }
    symbol_frames_free(&frames);
    free(c.addresses);
}

TEST(functions_of_rust_have_their_inlined_frames)
{
    struct fixture *f = *state;
    if (system("rustc --version >/dev/null 2>&1") != 0) {
        skip();
    }
    run("rustc -O -g -C panic=abort --crate-type cdylib -o %s/libturns.so " PROGRAMS
        "/turns.rs 2>%s/rustc.log || { cat %s/rustc.log; exit 1; }",
        f->dir, f->dir, f->dir);
    assert_true(finds(f, "libturns.so", "turns::inner::turn"));
    assert_true(finds(f, "libturns.so", "turns_all"));
    assert_true(finds(f, "libturns.so", "turns::inner::Wheel<T>::spin") ||
                finds(f, "libturns.so", "<turns::inner::Wheel<_>>::spin") ||
                finds(f, "libturns.so", "turns::inner::Wheel<u64>::spin"));
}

int main(void)
{
    return testing_run("tests", setup, teardown);
}
