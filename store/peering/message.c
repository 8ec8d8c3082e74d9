#include "store/peering/message.h"

#include <string.h>

#include "base/ascii.h"
#include "store/archive/names.h"

#define QUESTION "profpull peer question 1\n"
#define ANSWER "profpull peer answer 1\n"
#define PLACE_MAX 40

static bool is_id(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_alnum(v.p[i])) {
            return false;
        }
    }
    return v.n > 0 && v.n <= PEERING_ID_DIGITS;
}

static bool is_hash(struct sv v)
{
    return v.n == ARCHIVE_HASH_DIGITS && is_id(v);
}

static bool read_ns(struct sv v, int64_t *ret)
{
    uint64_t n;
    bool ok = parse_u64(v, INT64_MAX, &n);
    *ret = ok ? (int64_t)n : 0;
    return ok;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool peering_put_selector(const struct selector *s, struct buf *out)
{
    struct selector_matcher m;
    buf_putc(out, '{');
    for (size_t i = 0; s != NULL && selector_at(s, i, &m); i++) {
        if (i > 0) {
            buf_putc(out, ',');
        }
        selector_put(&m, out);
    }
    return buf_putc(out, '}');
}

bool peering_put_question(const struct peering_question *q, struct buf *out)
{
    buf_puts(out, QUESTION);
    buf_printf(out, "asker %.*s\nkind %s\nfrom %lld\nuntil %lld\n", SV_ARG(q->asker),
               q->files ? "files" : slice_kind_name(q->kind), (long long)q->from_ns,
               (long long)q->until_ns);
    if (!q->files) {
        buf_printf(out, "file %.*s\nafter %lld\nbytes %llu %llu\n", SV_ARG(q->file),
                   (long long)q->after_set, (unsigned long long)q->bytes,
                   (unsigned long long)q->bytes_max);
    }
    if (!q->files && q->kind == SLICE_PROFILE) {
        buf_printf(out, "profile %lld %lld %llu\n", (long long)q->profile, (long long)q->profile_ms,
                   (unsigned long long)q->profile_hash);
    }
    if (q->selector.n > 0) {
        buf_puts(out, "selector ");
        buf_append(out, q->selector.p, q->selector.n);
        buf_putc(out, '\n');
    }
    return buf_puts(out, "end\n");
}

static bool read_bytes(struct sv v, struct peering_question *q)
{
    struct sv first;
    struct sv second;
    return sv_cut(v, ' ', &first, &second) && parse_u64(first, INT64_MAX, &q->bytes) &&
           parse_u64(second, INT64_MAX, &q->bytes_max);
}

static bool read_profile(struct sv v, struct peering_question *q)
{
    struct sv row;
    struct sv ms;
    struct sv hash;
    return sv_cut(v, ' ', &row, &v) && sv_cut(v, ' ', &ms, &hash) && read_ns(row, &q->profile) &&
           read_ns(ms, &q->profile_ms) && parse_u64(hash, UINT64_MAX, &q->profile_hash);
}

static bool read_kind(struct sv v, struct peering_question *q)
{
    q->files = sv_eq_str(v, "files");
    return q->files || slice_kind_find(v, &q->kind);
}

/* Takes one line of a question. Words that are not known are an error: an answer that ignores a
 * part of its question would be wrong. */
static bool read_question_line(struct sv word, struct sv v, struct peering_question *q)
{
    if (sv_eq_str(word, "asker")) {
        q->asker = v;
        return is_id(v);
    }
    if (sv_eq_str(word, "kind")) {
        return read_kind(v, q);
    }
    if (sv_eq_str(word, "from")) {
        return read_ns(v, &q->from_ns);
    }
    if (sv_eq_str(word, "until")) {
        return read_ns(v, &q->until_ns);
    }
    if (sv_eq_str(word, "after")) {
        return read_ns(v, &q->after_set);
    }
    if (sv_eq_str(word, "file")) {
        struct store_name name;
        q->file = v;
        return store_name_parse(v, &name);
    }
    if (sv_eq_str(word, "bytes")) {
        return read_bytes(v, q);
    }
    if (sv_eq_str(word, "profile")) {
        return read_profile(v, q);
    }
    q->selector = v;
    return sv_eq_str(word, "selector") && v.n > 0;
}

/* Cuts the next line into its word and the rest. False at the end, also of a line that is cut off.
 */
static bool next_line(struct sv *rest, struct sv *ret_word, struct sv *ret_value)
{
    struct sv line;
    if (!sv_cut(*rest, '\n', &line, rest)) {
        return false;
    }
    if (!sv_cut(line, ' ', ret_word, ret_value)) {
        *ret_word = line;
        *ret_value = SV("");
    }
    return true;
}

bool peering_read_question(struct sv bytes, struct peering_question *ret, struct err *err)
{
    struct sv word;
    struct sv value;
    *ret = (struct peering_question){.kind = SLICE_KINDS};
    if (!sv_starts_with(bytes, SV(QUESTION))) {
        return err_set(err, ERR_INPUT,
                       "expected a question of version 1: use the same version of profpull for all "
                       "peers");
    }
    bytes = sv_skip(bytes, sizeof(QUESTION) - 1);
    while (next_line(&bytes, &word, &value)) {
        if (sv_eq_str(word, "end")) {
            bool ok = ret->asker.n > 0 && ret->from_ns <= ret->until_ns &&
                      (ret->files || (ret->kind < SLICE_KINDS && ret->file.n > 0));
            return ok || err_set(err, ERR_INPUT, "expected asker, kind, range and file");
        }
        if (!read_question_line(word, value, ret)) {
            return err_set(err, ERR_INPUT, "the line \"%.*s\" of the question is not understood",
                           word.n < PLACE_MAX ? (int)word.n : PLACE_MAX, word.p);
        }
    }
    return err_set(err, ERR_INPUT, "the question is cut off");
}

/* ---- answers --------------------------------------------------------------------------------- */

bool peering_put_answer(const char *instance, const char *writer, struct buf *out)
{
    buf_printf(out, ANSWER "instance %s\n", instance);
    return writer[0] == '\0' || buf_printf(out, "writer %s\n", writer);
}

bool peering_put_file(const char *text, const char *hash, int64_t archived_ms, struct buf *out)
{
    return archived_ms < 0
               ? buf_printf(out, "file %s %s\n", text, hash[0] != '\0' ? hash : "-")
               : buf_printf(out, "archived %s %s %lld\n", text, hash, (long long)archived_ms);
}

bool peering_put_unlisted(int64_t ms, struct buf *out)
{
    return buf_printf(out, "unlisted %lld\n", (long long)ms);
}

bool peering_put_gone(struct buf *out)
{
    return buf_puts(out, "gone\n");
}

bool peering_put_end(struct buf *out)
{
    return buf_puts(out, "end\n");
}

bool peering_put_slice(struct sv bytes, int64_t more, struct buf *out)
{
    if (more > 0) {
        buf_printf(out, "more %lld\n", (long long)more);
    }
    buf_printf(out, "slice %zu\n", bytes.n);
    return buf_append(out, bytes.p, bytes.n);
}

/* An answer that is being read. */
struct reading {
    struct arena *arena;
    struct peering_answer *ret;
    struct peering_file *files;
    size_t cap;
};

static struct peering_file *new_file(struct reading *r, struct err *err)
{
    size_t n = r->ret->n_files;
    if (n == PEERING_FILES_MAX) {
        err_set(err, ERR_INPUT, "it has more than %d files", PEERING_FILES_MAX);
        return NULL;
    }
    if (n == r->cap) {
        size_t cap = r->cap == 0 ? 32 : 4 * r->cap;
        struct peering_file *files = arena_array(r->arena, cap, sizeof(files[0]));
        if (files == NULL) {
            err_memory(err);
            return NULL;
        }
        if (n > 0) {
            memcpy(files, r->files, n * sizeof(files[0]));
        }
        r->files = files;
        r->cap = cap;
    }
    return &r->files[r->ret->n_files++];
}

static bool take_file(struct reading *r, struct sv v, bool archived, struct err *err)
{
    struct sv text;
    struct sv hash;
    struct sv age = SV("");
    struct store_name name;
    int64_t archived_ms = -1;
    if (!sv_cut(v, ' ', &text, &hash) || !store_name_parse(text, &name) ||
        (archived && (!sv_cut(hash, ' ', &hash, &age) || !read_ns(age, &archived_ms))) ||
        !(is_hash(hash) || (sv_eq_str(hash, "-") && !archived))) {
        return err_set(err, ERR_INPUT, "a name of a file is damaged");
    }
    struct peering_file *f = new_file(r, err);
    if (f == NULL) {
        return false;
    }
    *f = (struct peering_file){
        .name = name, .hash = is_hash(hash) ? hash : SV(""), .archived_ms = archived_ms};
    store_name_format(&name, f->text);
    r->ret->files = r->files;
    return true;
}

static bool take_slice(struct reading *r, struct sv v, struct sv rest, struct err *err)
{
    uint64_t n;
    r->ret->slice = rest;
    return (parse_u64(v, INT64_MAX, &n) && n == rest.n && n > 0) ||
           err_set(err, ERR_INPUT, "its slice has %zu bytes, and %.*s were announced", rest.n,
                   v.n < PLACE_MAX ? (int)v.n : PLACE_MAX, v.p);
}

/* Takes a line other than the last one. Words that are not known are left for later versions. */
static bool read_answer_line(struct reading *r, struct sv word, struct sv v, struct err *err)
{
    struct peering_answer *a = r->ret;
    bool ok = true;
    if (sv_eq_str(word, "instance")) {
        a->instance = v;
        ok = is_id(v);
    } else if (sv_eq_str(word, "writer")) {
        a->writer = v;
        ok = archive_is_writer(v);
    } else if (sv_eq_str(word, "file") || sv_eq_str(word, "archived")) {
        return take_file(r, v, sv_eq_str(word, "archived"), err);
    } else if (sv_eq_str(word, "gone")) {
        a->gone = true;
    } else if (sv_eq_str(word, "unlisted")) {
        ok = read_ns(v, &a->unlisted_ms);
    } else if (sv_eq_str(word, "more")) {
        ok = read_ns(v, &a->more) && a->more > 0;
    }
    return ok || err_set(err, ERR_INPUT, "the line \"%.*s\" is damaged",
                         word.n < PLACE_MAX ? (int)word.n : PLACE_MAX, word.p);
}

bool peering_read_answer(struct sv bytes, struct arena *arena, struct peering_answer *ret,
                         struct err *err)
{
    struct reading r = {.arena = arena, .ret = ret};
    struct sv word;
    struct sv value;
    *ret = (struct peering_answer){.unlisted_ms = -1};
    if (!sv_starts_with(bytes, SV(ANSWER))) {
        return err_set(
            err, ERR_INPUT,
            "expected an answer of version 1: this is another server, or another version "
            "of profpull");
    }
    bytes = sv_skip(bytes, sizeof(ANSWER) - 1);
    while (next_line(&bytes, &word, &value)) {
        bool is_slice = sv_eq_str(word, "slice");
        if (is_slice || sv_eq_str(word, "end")) {
            return (is_slice ? take_slice(&r, value, bytes, err)
                             : bytes.n == 0 || err_set(err, ERR_INPUT, "bytes follow the end")) &&
                   (ret->instance.n > 0 || err_set(err, ERR_INPUT, "expected an instance"));
        }
        if (!read_answer_line(&r, word, value, err)) {
            return false;
        }
    }
    return err_set(err, ERR_INPUT, "it is cut off");
}
