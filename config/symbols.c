/* The key `symbols`: where names for addresses come from. */
#include "base/clock.h"
#include "config/parts.h"
#include "symbols/helper.h"

#define MIB (UINT64_C(1) << 20)
#define CACHE_DEFAULT (1024 * MIB)

static const char *const target_names[] = {
    [SYMBOLS_TARGET_AUTO] = "auto", [SYMBOLS_TARGET_OFF] = "off"};
static const struct choices targets = CHOICES(target_names);

static const struct range range_wait = {0, (uint64_t)(60 * MS_PER_S)};
static const struct range range_timeout = {(uint64_t)MS_PER_S, (uint64_t)(60 * 60 * MS_PER_S)};
static const struct range range_cache = {MIB, UINT64_C(1) << 40};
static const struct range range_names = {MIB, UINT64_C(1) << 34};
static const struct range range_file = {MIB, UINT64_C(1) << 34};
static const struct range range_memory = {64 * MIB, UINT64_C(1) << 36};

/* The sources of names, for all profiles or for those of a job. */
static const struct field source_rows[] = {
    ROW(symbols_sources, "target", target, &kind_choice, .arg = &targets),
    ROW(symbols_sources, "debuginfod", debuginfod, &kind_strings, .arg = &text_http_url),
    ROW(symbols_sources, "directories", directories, &kind_strings, .arg = &text_file_name),
    ROW(symbols_sources, "wait", wait_ms, &kind_duration, .arg = &range_wait),
};

static void check_sources(struct reader *r, const struct place *at, bool clean, void *out)
{
    (void)r;
    (void)at;
    (void)clean;
    ((struct symbols_sources *)out)->given = true;
}

const struct schema schema_symbols_sources =
    SCHEMA(source_rows, sizeof(struct symbols_sources), .check = check_sources);

static const struct field cache_rows[] = {
    ROW(symbols_settings, "directory", cache_directory, &kind_text, .arg = &text_file_name),
    ROW(symbols_settings, "max_bytes", cache_max_bytes, &kind_size, .arg = &range_cache,
        .initial.size = CACHE_DEFAULT),
};
static const struct schema schema_cache = SCHEMA(cache_rows, 0);

static void check_symbols(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct symbols_settings *s = out;
    if (clean && s->sources.debuginfod.n > 0 && s->cache_directory == NULL) {
        struct place key = place_of_key(at, "debuginfod");
        reader_error(r, &key, "needs the key \"cache.directory\", where the files are kept");
    }
    if (clean && s->max_memory < s->max_file_size) {
        struct place key = place_of_key(at, "max_memory");
        reader_error(r, &key, "expected at least max_file_size: a file is mapped into this memory");
    }
}

static const struct field symbols_rows[] = {
    ROW(symbols_settings, NULL, sources, &kind_mapping, .arg = &schema_symbols_sources),
    PART("cache", &kind_mapping, .arg = &schema_cache),
    ROW(symbols_settings, "names_max_bytes", names_max_bytes, &kind_size, .arg = &range_names,
        .initial.size = 64 * MIB),
    ROW(symbols_settings, "max_file_size", max_file_size, &kind_size, .arg = &range_file,
        .initial.size = SYMBOLS_FILE_DEFAULT),
    ROW(symbols_settings, "max_memory", max_memory, &kind_size, .arg = &range_memory,
        .initial.size = SYMBOLS_MEMORY_DEFAULT),
    ROW(symbols_settings, "timeout", timeout_ms, &kind_duration, .arg = &range_timeout,
        .initial.ms = SYMBOLS_TIMEOUT_DEFAULT_MS),
    ROW(symbols_settings, NULL, http, &kind_mapping, .arg = &schema_http),
};
const struct schema schema_symbols =
    SCHEMA(symbols_rows, sizeof(struct symbols_settings), .check = check_symbols);
