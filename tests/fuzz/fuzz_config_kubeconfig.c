/* Any text as a kubeconfig. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const contexts[] = {NULL, "dev"};
    for (size_t i = 0; i < 2; i++) {
        struct arena *arena = arena_new(64 * 1024 * 1024);
        struct kubeconfig k;
        struct err err = ERR_INIT;
        if (arena == NULL) {
            abort();
        }
        bool ok = kubeconfig_parse("dir/config", (struct sv){(const char *)data, size}, contexts[i],
                                   arena, &k, &err);
        if (ok && (strncmp(k.server, "http", 4) != 0 || k.server[strlen(k.server) - 1] == '/')) {
            abort();
        }
        if (!ok && strncmp(err.msg, "kubeconfig dir/config", 21) != 0) {
            abort();
        }
        arena_free(arena);
    }
    return 0;
}
