/* Compiling and matching a regex: see regex.h. */
#include "regex/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "regex/re2/program.h"
#include "regex/re2/re2.h"
#include "regex/regex_fast.h"

/* PCRE2's limit of nested parentheses. Go allows 1,000 levels, and the pattern for PCRE2 has up to
 * three parentheses for each. */
#define NEST_LIMIT (4 * RE2_HEIGHT_MAX)
#define JIT_STACK_MIN ((size_t)32 * 1024)
/* The limit of the memory that outlives the tree: the pattern, its literals and classes, and their
 * tables. */
#define KEPT_MAX ((size_t)16 * 1024 * 1024)

struct regex {
    struct arena *arena;
    struct sv *names;
    size_t n_groups;
    struct regex_fast fast;
    struct re2_program *program; /* NULL if fast */
    pcre2_code *code;            /* NULL if fast, or if only the program will do */
};

struct regex_scratch {
    struct regex_span *groups;
    size_t cap;
    pcre2_match_data *match; /* for as many groups */
    pcre2_match_context *limits;
    pcre2_jit_stack *jit_stack;
    struct re2_scratch *linear;
};

/* ---- compiling ------------------------------------------------------------------------------- */

/* Compiles the pattern with PCRE2. If PCRE2 finds it too large or nested too deeply, only the
 * linear program runs. */
static void compile_pcre2(struct regex *re, const struct buf *text, bool jit)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        return;
    }
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    uint32_t options = PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
                       PCRE2_NEVER_UCP | PCRE2_ANCHORED;
    int code = 0;
    size_t offset = 0;
    re->code = pcre2_compile((PCRE2_SPTR)text->data, text->len, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    /* This fails where memory must not be both writable and executable (base/seccomp.h); then the
     * interpreter is used. */
    if (re->code != NULL && jit) {
        pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
    }
}

static bool compile(struct regex *re, const struct re2 *tree, unsigned flags, struct err *err)
{
    re->program = re2_program_new(tree, re->arena, err);
    if (re->program == NULL) {
        return false;
    }
    if ((flags & REGEX_NO_PCRE2) != 0 || tree->repeats_empty_captures) {
        return true;
    }
    struct buf text;
    buf_init(&text, REGEX_EMITTED_MAX);
    if (re2_emit(tree, &text)) {
        compile_pcre2(re, &text, (flags & REGEX_NO_JIT) == 0);
    }
    buf_done(&text);
    return true;
}

static bool build(struct regex *re, struct arena *arena, struct sv pattern, unsigned flags,
                  struct err *err)
{
    const char *copy = arena_strndup(re->arena, pattern.p, pattern.n);
    if (copy == NULL) {
        return err_memory(err);
    }
    const struct re2 *tree = re2_parse(arena, (struct sv){copy, pattern.n}, err);
    if (tree == NULL) {
        return false;
    }
    /* The names are views of the pattern, which is our own copy. */
    size_t size = tree->n_groups * sizeof(*tree->names);
    re->n_groups = tree->n_groups;
    re->names = arena_alloc(re->arena, size);
    if (re->names == NULL) {
        return err_memory(err);
    }
    memcpy(re->names, tree->names, size);
    if ((flags & REGEX_NO_FAST) == 0) {
        re->fast = regex_fast_new(tree, re->arena);
    }
    return re->fast.kind != REGEX_FAST_NONE || compile(re, tree, flags, err);
}

struct regex *regex_new(struct sv pattern, unsigned flags, struct err *err)
{
    if (pattern.n > REGEX_PATTERN_MAX) {
        err_set(err, ERR_LIMIT, "%zu bytes long, at most %d are allowed", pattern.n,
                REGEX_PATTERN_MAX);
        return NULL;
    }
    struct regex *re = calloc(1, sizeof(*re));
    struct arena *arena = arena_new(REGEX_TREE_MAX);
    if (re != NULL) {
        re->arena = arena_new(KEPT_MAX);
    }
    if (re == NULL || arena == NULL || re->arena == NULL) {
        err_memory(err);
        re = regex_free(re);
    } else if (!build(re, arena, pattern, flags, err)) {
        re = regex_free(re);
    }
    arena_free(arena);
    return re;
}

struct regex *regex_free(struct regex *re)
{
    if (re != NULL) {
        pcre2_code_free(re->code);
        re2_program_free(re->program);
        arena_free(re->arena);
        free(re);
    }
    return NULL;
}

size_t regex_groups(const struct regex *re)
{
    return re->n_groups;
}

struct sv regex_group_name(const struct regex *re, size_t group)
{
    return re->names[group];
}

bool regex_is_fast(const struct regex *re)
{
    return re->fast.kind != REGEX_FAST_NONE;
}

/* ---- matching -------------------------------------------------------------------------------- */

struct regex_scratch *regex_scratch_new(void)
{
    struct regex_scratch *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->limits = pcre2_match_context_create(NULL);
    s->linear = re2_scratch_new();
    if (s->limits == NULL || s->linear == NULL) {
        return regex_scratch_free(s);
    }
    pcre2_set_depth_limit(s->limits, REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit(s->limits, REGEX_HEAP_LIMIT_KIB);
    /* If there is no JIT stack (no JIT on this system, or out of memory), the JIT uses 32 KiB of
     * the thread's stack. */
    s->jit_stack = pcre2_jit_stack_create(JIT_STACK_MIN, REGEX_JIT_STACK_MAX, NULL);
    if (s->jit_stack != NULL) {
        pcre2_jit_stack_assign(s->limits, NULL, s->jit_stack);
    }
    return s;
}

struct regex_scratch *regex_scratch_free(struct regex_scratch *s)
{
    if (s != NULL) {
        pcre2_match_data_free(s->match);
        pcre2_match_context_free(s->limits);
        pcre2_jit_stack_free(s->jit_stack);
        re2_scratch_free(s->linear);
        free(s->groups);
        free(s);
    }
    return NULL;
}

/* Makes room for n groups; n is not 0. */
static bool reserve(struct regex_scratch *s, size_t n)
{
    if (n <= s->cap) {
        return true;
    }
    size_t cap = n < 16 ? 16 : n;
    struct regex_span *groups = realloc(s->groups, cap * sizeof(*groups));
    if (groups == NULL) {
        return false;
    }
    s->groups = groups;
    pcre2_match_data *match = pcre2_match_data_create((uint32_t)cap, NULL);
    if (match == NULL) {
        return false;
    }
    pcre2_match_data_free(s->match);
    s->match = match;
    s->cap = cap;
    return true;
}

/* Returns the limit of PCRE2's steps for a text. Each step may read the whole text, so a longer
 * text gets fewer. */
static uint32_t steps_for(struct sv subject)
{
    size_t steps = REGEX_WORK_MAX / (subject.n + 1);
    if (steps < REGEX_STEPS_MIN) {
        return REGEX_STEPS_MIN;
    }
    return steps > REGEX_STEPS_MAX ? REGEX_STEPS_MAX : (uint32_t)steps;
}

/* Returns false if PCRE2 reached a limit. */
static bool match_pcre2(const struct regex *re, struct regex_scratch *s, struct sv subject,
                        bool *ret_matches)
{
    pcre2_set_match_limit(s->limits, steps_for(subject));
    int code = pcre2_match(re->code, (PCRE2_SPTR)subject.p, subject.n, 0, PCRE2_NO_UTF_CHECK,
                           s->match, s->limits);
    *ret_matches = code > 0;
    const size_t *offsets = pcre2_get_ovector_pointer(s->match);
    for (size_t i = 0; i < re->n_groups && code > 0; i++) {
        s->groups[i] = (struct regex_span){offsets[2 * i], offsets[2 * i + 1]};
    }
    return code > 0 || code == PCRE2_ERROR_NOMATCH;
}

/* Returns false if out of memory. */
static bool match(const struct regex *re, struct regex_scratch *s, struct sv subject,
                  bool *ret_matches)
{
    if (!reserve(s, re->n_groups)) {
        return false;
    }
    if (re->fast.kind != REGEX_FAST_NONE) {
        *ret_matches = regex_fast_match(&re->fast, subject, s->groups);
        return true;
    }
    return (re->code != NULL && match_pcre2(re, s, subject, ret_matches)) ||
           re2_program_match(re->program, s->linear, subject, &s->groups[0].start, ret_matches);
}

enum regex_result regex_match(const struct regex *re, struct regex_scratch *s, struct sv subject,
                              struct err *err)
{
    bool matches;
    if (!match(re, s, subject, &matches)) {
        err_memory(err);
        return REGEX_FAILED;
    }
    return matches ? REGEX_MATCH : REGEX_NO_MATCH;
}

struct regex_span regex_group(const struct regex_scratch *s, size_t group)
{
    return s->groups[group];
}

/* ---- names after a $ ------------------------------------------------------------------------- */

size_t regex_word_length(struct sv v)
{
    int code = 0;
    size_t offset = 0;
    size_t length = 0;
    pcre2_code *word = pcre2_compile((PCRE2_SPTR) "[\\p{L}\\p{Nd}_]+", PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_ANCHORED, &code, &offset, NULL);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (word != NULL && match != NULL &&
        pcre2_match(word, (PCRE2_SPTR)v.p, v.n, 0, 0, match, NULL) > 0) {
        length = pcre2_get_ovector_pointer(match)[1];
    }
    pcre2_match_data_free(match);
    pcre2_code_free(word);
    return length;
}
