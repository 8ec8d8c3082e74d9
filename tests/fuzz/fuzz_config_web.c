/* Any text as a web configuration file: settings or an error, never both, no crash. */
#include <string.h>

#include "config/web_config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct web_config w;
    struct err err = ERR_INIT;
    if (size > WEB_CONFIG_MAX) {
        return 0;
    }
    bool ok = web_config_parse("f", (struct sv){(const char *)data, size}, &w, &err);
    if (ok == (err.kind != ERR_NONE)) {
        abort();
    }
    if (!ok) {
        return 0;
    }
    for (size_t i = 0; i < w.users.n; i++) {
        if (w.users.at[i].name[0] == '\0' || strlen(w.users.at[i].value) != 60) {
            abort();
        }
    }
    for (enum web_header i = 0; i < WEB_HEADERS; i++) {
        if (w.headers[i] != NULL && strpbrk(w.headers[i], "\r\n") != NULL) {
            abort();
        }
    }
    web_config_done(&w);
    return 0;
}
