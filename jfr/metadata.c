#include "jfr/metadata.h"

#include <stdlib.h>
#include <string.h>

#define ROW(text)                                                                                  \
    {                                                                                              \
        .p = (text), .n = sizeof(text) - 1                                                         \
    }

static const struct sv names[ATOMS] = {
    [ATOM_CLASS] = ROW("class"),
    [ATOM_FIELD] = ROW("field"),
    [ATOM_ID] = ROW("id"),
    [ATOM_NAME] = ROW("name"),
    [ATOM_CONSTANT_POOL] = ROW("constantPool"),
    [ATOM_DIMENSION] = ROW("dimension"),
    [ATOM_BOOLEAN] = ROW("boolean"),
    [ATOM_BYTE] = ROW("byte"),
    [ATOM_CHAR] = ROW("char"),
    [ATOM_SHORT] = ROW("short"),
    [ATOM_INT] = ROW("int"),
    [ATOM_LONG] = ROW("long"),
    [ATOM_FLOAT] = ROW("float"),
    [ATOM_DOUBLE] = ROW("double"),
    [ATOM_STRING] = ROW("java.lang.String"),
    [ATOM_STACK_TRACE] = ROW("jdk.types.StackTrace"),
    [ATOM_STACK_FRAME] = ROW("jdk.types.StackFrame"),
    [ATOM_METHOD] = ROW("jdk.types.Method"),
    [ATOM_JAVA_CLASS] = ROW("java.lang.Class"),
    [ATOM_SYMBOL] = ROW("jdk.types.Symbol"),
    [ATOM_THREAD_STATE] = ROW("jdk.types.ThreadState"),
    [ATOM_CHUNK_HEADER] = ROW("jdk.types.ChunkHeader"),
    [ATOM_EXECUTION_SAMPLE] = ROW("jdk.ExecutionSample"),
    [ATOM_WALL_CLOCK_SAMPLE] = ROW("profiler.WallClockSample"),
    [ATOM_CPU_TIME_SAMPLE] = ROW("jdk.CPUTimeSample"),
    [ATOM_IN_NEW_TLAB] = ROW("jdk.ObjectAllocationInNewTLAB"),
    [ATOM_OUTSIDE_TLAB] = ROW("jdk.ObjectAllocationOutsideTLAB"),
    [ATOM_ALLOCATION_SAMPLE] = ROW("jdk.ObjectAllocationSample"),
    [ATOM_MONITOR_ENTER] = ROW("jdk.JavaMonitorEnter"),
    [ATOM_THREAD_PARK] = ROW("jdk.ThreadPark"),
    [ATOM_LIVE_OBJECT] = ROW("profiler.LiveObject"),
    [ATOM_MALLOC] = ROW("profiler.Malloc"),
    [ATOM_ACTIVE_SETTING] = ROW("jdk.ActiveSetting"),
    [ATOM_STACK_TRACE_FIELD] = ROW("stackTrace"),
    [ATOM_STATE] = ROW("state"),
    [ATOM_CONTEXT_ID] = ROW("contextId"),
    [ATOM_SPAN_ID] = ROW("spanId"),
    [ATOM_SPAN_NAME] = ROW("spanName"),
    [ATOM_SAMPLES] = ROW("samples"),
    [ATOM_SAMPLING_PERIOD] = ROW("samplingPeriod"),
    [ATOM_FAILED] = ROW("failed"),
    [ATOM_TLAB_SIZE] = ROW("tlabSize"),
    [ATOM_ALLOCATION_SIZE] = ROW("allocationSize"),
    [ATOM_WEIGHT] = ROW("weight"),
    [ATOM_DURATION] = ROW("duration"),
    [ATOM_SIZE] = ROW("size"),
    [ATOM_VALUE] = ROW("value"),
    [ATOM_TRUNCATED] = ROW("truncated"),
    [ATOM_FRAMES] = ROW("frames"),
    [ATOM_METHOD_FIELD] = ROW("method"),
    [ATOM_LINE_NUMBER] = ROW("lineNumber"),
    [ATOM_TYPE] = ROW("type"),
    [ATOM_STRING_FIELD] = ROW("string"),
};

/* The deepest nesting of elements; the JDK's metadata has 5 levels. */
#define ELEMENTS_DEPTH_MAX 32
/* The deepest nesting of classes; the JDK's have 3 levels. This limit stops at a class that
 * contains itself. */
#define CLASSES_DEPTH_MAX 16
/* The most fields that are compiled in a chunk, inlined ones included; the JDK has some 300. */
#define VISITS_MAX 100000
/* The most reads of one program. */
#define OPS_MAX 4096

/* ---- memory ---------------------------------------------------------------------------------- */

void jfr_metadata_init(struct jfr_metadata *m, uint64_t seed, struct budget *budget)
{
    *m = (struct jfr_metadata){.seed = seed, .budget = budget};
}

void jfr_metadata_done(struct jfr_metadata *m)
{
    free(m->strings);
    free(m->atoms);
    free(m->classes);
    free(m->fields);
    free(m->ops);
    free(m->programs);
    free(m->slots);
    *m = (struct jfr_metadata){.seed = m->seed, .budget = m->budget};
}

/* Makes room for one more element of a growing array of the metadata. */
#define GROW(m, array, n, cap, err)                                                                \
    grow((m), (void **)&(array), (n) + 1, &(cap), sizeof(*(array)), err)

static bool grow(struct jfr_metadata *m, void **array, size_t n, size_t *cap, size_t size,
                 struct err *err)
{
    void *p = budget_grow(m->budget, *array, cap, n, size, err);
    *array = p != NULL ? p : *array;
    return p != NULL;
}

/* ---- places ---------------------------------------------------------------------------------- */

struct jfr_cursor jfr_cursor_at(const struct jfr_metadata *m, uint64_t offset)
{
    const unsigned char *start = (const unsigned char *)m->chunk.p;
    return (struct jfr_cursor){.p = start + offset, .end = start + m->chunk.n, .fixed = m->fixed};
}

bool jfr_damage(const struct jfr_metadata *m, const unsigned char *at, const char *problem,
                struct err *err)
{
    return err_set(err, ERR_INPUT, "at offset %zu: %s",
                   (size_t)(at - (const unsigned char *)m->chunk.p), problem);
}

/* ---- strings --------------------------------------------------------------------------------- */

static struct jfr_string string_at(const struct jfr_metadata *m, uint64_t i)
{
    struct jfr_string s = {.encoding = JFR_STRING_NULL, .content = {"", 0}};
    if (i < m->n_strings) {
        struct jfr_cursor c = jfr_cursor_at(m, m->strings[i]);
        jfr_string(&c, &s);
    }
    return s;
}

static enum jfr_atom atom_at(const struct jfr_metadata *m, uint64_t i)
{
    return i < m->n_strings ? (enum jfr_atom)m->atoms[i] : ATOM_OTHER;
}

static enum jfr_atom find_atom(const struct jfr_string *s)
{
    /* Names are ASCII, so a character has one byte, or two if units are not compressed. */
    size_t n = s->fixed && s->encoding == JFR_STRING_UTF16 ? s->content.n / 2 : s->content.n;
    for (size_t i = 1; i < ATOMS; i++) {
        if (names[i].n == n && jfr_string_is(s, names[i])) {
            return (enum jfr_atom)i;
        }
    }
    return ATOM_OTHER;
}

/* Reads a decimal number. Returns 0 for any other text. */
static uint64_t number_of(const struct jfr_metadata *m, uint64_t i)
{
    struct jfr_string s = string_at(m, i);
    char text[24];
    uint64_t value = 0;
    size_t n = jfr_string_ascii(&s, text, sizeof(text));
    return parse_u64((struct sv){text, n}, UINT64_MAX, &value) ? value : 0;
}

static bool read_strings(struct jfr_metadata *m, struct jfr_cursor *c, struct err *err)
{
    uint64_t n = jfr_number(c, JFR_INT);
    if (n > jfr_left(c)) {
        jfr_fail(c, "more strings than bytes");
    }
    for (m->n_strings = 0; m->n_strings < n && c->problem == NULL; m->n_strings++) {
        struct jfr_string s;
        if (!GROW(m, m->strings, m->n_strings, m->strings_cap, err) ||
            !GROW(m, m->atoms, m->n_strings, m->atoms_cap, err)) {
            return false;
        }
        m->strings[m->n_strings] = (uint32_t)((const char *)c->p - m->chunk.p);
        jfr_string(c, &s);
        m->atoms[m->n_strings] = (uint8_t)find_atom(&s);
    }
    return true;
}

void jfr_class_name(const struct jfr_metadata *m, const struct jfr_class *class, struct buf *out)
{
    struct jfr_string s = string_at(m, class->name);
    jfr_string_put(&s, out);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* The attributes of an element that have a meaning here. */
struct attributes {
    uint64_t id;
    uint64_t class_id;
    uint64_t name;
    bool constant;
    bool array;
};

static void read_attribute(const struct jfr_metadata *m, struct jfr_cursor *c, struct attributes *a)
{
    enum jfr_atom key = atom_at(m, jfr_number(c, JFR_INT));
    uint64_t value = jfr_number(c, JFR_INT);
    if (key == ATOM_ID) {
        a->id = number_of(m, value);
    } else if (key == ATOM_CLASS) {
        a->class_id = number_of(m, value);
    } else if (key == ATOM_NAME) {
        a->name = value;
    } else if (key == ATOM_CONSTANT_POOL) {
        struct jfr_string s = string_at(m, value);
        a->constant = jfr_string_is(&s, SV("true"));
    } else if (key == ATOM_DIMENSION) {
        a->array = number_of(m, value) > 0;
    }
}

static bool add_class(struct jfr_metadata *m, const struct attributes *a, struct err *err)
{
    if (!GROW(m, m->classes, m->n_classes, m->classes_cap, err)) {
        return false;
    }
    m->classes[m->n_classes++] = (struct jfr_class){
        .id = a->id,
        .name = a->name < m->n_strings ? (uint32_t)a->name : JFR_NONE,
        .first_field = (uint32_t)m->n_fields,
        .program = JFR_NONE,
        .event_program = JFR_NONE,
        .atom = (uint8_t)atom_at(m, a->name),
    };
    return true;
}

static bool add_field(struct jfr_metadata *m, const struct attributes *a, struct err *err)
{
    if (!GROW(m, m->fields, m->n_fields, m->fields_cap, err)) {
        return false;
    }
    m->fields[m->n_fields++] = (struct jfr_field){
        .class_id = a->class_id,
        .name = (uint8_t)atom_at(m, a->name),
        .constant = a->constant,
        .array = a->array,
    };
    m->classes[m->n_classes - 1].n_fields++;
    return true;
}

/* An element whose children are being read. */
struct level {
    uint64_t children; /* left */
    bool is_class;     /* the last one of the list */
};

/* Reads one element of a parent (NULL: the root). */
static bool read_element(struct jfr_metadata *m, struct jfr_cursor *c, const struct level *parent,
                         struct level *ret, struct err *err)
{
    enum jfr_atom name = atom_at(m, jfr_number(c, JFR_INT));
    uint64_t n = jfr_number(c, JFR_INT);
    struct attributes a = {.name = UINT64_MAX};
    for (; n > 0 && c->problem == NULL; n--) {
        read_attribute(m, c, &a);
    }
    *ret = (struct level){.children = jfr_number(c, JFR_INT), .is_class = name == ATOM_CLASS};
    if (ret->children > jfr_left(c)) {
        jfr_fail(c, "more elements than bytes");
    }
    if (name == ATOM_CLASS) {
        return add_class(m, &a, err);
    }
    return name != ATOM_FIELD || parent == NULL || !parent->is_class || add_field(m, &a, err);
}

static bool read_elements(struct jfr_metadata *m, struct jfr_cursor *c, struct err *err)
{
    struct level levels[ELEMENTS_DEPTH_MAX];
    size_t depth = 1;
    if (!read_element(m, c, NULL, &levels[0], err)) {
        return false;
    }
    while (depth > 0 && c->problem == NULL) {
        struct level *parent = &levels[depth - 1];
        if (parent->children == 0) {
            depth--;
        } else if (depth == ELEMENTS_DEPTH_MAX) {
            jfr_fail(c, "elements that are nested too deeply");
        } else {
            parent->children--;
            if (!read_element(m, c, parent, &levels[depth], err)) {
                return false;
            }
            /* Fields that follow a class within a class belong to neither of the two. */
            parent->is_class = parent->is_class && !levels[depth].is_class;
            depth++;
        }
    }
    return true;
}

/* ---- classes by id --------------------------------------------------------------------------- */

static size_t slot_of(const struct jfr_metadata *m, uint64_t id)
{
    size_t i = jfr_hash(id, m->seed) & (m->n_slots - 1);
    while (m->slots[i] != 0 && m->classes[m->slots[i] - 1].id != id) {
        i = (i + 1) & (m->n_slots - 1);
    }
    return i;
}

static bool index_classes(struct jfr_metadata *m, struct err *err)
{
    for (m->n_slots = 16; m->n_slots < 2 * m->n_classes;) {
        m->n_slots *= 2;
    }
    if (!grow(m, (void **)&m->slots, m->n_slots, &m->slots_cap, sizeof(*m->slots), err)) {
        return false;
    }
    memset(m->slots, 0, m->n_slots * sizeof(*m->slots));
    for (size_t i = 0; i < m->n_classes; i++) {
        size_t slot = slot_of(m, m->classes[i].id);
        m->slots[slot] = m->slots[slot] == 0 ? (uint32_t)(i + 1) : m->slots[slot];
    }
    return true;
}

struct jfr_class *jfr_class_by_id(const struct jfr_metadata *m, uint64_t id)
{
    uint32_t i = m->n_slots == 0 ? 0 : m->slots[slot_of(m, id)];
    return i == 0 ? NULL : &m->classes[i - 1];
}

struct jfr_class *jfr_class_by_atom(const struct jfr_metadata *m, enum jfr_atom atom)
{
    for (size_t i = 0; i < m->n_classes; i++) {
        if (m->classes[i].atom == atom) {
            return &m->classes[i];
        }
    }
    return NULL;
}

bool jfr_metadata_read(struct jfr_metadata *m, struct sv chunk, bool fixed, uint64_t offset,
                       struct err *err)
{
    m->chunk = chunk;
    m->fixed = fixed;
    m->n_strings = m->n_classes = m->n_fields = m->n_ops = m->n_programs = m->n_slots = 0;
    m->visits = 0;
    struct jfr_cursor c = jfr_cursor_at(m, offset);
    const unsigned char *start = c.p;
    uint64_t size = jfr_number(&c, JFR_INT);
    uint64_t type = jfr_number(&c, JFR_LONG);
    if (type != 0 || size > (uint64_t)(c.end - start)) {
        return jfr_damage(m, start, "expected the metadata, an event of type 0", err);
    }
    c.end = start + size;
    c.p = c.p < c.end ? c.p : c.end;
    jfr_skip_numbers(&c, 3, JFR_LONG); /* start, duration, id of the metadata */
    if (!read_strings(m, &c, err) || !read_elements(m, &c, err) || !index_classes(m, err)) {
        return false;
    }
    return c.problem == NULL || (jfr_damage(m, start, c.problem, err), err_wrap(err, "metadata"));
}

/* ---- programs -------------------------------------------------------------------------------- */

/* A program that is being made. */
struct compiler {
    struct jfr_metadata *m;
    const enum jfr_atom *wanted;
    size_t n_wanted;
    /* ops of this program only; programs of its arrays are made in between */
    struct jfr_op *ops;
    size_t n_ops;
    size_t ops_cap;
    uint64_t min_size;
    bool failed; /* out of memory: err is set */
    struct err *err;
};

/* Finds the read of a class of values. Returns false for other classes. */
static bool value_op(enum jfr_atom atom, struct jfr_op *ret)
{
    static const struct jfr_op ops[ATOMS] = {
        [ATOM_BOOLEAN] = {.kind = JFR_OP_RAW, .width = 1, .n = 1},
        [ATOM_BYTE] = {.kind = JFR_OP_RAW, .width = 1, .n = 1},
        [ATOM_FLOAT] = {.kind = JFR_OP_RAW, .width = 4, .n = 1},
        [ATOM_DOUBLE] = {.kind = JFR_OP_RAW, .width = 8, .n = 1},
        [ATOM_CHAR] = {.kind = JFR_OP_NUMBERS, .width = JFR_SHORT, .n = 1},
        [ATOM_SHORT] = {.kind = JFR_OP_NUMBERS, .width = JFR_SHORT, .n = 1},
        [ATOM_INT] = {.kind = JFR_OP_NUMBERS, .width = JFR_INT, .n = 1},
        [ATOM_LONG] = {.kind = JFR_OP_NUMBERS, .width = JFR_LONG, .n = 1},
        [ATOM_STRING] = {.kind = JFR_OP_STRING, .width = 1, .n = 1},
    };
    *ret = ops[atom];
    return ret->n == 1;
}

static void emit(struct compiler *k, struct jfr_op op)
{
    struct jfr_op *last = k->n_ops > 0 ? &k->ops[k->n_ops - 1] : NULL;
    k->min_size += op.kind == JFR_OP_RAW ? op.width : op.kind == JFR_OP_BAD ? 0 : 1;
    if (op.kind == JFR_OP_NUMBERS && op.slot == JFR_SLOTS_MAX && last != NULL &&
        last->kind == JFR_OP_NUMBERS && last->slot == JFR_SLOTS_MAX &&
        (last->width == op.width || !k->m->fixed)) {
        last->n++;
        return;
    }
    if (k->n_ops == OPS_MAX) {
        k->ops[OPS_MAX - 1] = (struct jfr_op){.kind = JFR_OP_BAD};
        return;
    }
    if (!grow(k->m, (void **)&k->ops, k->n_ops + 1, &k->ops_cap, sizeof(*k->ops), k->err)) {
        k->failed = true;
        return;
    }
    k->ops[k->n_ops++] = op;
}

static void compile_class(struct compiler *k, const struct jfr_class *class, unsigned depth);
static uint32_t compile(struct jfr_metadata *m, const struct jfr_class *class,
                        const enum jfr_atom *wanted, size_t n_wanted, unsigned depth,
                        struct err *err);

static uint32_t compile_element(struct compiler *k, struct jfr_class *class, unsigned depth)
{
    if (class->program == JFR_NONE) {
        size_t i = (size_t)(class - k->m->classes);
        uint32_t program = compile(k->m, class, NULL, 0, depth, k->err);
        k->failed = k->failed || program == JFR_NONE;
        k->m->classes[i].program = program;
    }
    return class->program;
}

static uint8_t slot_for(const struct compiler *k, const struct jfr_field *f, unsigned depth)
{
    for (size_t i = 0; depth == 0 && f->name != ATOM_OTHER && i < k->n_wanted; i++) {
        if (k->wanted[i] == (enum jfr_atom)f->name) {
            return (uint8_t)i;
        }
    }
    return JFR_SLOTS_MAX;
}

static void compile_field(struct compiler *k, const struct jfr_field *f, unsigned depth)
{
    struct jfr_class *class = jfr_class_by_id(k->m, f->class_id);
    uint8_t slot = slot_for(k, f, depth);
    struct jfr_op op = {.kind = JFR_OP_BAD};
    if (class == NULL || depth >= CLASSES_DEPTH_MAX || ++k->m->visits > VISITS_MAX) {
        emit(k, op);
    } else if (f->array && f->constant) {
        /* Elements of an array of indexes are read as numbers. */
        emit(k, (struct jfr_op){
                    .kind = JFR_OP_ARRAY, .width = 1, .slot = JFR_SLOTS_MAX, .n = JFR_NONE});
    } else if (f->array) {
        uint32_t program = compile_element(k, class, depth + 1);
        emit(k, (struct jfr_op){.kind = JFR_OP_ARRAY, .width = 0, .slot = slot, .n = program});
    } else if (f->constant) {
        emit(k, (struct jfr_op){.kind = JFR_OP_NUMBERS,
                                .width = JFR_LONG,
                                .slot = slot,
                                .atom = class->atom,
                                .n = 1});
    } else if (value_op((enum jfr_atom) class->atom, &op)) {
        op.slot = slot;
        emit(k, op);
    } else {
        compile_class(k, class, depth + 1);
    }
}

static void compile_class(struct compiler *k, const struct jfr_class *class, unsigned depth)
{
    struct jfr_op op;
    if (value_op((enum jfr_atom) class->atom, &op)) {
        /* The constant is a value itself; its only slot is 0. */
        op.slot = depth == 0 && k->n_wanted > 0 ? 0 : JFR_SLOTS_MAX;
        emit(k, op);
        return;
    }
    for (uint32_t i = 0; i < class->n_fields && !k->failed; i++) {
        compile_field(k, &k->m->fields[class->first_field + i], depth);
    }
}

/* Compiles a class. depth: the nesting of the class in the one that was asked for. */
static uint32_t compile(struct jfr_metadata *m, const struct jfr_class *class,
                        const enum jfr_atom *wanted, size_t n_wanted, unsigned depth,
                        struct err *err)
{
    struct compiler k = {.m = m, .wanted = wanted, .n_wanted = n_wanted, .err = err};
    uint32_t made = JFR_NONE;
    compile_class(&k, class, depth);
    if (!k.failed &&
        grow(m, (void **)&m->ops, m->n_ops + k.n_ops + 1, &m->ops_cap, sizeof(*m->ops), err) &&
        GROW(m, m->programs, m->n_programs, m->programs_cap, err)) {
        if (k.n_ops > 0) {
            memcpy(m->ops + m->n_ops, k.ops, k.n_ops * sizeof(*k.ops));
        }
        made = (uint32_t)m->n_programs;
        m->programs[m->n_programs++] = (struct jfr_program){
            .first = (uint32_t)m->n_ops,
            .n = (uint32_t)k.n_ops,
            .min_size = k.min_size < UINT32_MAX ? (uint32_t)k.min_size : UINT32_MAX,
        };
        m->n_ops += k.n_ops;
    }
    free(k.ops);
    m->budget->used -= k.ops_cap * sizeof(*k.ops);
    return made;
}

uint32_t jfr_compile(struct jfr_metadata *m, struct jfr_class *class, const enum jfr_atom *wanted,
                     size_t n_wanted, struct err *err)
{
    return compile(m, class, wanted, n_wanted, 0, err);
}

uint32_t jfr_compile_skip(struct jfr_metadata *m, struct jfr_class *class, struct err *err)
{
    if (class->program == JFR_NONE) {
        class->program = compile(m, class, NULL, 0, 0, err);
    }
    return class->program;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Skips n elements. Each takes at least one byte, so the end of the chunk ends the loop. */
static void skip_each(const struct jfr_metadata *m, uint32_t program, uint64_t n,
                      struct jfr_cursor *c)
{
    const struct jfr_program *p = &m->programs[program];
    const struct jfr_op *op = &m->ops[p->first];
    if (p->n == 1 && op->kind == JFR_OP_NUMBERS) {
        jfr_skip_numbers(c, n * op->n, (enum jfr_width)op->width);
        return;
    }
    for (; n > 0 && c->problem == NULL; n--) {
        jfr_run(m, program, c, NULL);
    }
}

static void skip_elements(const struct jfr_metadata *m, const struct jfr_op *array, uint64_t n,
                          struct jfr_cursor *c)
{
    if (array->n == JFR_NONE) {
        jfr_skip_numbers(c, n, JFR_LONG);
        return;
    }
    const struct jfr_program *p = &m->programs[array->n];
    const struct jfr_op *op = &m->ops[p->first];
    if (p->n == 1 && op->kind == JFR_OP_RAW) {
        jfr_skip(c, n > jfr_left(c) ? UINT64_MAX : n * op->width);
    } else if (n > 0 && p->min_size == 0) {
        jfr_fail(c, "an array of elements without bytes");
    } else if (n > 0 && n > jfr_left(c) / p->min_size) {
        jfr_fail(c, "more elements than bytes");
    } else {
        skip_each(m, array->n, n, c);
    }
}

/* Reads a value and ignores it. */
static inline void skip_op(const struct jfr_metadata *m, const struct jfr_op *op,
                           struct jfr_cursor *c)
{
    struct jfr_string text;
    switch (op->kind) {
    case JFR_OP_RAW:
        jfr_skip(c, op->width);
        break;
    case JFR_OP_NUMBERS:
        jfr_skip_numbers(c, op->n, (enum jfr_width)op->width);
        break;
    case JFR_OP_STRING:
        jfr_string(c, &text);
        break;
    case JFR_OP_ARRAY:
        skip_elements(m, op, jfr_number(c, JFR_INT), c);
        break;
    default:
        jfr_fail(c, "a value of a class that is not defined, or contains itself");
    }
}

static void read_op(const struct jfr_metadata *m, const struct jfr_op *op, struct jfr_cursor *c,
                    struct jfr_value *ret)
{
    *ret = (struct jfr_value){.at = c->p, .atom = op->atom};
    switch (op->kind) {
    case JFR_OP_RAW:
        ret->number = jfr_raw(c, op->width);
        break;
    case JFR_OP_NUMBERS: /* one number: reads that have a slot are not joined */
        ret->number = jfr_number(c, (enum jfr_width)op->width);
        break;
    case JFR_OP_ARRAY:
        ret->number = jfr_number(c, JFR_INT);
        ret->at = c->p;
        skip_elements(m, op, ret->number, c);
        break;
    default:
        ret->is_text = op->kind == JFR_OP_STRING;
        skip_op(m, op, c);
    }
}

void jfr_run(const struct jfr_metadata *m, uint32_t program, struct jfr_cursor *c,
             struct jfr_value *values)
{
    const struct jfr_program *p = &m->programs[program];
    const struct jfr_op *op = &m->ops[p->first];
    for (uint32_t i = 0; i < p->n && c->problem == NULL; i++, op++) {
        if (values != NULL && op->slot < JFR_SLOTS_MAX) {
            read_op(m, op, c, &values[op->slot]);
        } else {
            skip_op(m, op, c);
        }
    }
}
