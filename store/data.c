#include "store/data.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/blob.h"
#include "store/private.h"

#define MAGIC_BYTES 8
#define HEAD_MAGIC_BYTES 4
#define FACTS_BYTES 52
/* The largest bytes of a profile: above the limit of a put, which is that of inflated bytes. */
#define BODY_MAX ((size_t)128 * 1024 * 1024)
/* Bytes that are read at once in search of the next head. */
#define SEARCH_BYTES ((size_t)64 * 1024)

/* The first bytes of a file, and those of the head of each profile. */
static const char header_magic[MAGIC_BYTES] = {'p', 'f', 'd', 'a', 't', 'a', '2', '\n'};
static const char head_magic[HEAD_MAGIC_BYTES] = {'r', 'e', 'c', '\n'};

/* ---- numbers --------------------------------------------------------------------------------- */

static void set_u64(char *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}

static void set_u32(char *p, size_t v)
{
    uint32_t little = htole32((uint32_t)v);
    memcpy(p, &little, sizeof(little));
}

static uint64_t get_u64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

static uint32_t get_u32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

/* ---- the header ------------------------------------------------------------------------------ */

void data_put_header(uint64_t salt, char out[DATA_HEADER_BYTES])
{
    memset(out, 0, DATA_HEADER_BYTES);
    memcpy(out, header_magic, MAGIC_BYTES);
    set_u64(out + MAGIC_BYTES, salt);
    set_u64(out + 2 * MAGIC_BYTES, blob_hash((struct sv){out, MAGIC_BYTES}, &salt, 1));
}

bool data_read_header(const char bytes[DATA_HEADER_BYTES], uint64_t *ret_salt)
{
    char again[DATA_HEADER_BYTES];
    *ret_salt = get_u64(bytes + MAGIC_BYTES);
    data_put_header(*ret_salt, again);
    return memcmp(bytes, again, DATA_HEADER_BYTES) == 0;
}

/* ---- facts ----------------------------------------------------------------------------------- */

bool data_put_facts(const struct data_facts *facts, struct buf *out)
{
    char fixed[FACTS_BYTES];
    set_u64(fixed, (uint64_t)facts->profile);
    set_u64(fixed + 8, (uint64_t)facts->time_ns);
    set_u64(fixed + 16, (uint64_t)facts->until_ns);
    set_u64(fixed + 24, facts->hash);
    set_u32(fixed + 32, facts->format);
    set_u32(fixed + 36, facts->mergeable);
    set_u32(fixed + 40, facts->n_columns);
    set_u32(fixed + 44, facts->n_parts);
    set_u32(fixed + 48, facts->set.n);
    return buf_append(out, fixed, FACTS_BYTES) && buf_append(out, facts->set.p, facts->set.n);
}

bool data_put_part(struct sv labels, const int64_t *sums, size_t n_columns, struct buf *out)
{
    char number[8];
    set_u32(number, labels.n);
    (void)buf_append(out, number, 4);
    (void)buf_append(out, labels.p, labels.n);
    for (size_t i = 0; i < n_columns; i++) {
        set_u64(number, (uint64_t)sums[i]);
        (void)buf_append(out, number, 8);
    }
    return buf_ok(out);
}

void data_set_row(struct buf *facts, int64_t profile)
{
    set_u64(facts->data, (uint64_t)profile);
}

bool data_read_facts(struct sv bytes, struct data_facts *ret)
{
    if (bytes.n < FACTS_BYTES) {
        return false;
    }
    *ret = (struct data_facts){.profile = (int64_t)get_u64(bytes.p),
                               .time_ns = (int64_t)get_u64(bytes.p + 8),
                               .until_ns = (int64_t)get_u64(bytes.p + 16),
                               .hash = get_u64(bytes.p + 24),
                               .format = get_u32(bytes.p + 32),
                               .mergeable = get_u32(bytes.p + 36) != 0,
                               .n_columns = get_u32(bytes.p + 40),
                               .n_parts = get_u32(bytes.p + 44)};
    size_t n = get_u32(bytes.p + 48);
    struct sv rest = sv_skip(bytes, FACTS_BYTES);
    if (n > rest.n || ret->n_columns > SUMMARY_TYPES_MAX || ret->n_parts > STORE_PARTS_MAX ||
        ret->profile <= 0 || ret->profile > UINT32_MAX) {
        return false;
    }
    ret->set = (struct sv){rest.p, n};
    ret->parts = sv_skip(rest, n);
    return true;
}

bool data_next_part(const struct data_facts *facts, struct sv *rest, struct data_part *ret)
{
    size_t n = rest->n >= 4 ? get_u32(rest->p) : 0;
    if (rest->n < 4 || n > rest->n - 4 || facts->n_columns * 8 > rest->n - 4 - n) {
        return false;
    }
    ret->labels = (struct sv){rest->p + 4, n};
    *rest = sv_skip(*rest, 4 + n);
    for (size_t i = 0; i < facts->n_columns; i++) {
        ret->sums[i] = (int64_t)get_u64(rest->p + 8 * i);
    }
    *rest = sv_skip(*rest, 8 * facts->n_columns);
    return true;
}

/* ---- heads ----------------------------------------------------------------------------------- */

void data_put_head(struct sv facts, size_t body_bytes, uint64_t salt, int64_t offset,
                   char out[DATA_HEAD_BYTES])
{
    const uint64_t of[] = {salt, (uint64_t)offset, facts.n, body_bytes};
    memset(out, 0, DATA_HEAD_BYTES);
    memcpy(out, head_magic, HEAD_MAGIC_BYTES);
    set_u32(out + 4, facts.n);
    set_u32(out + 8, body_bytes);
    set_u64(out + 16, blob_hash(facts, of, sizeof(of) / sizeof(of[0])));
}

bool data_read_head(const char bytes[DATA_HEAD_BYTES], size_t *ret_facts, size_t *ret_body)
{
    *ret_facts = get_u32(bytes + 4);
    *ret_body = get_u32(bytes + 8);
    return memcmp(bytes, head_magic, HEAD_MAGIC_BYTES) == 0 && *ret_facts >= FACTS_BYTES &&
           *ret_facts <= DATA_FACTS_MAX && *ret_body <= BODY_MAX;
}

bool data_head_fits(const char bytes[DATA_HEAD_BYTES], struct sv facts, uint64_t salt,
                    int64_t offset)
{
    char again[DATA_HEAD_BYTES];
    data_put_head(facts, get_u32(bytes + 8), salt, offset, again);
    return memcmp(bytes, again, DATA_HEAD_BYTES) == 0;
}

/* ---- walking --------------------------------------------------------------------------------- */

void data_walk_init(struct data_walk *w, int fd, uint64_t salt, int64_t at, int64_t end)
{
    *w = (struct data_walk){.fd = fd, .salt = salt, .at = at, .end = end};
    buf_init(&w->facts, DATA_FACTS_MAX);
    buf_init(&w->body, BODY_MAX);
}

void data_walk_done(struct data_walk *w)
{
    buf_done(&w->facts);
    buf_done(&w->body);
}

/* Reads n bytes. Returns 1, 0 if the file ends before, or -1 with err. */
static int read_at(struct data_walk *w, char *out, size_t n, int64_t at, struct err *err)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(w->fd, out + got, n - got, (off_t)(at + (int64_t)got));
        if (r < 0 && errno != EINTR) {
            err_sys(err, "cannot read the data file");
            return -1;
        }
        if (r == 0) {
            return 0;
        }
        got += r > 0 ? (size_t)r : 0;
    }
    return 1;
}

/* Reads n bytes into a buffer. */
static int read_into(struct data_walk *w, struct buf *out, size_t n, int64_t at, struct err *err)
{
    char piece[16384];
    buf_clear(out);
    buf_reserve(out, n);
    for (size_t got = 0; got < n; got += sizeof(piece)) {
        size_t want = n - got < sizeof(piece) ? n - got : sizeof(piece);
        int r = read_at(w, piece, want, at + (int64_t)got, err);
        if (r != 1) {
            return r;
        }
        if (!buf_append(out, piece, want)) {
            err_memory(err);
            return -1;
        }
    }
    return 1;
}

enum found { FOUND_FAILED = -1, FOUND_NONE, FOUND_DAMAGED, FOUND_RECORD };

/* Reads the record at w->at. */
static enum found read_record(struct data_walk *w, struct data_facts *ret, struct sv *ret_body,
                              int64_t *ret_next, struct err *err)
{
    char head[DATA_HEAD_BYTES];
    size_t n_facts;
    size_t n_body;
    int r = read_at(w, head, DATA_HEAD_BYTES, w->at, err);
    if (r != 1 || !data_read_head(head, &n_facts, &n_body)) {
        return r < 0 ? FOUND_FAILED : FOUND_NONE;
    }
    int64_t place = w->at + DATA_HEAD_BYTES + (int64_t)n_facts;
    *ret_next = place + (int64_t)n_body;
    if (*ret_next > w->end) {
        return FOUND_NONE;
    }
    r = read_into(w, &w->facts, n_facts, w->at + DATA_HEAD_BYTES, err);
    if (r != 1) {
        return r < 0 ? FOUND_FAILED : FOUND_NONE;
    }
    struct sv facts = {w->facts.data, w->facts.len};
    if (!data_head_fits(head, facts, w->salt, w->at) || !data_read_facts(facts, ret)) {
        return FOUND_NONE;
    }
    r = read_into(w, &w->body, n_body, place, err);
    if (r != 1) {
        return r < 0 ? FOUND_FAILED : FOUND_NONE;
    }
    *ret_body = (struct sv){w->body.data, w->body.len};
    return store_hash_fits(*ret_body, ret->hash) ? FOUND_RECORD : FOUND_DAMAGED;
}

/* Finds the next place after w->at that looks like a head. Returns the end of the file if there is
 * none, or -1 with err. */
static int64_t search(struct data_walk *w, struct err *err)
{
    char piece[SEARCH_BYTES];
    int64_t at = w->at + 1;
    while (at < w->end) {
        int64_t left = w->end - at;
        size_t n = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);
        int r = read_at(w, piece, n, at, err);
        if (r != 1) {
            return r < 0 ? -1 : w->end;
        }
        const char *p = memmem(piece, n, head_magic, HEAD_MAGIC_BYTES);
        if (p != NULL) {
            return at + (p - piece);
        }
        at += n > HEAD_MAGIC_BYTES ? (int64_t)(n - HEAD_MAGIC_BYTES + 1) : (int64_t)n;
    }
    return w->end;
}

int data_walk_next(struct data_walk *w, struct data_facts *ret, struct sv *ret_body,
                   int64_t *ret_place, struct err *err)
{
    int64_t good = w->at; /* the end of the last record */
    int64_t next = w->at;
    while (w->at < w->end) {
        enum found found = read_record(w, ret, ret_body, &next, err);
        if (found == FOUND_FAILED) {
            return -1;
        }
        if (found == FOUND_RECORD) {
            *ret_place = next - (int64_t)ret_body->n;
            w->at = next;
            return 1;
        }
        if (found == FOUND_DAMAGED) {
            w->damaged++;
            w->at = good = next;
            continue;
        }
        next = search(w, err);
        if (next < 0) {
            return -1;
        }
        w->skipped += next - w->at;
        w->at = next;
    }
    w->at = good;
    return 0;
}
