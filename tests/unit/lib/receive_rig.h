/* Receiving without a server: a configuration, the queues of its destinations, which nobody
 * empties, and a struct receive.
 */
#ifndef PROFPULL_TESTS_RECEIVE_RIG_H
#define PROFPULL_TESTS_RECEIVE_RIG_H

#include "tests/unit/lib/testing.h"

#include "agent/receive.h"
#include "base/clock.h"
#include "base/loop.h"
#include "relabel/relabel.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/lib/valid_config.h"
#include "write/write.h"

/* Declared in write/protocol.h, which has a struct request as the server has. */
const struct config_protocol *const *write_protocols(void);

struct receive_rig {
    struct testing_log *log;
    struct intern *intern;
    struct metrics *metrics;
    struct config *config;
    struct loop *loop;
    struct writer *writer;
    struct recordings *recordings;
    struct receive *receive;
};

static inline bool receive_rig_check_rule(void *arg, const struct config_rule *rule,
                                          struct err *err)
{
    (void)arg;
    return relabel_check_rule(rule, err);
}

/* receive: the keys of the section, in braces; write: the list. */
static inline struct config *receive_rig_config(const char *receive, const char *write)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "receive: %s\n"
                   "write: %s\n"
                   "scrape_configs: [{job_name: x}]\n",
                   receive, write);
    struct config_options o = {.check_rule = receive_rig_check_rule,
                               .protocols = write_protocols()};
    return valid_config("f", text, &o);
}

static inline void receive_rig_start(struct receive_rig *g, const char *receive, const char *write)
{
    struct err err = ERR_INIT;
    *g = (struct receive_rig){.log = testing_log_new(),
                              .intern = intern_new(),
                              .metrics = metrics_new(),
                              .config = receive_rig_config(receive, write),
                              .loop = loop_new(&err)};
    const struct writer_options writer = {.config = g->config,
                                          .loop = g->loop,
                                          .intern = g->intern,
                                          .log = testing_log(g->log),
                                          .metrics = g->metrics};
    g->writer = writer_new(&writer, &err);
    CHECK_STR(err.msg, "", write);
    const struct recordings_options recordings = {
        .intern = g->intern, .log = testing_log(g->log), .metrics = g->metrics};
    g->recordings = recordings_new(&recordings);
    assert_non_null(g->recordings);
    const struct receive_options options = {.config = &g->config->receive,
                                            .intern = g->intern,
                                            .writer = g->writer,
                                            .log = testing_log(g->log),
                                            .metrics = g->metrics,
                                            .recordings = g->recordings};
    g->receive = receive_new(&options, &err);
    CHECK_STR(err.msg, "", receive);
}

static inline void receive_rig_done(struct receive_rig *g)
{
    size_t count = 1;
    size_t bytes;
    receive_free(g->receive);
    recordings_free(g->recordings);
    writer_free(g->writer);
    loop_free(g->loop);
    metrics_free(g->metrics);
    config_unref(g->config);
    intern_stats(g->intern, &count, &bytes);
    CHECK_INT(count, 0, "interned strings"); /* else a profile was not released */
    intern_free(g->intern);
    testing_log_done(g->log);
}
SCOPED_VALUE(receive_rig, receive_rig_done)

/* A CPU profile of this time; the caller frees it. */
static inline struct buf receive_rig_profile(int64_t time_ns)
{
    static const struct pprof_row rows[] = {{"work main", "", {1, 10000000}},
                                            {"idle main", "", {2, 20000000}}};
    const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                                    .time_nanos = time_ns,
                                    .duration_nanos = NS_PER_S};
    return pprof_make(&spec, rows, 2);
}

#endif
