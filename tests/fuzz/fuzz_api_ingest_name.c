/* The name parameter of /ingest as a server reads it, and its times: "name\0time". */
#include <string.h>

#include "api/attime.h"
#include "api/receive/ingest_name.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check_name(struct sv text)
{
    struct err err = ERR_INIT;
    struct ingest_name name;
    if (!ingest_name_read(text, &name, &err)) {
        REQUIRE(strncmp(err.msg, "name: ", 6) == 0 && utf8_valid(sv_from(err.msg)));
        return;
    }
    REQUIRE(name.app.n > 0 && name.n <= INGEST_PAIRS_MAX);
    for (size_t i = 0; i < name.n; i++) {
        struct label l = name.pairs[i];
        REQUIRE(l.name.n > 0 && utf8_valid(l.name) && !sv_starts_with(l.name, SV("__")));
        REQUIRE(l.value.n == 0 || (memchr(l.value.p, ',', l.value.n) == NULL &&
                                   memchr(l.value.p, '}', l.value.n) == NULL));
        REQUIRE(sv_eq(ingest_name_get(&name, l.name), l.value)); /* each key once */
    }
}

FUZZ(in)
{
    struct sv name = in;
    struct sv time = {"", 0};
    (void)sv_cut(in, '\0', &name, &time);
    check_name(name);
    (void)attime_read(time, INT64_C(1795307400) * NS_PER_S);
}
