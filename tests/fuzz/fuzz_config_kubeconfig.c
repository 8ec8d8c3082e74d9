/* Any text as a kubeconfig. */
#include <string.h>

#include "config/kubeconfig.h"
#include "tests/fuzz/fuzz.h"

/* Any text as KUBECONFIG: names without colons, in their order. */
static void split(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(1024 * 1024);
    struct kubeconfig_paths paths;
    struct err err = ERR_INIT;
    char *text = strndup((const char *)data, size);
    REQUIRE(arena != NULL && text != NULL);
    if (kubeconfig_paths(text, NULL, arena, &paths, &err)) {
        for (size_t i = 0; i < paths.n; i++) {
            REQUIRE(paths.at[i][0] != '\0' && strchr(paths.at[i], ':') == NULL);
        }
    } else if (err.kind != ERR_LIMIT && err.kind != ERR_MEMORY) {
        abort();
    }
    free(text);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    split(data, size);
    static const char *const contexts[] = {NULL, "dev"};
    for (size_t i = 0; i < 2; i++) {
        struct arena *arena = arena_new(64 * 1024 * 1024);
        struct kubeconfig k;
        struct err err = ERR_INIT;
        REQUIRE(arena != NULL);
        bool ok = kubeconfig_parse("dir/config", (struct sv){(const char *)data, size}, contexts[i],
                                   arena, &k, &err);
        REQUIRE(!ok ||
                (strncmp(k.server, "http", 4) == 0 && k.server[strlen(k.server) - 1] != '/'));
        REQUIRE(ok || strncmp(err.msg, "kubeconfig dir/config", 21) == 0);
        arena_free(arena);
    }
    return 0;
}
