/* For fuzz targets of what a query string asks of a store: the store, which is made once in a
 * directory of its own and removed at the end, and the request around the string. */
#ifndef PROFPULL_TESTS_FUZZ_STORE_H
#define PROFPULL_TESTS_FUZZ_STORE_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/served.h"
#include "server/exchange.h"
#include "store/store.h"

/* The memory limit of an exchange. */
#define FUZZ_MEMORY_MAX ((size_t)16 * 1024 * 1024)

static inline void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static struct {
    struct store *store;
    char directory[64];
} fuzz_world;

static void fuzz_store_remove(void)
{
    char path[512];
    fuzz_world.store = store_close(fuzz_world.store);
    DIR *d = opendir(fuzz_world.directory);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        (void)snprintf(path, sizeof(path), "%s/%s", fuzz_world.directory, e->d_name);
        (void)unlink(path);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(fuzz_world.directory);
}

/* fill (may be NULL) is called once, for the new store. */
static inline struct store *fuzz_store(void (*fill)(struct store *s))
{
    if (fuzz_world.store == NULL) {
        struct store_options options = {
            .name = "fuzz", .directory = fuzz_world.directory, .stretch_ms = 3600000};
        (void)snprintf(fuzz_world.directory, sizeof(fuzz_world.directory),
                       "/tmp/fuzz_store.XXXXXX");
        must(mkdtemp(fuzz_world.directory) != NULL);
        fuzz_world.store = store_open(&options, NULL);
        must(fuzz_world.store != NULL);
        atexit(fuzz_store_remove);
        if (fill != NULL) {
            fill(fuzz_world.store);
        }
    }
    return fuzz_world.store;
}

/* Calls fn with the request that has these bytes as its query string, if it is one. */
static inline void fuzz_query(const uint8_t *data, size_t size, struct store *store,
                              void (*fn)(const struct request *r,
                                         const struct server_options *options))
{
    static const char before[] = "GET /?";
    static const char after[] = " HTTP/1.1\r\n\r\n";
    const struct served served = {.store = store, .version = "0"};
    const struct server_options options = {.served = &served};
    struct request r;
    size_t n = sizeof(before) - 1 + size + sizeof(after) - 1;
    if (n > REQUEST_HEAD_MAX) {
        return;
    }
    char *head = malloc(n);
    char *decoded = malloc(n);
    must(head != NULL && decoded != NULL);
    memcpy(head, before, sizeof(before) - 1);
    memcpy(head + sizeof(before) - 1, data, size);
    memcpy(head + n - sizeof(after) + 1, after, sizeof(after) - 1);
    if (request_parse((struct sv){head, n}, decoded, &r) == 0) {
        fn(&r, &options);
    }
    free(head);
    free(decoded);
}

/* Works on a request as a route does, and has the answer checked. */
static inline void fuzz_work(const struct request *r, const struct server_options *options,
                             void (*work)(struct exchange *x),
                             void (*check)(const struct exchange *x))
{
    struct exchange x = {
        .request = r, .options = options, .bytes_max = FUZZ_MEMORY_MAX, .status = 200};
    buf_init(&x.headers, 4096);
    buf_init(&x.reply, FUZZ_MEMORY_MAX);
    work(&x);
    check(&x);
    buf_done(&x.headers);
    buf_done(&x.reply);
}

#endif
