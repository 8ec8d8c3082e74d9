/* Answers of servers that are asked for a profile. The first byte is the kind, the second the
 * status. */
#include <stdlib.h>

#include "cli/verify/readback.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = {200, 204, 400, 401, 404, 429, 500};
    struct err err = ERR_INIT;
    if (size < 2) {
        return 0;
    }
    enum readback_kind kind = (enum readback_kind)(data[0] % (READBACK_FILE + 1));
    long status = statuses[data[1] % (sizeof(statuses) / sizeof(statuses[0]))];
    struct sv body = {.p = (const char *)data + 2, .n = size - 2};
    enum readback_verdict v = readback_judge(kind, status, body, &err);
    if ((v == READBACK_IMPOSSIBLE) != (err.kind != ERR_NONE)) {
        abort();
    }
    if (v == READBACK_FOUND && status != 200) {
        abort();
    }
    return 0;
}
