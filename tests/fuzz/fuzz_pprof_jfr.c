/* Recognition of recordings: a verdict has its error, and no body is a recording and a profile at
 * once. */
#include "pprof/sniff.h"
#include "tests/fuzz/fuzz.h"

FUZZ(body)
{
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_jfr(body, &err);
    bool good = r == SNIFF_JFR;
    REQUIRE(good == (err.kind == ERR_NONE) && good == sniff_is_profile(r));
    enum sniff_result other = sniff_profile(body, NULL);
    REQUIRE(!good || (other != SNIFF_PPROF_GZIP && other != SNIFF_PPROF_PLAIN));
}
