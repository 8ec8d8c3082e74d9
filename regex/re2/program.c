#include "regex/re2/program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <assert.h>
#include <pcre2.h>
#include <stdlib.h>

#include "base/buf.h"

/* The longest pattern of one class, in bytes. Patterns of case-insensitive classes can be long. */
#define CLASS_PATTERN_MAX ((size_t)1024 * 1024)

struct compiler {
    struct re2_program *program;
    struct arena *arena;
    size_t cap;
    size_t n_threads;      /* instructions where a thread of a match can stand */
    enum err_kind failure; /* ERR_LIMIT: too large; ERR_MEMORY */
};

/* ---- classes --------------------------------------------------------------------------------- */

static bool compile_properties(struct re2_class_set *set, const struct re2_node *node,
                               struct err *err)
{
    struct buf text;
    buf_init(&text, CLASS_PATTERN_MAX);
    re2_emit_class(node, &text);
    int code = PCRE2_ERROR_NOMEMORY;
    size_t offset = 0;
    if (buf_ok(&text)) {
        uint32_t options = PCRE2_UTF | PCRE2_DOTALL | PCRE2_ANCHORED | PCRE2_ENDANCHORED;
        set->properties =
            pcre2_compile((PCRE2_SPTR)text.data, text.len, options, &code, &offset, NULL);
    }
    buf_done(&text);
    if (set->properties != NULL) {
        pcre2_jit_compile(set->properties, PCRE2_JIT_COMPLETE);
        return true;
    }
    if (code == PCRE2_ERROR_UNKNOWN_UNICODE_PROPERTY) {
        return err_set(err, ERR_INPUT,
                       "the PCRE2 library of this system does not know that Unicode class");
    }
    return err_memory(err);
}

static void set_ascii(struct re2_class_set *set, uint32_t rune)
{
    set->ascii[rune / 32] |= UINT32_C(1) << rune % 32;
}

/* Properties are matched by PCRE2, which is asked once for each ASCII character. */
static bool fill_ascii_of_properties(struct re2_class_set *set, struct err *err)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (match == NULL) {
        return err_memory(err);
    }
    for (uint32_t r = 0; r < 0x80; r++) {
        unsigned char byte = (unsigned char)r;
        if (pcre2_match(set->properties, &byte, 1, 0, PCRE2_NO_UTF_CHECK, match, NULL) > 0) {
            set_ascii(set, r);
        }
    }
    pcre2_match_data_free(match);
    return true;
}

static bool make_class(struct compiler *c, const struct re2_node *node, struct err *err)
{
    struct re2_class_set *set = &c->program->classes[node->set.index];
    size_t n = node->set.n_ranges;
    struct rune_range *ranges = arena_array(c->arena, n, sizeof(*ranges));
    if (ranges == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        ranges[i] = node->set.ranges[i];
    }
    set->ranges = ranges;
    set->n_ranges = n;
    if (node->set.properties != NULL) {
        return compile_properties(set, node, err) && fill_ascii_of_properties(set, err);
    }
    for (size_t i = 0; i < n; i++) {
        for (uint32_t r = ranges[i].lo; r <= ranges[i].hi && r < 0x80; r++) {
            set_ascii(set, r);
        }
    }
    return true;
}

static bool make_classes(struct compiler *c, const struct re2_node *node, struct err *err)
{
    for (; node != NULL; node = node->next) {
        if ((node->op == RE2_CLASS && !make_class(c, node, err)) ||
            !make_classes(c, node->first, err)) {
            return false;
        }
    }
    return true;
}

/* ---- instructions ----------------------------------------------------------------------------
 *
 * A node is compiled towards the instruction that follows it, so the program is built from its end
 * and no jump is left open but that of a loop. */

static uint32_t compile(struct compiler *c, const struct re2_node *node, uint32_t next);

static uint32_t emit(struct compiler *c, enum re2_instruction_op op, uint32_t next, uint32_t arg)
{
    struct re2_program *p = c->program;
    if (p->n >= RE2_PROGRAM_MAX) {
        c->failure = ERR_LIMIT;
        return 0;
    }
    if (p->n == c->cap) {
        size_t cap = c->cap == 0 ? 64 : 2 * c->cap;
        struct re2_instruction *at = realloc(p->at, cap * sizeof(*at));
        if (at == NULL) {
            c->failure = ERR_MEMORY;
            return 0;
        }
        p->at = at;
        c->cap = cap;
    }
    p->at[p->n] = (struct re2_instruction){.op = op & 7u, .next = next & 0x1fffffffu, .arg = arg};
    /* Only an instruction that consumes a rune, or the end, keeps a thread waiting. */
    c->n_threads += op <= RE2_I_ANY || op == RE2_I_MATCH;
    return (uint32_t)p->n++;
}

/* Fills in a split, which prefers `first` unless lazy. */
static void set_split(struct compiler *c, uint32_t split, uint32_t first, uint32_t second,
                      bool lazy)
{
    if (c->failure == ERR_NONE) {
        struct re2_instruction *i = &c->program->at[split];
        i->next = (lazy ? second : first) & 0x1fffffffu;
        i->arg = lazy ? first : second;
    }
}

static uint32_t compile_quest(struct compiler *c, uint32_t body, uint32_t next, bool lazy)
{
    uint32_t split = emit(c, RE2_I_SPLIT, 0, 0);
    set_split(c, split, body, next, lazy);
    return split;
}

static uint32_t compile_plus(struct compiler *c, const struct re2_node *body, uint32_t next,
                             bool lazy)
{
    uint32_t split = emit(c, RE2_I_SPLIT, 0, 0);
    uint32_t start = compile(c, body, split);
    set_split(c, split, start, next, lazy);
    return start;
}

/* Compiles x*. If x can match nothing, it is compiled as (x+)?, which gives Go's order of
 * priority. */
static uint32_t compile_star(struct compiler *c, const struct re2_node *body, uint32_t next,
                             bool lazy)
{
    if (body->nullable) {
        return compile_quest(c, compile_plus(c, body, next, lazy), next, lazy);
    }
    uint32_t split = emit(c, RE2_I_SPLIT, 0, 0);
    set_split(c, split, compile(c, body, split), next, lazy);
    return split;
}

/* Compiles a counted repetition: x{2,} as xx+, x{2,4} as xx(x(x)?)?. */
static uint32_t compile_repeat(struct compiler *c, const struct re2_node *node, uint32_t next)
{
    const struct re2_node *body = node->first;
    uint32_t copies = node->repeat.min;
    uint32_t at = next;
    if (node->repeat.max == RE2_UNLIMITED && copies == 0) {
        return compile_star(c, body, next, node->repeat.lazy);
    }
    if (node->repeat.max == RE2_UNLIMITED) {
        at = compile_plus(c, body, next, node->repeat.lazy);
        copies--;
    } else {
        for (uint32_t i = copies; i < node->repeat.max && c->failure == ERR_NONE; i++) {
            at = compile_quest(c, compile(c, body, at), next, node->repeat.lazy);
        }
    }
    for (uint32_t i = 0; i < copies && c->failure == ERR_NONE; i++) {
        at = compile(c, body, at);
    }
    return at;
}

static uint32_t compile_capture(struct compiler *c, const struct re2_node *node, uint32_t next)
{
    uint32_t slot = 2 * (node->group - 1);
    uint32_t end = emit(c, RE2_I_SAVE, next, slot + 1);
    return emit(c, RE2_I_SAVE, compile(c, node->first, end), slot);
}

/* Compiles siblings from the last to the first. The recursion is as deep as there are siblings: a
 * few thousand at most. */
static uint32_t compile_concat(struct compiler *c, const struct re2_node *node, uint32_t next)
{
    return compile(c, node, node->next == NULL ? next : compile_concat(c, node->next, next));
}

static uint32_t compile_alternate(struct compiler *c, const struct re2_node *node, uint32_t next)
{
    if (node->next == NULL) {
        return compile(c, node, next);
    }
    uint32_t others = compile_alternate(c, node->next, next);
    return emit(c, RE2_I_SPLIT, compile(c, node, next), others);
}

static uint32_t compile(struct compiler *c, const struct re2_node *node, uint32_t next)
{
    assert(node != NULL);
    if (c->failure != ERR_NONE) {
        return 0;
    }
    switch (node->op) {
    case RE2_EMPTY:
        return next;
    case RE2_LITERAL:
        return emit(c, RE2_I_RUNE, next, node->rune);
    case RE2_CLASS:
        return emit(c, RE2_I_CLASS, next, node->set.index);
    case RE2_ANY:
        return emit(c, RE2_I_ANY, next, 0);
    case RE2_CAPTURE:
        return compile_capture(c, node, next);
    case RE2_REPEAT:
        return compile_repeat(c, node, next);
    case RE2_CONCAT:
        return compile_concat(c, node->first, next);
    case RE2_ALTERNATE:
        return compile_alternate(c, node->first, next);
    default:
        return emit(c, RE2_I_ASSERT, next, (uint32_t)node->op);
    }
}

static bool build(struct compiler *c, const struct re2 *re, struct err *err)
{
    struct re2_program *p = c->program;
    p->classes = arena_array(c->arena, re->n_classes, sizeof(*p->classes));
    if (p->classes == NULL) {
        return err_memory(err);
    }
    p->n_classes = re->n_classes;
    p->n_slots = 2 * (re->n_groups - 1);
    if (!make_classes(c, re->root, err)) {
        return false;
    }
    p->start = compile(c, re->root, emit(c, RE2_I_MATCH, 0, 0));
    if (c->failure == ERR_MEMORY) {
        return err_memory(err);
    }
    if (c->failure == ERR_LIMIT || c->n_threads * p->n_slots > RE2_PROGRAM_SLOTS_MAX) {
        return err_set(err, ERR_LIMIT,
                       "the regex is too large: at most %d steps with repetitions written out, and "
                       "%d when multiplied by the capture groups, are allowed",
                       RE2_PROGRAM_MAX, RE2_PROGRAM_SLOTS_MAX / 2);
    }
    return true;
}

struct re2_program *re2_program_new(const struct re2 *re, struct arena *arena, struct err *err)
{
    struct re2_program *p = calloc(1, sizeof(*p));
    struct compiler c = {.program = p, .arena = arena};
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    return build(&c, re, err) ? p : re2_program_free(p);
}

struct re2_program *re2_program_free(struct re2_program *p)
{
    if (p != NULL) {
        for (size_t i = 0; i < p->n_classes; i++) {
            pcre2_code_free(p->classes[i].properties);
        }
        free(p->at);
        free(p);
    }
    return NULL;
}
