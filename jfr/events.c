/* Reads the events of a chunk. A table says what each type of event adds to which profile. */
#include <string.h>

#include "jfr/reader.h"

/* Slots for the fields of events that have a stack. */
enum {
    EVENT_STACK,
    EVENT_CONTEXT,
    EVENT_SPAN,
    EVENT_SPAN_NAME,
    EVENT_VALUE,
    EVENT_STATE,
    EVENT_FAILED
};
/* Slots for the fields of a setting. */
enum { SETTING_ID, SETTING_NAME, SETTING_VALUE };

/* The notes of thread states, in the pool of thread states. */
enum { STATE_UNSEEN, STATE_UNKNOWN, STATE_SLEEPING, STATE_RUNNABLE, STATE_OTHER };

#define NS_PER_SECOND INT64_C(1000000000)

typedef bool (*event_handler)(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                              struct err *err);

static bool on_setting(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                       struct err *err);
static bool on_execution(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                         struct err *err);
static bool on_wall_clock(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                          struct err *err);
static bool on_cpu_time(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                        struct err *err);
static bool on_bytes(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                     struct err *err);
static bool on_delay(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                     struct err *err);

static const struct {
    enum jfr_atom class;
    event_handler handler;
    enum jfr_row row;
    enum jfr_atom value; /* its field with the value */
} events[] = {
    {ATOM_ACTIVE_SETTING, on_setting, 0, ATOM_OTHER},
    {ATOM_EXECUTION_SAMPLE, on_execution, JFR_ROW_CPU, ATOM_OTHER},
    {ATOM_WALL_CLOCK_SAMPLE, on_wall_clock, JFR_ROW_WALL, ATOM_SAMPLES},
    {ATOM_CPU_TIME_SAMPLE, on_cpu_time, JFR_ROW_CPU, ATOM_SAMPLING_PERIOD},
    {ATOM_IN_NEW_TLAB, on_bytes, JFR_ROW_IN_NEW_TLAB, ATOM_TLAB_SIZE},
    {ATOM_OUTSIDE_TLAB, on_bytes, JFR_ROW_OUTSIDE_TLAB, ATOM_ALLOCATION_SIZE},
    {ATOM_ALLOCATION_SAMPLE, on_bytes, JFR_ROW_ALLOCATION_SAMPLE, ATOM_WEIGHT},
    {ATOM_MONITOR_ENTER, on_delay, JFR_ROW_MUTEX, ATOM_DURATION},
    {ATOM_THREAD_PARK, on_delay, JFR_ROW_BLOCK, ATOM_DURATION},
    {ATOM_LIVE_OBJECT, on_bytes, JFR_ROW_LIVE, ATOM_OTHER},
    {ATOM_MALLOC, on_bytes, JFR_ROW_MALLOC, ATOM_SIZE},
};

/* ---- samples --------------------------------------------------------------------------------- */

/* Finds the number of the correlation of an event. Contexts without labels and span names without
 * text are left out, so that samples that look the same become one. */
static bool correlate(struct jfr_reader *r, const struct jfr_value *v, uint32_t *ret,
                      struct err *err)
{
    struct jfr_correlation c = {.context = v[EVENT_CONTEXT].number,
                                .span = v[EVENT_SPAN].number,
                                .span_name = v[EVENT_SPAN_NAME].number};
    if (c.context != 0 && !jfr_contexts_has(&r->contexts, (int64_t)c.context)) {
        c.context = 0;
    }
    if (c.span_name != 0 && jfr_contexts_string(&r->contexts, (int64_t)c.span_name).n == 0) {
        c.span_name = 0;
    }
    if ((c.context | c.span | c.span_name) == 0) {
        *ret = 0; /* the first entry: see jfr_reader_new() */
        return true;
    }
    return merge_table_add(&r->samples.correlations, &r->budget, &c, sizeof(c), sizeof(c), ret,
                           err);
}

/* Finds the sample of an event in a row. *ret is NULL if the event has no stack. */
static bool find_sample(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                        struct jfr_sample **ret, struct err *err)
{
    uint32_t stack;
    uint32_t correlation;
    bool truncated;
    *ret = NULL;
    enum jfr_stack_result found =
        v[EVENT_STACK].at == NULL
            ? JFR_STACK_MISSING
            : jfr_stack_find(r, v[EVENT_STACK].number, &stack, &truncated, err);
    if (found != JFR_STACK_FOUND) {
        r->facts.no_stack += found == JFR_STACK_MISSING;
        return found == JFR_STACK_MISSING;
    }
    if (!correlate(r, v, &correlation, err)) {
        return false;
    }
    *ret = jfr_samples_get(&r->samples, row, stack, correlation, err);
    r->facts.samples += *ret != NULL;
    r->facts.truncated += *ret != NULL && truncated;
    return *ret != NULL;
}

/* Counts n samples. Their period is known only at the end of the chunk. */
static bool count(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                  enum jfr_clock clock, uint64_t n, struct err *err)
{
    struct jfr_sample *x;
    if (!find_sample(r, v, row, &x, err)) {
        return false;
    }
    if (x != NULL && __builtin_add_overflow(x->pending[clock], n, &x->pending[clock])) {
        x->pending[clock] = UINT64_MAX;
    }
    return true;
}

/* ---- thread states --------------------------------------------------------------------------- */

/* Finds the note of a thread state. Returns false with err if out of memory. */
static bool find_state(struct jfr_reader *r, const struct jfr_value *state, uint32_t *ret,
                       struct err *err)
{
    size_t slot = jfr_pools_find(&r->pools, JFR_POOL_STATE, state->number);
    *ret = STATE_UNKNOWN;
    if (state->at == NULL || slot == SIZE_MAX) {
        return true;
    }
    uint32_t *note = &r->pools.pools[JFR_POOL_STATE].notes[slot];
    if (*note == STATE_UNSEEN) {
        struct jfr_value name[JFR_SLOTS_MAX];
        buf_clear(&r->symbol);
        jfr_pools_get(&r->pools, JFR_POOL_STATE, slot, name);
        jfr_pools_text(&r->pools, &name[JFR_TEXT], &r->symbol);
        if (!buf_ok(&r->symbol) && !buf_too_big(&r->symbol)) {
            return err_memory(err);
        }
        struct sv text = {r->symbol.data, r->symbol.len};
        *note = sv_eq(text, SV("STATE_SLEEPING"))   ? STATE_SLEEPING
                : sv_eq(text, SV("STATE_RUNNABLE")) ? STATE_RUNNABLE
                                                    : STATE_OTHER;
    }
    *ret = *note;
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool on_execution(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                         struct err *err)
{
    uint32_t state;
    if (!find_state(r, &v[EVENT_STATE], &state, err)) {
        return false;
    }
    bool running = state != STATE_UNKNOWN && state != STATE_SLEEPING;
    return (!running || count(r, v, row, JFR_CLOCK_EXECUTION, 1, err)) &&
           (!r->is_wall || count(r, v, JFR_ROW_WALL, JFR_CLOCK_EXECUTION, 1, err));
}

static bool on_wall_clock(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                          struct err *err)
{
    uint64_t n = v[EVENT_VALUE].number;
    uint32_t state;
    if (!find_state(r, &v[EVENT_STATE], &state, err)) {
        return false;
    }
    bool running = r->is_wall && state == STATE_RUNNABLE;
    return count(r, v, row, JFR_CLOCK_WALL, n, err) &&
           (!running || count(r, v, JFR_ROW_CPU, JFR_CLOCK_WALL, n, err));
}

/* Converts ticks to nanoseconds, rounded down as the JDK does. */
static int64_t ticks_to_ns(const struct jfr_reader *r, uint64_t ticks)
{
    __extension__ typedef __int128 wide;
    wide ns = (wide)(int64_t)ticks * NS_PER_SECOND / r->head.ticks_per_second;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

static bool on_cpu_time(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                        struct err *err)
{
    struct jfr_sample *x;
    if (v[EVENT_FAILED].number != 0) {
        r->facts.failed++;
        return true;
    }
    if (!find_sample(r, v, row, &x, err)) {
        return false;
    }
    if (x != NULL) {
        int64_t period = ticks_to_ns(r, v[EVENT_VALUE].number);
        jfr_samples_add(&r->samples, x, 0, period);
        r->samples.periods[row] = period;
    }
    return true;
}

static bool on_bytes(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                     struct err *err)
{
    struct jfr_sample *x;
    if (!find_sample(r, v, row, &x, err)) {
        return false;
    }
    if (x != NULL) {
        jfr_samples_add(&r->samples, x, 0, 1);
        jfr_samples_add(&r->samples, x, 1, (int64_t)v[EVENT_VALUE].number);
    }
    return true;
}

static bool on_delay(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                     struct err *err)
{
    struct jfr_sample *x;
    if (!find_sample(r, v, row, &x, err)) {
        return false;
    }
    if (x != NULL) {
        jfr_samples_add(&r->samples, x, 0, 1);
        jfr_samples_add(&r->samples, x, 1, ticks_to_ns(r, v[EVENT_VALUE].number));
    }
    return true;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* Reads a period in ns: "10 ms" from the JDK, or a number of nanoseconds from async-profiler.
 * Returns 0 for anything else. */
static int64_t read_period(struct sv text)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"", 1},
                 {"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", NS_PER_SECOND},
                 {"m", 60 * NS_PER_SECOND},
                 {"h", 3600 * NS_PER_SECOND}};
    uint64_t n;
    size_t digits = 0;
    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9') {
        digits++;
    }
    struct sv unit = sv_trim(sv_skip(text, digits));
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        int64_t ns;
        if (sv_eq_str(unit, units[i].unit)) {
            bool ok = parse_u64((struct sv){text.p, digits}, INT64_MAX, &n) &&
                      !__builtin_mul_overflow((int64_t)n, units[i].ns, &ns);
            return ok ? ns : 0;
        }
    }
    return 0;
}

/* Takes a setting of the events that are sampled by time. */
static void set_period(struct jfr_reader *r, enum jfr_atom class, struct sv name, int64_t ns)
{
    bool period = sv_eq(name, SV("period")) || sv_eq(name, SV("interval"));
    /* async-profiler has all settings of its samplers under this event. */
    bool wall = class == ATOM_EXECUTION_SAMPLE && sv_eq(name, SV("wall"));
    if (ns <= 0) {
        return;
    }
    if (class == ATOM_EXECUTION_SAMPLE && period) {
        r->periods[JFR_CLOCK_EXECUTION] = ns;
    } else if (wall || (class == ATOM_WALL_CLOCK_SAMPLE && period)) {
        r->periods[JFR_CLOCK_WALL] = ns;
    }
}

static bool on_setting(struct jfr_reader *r, const struct jfr_value *v, enum jfr_row row,
                       struct err *err)
{
    (void)row;
    const struct jfr_class *class = jfr_class_by_id(&r->metadata, v[SETTING_ID].number);
    buf_clear(&r->name);
    buf_clear(&r->symbol);
    jfr_pools_text(&r->pools, &v[SETTING_NAME], &r->name);
    jfr_pools_text(&r->pools, &v[SETTING_VALUE], &r->symbol);
    struct sv name = {r->name.data, r->name.len};
    struct sv value = {r->symbol.data, r->symbol.len};
    if (!buf_ok(&r->name) || !buf_ok(&r->symbol)) {
        return buf_too_big(&r->name) || buf_too_big(&r->symbol) || err_memory(err);
    }
    if (sv_eq(name, SV("event"))) {
        buf_clear(&r->event);
        buf_append(&r->event, value.p, value.n);
        r->is_wall = sv_eq(value, SV("wall"));
        return buf_ok(&r->event) || buf_too_big(&r->event) || err_memory(err);
    }
    if (class != NULL) {
        set_period(r, (enum jfr_atom) class->atom, name, read_period(value));
    }
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

bool jfr_events_prepare(struct jfr_reader *r, struct err *err)
{
    static const enum jfr_atom setting[] = {
        [SETTING_ID] = ATOM_ID, [SETTING_NAME] = ATOM_NAME, [SETTING_VALUE] = ATOM_VALUE};
    for (size_t i = 0; i < r->metadata.n_classes; i++) {
        for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++) {
            enum jfr_atom sample[] = {[EVENT_STACK] = ATOM_STACK_TRACE_FIELD,
                                      [EVENT_CONTEXT] = ATOM_CONTEXT_ID,
                                      [EVENT_SPAN] = ATOM_SPAN_ID,
                                      [EVENT_SPAN_NAME] = ATOM_SPAN_NAME,
                                      [EVENT_VALUE] = events[k].value,
                                      [EVENT_STATE] = ATOM_STATE,
                                      [EVENT_FAILED] = ATOM_FAILED};
            struct jfr_class *class = &r->metadata.classes[i];
            bool is_setting = events[k].class == ATOM_ACTIVE_SETTING;
            if ((enum jfr_atom) class->atom != events[k].class) {
                continue;
            }
            class->event_row = (uint8_t)k;
            class->event_program = jfr_compile(&r->metadata, class, is_setting ? setting : sample,
                                               is_setting ? 3 : EVENT_FAILED + 1, err);
            if (class->event_program == JFR_NONE) {
                return false;
            }
        }
    }
    return true;
}

/* Reads the head of an event. Returns the end of the event, or NULL if it is damaged. *ret_class:
 * Returns NULL if no profile uses the event. */
static const unsigned char *read_event(struct jfr_reader *r, struct jfr_cursor *c,
                                       struct jfr_class **ret_class)
{
    const unsigned char *start = c->p;
    *ret_class = NULL;
    uint64_t size = jfr_number(c, JFR_INT);
    uint64_t left = (uint64_t)(c->end - start);
    if (c->problem == NULL && (size == 0 || size > left)) {
        jfr_fail(c, size == 0 ? "an event of size 0" : "an event that runs past the chunk");
    }
    if (c->problem != NULL) {
        return NULL;
    }
    c->end = start + size;
    if (c->p > c->end) {
        jfr_fail(c, "an event that is smaller than its size");
        return NULL;
    }
    uint64_t type = jfr_number(c, JFR_LONG);
    if (type > 1 && c->problem == NULL) {
        r->facts.events++;
        *ret_class = jfr_class_by_id(&r->metadata, type);
    }
    if (*ret_class != NULL) {
        (*ret_class)->events++;
        (*ret_class)->bytes += size;
    }
    return c->problem == NULL ? start + size : NULL;
}

bool jfr_events_read(struct jfr_reader *r, struct sv chunk, struct err *err)
{
    struct jfr_cursor c = jfr_cursor_at(&r->metadata, JFR_HEAD_SIZE);
    const unsigned char *end = c.end;
    while (c.p < end) {
        struct jfr_value values[JFR_SLOTS_MAX];
        struct jfr_class *class;
        const unsigned char *start = c.p;
        const unsigned char *next = read_event(r, &c, &class);
        if (class != NULL && next != NULL && class->event_program != JFR_NONE) {
            memset(values, 0, sizeof(values));
            jfr_run(&r->metadata, class->event_program, &c, values);
            if (c.problem == NULL &&
                !events[class->event_row].handler(r, values, events[class->event_row].row, err)) {
                return false;
            }
        }
        if (c.problem != NULL || next == NULL) {
            return err_set(err, ERR_INPUT, "at offset %zu: %s",
                           (size_t)((const char *)start - chunk.p), c.problem);
        }
        c.p = next;
        c.end = end;
    }
    return true;
}
