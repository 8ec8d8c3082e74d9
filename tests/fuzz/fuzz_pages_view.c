/* Query strings of the page of profiles and of its data, over a store whose names are hostile:
 * whatever they are, the answer is JSON, a profile, or HTML in which no text has become markup. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_store.h"

#include <jansson.h>

#include "api/receive/folded.h"
#include "base/clock.h"
#include "pages/pages.h"

/* A tag that none of our pages has. */
#define MARKUP "<fuzz"

static void fill(struct store *s)
{
    static const char stacks[] = "main;<fuzz>;work\" 3\nmain;'<fuzz>&amp; 4\n";
    const struct label labels[] = {{SV("__name__"), SV("process_cpu")},
                                   {SV("pod"), SV("\"<fuzz>")},
                                   {SV("service_name"), SV("<fuzz>&")}};
    struct sv service;
    struct buf pprof;
    size_t samples;
    struct err err = ERR_INIT;
    int64_t now_ns = clock_wall_ns();
    const struct folded_input input = {
        .text = {stacks, sizeof(stacks) - 1},
        .counted = true,
        .o = {.type = frames_type_of(SV("a.cpu"), &service), .sample_rate = 100, .time_ns = now_ns},
    };
    buf_init(&pprof, 1 << 20);
    must(folded_convert(&input, &pprof, &samples, &err));
    struct store_put put = {.labels = labels,
                            .n_labels = sizeof(labels) / sizeof(labels[0]),
                            .data = {pprof.data, pprof.len},
                            .format = PROFILE_PPROF,
                            .from_ns = now_ns,
                            .until_ns = now_ns};
    must(store_put(s, &put, 1));
    buf_done(&pprof);
}

static void check_answer(const struct exchange *x)
{
    must(x->status == 200 || x->status == 400 || x->status == 404 || x->status == 422);
    if (strncmp(x->content_type, "text/html", 9) == 0) {
        must(memmem(x->reply.data, x->reply.len, MARKUP, sizeof(MARKUP) - 1) == NULL);
    } else if (strcmp(x->content_type, "application/json") == 0) {
        json_t *json = json_loadb(x->reply.data, x->reply.len, JSON_ALLOW_NUL, NULL);
        must(json != NULL);
        json_decref(json);
    }
}

static void answer(const struct request *r, const struct server_options *options)
{
    for (const struct route *route = page_routes; route->path != NULL; route++) {
        if (route->set == ROUTE_QUERY && !route->is_prefix) {
            fuzz_work(r, options, route->work, check_answer);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_query(data, size, fuzz_store(fill), answer);
    return 0;
}
