/* Servers with routes of a test's own. */
#ifndef PROFPULL_TESTS_SERVER_RIG_H
#define PROFPULL_TESTS_SERVER_RIG_H

#include "server/exchange.h"
#include "server/routes.h"
#include "tests/unit/lib/server_client.h"

/* Options whose limits no well-behaved client of a test meets: one thread works, and others may
 * wait for it. */
static inline struct server_options server_rig_options(const struct route *const *tables,
                                                       struct metrics *metrics)
{
    return (struct server_options){
        .name = "admin",
        .listen = "127.0.0.1:0",
        .sets = ROUTE_ADMIN | ROUTE_QUERY,
        .max_connections = 64,
        .max_connections_per_address = 64,
        .max_streams = 256,
        .max_streams_per_connection = 100,
        .request_timeout_ms = 60000,
        .answer_timeout_ms = 60000,
        .idle_timeout_ms = 60000,
        .bodies_max_bytes = 1 << 20,
        .query = {.threads = 1, .waiting_max = 200, .timeout_ms = 60000, .body_max = 1 << 20},
        .routes = tables,
        .metrics = metrics,
    };
}

static inline struct server *server_rig_start(const struct server_options *options)
{
    struct err err = ERR_INIT;
    struct server *server = server_start(options, &err);
    CHECK_STR(err.msg, "", "server_start");
    assert_non_null(server);
    return server;
}

static inline void server_rig_wait(struct metrics *metrics, const char *sample, uint64_t want)
{
    for (int i = 0; testing_metric(metrics, sample) != want; i++) {
        if (i == 30000) {
            CHECK_INT(testing_metric(metrics, sample), want, sample);
        }
        usleep(1000);
    }
}

#endif
