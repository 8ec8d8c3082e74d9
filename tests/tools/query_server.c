/* Serves Pyroscope's query APIs over the profiles that are named: for clients of other makers.
 *
 *     query-server [-tls CERT KEY] DIRECTORY FILE...
 *
 * The i-th file is of the service vecdemo and of pod a, b, c, ..., 15 seconds after the one before
 * it, the first one of 2026-11-22T00:30:00Z. Prints the port, and ends with its input.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/served.h"
#include "api/settings.h"
#include "api/tables.h"
#include "base/clock.h"
#include "server/server.h"
#include "store/store.h"

#define FILE_MAX ((size_t)64 * 1024 * 1024)
#define FIRST_NS INT64_C(1795307400000000000)
#define STEP_NS (15 * NS_PER_S)

static bool put_file(struct store *s, const char *path, int i, struct err *err)
{
    char pod[] = {(char)('a' + i), '\0'};
    char piece[4096];
    size_t n;
    struct buf data;
    struct label labels[] = {{SV("__name__"), SV("process_cpu")},
                             {SV("pod"), sv_from(pod)},
                             {SV("service_name"), SV("vecdemo")}};
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return err_sys(err, "%s", path);
    }
    buf_init(&data, FILE_MAX);
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0) {
        buf_append(&data, piece, n);
    }
    (void)fclose(file);
    struct store_put put = {.labels = labels,
                            .n_labels = 3,
                            .data = {data.data, data.len},
                            .format = PROFILE_PPROF,
                            .from_ns = FIRST_NS + i * STEP_NS,
                            .until_ns = FIRST_NS + (i + 1) * STEP_NS};
    bool ok = store_put(s, &put, 1) || err_set(err, ERR_INPUT, "%s: %s", path, put.problem);
    buf_done(&data);
    return ok;
}

static bool serve(struct store *s, struct metrics *metrics, const struct server_tls *tls,
                  struct err *err)
{
    char byte;
    struct settings *settings = settings_new(NULL, NULL);
    static const struct route *const routes[] = {API_TABLES, NULL};
    const struct served served = {.settings = settings, .store = s, .version = PROFPULL_VERSION};
    struct server_options options = {
        .name = "query",
        .listen = "127.0.0.1:0",
        .sets = ROUTE_QUERY,
        .max_connections = 64,
        .max_connections_per_address = 64,
        .max_streams = 256,
        .max_streams_per_connection = 100,
        .tls = *tls,
        .request_timeout_ms = 20000,
        .answer_timeout_ms = 20000,
        .idle_timeout_ms = 60000,
        .bodies_max_bytes = FILE_MAX,
        .query = {.threads = 2,
                  .waiting_max = 64,
                  .timeout_ms = 60000,
                  .bytes_max = FILE_MAX * 4,
                  .body_max = FILE_MAX},
        .metrics = metrics,
        .routes = routes,
        .served = &served,
    };
    struct server *server = server_start(&options, err);
    if (server != NULL) {
        printf("%d\n", server_port(server));
        (void)fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0) {
        }
    }
    bool ok = server != NULL;
    server_stop(server);
    settings_free(settings);
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct server_tls tls = {.cert_file = NULL};
    if (argc > 3 && strcmp(argv[1], "-tls") == 0) {
        tls = (struct server_tls){.cert_file = argv[2], .key_file = argv[3]};
        argc -= 3;
        argv += 3;
    }
    if (argc < 2) {
        (void)fprintf(stderr, "usage: query-server [-tls CERT KEY] DIRECTORY FILE...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    struct metrics *metrics = metrics_new();
    struct store_options options = {
        .name = "test", .directory = argv[1], .stretch_ms = 3600000, .metrics = metrics};
    struct store *s = store_open(&options, &err);
    bool ok = s != NULL;
    for (int i = 0; ok && i < argc - 2; i++) {
        ok = put_file(s, argv[i + 2], i, &err);
    }
    ok = ok && serve(s, metrics, &tls, &err);
    if (!ok) {
        (void)fprintf(stderr, "query-server: %s\n", err.msg);
    }
    store_close(s);
    metrics_free(metrics);
    return ok ? 0 : 1;
}
