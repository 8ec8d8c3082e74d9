#include "relabel/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/arena.h"
#include "relabel/re2/re2.h"
#include "relabel/regex_fast.h"
#include "relabel/relabel.h"

/* Go allows 1,000 levels; what we emit has up to three parentheses for one of them. */
#define NEST_LIMIT (4 * RE2_HEIGHT_MAX)
#define JIT_STACK_MIN ((size_t)32 * 1024)
/* Texts that outlive the tree: the pattern itself, once more as literals, and their tables. */
#define KEPT_MAX ((size_t)1024 * 1024)

struct regex {
    struct arena *arena;
    const struct sv *names;
    size_t n_groups;
    struct regex_fast fast;
    pcre2_code *code; /* NULL if fast */
};

struct regex_scratch {
    struct regex_span *groups;
    size_t cap;
    pcre2_match_data *match; /* for as many groups */
    pcre2_match_context *limits;
    pcre2_jit_stack *jit_stack;
};

/* ---- compiling ------------------------------------------------------------------------------- */

static bool fail_pcre2(int code, struct err *err)
{
    if (code == PCRE2_ERROR_UNKNOWN_UNICODE_PROPERTY) {
        return err_set(err, ERR_INPUT,
                       "the PCRE2 library of this system does not know that Unicode class");
    }
    /* PCRE2's words for it name constructs that we never emit. */
    if (code == PCRE2_ERROR_QUERY_BARJX_NEST_TOO_DEEP) {
        return err_set(err, ERR_LIMIT, "valid, but nested too deeply for PCRE2");
    }
    PCRE2_UCHAR text[256] = "";
    pcre2_get_error_message(code, text, sizeof(text));
    return err_set(err, code == PCRE2_ERROR_PATTERN_TOO_LARGE ? ERR_LIMIT : ERR_INPUT,
                   "valid, but PCRE2 cannot run it: %s", (const char *)text);
}

static bool compile_text(struct regex *re, const struct buf *text, struct err *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        return err_memory(err);
    }
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    uint32_t options = PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
                       PCRE2_NEVER_UCP | PCRE2_ANCHORED;
    int code = 0;
    size_t offset = 0;
    re->code = pcre2_compile((PCRE2_SPTR)text->data, text->len, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    return re->code != NULL || fail_pcre2(code, err);
}

static bool compile(struct regex *re, const struct re2 *tree, unsigned flags, struct err *err)
{
    struct buf text;
    buf_init(&text, REGEX_EMITTED_MAX);
    bool ok = re2_emit(tree, &text) ? compile_text(re, &text, err)
                                    : err_set(err, ERR_LIMIT, "the regex is too large");
    buf_done(&text);
    /* A system that forbids memory to be writable and executable leaves us the interpreter. */
    if (ok && (flags & REGEX_NO_JIT) == 0) {
        pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
    }
    return ok;
}

/* Group names point into the pattern, which is our own copy. */
static bool keep_names(struct regex *re, const struct re2 *tree, struct err *err)
{
    struct sv *names = arena_array(re->arena, tree->n_groups, sizeof(*names));
    if (names == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < tree->n_groups; i++) {
        names[i] = tree->names[i];
    }
    re->names = names;
    re->n_groups = tree->n_groups;
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
    if (tree == NULL || !keep_names(re, tree, err)) {
        return false;
    }
    if ((flags & REGEX_NO_FAST) == 0) {
        re->fast = regex_fast_new(tree, re->arena);
    }
    return re->fast.kind != REGEX_FAST_NONE || compile(re, tree, flags, err);
}

struct regex *regex_new(struct sv pattern, unsigned flags, struct err *err)
{
    if (pattern.n > RELABEL_REGEX_MAX) {
        err_set(err, ERR_LIMIT, "%zu bytes long, at most %d are allowed", pattern.n,
                RELABEL_REGEX_MAX);
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
    if (s->limits == NULL) {
        return regex_scratch_free(s);
    }
    pcre2_set_match_limit(s->limits, RELABEL_MATCH_LIMIT);
    pcre2_set_depth_limit(s->limits, REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit(s->limits, REGEX_HEAP_LIMIT_KIB);
    /* Without one (no JIT here, or no memory) 32 KiB of the thread's own stack must do. */
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
        free(s->groups);
        free(s);
    }
    return NULL;
}

/* Makes room for n groups, which is never 0. */
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

static enum regex_result fail_match(int code, struct sv subject, struct err *err)
{
    switch (code) {
    case PCRE2_ERROR_NOMEMORY:
        err_memory(err);
        break;
    case PCRE2_ERROR_MATCHLIMIT:
        err_set(err, ERR_LIMIT, "gave up after %d steps on a text of %zu bytes",
                RELABEL_MATCH_LIMIT, subject.n);
        break;
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
        err_set(err, ERR_LIMIT, "needs too much memory on a text of %zu bytes", subject.n);
        break;
    default: {
        PCRE2_UCHAR text[256] = "";
        pcre2_get_error_message(code, text, sizeof(text));
        err_set(err, ERR_LIMIT, "%s", (const char *)text);
    }
    }
    return REGEX_FAILED;
}

static int run(const struct regex *re, struct regex_scratch *s, struct sv subject, uint32_t options)
{
    return pcre2_match(re->code, (PCRE2_SPTR)subject.p, subject.n, 0, PCRE2_NO_UTF_CHECK | options,
                       s->match, s->limits);
}

enum regex_result regex_match(const struct regex *re, struct regex_scratch *s, struct sv subject,
                              struct err *err)
{
    if (!reserve(s, re->n_groups)) {
        return fail_match(PCRE2_ERROR_NOMEMORY, subject, err);
    }
    if (re->fast.kind != REGEX_FAST_NONE) {
        return regex_fast_match(&re->fast, subject, s->groups) ? REGEX_MATCH : REGEX_NO_MATCH;
    }
    int code = run(re, s, subject, 0);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) {
        code = run(re, s, subject, PCRE2_NO_JIT);
    }
    if (code == PCRE2_ERROR_NOMATCH) {
        return REGEX_NO_MATCH;
    }
    if (code <= 0) {
        return fail_match(code, subject, err);
    }
    const size_t *offsets = pcre2_get_ovector_pointer(s->match);
    for (size_t i = 0; i < re->n_groups; i++) {
        s->groups[i] = (struct regex_span){offsets[2 * i], offsets[2 * i + 1]};
    }
    return REGEX_MATCH;
}

struct regex_span regex_group(const struct regex_scratch *s, size_t group)
{
    return s->groups[group];
}

/* ---- names behind a $ ------------------------------------------------------------------------ */

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
