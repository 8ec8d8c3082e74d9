#include "pprof/language.h"

#include <stdint.h>

#include "pprof/wire.h"

/* The number of strings that are read. Writers number strings in order of first use, so the first
 * strings of a larger profile show its language. */
#define STRINGS_MAX ((size_t)64 * 1024)

static const struct {
    const char *suffix;
    enum pprof_language language;
} suffixes[] = {
    {".go", LANGUAGE_GO},     {".java", LANGUAGE_JAVA}, {".kt", LANGUAGE_JAVA},
    {".py", LANGUAGE_PYTHON}, {".rb", LANGUAGE_RUBY},   {".php", LANGUAGE_PHP},
    {".cs", LANGUAGE_DOTNET}, {".js", LANGUAGE_NODE},   {".mjs", LANGUAGE_NODE},
    {".cjs", LANGUAGE_NODE},  {".ts", LANGUAGE_NODE},
};

static enum pprof_language language_of_file(struct sv name)
{
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (sv_ends_with(name, sv_from(suffixes[i].suffix))) {
            return suffixes[i].language;
        }
    }
    /* "node:internal/timers" has no suffix. */
    return sv_starts_with(name, SV("node:")) ? LANGUAGE_NODE : LANGUAGE_UNKNOWN;
}

/* Marks the strings that are names of files: bit i for string i. */
static void mark_files(struct sv plain, uint8_t *marks)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number != PROFILE_FUNCTION || f.type != WIRE_BYTES) {
            continue;
        }
        uint64_t v[FUNCTION_FILENAME + 1] = {0};
        wire_read_numbers(f.bytes, v, FUNCTION_FILENAME + 1);
        if (v[FUNCTION_FILENAME] < STRINGS_MAX) {
            marks[v[FUNCTION_FILENAME] / 8] |= (uint8_t)(1U << v[FUNCTION_FILENAME] % 8);
        }
    }
}

enum pprof_language pprof_language_of(struct sv plain)
{
    uint8_t marks[STRINGS_MAX / 8] = {0};
    size_t files[LANGUAGES] = {0};
    mark_files(plain, marks);
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    for (size_t i = 0; i < STRINGS_MAX && wire_next(&r, &f);) {
        if (f.number != PROFILE_STRING || f.type != WIRE_BYTES) {
            continue;
        }
        if ((marks[i / 8] >> i % 8 & 1) != 0) {
            files[language_of_file(f.bytes)]++;
        }
        i++;
    }
    files[LANGUAGE_UNKNOWN] = 0;
    enum pprof_language most = LANGUAGE_UNKNOWN;
    for (enum pprof_language l = LANGUAGE_UNKNOWN + 1; l < LANGUAGES; l++) {
        most = files[l] > files[most] ? l : most;
    }
    return most;
}
