/* Query strings of Pyroscope's older API, over an empty store: whatever they are, the answer is
 * JSON, a graph or an error. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_store.h"

#include <jansson.h>

#include "api/render.h"

static void check_answer(const struct exchange *x)
{
    must(x->status == 200 || x->status == 400 || x->status == 429 || x->status == 503);
    if (x->status == 200 && strcmp(x->content_type, "text/plain") == 0) {
        return;
    }
    json_t *json = json_loadb(x->reply.data, x->reply.len, JSON_ALLOW_NUL, NULL);
    must(json != NULL);
    json_decref(json);
}

static void answer(const struct request *r, const struct server_options *options)
{
    for (const struct route *route = render_routes; route->path != NULL; route++) {
        fuzz_work(r, options, route->work, check_answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_query(data, size, fuzz_store(NULL), answer);
    return 0;
}
