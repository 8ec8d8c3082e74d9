#include "symbols/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/sv.h"
#include "base/utf8.h"

/* ---- in the child ---------------------------------------------------------------------------- */

void answer_writer_init(struct answer_writer *w)
{
    *w = (struct answer_writer){.offsets = map_new()};
    buf_init(&w->ends, ANSWER_MAX);
    buf_init(&w->frames, ANSWER_MAX);
    buf_init(&w->strings, ANSWER_MAX);
    w->failed = w->offsets == NULL;
}

void answer_writer_done(struct answer_writer *w)
{
    buf_done(&w->ends);
    buf_done(&w->frames);
    buf_done(&w->strings);
    w->offsets = map_free(w->offsets, NULL);
}

/* Returns the offset of a string, which is added when it is new. A map has no value NULL, so it
 * keeps offset + 1. */
static uint32_t intern(struct answer_writer *w, const char *s)
{
    struct sv text = {s, strnlen(s, ANSWER_NAME_MAX)};
    uintptr_t known = w->failed ? 0 : (uintptr_t)map_get(w->offsets, text);
    if (known != 0) {
        return (uint32_t)(known - 1);
    }
    size_t offset = w->strings.len;
    if (!w->failed && !(buf_append(&w->strings, text.p, text.n) && buf_putc(&w->strings, '\0') &&
                        /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
                        map_put(w->offsets, text, (void *)(uintptr_t)(offset + 1), NULL))) {
        w->failed = true;
    }
    return (uint32_t)offset;
}

void answer_add_frame(struct answer_writer *w, const struct symbol_frame *f)
{
    const struct answer_frame frame = {
        .function = intern(w, f->function),
        .system_name = intern(w, f->system_name),
        .file = intern(w, f->file),
        .line = f->line,
        .start_line = f->start_line,
    };
    w->n_frames++;
    if (!buf_append(&w->frames, &frame, sizeof(frame))) {
        w->failed = true;
    }
}

void answer_end_address(struct answer_writer *w)
{
    w->n_addresses++;
    if (!buf_append(&w->ends, &w->n_frames, sizeof(w->n_frames))) {
        w->failed = true;
    }
}

bool answer_finish(struct answer_writer *w, struct answer_head *ret_head, struct buf *out)
{
    *ret_head = (struct answer_head){
        .magic = ANSWER_MAGIC,
        .addresses = w->n_addresses,
        .frames = w->n_frames,
        .strings = (uint32_t)w->strings.len,
    };
    return !w->failed && buf_append(out, w->frames.data, w->frames.len) &&
           buf_append(out, w->ends.data, w->ends.len) &&
           buf_append(out, w->strings.data, w->strings.len);
}

/* ---- in the agent ---------------------------------------------------------------------------- */

uint64_t answer_payload_size(const struct answer_head *head, size_t n, struct err *err)
{
    bool ok = head->failure == SYMBOLS_OK;
    uint64_t size = (uint64_t)head->frames * sizeof(struct answer_frame) +
                    (uint64_t)head->addresses * sizeof(uint32_t) + head->strings;
    if (head->magic != ANSWER_MAGIC || head->failure >= SYMBOLS_FAILURES) {
        err_set(err, ERR_INPUT, "expected an answer, got the number %08x", (unsigned)head->magic);
        return 0;
    }
    if (head->addresses != (ok ? n : 0) || (!ok && (head->frames != 0 || head->strings == 0))) {
        err_set(err, ERR_INPUT, "expected an answer for %zu addresses, got one for %u", n,
                (unsigned)head->addresses);
        return 0;
    }
    if (size > ANSWER_MAX || size == 0) {
        err_set(err, ERR_LIMIT, "expected an answer of 1 to %u bytes, got one of %llu",
                (unsigned)ANSWER_MAX, (unsigned long long)size);
        return 0;
    }
    return size;
}

/* Replaces bytes that are no UTF-8, and control characters, in strings with a NUL after each. */
static void clean(char *strings, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t rune;
        size_t length = utf8_decode((struct sv){strings + i, n - i}, &rune);
        if (length == 0 || (strings[i] != '\0' && (rune < ' ' || rune == 0x7f))) {
            strings[i] = '?';
        }
        i += length == 0 ? 1 : length;
    }
}

/* The frames of an answer are as large as struct symbol_frame or smaller, on 64-bit machines; they
 * are copied, so that a machine of 32 bits works, too. */
static bool decode_frames(const struct answer_head *head, const char *payload, const char *strings,
                          struct symbol_frame *frames, struct err *err)
{
    for (uint32_t i = 0; i < head->frames; i++) {
        struct answer_frame f;
        memcpy(&f, payload + (size_t)i * sizeof(f), sizeof(f));
        if (f.function >= head->strings || f.system_name >= head->strings ||
            f.file >= head->strings) {
            return err_set(err, ERR_INPUT, "frame %u: a string starts after the %u bytes of all",
                           (unsigned)i, (unsigned)head->strings);
        }
        frames[i] = (struct symbol_frame){
            .function = strings + f.function,
            .system_name = strings + f.system_name,
            .file = strings + f.file,
            .line = f.line < 0 ? 0 : f.line,
            .start_line = f.start_line < 0 ? 0 : f.start_line,
        };
        if (frames[i].function[0] == '\0' || frames[i].system_name[0] == '\0') {
            return err_set(err, ERR_INPUT, "frame %u: expected a name, got none", (unsigned)i);
        }
    }
    return true;
}

static bool check_ends(const struct answer_head *head, const uint32_t *ends, struct err *err)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < head->addresses; i++) {
        if (ends[i] < before || ends[i] > head->frames) {
            return err_set(err, ERR_INPUT, "address %u: expected a frame of %u to %u, got %u",
                           (unsigned)i, (unsigned)before, (unsigned)head->frames,
                           (unsigned)ends[i]);
        }
        before = ends[i];
    }
    return before == head->frames || err_set(err, ERR_INPUT, "%u frames belong to no address",
                                             (unsigned)(head->frames - before));
}

bool answer_decode(const struct answer_head *head, char *payload, struct symbol_frames *ret,
                   struct err *err)
{
    size_t frames_size = head->frames * sizeof(struct symbol_frame);
    size_t ends_size = head->addresses * sizeof(uint32_t);
    const char *ends = payload + head->frames * sizeof(struct answer_frame);
    char *block = malloc(frames_size + ends_size + head->strings + 1);
    if (block == NULL) {
        free(payload);
        return err_memory(err);
    }
    struct symbol_frame *frames = (struct symbol_frame *)(void *)block;
    uint32_t *own_ends = (uint32_t *)(void *)(block + frames_size);
    char *strings = block + frames_size + ends_size;
    memcpy(own_ends, ends, ends_size);
    memcpy(strings, ends + ends_size, head->strings);
    strings[head->strings] = '\0';
    clean(strings, head->strings);
    bool ok = decode_frames(head, payload, strings, frames, err) && check_ends(head, own_ends, err);
    free(payload);
    if (!ok) {
        free(block);
        return false;
    }
    *ret = (struct symbol_frames){
        .frames = frames,
        .ends = own_ends,
        .n = head->addresses,
        .n_frames = head->frames,
        .owner = block,
    };
    return true;
}
