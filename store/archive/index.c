#include "store/archive/index.h"

#include <string.h>

#include "pprof/gzip.h"
#include "pprof/scratch.h"
#include "pprof/wire.h"
#include "store/blob.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define HEAD "profpull archive index "
#define FIRST_LINE HEAD STRING(ARCHIVE_VERSION) "\n"
#define FIRST_LINE_OF_DAY HEAD STRING(ARCHIVE_DAY_VERSION) "\n"
#define SUM_BYTES sizeof(uint64_t)

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(struct buf *out, uint64_t v)
{
    while (v >= 0x80) {
        buf_putc(out, (char)(v | 0x80));
        v >>= 7;
    }
    buf_putc(out, (char)v);
}

static void put_text(struct buf *out, struct sv v)
{
    put_number(out, v.n);
    buf_append(out, v.p, v.n);
}

static bool put_state(struct db *db, struct buf *out, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_STATE, err);
    int row = st != NULL ? db_step(db, st, err) : -1;
    if (row != 1) {
        return row == 0 && db_damaged(db, "it has no state", err);
    }
    for (int i = 0; i < 3; i++) {
        put_number(out, (uint64_t)sqlite3_column_int64(st, i));
    }
    sqlite3_reset(st);
    return true;
}

/* Writes the rows. A set follows the first row that has it, and is empty in the next ones: the rows
 * of a set come one after the other as a rule. */
static bool put_rows(struct db *db, struct buf *out, size_t *ret_n, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_ALL_SERIES, err);
    int row = -1;
    int64_t last_set = 0;
    *ret_n = 0;
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        int64_t set_id = sqlite3_column_int64(st, 4);
        put_number(out, (uint64_t)sqlite3_column_int64(st, 0));
        put_number(out, (uint64_t)sqlite3_column_int64(st, 1));
        put_text(out, db_blob(st, 2));
        put_number(out, (uint64_t)set_id);
        put_text(out, set_id != last_set ? db_blob(st, 3) : SV(""));
        last_set = set_id;
        ++*ret_n;
    }
    return row == 0;
}

/* Compresses the fields, and adds the first line and the checksum. */
static bool wrap(const struct buf *fields, const char *first_line, struct buf *out, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct sv packed = SV("");
    bool ok = scratch != NULL &&
              gzip_deflate(scratch, (struct sv){fields->data, fields->len}, &packed) &&
              buf_puts(out, first_line) && buf_append(out, packed.p, packed.n);
    if (ok) {
        uint64_t sum = blob_hash(packed, NULL, 0);
        ok = buf_append(out, &sum, SUM_BYTES);
    }
    scratch_free(scratch);
    return ok || err_set(err, ERR_LIMIT, "the index of the file does not fit into %zu MiB",
                         ARCHIVE_INDEX_MAX / 1024 / 1024);
}

static void put_day(const struct archive_day *day, struct buf *out)
{
    put_number(out, day->n_replaces);
    for (size_t i = 0; i < day->n_replaces; i++) {
        put_text(out, day->replaces[i]);
    }
    put_number(out, day->n_ranges);
    for (size_t i = 0; i < day->n_ranges; i++) {
        put_number(out, (uint64_t)day->ranges[i].set_id);
        put_number(out, day->ranges[i].from);
        put_number(out, day->ranges[i].until);
        put_number(out, day->ranges[i].rows_from);
        put_number(out, day->ranges[i].rows_until);
    }
    put_text(out, day->head);
    put_number(out, day->tail_at);
    put_text(out, day->tail);
}

bool archive_index_write(struct db *db, const char *etag, uint64_t bytes,
                         const struct archive_day *day, struct buf *out, struct err *err)
{
    struct buf rows;
    struct buf fields;
    size_t n = 0;
    buf_init(&rows, ARCHIVE_INDEX_PLAIN_MAX);
    buf_init(&fields, ARCHIVE_INDEX_PLAIN_MAX);
    put_text(&fields, sv_from(etag));
    put_number(&fields, bytes);
    bool ok = put_state(db, &fields, err) && put_rows(db, &rows, &n, err);
    if (ok) {
        put_number(&fields, n);
        buf_append(&fields, rows.data, rows.len);
        if (day != NULL) {
            put_day(day, &fields);
        }
        ok = buf_ok(&rows) && buf_ok(&fields)
                 ? wrap(&fields, day != NULL ? FIRST_LINE_OF_DAY : FIRST_LINE, out, err)
                 : err_memory(err);
    }
    buf_done(&rows);
    buf_done(&fields);
    return ok;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct cursor {
    const char *p;
    const char *end;
    bool ok;
};

static uint64_t take_number(struct cursor *c)
{
    struct wire_varint v = wire_varint(c->p, c->end);
    c->ok = c->ok && v.next != NULL;
    c->p = c->ok ? v.next : c->end;
    return c->ok ? v.value : 0;
}

static struct sv take_text(struct cursor *c)
{
    uint64_t n = take_number(c);
    c->ok = c->ok && n <= (uint64_t)(c->end - c->p);
    struct sv v = c->ok ? (struct sv){c->p, (size_t)n} : SV("");
    c->p = c->ok ? c->p + n : c->end;
    return v;
}

static void take_row(struct cursor *c, const struct archive_row *last, struct archive_row *ret)
{
    ret->id = (int64_t)take_number(c);
    ret->columns = take_number(c);
    ret->labels = take_text(c);
    ret->set_id = (int64_t)take_number(c);
    ret->set = take_text(c);
    if (ret->set.n == 0 && last != NULL && last->set_id == ret->set_id) {
        ret->set = last->set;
    }
    c->ok = c->ok && ret->set.n > 0 && (last == NULL || ret->id > last->id);
}

/* Reads the fields that only days have. False if out of memory; c->ok says whether they are fine.
 */
static bool take_day(struct cursor *c, struct arena *arena, struct archive_day *ret)
{
    size_t left = (size_t)(c->end - c->p);
    uint64_t n = take_number(c);
    c->ok = c->ok && n <= left;
    struct sv *replaces = arena_array(arena, c->ok ? (size_t)n + 1 : 1, sizeof(replaces[0]));
    for (size_t i = 0; replaces != NULL && c->ok && i < n; i++) {
        replaces[i] = take_text(c);
    }
    *ret = (struct archive_day){.replaces = replaces, .n_replaces = c->ok ? (size_t)n : 0};
    left = (size_t)(c->end - c->p);
    n = take_number(c);
    /* Each range has at least five bytes. */
    c->ok = c->ok && n <= left / 5;
    struct day_range *ranges = arena_array(arena, c->ok ? (size_t)n + 1 : 1, sizeof(ranges[0]));
    for (size_t i = 0; ranges != NULL && c->ok && i < n; i++) {
        ranges[i].set_id = (int64_t)take_number(c);
        ranges[i].from = take_number(c);
        ranges[i].until = take_number(c);
        ranges[i].rows_from = take_number(c);
        ranges[i].rows_until = take_number(c);
        c->ok = c->ok && (i == 0 || ranges[i].set_id > ranges[i - 1].set_id);
    }
    ret->ranges = ranges;
    ret->n_ranges = c->ok ? (size_t)n : 0;
    ret->head = take_text(c);
    ret->tail_at = take_number(c);
    ret->tail = take_text(c);
    return replaces != NULL && ranges != NULL;
}

/* Reads the fields, which must stay valid as long as the result. */
static enum archive_verdict take_fields(struct sv plain, bool is_day, struct arena *arena,
                                        struct archive_index *ret)
{
    struct cursor c = {plain.p, plain.p + plain.n, true};
    *ret = (struct archive_index){.etag = take_text(&c)};
    ret->bytes = take_number(&c);
    ret->profiles = take_number(&c);
    ret->oldest_ns = (int64_t)take_number(&c);
    ret->newest_ns = (int64_t)take_number(&c);
    uint64_t n = take_number(&c);
    /* Each row has at least five bytes. */
    if (!c.ok || n > plain.n / 5) {
        return ARCHIVE_INDEX_DAMAGED;
    }
    struct archive_row *rows = arena_array(arena, (size_t)n + 1, sizeof(rows[0]));
    if (rows == NULL) {
        return ARCHIVE_INDEX_MEMORY;
    }
    for (size_t i = 0; i < n && c.ok; i++) {
        take_row(&c, i > 0 ? &rows[i - 1] : NULL, &rows[i]);
    }
    ret->rows = rows;
    ret->n_rows = (size_t)n;
    if (is_day && c.ok && !take_day(&c, arena, &ret->day)) {
        return ARCHIVE_INDEX_MEMORY;
    }
    return c.ok && c.p == c.end ? ARCHIVE_INDEX_FINE : ARCHIVE_INDEX_DAMAGED;
}

/* Inflates the fields into memory of the arena. */
static bool inflate(struct sv packed, struct arena *arena, struct sv *ret, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct sv plain = SV("");
    bool ok = scratch != NULL ? gzip_inflate(scratch, packed, ARCHIVE_INDEX_PLAIN_MAX,
                                             gzip_claim(packed), &plain, err)
                              : err_memory(err);
    const char *copy = ok ? arena_strndup(arena, plain.p, plain.n) : NULL;
    *ret = (struct sv){copy, plain.n};
    ok = ok && (copy != NULL || err_memory(err));
    scratch_free(scratch);
    return ok;
}

/* Checks the first line. */
static enum archive_verdict check_version(struct sv line, bool *ret_is_day, struct err *err)
{
    uint64_t version = 0;
    if (!sv_starts_with(line, SV(HEAD)) ||
        !parse_u64(sv_skip(line, sizeof(HEAD) - 1), UINT32_MAX, &version) || version == 0) {
        err_set(err, ERR_INPUT, "not an index of an archive");
        return ARCHIVE_INDEX_DAMAGED;
    }
    if (version > ARCHIVE_DAY_VERSION) {
        err_set(err, ERR_INPUT, "written by a newer version (format %llu, expected %d)",
                (unsigned long long)version, ARCHIVE_DAY_VERSION);
        return ARCHIVE_INDEX_NEWER;
    }
    *ret_is_day = version == ARCHIVE_DAY_VERSION;
    return ARCHIVE_INDEX_FINE;
}

/* Checks the first line and the checksum, and sets *ret to the compressed fields. */
static enum archive_verdict unwrap(struct sv bytes, bool *ret_is_day, struct sv *ret,
                                   struct err *err)
{
    struct sv line;
    uint64_t sum;
    if (!sv_cut(bytes, '\n', &line, ret)) {
        err_set(err, ERR_INPUT, "not an index of an archive");
        return ARCHIVE_INDEX_DAMAGED;
    }
    enum archive_verdict verdict = check_version(line, ret_is_day, err);
    if (verdict != ARCHIVE_INDEX_FINE) {
        return verdict;
    }
    if (ret->n < SUM_BYTES) {
        err_set(err, ERR_INPUT, "damaged: the index is cut off");
        return ARCHIVE_INDEX_DAMAGED;
    }
    ret->n -= SUM_BYTES;
    memcpy(&sum, ret->p + ret->n, SUM_BYTES);
    if (sum != blob_hash(*ret, NULL, 0)) {
        err_set(err, ERR_INPUT, "damaged: the checksum of the index differs");
        return ARCHIVE_INDEX_DAMAGED;
    }
    return ARCHIVE_INDEX_FINE;
}

enum archive_verdict archive_index_check(struct sv bytes, struct err *err)
{
    struct sv packed;
    bool is_day = false;
    return unwrap(bytes, &is_day, &packed, err);
}

enum archive_verdict archive_index_read(struct sv bytes, struct arena *arena,
                                        struct archive_index *ret, struct err *err)
{
    struct sv packed;
    struct sv plain;
    bool is_day = false;
    *ret = (struct archive_index){.n_rows = 0};
    enum archive_verdict verdict = unwrap(bytes, &is_day, &packed, err);
    if (verdict != ARCHIVE_INDEX_FINE) {
        return verdict;
    }
    if (!inflate(packed, arena, &plain, err)) {
        return err != NULL && err->kind == ERR_MEMORY ? ARCHIVE_INDEX_MEMORY
                                                      : ARCHIVE_INDEX_DAMAGED;
    }
    verdict = take_fields(plain, is_day, arena, ret);
    if (verdict == ARCHIVE_INDEX_MEMORY) {
        err_memory(err);
    } else if (verdict != ARCHIVE_INDEX_FINE) {
        err_set(err, ERR_INPUT, "damaged: the fields of the index");
    }
    return verdict;
}
