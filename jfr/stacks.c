/* Turns the stacks of a chunk's pool into numbers of stacks that all chunks share. */
#include <string.h>

#include "jfr/names.h"
#include "jfr/reader.h"
#include "pprof/put.h"

/* The notes of methods: 0 is not read yet, 1 is not usable, otherwise function + METHOD_FIRST. */
enum { METHOD_UNUSABLE = 1, METHOD_FIRST = 2 };

/* Appends the text of a value to the name, as jfr_name_put() writes it. */
static void put_symbol(struct jfr_reader *r, const struct jfr_value *v)
{
    buf_clear(&r->symbol);
    jfr_pools_text(&r->pools, v, &r->symbol);
    r->name.failed = r->name.failed || !buf_ok(&r->symbol);
    jfr_name_put((struct sv){r->symbol.data, r->symbol.len}, &r->name);
}

/* Makes the function of a method. *ret_note: its note. */
static bool resolve_method(struct jfr_reader *r, size_t slot, uint32_t *ret_note, struct err *err)
{
    struct jfr_value method[JFR_SLOTS_MAX];
    struct jfr_value class[JFR_SLOTS_MAX];
    uint32_t function = 0;
    jfr_pools_get(&r->pools, JFR_POOL_METHOD, slot, method);
    *ret_note = METHOD_UNUSABLE;
    size_t at = jfr_pools_find(&r->pools, JFR_POOL_CLASS, method[JFR_METHOD_TYPE].number);
    if (method[JFR_METHOD_TYPE].at == NULL || at == SIZE_MAX) {
        return true;
    }
    jfr_pools_get(&r->pools, JFR_POOL_CLASS, at, class);
    buf_clear(&r->name);
    put_symbol(r, &class[JFR_TEXT]);
    buf_putc(&r->name, '.');
    put_symbol(r, &method[JFR_METHOD_NAME]);
    if (!buf_ok(&r->name)) {
        bool full = buf_too_big(&r->name) || buf_too_big(&r->symbol);
        return full ? err_set(err, ERR_LIMIT, "a name of more than %zu bytes", r->name.max)
                    : err_memory(err);
    }
    if (!merge_table_add(&r->samples.functions, &r->budget, r->name.data, r->name.len, r->name.len,
                         &function, err)) {
        return false;
    }
    *ret_note = function + METHOD_FIRST;
    return true;
}

/* Appends the location of a frame to the n bytes of the stack. */
static bool add_frame(struct jfr_reader *r, const struct jfr_value *frame, size_t *n,
                      struct err *err)
{
    size_t slot = jfr_pools_find(&r->pools, JFR_POOL_METHOD, frame[JFR_FRAME_METHOD].number);
    uint32_t location;
    if (frame[JFR_FRAME_METHOD].at == NULL || slot == SIZE_MAX) {
        r->facts.no_method++;
        return true;
    }
    uint32_t *note = &r->pools.pools[JFR_POOL_METHOD].notes[slot];
    if (*note == 0 && !resolve_method(r, slot, note, err)) {
        *note = 0;
        return false;
    }
    if (*note == METHOD_UNUSABLE) {
        r->facts.no_method++;
        return true;
    }
    const struct jfr_location l = {.function = *note - METHOD_FIRST,
                                   .line = (uint32_t)frame[JFR_FRAME_LINE].number};
    if (!merge_table_add(&r->samples.locations, &r->budget, &l, sizeof(l), sizeof(l), &location,
                         err)) {
        return false;
    }
    unsigned char *grown =
        budget_grow(&r->budget, r->frames, &r->frames_cap, *n + WIRE_NUMBER_MAX, 1, err);
    if (grown == NULL) {
        return false;
    }
    r->frames = grown;
    *n += wire_encode(location, grown + *n);
    return true;
}

static bool resolve_stack(struct jfr_reader *r, size_t slot, uint32_t *ret_note, struct err *err)
{
    struct jfr_value stack[JFR_SLOTS_MAX];
    struct jfr_value frame[JFR_SLOTS_MAX];
    uint32_t number;
    size_t n = 0;
    jfr_pools_get(&r->pools, JFR_POOL_STACK_TRACE, slot, stack);
    const struct jfr_value *frames = &stack[JFR_STACK_FRAMES];
    if (frames->at != NULL && r->pools.frame_program != JFR_NONE) {
        struct jfr_cursor c =
            jfr_cursor_at(&r->metadata, (uint64_t)((const char *)frames->at - r->metadata.chunk.p));
        for (uint64_t i = 0; i < frames->number && c.problem == NULL; i++) {
            memset(frame, 0, 2 * sizeof(*frame));
            jfr_run(&r->metadata, r->pools.frame_program, &c, frame);
            if (c.problem == NULL && !add_frame(r, frame, &n, err)) {
                return false;
            }
        }
    }
    if (!merge_table_add(&r->samples.stacks, &r->budget, n > 0 ? (const void *)r->frames : "", n, n,
                         &number, err)) {
        return false;
    }
    *ret_note = (number + 1) << 1 | (stack[JFR_STACK_TRUNCATED].number != 0);
    return true;
}

enum jfr_stack_result jfr_stack_find(struct jfr_reader *r, uint64_t id, uint32_t *ret_stack,
                                     bool *ret_truncated, struct err *err)
{
    size_t slot = jfr_pools_find(&r->pools, JFR_POOL_STACK_TRACE, id);
    if (slot == SIZE_MAX) {
        return JFR_STACK_MISSING;
    }
    uint32_t *note = &r->pools.pools[JFR_POOL_STACK_TRACE].notes[slot];
    if (*note == 0 && !resolve_stack(r, slot, note, err)) {
        return JFR_STACK_FAILED;
    }
    *ret_stack = (*note >> 1) - 1;
    *ret_truncated = (*note & 1) != 0;
    return JFR_STACK_FOUND;
}
