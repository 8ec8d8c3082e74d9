#include "pprof/merge_adding.h"
#include "pprof/quick.h"

/* Sizes of mappings are compared in whole pages of so many bytes. */
#define PAGE_SIZE UINT64_C(0x1000)

/* ---- entries --------------------------------------------------------------------------------- */

/* Remembers the entry of a place of the profile. */
static bool note(struct adding *a, size_t field, size_t place, uint32_t entry, uint32_t *ret)
{
    a->numbers[field][place] = entry + 1;
    *ret = entry;
    return true;
}

/* Returns true, with its entry, if a place of the profile has one already. */
static bool is_known(const struct adding *a, size_t field, size_t place, uint32_t *ret)
{
    *ret = a->numbers[field][place] - 1;
    return a->numbers[field][place] != 0;
}

static struct sv message_of(const struct adding *a, size_t field, size_t place)
{
    return pprof_span_of(&a->x, a->x.entries[field].spans[place]);
}

bool merge_add_string(struct adding *a, uint64_t place, uint32_t *ret)
{
    uint32_t entry;
    if (is_known(a, PROFILE_STRING, place, ret)) {
        return true;
    }
    struct sv text = pprof_string(&a->x, place);
    return merge_table_add(&a->m->tables[MERGE_STRINGS], &a->m->budget, text.p, text.n, text.n,
                           &entry, a->err) &&
           note(a, PROFILE_STRING, place, entry, ret);
}

static uint64_t start_line_of(const struct adding *a, struct sv message)
{
    uint64_t v[FUNCTION_START_LINE + 1] = {0};
    struct rest r = rest_of(a->x.plain, message);
    for (unsigned field = FUNCTION_ID; field <= FUNCTION_START_LINE; field++) {
        v[FUNCTION_START_LINE] = take(&r, field);
    }
    if (!is_good_end(&r)) {
        v[FUNCTION_START_LINE] = 0;
        wire_read_numbers(message, v, FUNCTION_START_LINE + 1);
    }
    return v[FUNCTION_START_LINE];
}

static bool add_function(struct adding *a, size_t place, uint32_t *ret)
{
    const struct pprof_function *f = &a->x.functions[place];
    uint32_t words[FN_WORDS];
    uint32_t entry;
    if (is_known(a, PROFILE_FUNCTION, place, ret)) {
        return true;
    }
    merge_put_u64(words + FN_START_LINE, start_line_of(a, message_of(a, PROFILE_FUNCTION, place)));
    return merge_add_string(a, f->name, &words[FN_NAME]) &&
           merge_add_string(a, f->system_name, &words[FN_SYSTEM_NAME]) &&
           merge_add_string(a, f->file, &words[FN_FILE]) &&
           merge_add_words(a, MERGE_FUNCTIONS, words, FN_WORDS, FN_WORDS, &entry) &&
           note(a, PROFILE_FUNCTION, place, entry, ret);
}

bool merge_add_mapping(struct adding *a, size_t place, uint32_t *ret)
{
    enum { HAS_FIRST = 7, HAS_LAST = 10 }; /* the fields has_functions to has_inline_frames */
    uint64_t v[HAS_LAST + 1] = {0};
    uint32_t words[MAP_WORDS] = {0};
    uint32_t entry;
    size_t n;
    if (is_known(a, PROFILE_MAPPING, place, ret)) {
        return true;
    }
    wire_read_numbers(message_of(a, PROFILE_MAPPING, place), v, HAS_LAST + 1);
    uint64_t size = v[MAPPING_LIMIT] - v[MAPPING_START] + PAGE_SIZE - 1;
    merge_put_u64(words + MAP_SIZE, size - size % PAGE_SIZE);
    merge_put_u64(words + MAP_OFFSET, v[MAPPING_OFFSET]);
    merge_put_u64(words + MAP_START, v[MAPPING_START]);
    merge_put_u64(words + MAP_LIMIT, v[MAPPING_LIMIT]);
    for (unsigned i = HAS_FIRST; i <= HAS_LAST; i++) {
        words[MAP_FLAGS] |= (v[i] != 0 ? 1U : 0U) << (i - HAS_FIRST);
    }
    if (!merge_add_string(a, v[MAPPING_FILENAME], &words[MAP_FILE]) ||
        !merge_add_string(a, v[MAPPING_BUILD_ID], &words[MAP_BUILD_ID])) {
        return false;
    }
    merge_table_get(&a->m->tables[MERGE_STRINGS], words[MAP_BUILD_ID], &n);
    words[MAP_NAME] = n > 0 ? words[MAP_BUILD_ID] : words[MAP_FILE];
    return merge_add_words(a, MERGE_MAPPINGS, words, MAP_KEY_WORDS, MAP_WORDS, &entry) &&
           note(a, PROFILE_MAPPING, place, entry, ret);
}

/* ---- locations ------------------------------------------------------------------------------- */

enum { IS_FOLDED = 5 }; /* a field of a location */

/* Writes the mapping of a location and the offset of the address in it. */
static bool put_place(struct adding *a, const struct pprof_location *l, uint32_t *words)
{
    uint64_t address = l->address;
    size_t place;
    words[LOC_MAPPING] = MERGE_NONE;
    /* pprof_index_frame() has checked that the mapping exists. */
    if (pprof_ids_find(&a->x.entries[PROFILE_MAPPING].ids, l->mapping, &place)) {
        address -= a->x.mappings[place].start;
        if (!merge_add_mapping(a, place, &words[LOC_MAPPING])) {
            return false;
        }
    }
    merge_put_u64(words + LOC_OFFSET, address);
    return true;
}

/* Writes the words of a line, with the place of its function instead of the entry. */
static void put_line(const struct adding *a, const uint64_t v[LINE_COLUMN + 1], uint32_t *line)
{
    size_t place = 0;
    pprof_ids_find(&a->x.entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place);
    line[LN_FUNCTION] = (uint32_t)place;
    merge_put_u64(line + LN_NUMBER, v[LINE_LINE]);
    merge_put_u64(line + LN_COLUMN, v[LINE_COLUMN]);
}

/* Reads the lines of a location that is written as usual, and if it is folded. Returns false if it
 * is unusual. */
static bool read_usual_lines(const struct adding *a, struct sv message, uint32_t *words,
                             size_t *ret_n)
{
    struct rest r = rest_of(a->x.plain, message);
    uint32_t *line = words + LOC_LINES;
    size_t n = 0;
    for (unsigned field = LOCATION_ID; field <= LOCATION_ADDRESS; field++) {
        take(&r, field);
    }
    for (; is_next(&r, LOCATION_LINE << 3 | WIRE_BYTES); n++, line += LN_WORDS) {
        uint64_t v[LINE_COLUMN + 1];
        struct rest in_line = rest_of(a->x.plain, take_bytes(&r, LOCATION_LINE));
        for (unsigned field = LINE_FUNCTION_ID; field <= LINE_COLUMN; field++) {
            v[field] = take(&in_line, field);
        }
        if (!is_good_end(&in_line)) {
            return false;
        }
        put_line(a, v, line);
    }
    words[LOC_FOLDED] = take(&r, IS_FOLDED) != 0;
    *ret_n = n;
    return is_good_end(&r);
}

/* Reads the same of any location; returns the number of lines. */
static size_t read_lines(const struct adding *a, struct sv message, uint32_t *words)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint32_t *line = words + LOC_LINES;
    size_t n;
    if (read_usual_lines(a, message, words, &n)) {
        return n;
    }
    words[LOC_FOLDED] = 0;
    for (n = 0; wire_next(&r, &f);) {
        uint64_t v[LINE_COLUMN + 1] = {0};
        if (f.number == IS_FOLDED) {
            words[LOC_FOLDED] = f.value != 0;
        } else if (f.number == LOCATION_LINE) {
            wire_read_numbers(f.bytes, v, LINE_COLUMN + 1);
            put_line(a, v, line + n++ * LN_WORDS);
        }
    }
    return n;
}

bool merge_add_location(struct adding *a, size_t place, uint32_t *ret)
{
    uint32_t *words = a->place;
    uint32_t entry;
    if (is_known(a, PROFILE_LOCATION, place, ret)) {
        return true;
    }
    size_t n = read_lines(a, message_of(a, PROFILE_LOCATION, place), words);
    size_t n_words = LOC_LINES + n * LN_WORDS;
    for (uint32_t *at = words + LOC_LINES; at < words + n_words; at += LN_WORDS) {
        if (!add_function(a, at[LN_FUNCTION], &at[LN_FUNCTION])) {
            return false;
        }
    }
    return put_place(a, &a->x.locations[place], words) &&
           merge_add_words(a, MERGE_LOCATIONS, words, n_words, n_words, &entry) &&
           note(a, PROFILE_LOCATION, place, entry, ret);
}
