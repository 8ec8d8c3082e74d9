/* Lists of targets while every allocation in turn fails: nothing is lost, and a list that could not
 * be read is read the next time. */
#include "tests/unit/discovery/patience.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "discovery/lists/file.h"
#include "discovery/lists/http.h"
#include "http/http.h"
#include "tests/unit/lib/failing_malloc.h"

/* After the above: it defines macros of names that http/http.h has. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#define LIST "[{\"targets\":[\"a:1\",\"b:1\"],\"labels\":{\"x\":\"y\"}}]"

struct world {
    struct loop *loop;
    struct intern *intern;
    struct patience patience;
    struct metrics *metrics;
    struct discovery_counters counters;
    struct buf reported;
    const char *until;
};

static void on_change(void *arg, const char *source, struct labels *const *targets, size_t n)
{
    struct world *w = arg;
    bool armed = failing_malloc_pause();
    const char *name = strrchr(source, '/');
    buf_printf(&w->reported, "%s:", name == NULL ? source : name + 1);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&w->reported, " %.*s", SV_ARG(labels_get(targets[i], SV(LABEL_ADDRESS))));
    }
    buf_putc(&w->reported, '\n');
    failing_malloc_resume(armed);
    if (strstr(w->reported.data, w->until) != NULL) {
        loop_stop(w->loop);
    }
}

static void on_state(void *arg, enum source_state state, const char *why)
{
    (void)arg;
    (void)state;
    (void)why;
}

/* Allocations of the setup do not fail. */
static void setup(struct world *w, const char *until)
{
    struct err err = ERR_INIT;
    bool armed = failing_malloc_pause();
    *w = (struct world){.loop = loop_new(&err), .intern = intern_new(), .until = until};
    w->metrics = metrics_new();
    assert_non_null(w->metrics);
    discovery_counters_init(&w->counters, w->metrics);
    patience_init(&w->patience, w->loop);
    buf_init(&w->reported, 1 << 16);
    failing_malloc_resume(armed);
}

static void teardown(struct world *w)
{
    patience_done(&w->patience);
    loop_free(w->loop);
    intern_free(w->intern);
    buf_done(&w->reported);
    metrics_free(w->metrics);
}

static struct list_options options_of(struct world *w, const char *source)
{
    return (struct list_options){
        .source = source,
        .loop = w->loop,
        .intern = w->intern,
        .counters = &w->counters,
        .on_change = on_change,
        .on_state = on_state,
        .arg = w,
    };
}

static void run_until_reported(struct world *w)
{
    bool reported =
        strstr(w->reported.data, w->until) != NULL || patience_run(&w->patience, PATIENCE_MS);
    if (!reported) {
        print_message("late: %d <%s>\n", failing_malloc_failed(), w->reported.data);
    }
    CHECK_INT(reported, true, w->reported.data);
}

/* A list that fails for lack of memory says so, and is read the next time. */
static void listing_scenario(bool *ret_complete)
{
    bool armed = failing_malloc_pause();
    struct intern *intern = intern_new();
    failing_malloc_resume(armed);
    struct listing l = {.mark = {"__meta_url", "u"}};
    struct static_group targets = {0};
    struct err err = ERR_INIT;
    enum discovery_refresh got = listing_take(&l, SV(LIST), intern, &targets, &err);
    if (got == REFRESH_FAILED) {
        CHECK_INT(err.kind, ERR_MEMORY, err.msg);
        CHECK_INT(targets.n, 0, "");
        CHECK_INT(l.known, false, "");
        got = listing_take(&l, SV(LIST), intern, &targets, &err);
    }
    CHECK_INT(got, REFRESH_CHANGED, "");
    CHECK_INT(targets.n, 2, "");
    static_group_done(&targets);
    intern_free(intern);
    *ret_complete = true;
}

TEST(test_listing)
{
    assert_true(failing_malloc_each(FAIL_OURS, listing_scenario) >= 4);
}

static void files_scenario(bool *ret_complete)
{
    struct world w;
    setup(&w, "two: b:1\n");
    bool armed = failing_malloc_pause();
    char *dir = testing_mkdtemp();
    char wild[4096];
    char named[4096];
    testing_write_file(dir, "one", "- targets: [a:1]\n");
    testing_write_file(dir, "two", "- targets: [b:1]\n");
    snprintf(wild, sizeof(wild), "%s/o*", dir);
    snprintf(named, sizeof(named), "%s/two", dir);
    const char *names[] = {wild, named};
    struct config_file_sd config = {.files = {names, 2}, .refresh_ms = 10};
    failing_malloc_resume(armed);
    struct list_options options = options_of(&w, "file/0/");
    struct file_sd *f = file_sd_new(&config, &options);
    if (f != NULL) {
        file_sd_start(f);
        run_until_reported(&w);
        CHECK_CONTAINS(w.reported.data, "two: b:1\n", "");
        for (int i = 0; i < 1000 && strstr(w.reported.data, "one: a:1\n") == NULL; i++) {
            w.until = "one: a:1\n";
            run_until_reported(&w);
        }
        CHECK_INT(metric_value(w.counters.groups[GROUPS_FILE]), 2, "");
    } else {
        assert_true(failing_malloc_failed());
    }
    file_sd_free(f);
    CHECK_INT(metric_value(w.counters.groups[GROUPS_FILE]), 0, "");
    testing_rmdir(dir);
    free(dir);
    teardown(&w);
    *ret_complete = true;
}

TEST(test_files)
{
    assert_true(failing_malloc_each(FAIL_OURS, files_scenario) >= 8);
}

static void serve(struct evhttp_request *r, void *arg)
{
    (void)arg;
    struct evbuffer *body = evbuffer_new();
    assert_non_null(body);
    evbuffer_add(body, LIST, sizeof(LIST) - 1);
    evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Type", "application/json");
    evhttp_send_reply(r, 200, "OK", body);
    evbuffer_free(body);
}

static struct evhttp *start_server(struct world *w, char *url, size_t size)
{
    struct evhttp *server = evhttp_new(loop_event_base(w->loop));
    assert_non_null(server);
    evhttp_set_gencb(server, serve, w);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
    assert_non_null(bound);
    struct sockaddr_in address = {0};
    socklen_t len = sizeof(address);
    assert_int_equal(
        getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len), 0);
    snprintf(url, size, "http://127.0.0.1:%u/", (unsigned)ntohs(address.sin_port));
    return server;
}

static void url_scenario(bool *ret_complete)
{
    struct world w;
    char url[64];
    struct err err = ERR_INIT;
    setup(&w, "u: a:1 b:1\n");
    bool armed = failing_malloc_pause();
    struct evhttp *server = start_server(&w, url, sizeof(url));
    struct http_client *http =
        http_client_new(&(struct http_client_options){.loop = w.loop, .name = "t"}, &err);
    assert_non_null(http);
    struct config_http_sd config = {.url = url, .refresh_ms = 100};
    failing_malloc_resume(armed);
    struct list_options options = options_of(&w, "http/u");
    options.http = http;
    struct http_sd *h = http_sd_new(&config, &options);
    if (h != NULL) {
        http_sd_start(h);
        run_until_reported(&w);
        CHECK_INT(metric_value(w.counters.groups[GROUPS_HTTP]), 1, "");
    } else {
        assert_true(failing_malloc_failed());
    }
    http_sd_free(h);
    CHECK_INT(metric_value(w.counters.groups[GROUPS_HTTP]), 0, "");
    http_client_free(http);
    evhttp_free(server);
    teardown(&w);
    *ret_complete = true;
}

TEST(test_url)
{
    assert_true(failing_malloc_each(FAIL_OURS, url_scenario) >= 5);
}
