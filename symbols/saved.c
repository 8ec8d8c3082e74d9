#include "symbols/saved.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/put.h"

/* Layout: the magic, eight bytes of checksum of all that follows, and records as fields of
 * protobuf. A text is a record of its own. Records refer to texts and functions by their number, in
 * order from 1; 0 is no text. */
#define MAGIC "profpull names 1\n"
#define MAGIC_SIZE (sizeof(MAGIC) - 1)
#define CHECK_SIZE sizeof(uint64_t)
#define CHECK_SEED UINT64_C(0x5eed)

enum { RECORD_TEXT = 1, RECORD_FUNCTION = 2, RECORD_ADDRESS = 3 };
enum { FN_NAME = 1, FN_SYSTEM_NAME = 2, FN_FILE = 3, FN_START = 4, FN_FIELDS };
/* An address is its place, and pairs of function and line. */
enum { ADDRESS_PLACE = 1, ADDRESS_FUNCTION = 2, ADDRESS_LINE = 3 };

/* The most frames of an address. */
#define FRAMES_MAX 256

/* ---- writing --------------------------------------------------------------------------------- */

/* The number of each pointer that was written. */
struct numbers {
    const void **keys;
    uint32_t *values;
    size_t size; /* a power of two */
    size_t n;
};

struct writer {
    struct buf *out;
    struct buf record;
    struct numbers texts;
    struct numbers functions;
    bool failed;
};

static uint32_t *number_of(struct numbers *m, const void *key, bool *ret_found);

static bool numbers_grow(struct numbers *m)
{
    struct numbers larger = {.size = m->size == 0 ? 256 : 2 * m->size};
    bool found;
    larger.keys = calloc(larger.size, sizeof(*larger.keys));
    larger.values = calloc(larger.size, sizeof(*larger.values));
    if (larger.keys == NULL || larger.values == NULL) {
        free(larger.keys);
        free(larger.values);
        return false;
    }
    for (size_t i = 0; i < m->size; i++) {
        if (m->keys[i] != NULL) {
            *number_of(&larger, m->keys[i], &found) = m->values[i];
        }
    }
    free(m->keys);
    free(m->values);
    *m = larger;
    return true;
}

/* Returns the number of a pointer, a new one if it has none; NULL if out of memory. */
static uint32_t *number_of(struct numbers *m, const void *key, bool *ret_found)
{
    if (2 * m->n >= m->size && !numbers_grow(m)) {
        return NULL;
    }
    size_t i = (size_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & (m->size - 1);
    while (m->keys[i] != NULL && m->keys[i] != key) {
        i = (i + 1) & (m->size - 1);
    }
    *ret_found = m->keys[i] != NULL;
    if (!*ret_found) {
        m->keys[i] = key;
        m->values[i] = (uint32_t)++m->n;
    }
    return &m->values[i];
}

static uint64_t write_text(struct writer *w, struct sv text)
{
    bool found;
    if (text.n == 0) {
        return 0;
    }
    const uint32_t *number = number_of(&w->texts, text.p, &found);
    if (number == NULL) {
        w->failed = true;
        return 0;
    }
    if (!found) {
        wire_put_bytes(w->out, RECORD_TEXT, text.p, text.n);
    }
    return *number;
}

static uint64_t write_function(struct writer *w, const struct symbol_function *f)
{
    bool found;
    const uint32_t *number = number_of(&w->functions, f, &found);
    if (number == NULL) {
        w->failed = true;
        return 0;
    }
    if (!found) {
        const uint64_t v[FN_FIELDS] = {[FN_NAME] = write_text(w, f->name),
                                       [FN_SYSTEM_NAME] = write_text(w, f->system_name),
                                       [FN_FILE] = write_text(w, f->file),
                                       [FN_START] = f->start_line};
        unsigned char bytes[FN_FIELDS * WIRE_HEAD_MAX];
        size_t n = 0;
        for (unsigned i = FN_NAME; i < FN_FIELDS; i++) {
            n += wire_encode((uint64_t)i << 3 | WIRE_VARINT, bytes + n);
            n += wire_encode(v[i], bytes + n);
        }
        wire_put_bytes(w->out, RECORD_FUNCTION, bytes, n);
    }
    return *number;
}

static void write_address(void *arg, uint64_t place, const struct symbol_line *lines, size_t n)
{
    struct writer *w = arg;
    buf_clear(&w->record);
    wire_put_number(&w->record, ADDRESS_PLACE, place);
    for (size_t i = 0; i < n && i < FRAMES_MAX; i++) {
        wire_put_number(&w->record, ADDRESS_FUNCTION, write_function(w, lines[i].function));
        wire_put_number(&w->record, ADDRESS_LINE, lines[i].line);
    }
    wire_put_bytes(w->out, RECORD_ADDRESS, w->record.data, w->record.len);
}

static void numbers_done(struct numbers *m)
{
    free(m->keys);
    free(m->values);
}

static uint64_t check_of(const char *bytes, size_t n)
{
    return htole64(hash_bytes(bytes, n, CHECK_SEED));
}

bool symbol_saved_write(struct symbol_table *t, struct buf *out)
{
    struct writer w = {.out = out};
    size_t start = out->len;
    uint64_t check = 0;
    buf_init(&w.record, FRAMES_MAX * (size_t)64);
    buf_append(out, MAGIC, MAGIC_SIZE);
    buf_append(out, &check, CHECK_SIZE);
    symbol_table_each(t, write_address, &w);
    bool ok = !w.failed && buf_ok(out) && buf_ok(&w.record);
    if (ok) {
        size_t head = start + MAGIC_SIZE + CHECK_SIZE;
        check = check_of(out->data + head, out->len - head);
        memcpy(out->data + start + MAGIC_SIZE, &check, CHECK_SIZE);
    }
    numbers_done(&w.texts);
    numbers_done(&w.functions);
    buf_done(&w.record);
    return ok;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct symbol_table *table;
    struct sv *texts;
    size_t n_texts;
    struct symbol_answer_frame *functions;
    size_t n_functions;
    size_t counts[RECORD_ADDRESS + 1];
    struct err *err;
};

static bool damaged(struct reader *r, const char *what)
{
    return err_set(r->err, ERR_INPUT, "saved names: %s", what);
}

/* Checks magic and checksum. Returns the records. */
static bool open_saved(struct reader *r, struct sv bytes, struct sv *ret)
{
    uint64_t check;
    if (bytes.n < MAGIC_SIZE + CHECK_SIZE || memcmp(bytes.p, MAGIC, MAGIC_SIZE) != 0) {
        return damaged(r, "another format");
    }
    memcpy(&check, bytes.p + MAGIC_SIZE, CHECK_SIZE);
    *ret = sv_skip(bytes, MAGIC_SIZE + CHECK_SIZE);
    return check == check_of(ret->p, ret->n) || damaged(r, "the checksum is wrong");
}

static bool count_records(struct reader *r, struct sv records)
{
    struct wire_reader w = wire_reader_of(records);
    struct wire_field f = {.number = 0};
    while (wire_next(&w, &f)) {
        if (f.number > RECORD_ADDRESS || f.type != WIRE_BYTES) {
            return damaged(r, "an unknown record");
        }
        r->counts[f.number]++;
    }
    return w.problem == NULL || damaged(r, w.problem);
}

static bool find_text(struct reader *r, uint64_t number, struct sv *ret)
{
    *ret = SV("");
    if (number > r->n_texts) {
        return damaged(r, "a text that does not exist");
    }
    if (number > 0) {
        *ret = r->texts[number - 1];
    }
    return true;
}

static bool read_function(struct reader *r, struct sv record)
{
    uint64_t v[FN_FIELDS] = {0};
    wire_read_numbers(record, v, FN_FIELDS);
    struct symbol_answer_frame *f = &r->functions[r->n_functions++];
    *f = (struct symbol_answer_frame){.start_line = v[FN_START]};
    return find_text(r, v[FN_NAME], &f->name) && find_text(r, v[FN_SYSTEM_NAME], &f->system_name) &&
           find_text(r, v[FN_FILE], &f->file);
}

/* Reads an address. If `add` is false, it is only checked. */
static bool read_address(struct reader *r, struct sv record, bool add)
{
    struct symbol_answer_frame frames[FRAMES_MAX];
    struct wire_reader w = wire_reader_of(record);
    struct wire_field f = {.number = 0};
    uint64_t place = 0;
    size_t n = 0;
    while (wire_next(&w, &f)) {
        if (f.number == ADDRESS_PLACE) {
            place = f.value;
        } else if (f.number == ADDRESS_FUNCTION) {
            if (f.value == 0 || f.value > r->n_functions || n == FRAMES_MAX) {
                return damaged(r, "a function that does not exist");
            }
            frames[n++] = r->functions[f.value - 1];
        } else if (f.number == ADDRESS_LINE && n > 0) {
            frames[n - 1].line = f.value;
        }
    }
    if (w.problem != NULL || n == 0) {
        return damaged(r, "an address without functions");
    }
    return !add || symbol_table_add(r->table, place, frames, n) ||
           err_set(r->err, ERR_LIMIT, "saved names: no room for all of them");
}

static bool read_records(struct reader *r, struct sv records, bool add)
{
    struct wire_reader w = wire_reader_of(records);
    struct wire_field f = {.number = 0};
    r->n_texts = r->n_functions = 0;
    while (wire_next(&w, &f)) {
        if (f.number == RECORD_TEXT) {
            r->texts[r->n_texts++] = f.bytes;
        } else if (f.number == RECORD_FUNCTION ? !read_function(r, f.bytes)
                                               : !read_address(r, f.bytes, add)) {
            return false;
        }
    }
    return true;
}

bool symbol_saved_read(struct symbol_table *t, struct sv bytes, struct err *err)
{
    struct reader r = {.table = t, .err = err};
    struct sv records;
    if (!open_saved(&r, bytes, &records) || !count_records(&r, records)) {
        return false;
    }
    r.texts = calloc(r.counts[RECORD_TEXT] + 1, sizeof(*r.texts));
    r.functions = calloc(r.counts[RECORD_FUNCTION] + 1, sizeof(*r.functions));
    bool ok = r.texts != NULL && r.functions != NULL
                  ? read_records(&r, records, false) && read_records(&r, records, true)
                  : err_memory(err);
    free(r.texts);
    free(r.functions);
    return ok;
}
