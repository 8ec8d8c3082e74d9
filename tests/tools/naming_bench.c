/* Measures what names cost a profile whose names are all known: naming-bench [ROUNDS [KIND]].
 * Or writes something for another benchmark: naming-bench cpu, a CPU profile of gperftools;
 * naming-bench names, a line for each of its addresses, as a symbol service has them; naming-bench
 * profile BUILD-ID START LIMIT OFFSET, a pprof with the addresses of standard input, one in hex a
 * line, in one mapping with these numbers in hex, and a stack that begins at each of them.
 *
 * Profiles of two kinds, 300 stacks of a C++ program with 500 addresses: a CPU profile of
 * gperftools, which is converted anyway, and a pprof with addresses, which passes as it is if it
 * gets no names. Prints bytes and CPU time of a profile, without names and with them; and of the
 * parts that the difference consists of: finding and writing the names in an inflated profile, and
 * compressing the profile without names and with them. With KIND, such as "pprof with names", only
 * that one is measured.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/put.h"
#include "symbols/names.h"

#define ADDRESSES 500
#define STACKS 300
#define DEPTH_MAX 28
#define PROGRAM UINT64_C(0x555555554000)
#define SIZE UINT64_C(0x200000)
#define SEED 42
/* Profiles that differ in the counts of their stacks, as those of a program do. */
#define VARIANTS 16

struct bench {
    struct scratch *scratch;
    struct symbol_names *names;
    struct symbol_table *table;
    struct buf legacy[VARIANTS];
    struct {
        char *data; /* gzip */
        size_t size;
    } pprof[VARIANTS];
    struct buf plain[VARIANTS]; /* the same inflated, and with names */
    struct buf named[VARIANTS];
};

static uint64_t address_of(uint64_t i)
{
    return PROGRAM + 0x1000 + i * 2777;
}

static void put_word(struct buf *out, uint64_t word)
{
    buf_append(out, (const char *)&word, sizeof(word));
}

/* Makes the path of a stack, the leaf first, of numbers below n. Stacks share their outer frames.
 */
static uint64_t make_path(struct rng *frames, uint64_t n, uint64_t ret[DEPTH_MAX])
{
    uint64_t depth = 6 + rng_next(frames) % (DEPTH_MAX - 6);
    uint64_t at = 0;
    for (uint64_t i = 0; i < depth; i++) {
        uint64_t callee = rng_next(frames) % 16;
        at = (at * 3 + (callee < 10 ? 0 : callee - 9) + i) % n;
        ret[depth - 1 - i] = at;
    }
    return depth;
}

/* Frames follow from the number of the stack. */
static void put_stack(struct buf *out, unsigned stack, uint64_t count)
{
    struct rng frames;
    rng_seed(&frames, stack);
    uint64_t path[DEPTH_MAX];
    uint64_t depth = make_path(&frames, ADDRESSES, path);
    for (uint64_t i = 0; i < depth; i++) {
        path[i] = address_of(path[i]);
    }
    put_word(out, count);
    put_word(out, depth);
    buf_append(out, (const char *)path, depth * sizeof(path[0]));
}

static void make_legacy(struct buf *out, unsigned variant)
{
    static const uint64_t head[] = {0, 3, 0, 10000, 0};
    static const uint64_t end[] = {0, 1, 0};
    struct rng counts;
    rng_seed(&counts, variant);
    buf_init(out, 1 << 24);
    buf_append(out, (const char *)head, sizeof(head));
    for (unsigned i = 0; i < STACKS; i++) {
        put_stack(out, i, 1 + rng_next(&counts) % 50);
    }
    buf_append(out, (const char *)end, sizeof(end));
    buf_printf(out,
               "%" PRIx64 "-%" PRIx64 " r-xp 00000000 08:01 1234    /usr/local/bin/order-server\n"
               "7f0000000000-7f0000200000 r-xp 00000000 08:01 1235    /usr/lib/libc.so.6\n",
               PROGRAM, PROGRAM + SIZE);
}

static const char *const spaces[] = {"shop::orders", "shop::pricing::rules", "grpc::internal",
                                     "google::protobuf", "std::__detail"};

/* Returns the number of the function at the i-th address. */
static unsigned function_of(unsigned i)
{
    return i * 7 / 10;
}

/* Prints the name of a function of C++. */
static void print_name(char *out, size_t size, unsigned id)
{
    (void)snprintf(out, size,
                   "%s::Handler%u<shop::Item%u, std::allocator<char> >::process_%u(%s::"
                   "Request const&, unsigned long)",
                   spaces[id % 5], id % 60, id % 25, id, spaces[id % 5]);
}

/* Names like those of a C++ program: one address in three has an inlined frame. */
static bool make_names(struct bench *b)
{
    for (unsigned i = 0; i < ADDRESSES; i++) {
        char name[2][256], raw[2][256], file[2][128];
        struct symbol_answer_frame frames[2];
        for (unsigned k = 0; k < 2; k++) {
            unsigned id = k == 0 ? function_of(i) : ADDRESSES + i % 40;
            const char *space = spaces[id % 5];
            print_name(name[k], sizeof(name[k]), id);
            (void)snprintf(raw[k], sizeof(raw[k]),
                           "_ZN%zu%s9Handler%uIN4shop6Item%uESaIcEE9process_%uERKN%zu%s7RequestEm",
                           strlen(space), space, id % 60, id % 25, id, strlen(space), space);
            (void)snprintf(file[k], sizeof(file[k]), "/src/order-server/%s/handler_%u.cc", space,
                           id % 60);
            frames[k] = (struct symbol_answer_frame){.name = sv_from(name[k]),
                                                     .system_name = sv_from(raw[k]),
                                                     .file = sv_from(file[k]),
                                                     .start_line = 10 + id % 300,
                                                     .line = 12 + (i * 31) % 400};
        }
        /* Outer frames are return addresses, which pprof has minus one. */
        for (uint64_t k = 0; k < 2; k++) {
            if (!symbol_table_add(b->table, address_of(i) - k, frames + (i % 3 == 0 ? 0 : 1),
                                  i % 3 == 0 ? 2 : 1)) {
                return false;
            }
        }
    }
    return true;
}

/* Adds the names, as agent/naming does once it has found the tables. */
static bool rewrite(void *arg, struct scratch *s, struct sv plain, struct buf *out)
{
    struct bench *b = arg;
    struct symbol_profile p;
    if (!symbol_profile_read(&p, s, plain, NULL)) {
        return false;
    }
    struct symbol_question *questions = scratch_array(s, p.n_locations + 1, sizeof(*questions));
    if (questions == NULL) {
        return false;
    }
    for (size_t i = 0; i < p.n_locations; i++) {
        questions[i] =
            (struct symbol_question){.place = p.locations[i].address, .location = &p.locations[i]};
    }
    symbol_table_find(b->table, questions, p.n_locations, clock_mono_ms(), 60000);
    return symbol_profile_changes(&p) && symbol_profile_write(&p, out, NULL);
}

static struct sv view(const struct buf *b)
{
    return (struct sv){b->data, b->len};
}

/* ---- measuring ------------------------------------------------------------------------------- */

enum kind {
    LEGACY_WITHOUT,
    LEGACY_WITH,
    PPROF_WITHOUT,
    PPROF_WITH,
    NAMES_ALONE,
    PACK_WITHOUT,
    PACK_WITH,
    KINDS,
};

static const char *const kind_names[KINDS] = {
    "gperftools",        "gperftools with names",  "pprof", "pprof with names", "names alone",
    "compressing alone", "compressing with names",
};

/* Adds names to an inflated profile. Returns the bytes of the result, 0 if it fails. */
static size_t name_alone(struct bench *b, struct sv plain)
{
    struct buf out;
    buf_init(&out, PPROF_REWRITTEN_MAX);
    size_t n = rewrite(b, b->scratch, plain, &out) ? out.len : 0;
    buf_done(&out);
    return n;
}

/* Treats one profile. Returns the bytes of the result, 0 if it fails. */
static size_t treat(struct bench *b, enum kind kind, unsigned variant)
{
    const struct pprof_rewrite names = {.run = rewrite, .arg = b};
    char *data = NULL;
    size_t size = 0;
    if (kind == NAMES_ALONE) {
        size = name_alone(b, view(&b->plain[variant]));
    } else if (kind == PACK_WITHOUT || kind == PACK_WITH) {
        (void)gzip_pack_at(b->scratch, view(&(kind == PACK_WITH ? b->named : b->plain)[variant]),
                           GZIP_QUICK, &data, &size);
    } else if (kind == LEGACY_WITHOUT || kind == LEGACY_WITH) {
        const struct legacy_input in = {
            .body = {b->legacy[variant].data, b->legacy[variant].len},
            .time_ns = NS_PER_S,
            .seed = SEED,
            .scratch = b->scratch,
            .rewrite = kind == LEGACY_WITH ? &names : NULL,
        };
        struct legacy_output out;
        struct err err = ERR_INIT;
        (void)legacy_convert(&in, &out, &err);
        data = out.data;
        size = out.size;
    } else {
        struct sv body = {b->pprof[variant].data, b->pprof[variant].size};
        struct sv plain;
        bool ok = gzip_plain(b->scratch, body, 1 << 28, 0, &plain, NULL);
        /* A profile without names is checked and passes. */
        size = ok ? body.n : 0;
        if (ok && kind == PPROF_WITH &&
            !pprof_rewrite_pack(&names, b->scratch, plain, GZIP_FAST, &data, &size)) {
            size = 0;
        }
    }
    scratch_reset(b->scratch);
    free(data);
    return size;
}

/* CPU time of this thread. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void measure(struct bench *b, unsigned rounds, const char *only)
{
    int64_t best[KINDS];
    size_t bytes[KINDS] = {0};
    for (enum kind k = 0; k < KINDS; k++) {
        best[k] = INT64_MAX;
    }
    /* By turns, and the best of ten, so that other work on the machine counts little. */
    for (unsigned turn = 0; turn < 10; turn++) {
        for (enum kind k = 0; k < KINDS; k++) {
            if (only != NULL && strcmp(only, kind_names[k]) != 0) {
                continue;
            }
            int64_t begin = cpu_ns();
            for (unsigned i = 0; i < rounds; i++) {
                bytes[k] = treat(b, k, i % VARIANTS);
            }
            int64_t took = cpu_ns() - begin;
            best[k] = took < best[k] ? took : best[k];
        }
    }
    for (enum kind k = 0; k < KINDS; k++) {
        if (bytes[k] == 0) {
            continue;
        }
        printf("%-24s %6zu bytes, %7.1f us\n", kind_names[k], bytes[k],
               (double)best[k] / 1000.0 / rounds);
    }
}

/* Inflates the pprof of a variant, and adds names. */
static bool make_plain(struct bench *b, unsigned i)
{
    struct sv body = {b->pprof[i].data, b->pprof[i].size};
    buf_init(&b->plain[i], 1 << 24);
    buf_init(&b->named[i], 1 << 24);
    bool ok = gzip_inflate_buf(body, &b->plain[i], NULL) &&
              rewrite(b, b->scratch, view(&b->plain[i]), &b->named[i]);
    scratch_reset(b->scratch);
    return ok;
}

static bool make_profiles(struct bench *b)
{
    for (unsigned i = 0; i < VARIANTS; i++) {
        struct legacy_output out;
        struct err err = ERR_INIT;
        make_legacy(&b->legacy[i], i);
        const struct legacy_input in = {.body = {b->legacy[i].data, b->legacy[i].len},
                                        .time_ns = NS_PER_S,
                                        .seed = SEED,
                                        .scratch = b->scratch};
        if (legacy_convert(&in, &out, &err) != LEGACY_MADE) {
            (void)fprintf(stderr, "%s\n", err.msg);
            return false;
        }
        scratch_reset(b->scratch);
        b->pprof[i].data = out.data;
        b->pprof[i].size = out.size;
        if (!make_plain(b, i)) {
            (void)fprintf(stderr, "names cannot be added\n");
            return false;
        }
    }
    return true;
}

/* ---- a profile of given addresses ------------------------------------------------------------ */

static void put_field(struct buf *out, uint64_t field, struct buf *message)
{
    wire_put_bytes(out, field, message->data, message->len);
    buf_clear(message);
}

/* Appends a sample whose stack begins at this location, and ends at outer frames that it shares. */
static void put_stack_at(struct buf *out, struct buf *m, uint64_t leaf, uint64_t locations)
{
    struct rng frames;
    rng_seed(&frames, leaf);
    uint64_t outer[DEPTH_MAX];
    uint64_t depth = make_path(&frames, locations, outer);
    wire_put_number(m, SAMPLE_LOCATION_ID, leaf);
    for (uint64_t i = 0; i < depth; i++) {
        wire_put_number(m, SAMPLE_LOCATION_ID, outer[i] + 1);
    }
    wire_put_number(m, SAMPLE_VALUE, 1);
    put_field(out, PROFILE_SAMPLE, m);
}

/* Appends locations with the addresses of standard input. Returns their number. */
static uint64_t put_locations(struct buf *out, struct buf *m)
{
    char line[64];
    uint64_t n = 0;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        wire_put_number(m, LOCATION_ID, ++n);
        wire_put_number(m, LOCATION_MAPPING_ID, 1);
        wire_put_number(m, LOCATION_ADDRESS, strtoull(line, NULL, 16));
        put_field(out, PROFILE_LOCATION, m);
    }
    return n;
}

static void put_given(struct buf *out, char **args)
{
    const char *const strings[] = {"", "cpu", "nanoseconds", "/usr/lib/libbig.so", args[0]};
    struct buf m;
    buf_init(&m, 1 << 16);
    wire_put_number(&m, VALUE_TYPE_TYPE, 1);
    wire_put_number(&m, VALUE_TYPE_UNIT, 2);
    put_field(out, PROFILE_SAMPLE_TYPE, &m);
    wire_put_number(&m, MAPPING_ID, 1);
    for (int i = 0; i < 3; i++) {
        wire_put_number(&m, (uint64_t)(MAPPING_START + i), strtoull(args[1 + i], NULL, 16));
    }
    wire_put_number(&m, MAPPING_FILENAME, 3);
    wire_put_number(&m, MAPPING_BUILD_ID, 4);
    put_field(out, PROFILE_MAPPING, &m);
    uint64_t locations = put_locations(out, &m);
    for (uint64_t i = 1; i <= locations; i++) {
        put_stack_at(out, &m, i, locations);
    }
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        wire_put_bytes(out, PROFILE_STRING, strings[i], strlen(strings[i]));
    }
    buf_done(&m);
}

/* Appends the names of the addresses in a profile, which has outer frames minus one. */
static void put_names(struct buf *out)
{
    for (unsigned i = 0; i < ADDRESSES; i++) {
        for (uint64_t k = 0; k < 2; k++) {
            char name[256];
            print_name(name, sizeof(name), function_of(i));
            buf_printf(out, "0x%" PRIx64 "\t%s\n", address_of(i) - k, name);
        }
    }
}

/* Writes what the arguments say to standard output. */
static int write_out(int argc, char **argv)
{
    struct buf out;
    buf_init(&out, 1 << 26);
    if (strcmp(argv[1], "cpu") == 0) {
        make_legacy(&out, 0);
    } else if (strcmp(argv[1], "names") == 0) {
        put_names(&out);
    } else if (argc == 6) {
        put_given(&out, argv + 2);
    }
    bool ok = buf_ok(&out) && out.len > 0 && fwrite(out.data, out.len, 1, stdout) == 1;
    buf_done(&out);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct bench b;
    if (argc > 1 && strchr("cnp", argv[1][0]) != NULL) {
        return write_out(argc, argv);
    }
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200;
    b.scratch = scratch_new();
    b.names = symbol_names_new(0);
    b.table = b.names != NULL ? symbol_names_table(b.names, (struct pprof_key){0}) : NULL;
    if (b.scratch == NULL || b.table == NULL || rounds == 0 || !make_names(&b) ||
        !make_profiles(&b)) {
        return 1;
    }
    printf("legacy body              %6zu bytes\n", b.legacy[0].len);
    measure(&b, rounds, argc > 2 ? argv[2] : NULL);
    for (unsigned i = 0; i < VARIANTS; i++) {
        buf_done(&b.legacy[i]);
        free(b.pprof[i].data);
        buf_done(&b.plain[i]);
        buf_done(&b.named[i]);
    }
    symbol_table_unref(b.table);
    symbol_names_free(b.names);
    scratch_free(b.scratch);
    return 0;
}
