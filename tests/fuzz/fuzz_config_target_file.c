/* Any text as a list of targets: a list or an error, never both, no crash. */
#include <string.h>

#include "base/utf8.h"
#include "config/target_file.h"
#include "tests/fuzz/fuzz.h"

FUZZ(in)
{
    struct arena *arena = arena_new(TARGET_FILE_ARENA_MAX);
    struct target_file file = {0};
    struct err err = ERR_INIT;
    if (arena == NULL) {
        return;
    }
    bool ok = target_file_parse(in, arena, &file, &err);
    REQUIRE(ok != (err.kind != ERR_NONE));
    for (size_t i = 0; ok && i < file.n; i++) {
        for (size_t k = 0; k < file.groups[i].targets.n; k++) {
            REQUIRE(file.groups[i].targets.at[k][0] != '\0');
        }
        for (size_t k = 0; k < file.groups[i].labels.n; k++) {
            REQUIRE(file.groups[i].labels.at[k].name[0] != '\0' &&
                    utf8_valid(sv_from(file.groups[i].labels.at[k].value)));
        }
    }
    arena_free(arena);
}
