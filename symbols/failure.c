#include "symbols/failure.h"

const char *symbols_failure_name(enum symbols_failure f)
{
    static const char *const names[SYMBOLS_FAILURES] = {
        [SYMBOLS_OK] = "ok",
        [SYMBOLS_START] = "start",
        [SYMBOLS_TOO_LARGE] = "too_large",
        [SYMBOLS_UNREADABLE] = "unreadable",
        [SYMBOLS_BUILD_ID] = "build_id",
        [SYMBOLS_MEMORY] = "memory",
        [SYMBOLS_TIMEOUT] = "timeout",
        [SYMBOLS_CRASH] = "crash",
        [SYMBOLS_ANSWER] = "answer",
    };
    return names[f];
}
