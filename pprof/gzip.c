/* Three libraries are used, each for its strength. libdeflate inflates whole bodies, in a third of
 * zlib's time, and compresses well. ISA-L compresses in two fifths of the time of libdeflate's
 * fastest level, to about the same size. Only zlib inflates a part of a body. */
#include "pprof/gzip.h"

#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define CAP_MIN ((size_t)4096)

bool gzip_is(struct sv body)
{
    return body.n >= 2 && (unsigned char)body.p[0] == 0x1f && (unsigned char)body.p[1] == 0x8b;
}

size_t gzip_claim(struct sv body)
{
    const unsigned char *end = (const unsigned char *)body.p + body.n;
    if (body.n < 4 || !gzip_is(body)) {
        return body.n;
    }
    return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

/* ---- whole bodies ---------------------------------------------------------------------------- */

/* An output that grows up to a limit, in a scratch or in a buffer. */
struct growing {
    struct scratch *scratch;
    struct buf *buf; /* NULL: the scratch is used */
    char *data;
    size_t n;
    size_t cap;
    size_t limit;
    size_t most; /* cap never exceeds it */
};

static bool grow(struct growing *g, size_t cap, struct err *err)
{
    cap = cap < g->most ? cap : g->most;
    char *data =
        g->buf != NULL ? buf_room(g->buf, cap) : scratch_grow(g->scratch, g->data, g->n, cap);
    if (data == NULL) {
        return err_memory(err);
    }
    g->data = data;
    g->cap = cap;
    return true;
}

/* Inflates the member at the start of in, and skips it. If there is not enough room, the member is
 * inflated again with more room. So no state of a stream has to be kept, and at worst the work is
 * done twice. */
static bool inflate_member(struct libdeflate_decompressor *d, struct sv *in, struct growing *g,
                           struct err *err)
{
    size_t used = 0;
    size_t made = 0;
    enum libdeflate_result r = LIBDEFLATE_INSUFFICIENT_SPACE;
    for (;;) {
        r = libdeflate_gzip_decompress_ex(d, in->p, in->n, g->data + g->n, g->cap - g->n, &used,
                                          &made);
        if (r != LIBDEFLATE_INSUFFICIENT_SPACE || g->cap == g->most) {
            break;
        }
        if (!grow(g, 2 * g->cap, err)) {
            return false;
        }
    }
    g->n += r == LIBDEFLATE_SUCCESS ? made : 0;
    if (r == LIBDEFLATE_INSUFFICIENT_SPACE || g->n > g->limit) {
        return err_set(err, ERR_LIMIT, "inflates to more than %zu bytes", g->limit);
    }
    in->p += used;
    in->n -= used;
    return r == LIBDEFLATE_SUCCESS || err_set(err, ERR_INPUT, "damaged or cut gzip");
}

static size_t limit_of(struct sv body, size_t max)
{
    size_t bomb = body.n < max / GZIP_RATIO_MAX ? body.n * GZIP_RATIO_MAX : max;
    size_t limit = bomb < GZIP_SMALL ? GZIP_SMALL : bomb;
    return limit < max ? limit : max;
}

static bool inflate_all(struct growing *g, struct sv body, size_t hint, struct err *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t cap = hint != 0 ? hint : gzip_claim(body);
    bool ok = d != NULL ? grow(g, cap < CAP_MIN ? CAP_MIN : cap, err) : err_memory(err);
    do {
        ok = ok && inflate_member(d, &body, g, err);
    } while (ok && body.n > 0);
    libdeflate_free_decompressor(d);
    return ok;
}

bool gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                  struct err *err)
{
    struct growing g = {.scratch = s, .limit = limit_of(body, max)};
    g.most = g.limit + 1; /* one more byte shows that the body is too large */
    bool ok = inflate_all(&g, body, hint, err);
    *ret = ok ? (struct sv){.p = g.data, .n = g.n} : SV("");
    return ok;
}

bool gzip_inflate_buf(struct sv body, struct buf *out, struct err *err)
{
    struct growing g = {.buf = out, .limit = limit_of(body, out->max)};
    g.most = g.limit; /* a buffer has no room for more */
    bool ok = inflate_all(&g, body, 0, err);
    if (ok) {
        buf_wrote(out, g.n);
    }
    return ok;
}

bool gzip_plain(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                struct err *err)
{
    *ret = body;
    return !gzip_is(body) || gzip_inflate(s, body, max, hint, ret, err);
}

/* ---- the start of a body --------------------------------------------------------------------- */

/* Inflates what z has until the room for output is full; members may follow each other. Returns the
 * result of the last inflate(): Z_STREAM_END if the input ended with a member. */
static int inflate_members(z_stream *z)
{
    int rc = Z_OK;
    while (z->avail_out > 0 && (rc == Z_OK || (rc == Z_STREAM_END && z->avail_in > 0))) {
        if (rc == Z_STREAM_END) {
            inflateReset(z);
        }
        rc = inflate(z, Z_NO_FLUSH);
    }
    return rc;
}

struct gzip_start gzip_inflate_start(struct sv input, void *room, size_t room_size)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)input.p,
        .avail_in = (uInt)(input.n < UINT32_MAX ? input.n : UINT32_MAX),
        .next_out = room,
        .avail_out = (uInt)room_size,
    };
    int rc = inflateInit2(&z, 15 + 16); /* gzip only */
    if (rc == Z_OK) {
        rc = inflate_members(&z);
        inflateEnd(&z);
    }
    bool fine = rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
    bool used_up = fine && z.avail_in == 0;
    return (struct gzip_start){
        .plain = {.p = room, .n = room_size - z.avail_out},
        .end = used_up && rc == Z_STREAM_END,
        .cut = used_up && rc != Z_STREAM_END && z.avail_out > 0,
        .no_memory = rc == Z_MEM_ERROR,
        .problem = fine            ? NULL
                   : z.msg == NULL ? "inflate failed"
                                   : z.msg,
    };
}

/* ---- compressing ----------------------------------------------------------------------------- */

#define LEVEL_FAST 2
/* A block ends when this many literals and matches are waiting for their codes. More would save
 * little time and fit the codes to the content less well. */
#define TOKENS ((size_t)8192)
#define LEVEL_MEMORY (ISAL_DEF_LVL2_REQ + ISAL_DEF_LVL2_TOKEN_SIZE * TOKENS)
/* The bytes that gzip adds: the header and trailer of a member, and the head of each stored
 * block. */
#define MEMBER_SIZE ((size_t)18)
#define STORED_SIZE ((size_t)5)
#define STORED_MAX ((size_t)65535)

/* Returns the size of n bytes in stored blocks: the result if compression does not make them
 * smaller. */
static size_t stored_size(size_t n)
{
    return n + MEMBER_SIZE + STORED_SIZE * (n / STORED_MAX + 1);
}

/* ISA-L leaves the upper halves of vector registers in use. Until they are cleared, each SSE
 * instruction waits for the one before it: code compiled for any processor would take a tenth
 * longer. */
#ifdef __x86_64__
__attribute__((target("avx"))) static void clear_upper_halves(void)
{
    _mm256_zeroupper();
}

static void leave_vectors(void)
{
    if (__builtin_cpu_supports("avx")) {
        clear_upper_halves();
    }
}
#else
static void leave_vectors(void)
{
}
#endif

/* ISA-L for arm64 reads up to seven bytes past the end of what it compresses, whatever they are. */
#ifdef __aarch64__
#define READ_PAST ((size_t)8)
#else
#define READ_PAST ((size_t)0)
#endif

/* Copies the bytes to memory in which ISA-L may read past their end. Returns NULL if out of
 * memory. */
static const char *with_margin(struct scratch *s, struct sv plain)
{
    char *copy = READ_PAST == 0 ? NULL : scratch_array(s, plain.n + READ_PAST, 1);
    if (copy != NULL) {
        memset(mempcpy(copy, plain.p, plain.n), 0, READ_PAST);
    }
    return READ_PAST == 0 ? plain.p : copy;
}

/* Compresses n bytes at the level of z. Returns the size of the result, 0 if it fails. */
static size_t run_isal(struct isal_zstream *z, const char *input, size_t n, char *out, size_t cap)
{
    z->hist_bits = 0; /* isal_deflate_stateless_init() does not set it */
    z->gzip_flag = IGZIP_GZIP;
    z->end_of_stream = 1;
    z->next_in = (uint8_t *)(uintptr_t)input;
    z->avail_in = (uint32_t)n;
    z->next_out = (uint8_t *)out;
    z->avail_out = (uint32_t)cap;
    int rc = isal_deflate_stateless(z);
    leave_vectors();
    return rc == COMP_OK ? z->total_out : 0;
}

static size_t deflate_fast(struct scratch *s, struct sv plain, char **ret_data)
{
    struct isal_zstream *z = scratch_array(s, 1, sizeof(*z));
    uint8_t *memory = scratch_array(s, LEVEL_MEMORY, 1);
    const char *input = with_margin(s, plain);
    size_t cap = stored_size(plain.n);
    *ret_data = cap > UINT32_MAX ? NULL : scratch_array(s, cap, 1);
    if (z == NULL || memory == NULL || input == NULL || *ret_data == NULL) {
        return 0;
    }
    isal_deflate_stateless_init(z);
    z->level = LEVEL_FAST;
    z->level_buf = memory;
    z->level_buf_size = LEVEL_MEMORY;
    return run_isal(z, input, plain.n, *ret_data, cap);
}

/* The symbols of deflate out of 20,000 each: literals, the end of a block and lengths of matches;
 * and their distances. Seven tenths of them are those of deltas of Go heap and mutex profiles and
 * of profiles of Python and Node.js, three tenths those of profiles with names of C++, Rust and Go,
 * and of one with places instead of names. */
static const uint16_t common_symbols[ISAL_DEF_LIT_LEN_SYMBOLS] = {
    51,  510, 266, 191, 205, 172, 151,  106, 626, 94,  480, 113, 68,  63,  61,  56,  814, 65,
    266, 47,  47,  42,  42,  52,  595,  48,  52,  39,  36,  37,  31,  39,  243, 40,  199, 37,
    45,  40,  45,  35,  175, 53,  172,  35,  35,  39,  100, 86,  92,  126, 297, 103, 97,  81,
    83,  78,  83,  85,  92,  30,  38,   27,  37,  27,  43,  34,  34,  38,  32,  56,  30,  25,
    28,  40,  25,  23,  27,  26,  31,   29,  44,  19,  33,  49,  35,  24,  21,  23,  18,  17,
    23,  17,  16,  17,  14,  80,  28,   157, 61,  130, 99,  215, 69,  60,  43,  106, 22,  39,
    88,  78,  121, 130, 87,  14,  129,  130, 125, 61,  24,  30,  26,  30,  14,  11,  11,  10,
    12,  11,  124, 43,  39,  34,  48,   41,  31,  33,  39,  34,  30,  29,  29,  30,  30,  27,
    41,  28,  29,  29,  28,  32,  27,   27,  29,  26,  27,  29,  27,  28,  27,  22,  49,  28,
    24,  24,  36,  26,  22,  23,  25,   26,  28,  26,  26,  25,  25,  25,  32,  23,  26,  21,
    21,  24,  23,  28,  24,  24,  27,   22,  25,  24,  23,  21,  56,  24,  23,  24,  30,  26,
    21,  25,  29,  25,  21,  25,  21,   25,  26,  22,  28,  22,  20,  21,  22,  25,  21,  20,
    24,  19,  19,  21,  22,  21,  23,   18,  32,  20,  18,  20,  32,  19,  20,  23,  26,  23,
    24,  21,  20,  21,  22,  16,  26,   20,  22,  20,  19,  23,  19,  21,  22,  20,  17,  21,
    17,  20,  18,  16,  3,   1,   1438, 850, 532, 284, 359, 205, 213, 320, 174, 184, 98,  193,
    163, 74,  59,  72,  47,  37,  25,   29,  21,  7,   6,   4,   1,   2,   7,   1};
static const uint16_t common_distances[ISAL_DEF_DIST_SYMBOLS] = {
    3,   23,   2,   17,   52,  416,  241, 953,  1099, 558, 1066, 746, 1148, 871, 1090,
    750, 1156, 845, 1132, 817, 1191, 853, 1291, 682,  876, 487,  636, 362,  411, 241};

/* Returns codes for symbols that are as frequent as in most profiles. They take 30 us to make, so
 * the scratch keeps them. Returns NULL if out of memory. */
static struct isal_hufftables *common_codes(struct scratch *s)
{
    bool made;
    struct isal_hufftables *codes = scratch_kept(s, sizeof(*codes), &made);
    struct isal_huff_histogram h;
    if (codes == NULL || !made) {
        return codes;
    }
    memset(&h, 0, sizeof(h));
    for (size_t i = 0; i < ISAL_DEF_LIT_LEN_SYMBOLS; i++) {
        h.lit_len_histogram[i] = common_symbols[i];
    }
    for (size_t i = 0; i < ISAL_DEF_DIST_SYMBOLS; i++) {
        h.dist_histogram[i] = common_distances[i];
    }
    (void)isal_create_hufftables(codes, &h); /* fails for codes that cannot be, and not for these */
    return codes;
}

static size_t deflate_quick(struct scratch *s, struct sv plain, char **ret_data)
{
    struct isal_zstream *z = scratch_array(s, 1, sizeof(*z));
    const char *input = with_margin(s, plain);
    struct isal_hufftables *codes = common_codes(s);
    size_t cap = stored_size(plain.n);
    *ret_data = cap > UINT32_MAX ? NULL : scratch_array(s, cap, 1);
    if (z == NULL || input == NULL || codes == NULL || *ret_data == NULL) {
        return 0;
    }
    isal_deflate_stateless_init(z);
    z->hufftables = codes;
    return run_isal(z, input, plain.n, *ret_data, cap);
}

static size_t deflate_best(struct scratch *s, struct sv plain, char **ret_data)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t cap = c == NULL ? 0 : libdeflate_gzip_compress_bound(c, plain.n);
    *ret_data = c == NULL ? NULL : scratch_array(s, cap, 1);
    size_t n =
        *ret_data == NULL ? 0 : libdeflate_gzip_compress(c, plain.p, plain.n, *ret_data, cap);
    libdeflate_free_compressor(c);
    return n;
}

static bool deflate_at(struct scratch *s, struct sv plain, enum gzip_level level, struct sv *ret)
{
    static size_t (*const functions[])(struct scratch *, struct sv, char **) = {
        [GZIP_FAST] = deflate_fast,
        [GZIP_BEST] = deflate_best,
        [GZIP_QUICK] = deflate_quick,
    };
    char *data;
    size_t n = functions[level](s, plain, &data);
    *ret = (struct sv){.p = n == 0 ? "" : data, .n = n};
    return n > 0;
}

bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret)
{
    return deflate_at(s, plain, GZIP_FAST, ret);
}

bool gzip_pack_at(struct scratch *s, struct sv plain, enum gzip_level level, char **ret_data,
                  size_t *ret_size)
{
    struct sv packed = plain;
    bool ok =
        (level == GZIP_NONE || deflate_at(s, plain, level, &packed)) && scratch_charge(s, packed.n);
    *ret_data = ok ? malloc(packed.n) : NULL;
    if (*ret_data == NULL) {
        return false;
    }
    memcpy(*ret_data, packed.p, packed.n);
    *ret_size = packed.n;
    return true;
}

bool gzip_pack(struct scratch *s, struct sv plain, char **ret_data, size_t *ret_size)
{
    return gzip_pack_at(s, plain, GZIP_FAST, ret_data, ret_size);
}
