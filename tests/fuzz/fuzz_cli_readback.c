/* Reading a profile back: the question to a server at any URL, and any response to it. The first
 * byte selects the server, the second the status; the rest is the URL, and the response. */
#include <jansson.h>
#include <string.h>

#include "cli/verify/readback.h"
#include "tests/fuzz/fuzz.h"
#include "write/protocols/ingest.h"
#include "write/protocols/profefe.h"
#include "write/protocols/push.h"

#define URL_MAX ((size_t)100)

/* The question has the path of the server's API after the URL, and its body, if any, is JSON. */
static void check_question(const struct readback *how, struct sv text)
{
    char base[URL_MAX];
    struct buf url;
    struct buf body;
    size_t n = text.n < sizeof(base) - 1 ? text.n : sizeof(base) - 1;
    memcpy(base, text.p, n);
    base[n] = '\0';
    const struct readback_query q = {
        .base_url = base, .service = "my \"app\"", .id = "0a", .from_ns = 1, .until_ns = INT64_MAX};
    buf_init(&url, (size_t)64 * 1024);
    buf_init(&body, (size_t)64 * 1024);
    REQUIRE(readback_request(how, &q, &url, &body));
    REQUIRE(url.len > 1 && url.len < n + 4096);
    if (body.len > 0) {
        json_t *root = json_loadb(body.data, body.len, 0, NULL);
        REQUIRE(root != NULL);
        json_decref(root);
    }
    buf_done(&url);
    buf_done(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct readback *const servers[] = {&readback_pyroscope, &readback_deepflow,
                                                     &readback_profefe};
    static const long statuses[] = {200, 204, 400, 401, 404, 429, 500, 301, 403, 405, 415, 501};
    struct err err = ERR_INIT;
    if (size < 2) {
        return 0;
    }
    const struct readback *how = servers[data[0] % (sizeof(servers) / sizeof(servers[0]))];
    long status = statuses[data[1] % (sizeof(statuses) / sizeof(statuses[0]))];
    struct sv body = {.p = (const char *)data + 2, .n = size - 2};
    enum readback_verdict v = readback_check(how, status, body, &err);
    REQUIRE((v == READBACK_IMPOSSIBLE) == (err.kind != ERR_NONE));
    REQUIRE(v != READBACK_FOUND || status == 200);
    check_question(how, body);
    return 0;
}
