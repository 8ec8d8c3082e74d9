/* Any text as a web configuration file: settings or an error, never both, no crash. */
#include <string.h>

#include "config/web_config.h"
#include "tests/fuzz/fuzz.h"

FUZZ(in)
{
    struct web_config w;
    struct err err = ERR_INIT;
    if (in.n > WEB_CONFIG_MAX) {
        return;
    }
    bool ok = web_config_parse("f", in, &w, &err);
    REQUIRE(ok != (err.kind != ERR_NONE));
    if (!ok) {
        return;
    }
    for (size_t i = 0; i < w.users.n; i++) {
        REQUIRE(w.users.at[i].name[0] != '\0' && strlen(w.users.at[i].value) == 60);
    }
    for (enum web_header i = 0; i < WEB_HEADERS; i++) {
        REQUIRE(w.headers[i] == NULL || strpbrk(w.headers[i], "\r\n") == NULL);
    }
    web_config_done(&w);
}
