/* Responses of servers to the query for a profile. The first byte selects the server, the second
 * the status. */
#include <stdlib.h>

#include "cli/verify/readback.h"
#include "write/protocols/ingest.h"
#include "write/protocols/profefe.h"
#include "write/protocols/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct readback *const servers[] = {&readback_pyroscope, &readback_deepflow,
                                                     &readback_profefe};
    static const long statuses[] = {200, 204, 400, 401, 404, 429, 500};
    struct err err = ERR_INIT;
    if (size < 2) {
        return 0;
    }
    const struct readback *how = servers[data[0] % (sizeof(servers) / sizeof(servers[0]))];
    long status = statuses[data[1] % (sizeof(statuses) / sizeof(statuses[0]))];
    struct sv body = {.p = (const char *)data + 2, .n = size - 2};
    enum readback_verdict v = readback_check(how, status, body, &err);
    if ((v == READBACK_IMPOSSIBLE) != (err.kind != ERR_NONE)) {
        abort();
    }
    if (v == READBACK_FOUND && status != 200) {
        abort();
    }
    return 0;
}
