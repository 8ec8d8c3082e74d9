/* Any bytes as a whole profile: the checker, the index, and gzip around it. What the checker finds
 * good, the index must walk without a fault. */
#include <stdint.h>
#include <stdlib.h>

#include "scraper/gzip.h"
#include "scraper/pprof_index.h"

#define PLAIN_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct sv plain)
{
    struct pprof_info info;
    struct pprof_index x;
    struct err err = ERR_INIT;
    if (!pprof_check(plain, &info, &err)) {
        if (err.msg[0] == '\0') {
            abort();
        }
        return;
    }
    if (pprof_index(&x, plain, &info, 1, &err)) {
        for (size_t i = 0; i < info.strings; i++) {
            struct sv s = pprof_string(&x, i);
            if (s.n > plain.n) {
                abort();
            }
        }
    } else if (err.msg[0] == '\0') {
        abort();
    }
    pprof_index_done(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv body = {.p = (const char *)data, .n = size};
    struct err err = ERR_INIT;
    struct gzip_out plain;
    if (size == 0) {
        return 0;
    }
    if (!gzip_is(body)) {
        look(body);
    } else if (gzip_inflate(body, PLAIN_MAX, 0, &plain, &err) == GZIP_OK) {
        look((struct sv){plain.data, plain.n});
        free(plain.data);
    }
    return 0;
}
