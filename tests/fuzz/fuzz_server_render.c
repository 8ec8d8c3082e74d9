/* Query strings of Pyroscope's older API, over an empty store: whatever they are, the answer is
 * JSON, a graph or an error. */
#include <jansson.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api/render.h"
#include "server/exchange.h"
#include "store/store.h"

#define MEMORY_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

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

/* The store stays empty, is made once, and is removed at the end. */
static struct world {
    struct store *store;
    char directory[64];
} world;

static void remove_store(void)
{
    char path[128];
    world.store = store_close(world.store);
    (void)snprintf(path, sizeof(path), "%s/lock", world.directory);
    (void)unlink(path);
    (void)rmdir(world.directory);
}

static struct store *store_of(void)
{
    if (world.store == NULL) {
        struct store_options options = {
            .name = "fuzz", .directory = world.directory, .stretch_ms = 3600000};
        (void)snprintf(world.directory, sizeof(world.directory), "/tmp/fuzz_render.XXXXXX");
        must(mkdtemp(world.directory) != NULL);
        world.store = store_open(&options, NULL);
        must(world.store != NULL);
        atexit(remove_store);
    }
    return world.store;
}

/* Handles by a route of the table, if the request is one. */
static void handle(const struct server_options *options, char *head, size_t n, char *decoded)
{
    struct request r;
    if (request_parse((struct sv){head, n}, decoded, &r) != 0) {
        return;
    }
    for (const struct route *route = render_routes; route->path != NULL; route++) {
        struct exchange x = {
            .request = &r, .options = options, .bytes_max = MEMORY_MAX, .status = 200};
        buf_init(&x.headers, 4096);
        buf_init(&x.reply, MEMORY_MAX);
        route->work(&x);
        check_answer(&x);
        buf_done(&x.headers);
        buf_done(&x.reply);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "GET /pyroscope/render?";
    static const char after[] = " HTTP/1.1\r\n\r\n";
    struct server_options options = {.store = NULL};
    size_t n = sizeof(before) - 1 + size + sizeof(after) - 1;
    if (n > REQUEST_HEAD_MAX) {
        return 0;
    }
    char *head = malloc(n);
    char *decoded = malloc(n);
    must(head != NULL && decoded != NULL);
    memcpy(head, before, sizeof(before) - 1);
    memcpy(head + sizeof(before) - 1, data, size);
    memcpy(head + n - sizeof(after) + 1, after, sizeof(after) - 1);
    options.store = store_of();
    handle(&options, head, n, decoded);
    free(head);
    free(decoded);
    return 0;
}
