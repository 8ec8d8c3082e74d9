#include "store/archive/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"

#define FILE_EXTENSION ".db"
#define INDEX_EXTENSION ".idx"

bool archive_is_writer(struct sv text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (!ascii_is_alnum(text.p[i]) && (text.p[i] == '\0' || strchr("._-", text.p[i]) == NULL)) {
            return false;
        }
    }
    return text.n > 0 && text.n < ARCHIVE_WRITER_SIZE && text.p[0] != '.';
}

/* Writes the name of a stretch without its extension. */
static void format_stretch(const struct store_name *stretch, char out[STORE_NAME_SIZE])
{
    store_name_format(stretch, out);
    out[strlen(out) - (sizeof(FILE_EXTENSION) - 1)] = '\0';
}

void archive_data_key(const char *writer, const struct archive_name *name,
                      char out[ARCHIVE_KEY_SIZE])
{
    char stretch[STORE_NAME_SIZE];
    format_stretch(&name->stretch, stretch);
    (void)snprintf(out, ARCHIVE_KEY_SIZE, "%s/" ARCHIVE_DATA "%s_%s" FILE_EXTENSION, writer,
                   stretch, name->hash);
}

void archive_index_key(const char *writer, const struct archive_name *name,
                       char out[ARCHIVE_KEY_SIZE])
{
    char stretch[STORE_NAME_SIZE];
    format_stretch(&name->stretch, stretch);
    (void)snprintf(out, ARCHIVE_KEY_SIZE,
                   "%s/" ARCHIVE_INDEX "%s_%s_%" PRIu64 "_%" PRIu64 INDEX_EXTENSION, writer,
                   stretch, name->hash, name->bytes, name->profiles);
}

/* Takes "20261122T130000Z-1h_HASH" from the start of a text. */
static bool take_stretch(struct sv text, struct archive_name *ret, struct sv *ret_rest)
{
    struct sv stretch;
    struct sv rest;
    char file[STORE_NAME_SIZE];
    *ret = (struct archive_name){.bytes = 0};
    if (!sv_cut(text, '_', &stretch, &rest) || rest.n < ARCHIVE_HASH_DIGITS ||
        stretch.n >= sizeof(file) - sizeof(FILE_EXTENSION)) {
        return false;
    }
    (void)snprintf(file, sizeof(file), "%.*s" FILE_EXTENSION, SV_ARG(stretch));
    for (size_t i = 0; i < ARCHIVE_HASH_DIGITS; i++) {
        char c = rest.p[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        ret->hash[i] = c;
    }
    *ret_rest = sv_skip(rest, ARCHIVE_HASH_DIGITS);
    return store_name_parse(sv_from(file), &ret->stretch);
}

bool archive_data_parse(struct sv text, struct archive_name *ret)
{
    struct sv rest;
    return take_stretch(text, ret, &rest) && sv_eq_str(rest, FILE_EXTENSION);
}

bool archive_index_parse(struct sv text, struct archive_name *ret)
{
    struct sv rest;
    struct sv bytes;
    struct sv profiles;
    char again[ARCHIVE_KEY_SIZE];
    if (!take_stretch(text, ret, &rest) || rest.n < 1 || rest.p[0] != '_' ||
        !sv_cut(sv_skip(rest, 1), '_', &bytes, &profiles) ||
        !sv_ends_with(profiles, SV(INDEX_EXTENSION))) {
        return false;
    }
    profiles.n -= sizeof(INDEX_EXTENSION) - 1;
    if (!parse_u64(bytes, INT64_MAX, &ret->bytes) ||
        !parse_u64(profiles, INT64_MAX, &ret->profiles)) {
        return false;
    }
    /* Each object has exactly one name. */
    archive_index_key("w", ret, again);
    return sv_eq_str(text, again + sizeof("w/" ARCHIVE_INDEX) - 1);
}
