/* The HTTP client out of memory: each allocation, also of libcurl, fails once. on_done() is called
 * once or http_start() returns NULL, and the next request works. */
#include "tests/unit/lib/http_server.h"

#include <curl/curl.h>
#include <netdb.h>

#include "http/private.h"
#include "tests/unit/lib/failing_malloc.h"

/* /start redirects to /end. */
static void serve(struct server_conn *c)
{
    char body[256];
    char length[16] = "0";
    while (server_read_request(c)) {
        (void)server_header(c->head, "Content-Length", length, sizeof(length));
        size_t n = strtoul(length, NULL, 10);
        if (strncmp(c->head, "POST", 4) == 0 &&
            (n > sizeof(body) || !server_read_body(c, body, n))) {
            return;
        }
        if (strstr(c->head, " /token") != NULL) {
            server_send(c, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"
                           "{\"access_token\":\"t\"}");
        } else if (strstr(c->head, " /start") != NULL) {
            server_send(c, "HTTP/1.1 302 Moved\r\nLocation: /end?a=1\r\nContent-Length: 0\r\n\r\n");
        } else {
            server_send(c,
                        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello");
        }
    }
}

/* The parameters of the scenarios. */
static struct {
    struct server *server;
    char dir[256];
    char secret[300];
    struct http_oauth2 *oauth2; /* of the scenario that has one */
} place;

struct outcome {
    struct loop *loop;
    unsigned done;
    enum http_result result;
    bool whole;
};

static void note_outcome(void *arg, const struct http_response *r)
{
    struct outcome *o = arg;
    o->done++;
    o->result = r->result;
    o->whole = r->result == HTTP_DONE && r->body->len == 5;
    assert_true(r->result == HTTP_DONE || r->error[0] != '\0');
    loop_stop(o->loop);
}

static bool run_one(struct http_client *client, struct loop *l, const struct http_request *r)
{
    struct outcome o = {.loop = l};
    struct http_request request = *r;
    request.on_done = note_outcome;
    request.arg = &o;
    if (http_start(client, &request) != NULL) {
        CHECK_INT(o.done, 0, "not from within http_start");
        loop_run(l);
        CHECK_INT(o.done, 1, "once");
    }
    return o.whole;
}

/* With another client_id: a fetch that failed out of memory within libcurl is not retried at once.
 */
static bool run_again(struct http_client *client, struct loop *l, const struct http_request *r,
                      const char *as)
{
    if (place.oauth2 != NULL) {
        place.oauth2->client_id = as;
    }
    return run_one(client, l, r);
}

static int this_machine(const char *host, char **ret_addresses)
{
    (void)host;
    *ret_addresses = strdup("127.0.0.1");
    return *ret_addresses != NULL ? 0 : EAI_MEMORY;
}

/* If an allocation fails, the first request may fail, but not the client: it has memory again for
 * the next one. (Or the one after that: a handle whose curl_easy_reset() was out of
 * memory is unusable, cannot be recognised, and is repaired by the next reset.) */
static void run_twice(const struct http_request *r, bool *ret_complete)
{
    struct err err = ERR_INIT;
    SCOPED(loop) *l = loop_new(&err);
    if (l == NULL) {
        assert_true(failing_malloc_failed());
        return;
    }
    struct http_client *client =
        http_client_new(&(struct http_client_options){.loop = l,
                                                      .name = "test",
                                                      .shards = 2,
                                                      .lookup = this_machine,
                                                      .only_libcurl = only_libcurl},
                        &err);
    if (client != NULL) {
        *ret_complete = run_one(client, l, r);
        assert_true(*ret_complete || failing_malloc_failed());
        if (failing_malloc_failed()) {
            assert_true(run_again(client, l, r, "second") || run_again(client, l, r, "third"));
        }
        CHECK_INT(client->in_flight, 0, "");
        http_client_free(client);
    } else {
        CHECK_INT(err.kind == ERR_MEMORY || err.kind == ERR_SYSTEM, true, "http_client_new");
    }
}

/* The deadlines, which nothing else here reaches, are for such a handle: it does not send its
 * body, and with some versions of libcurl (8.5) a GET may come to no end either. */
static void get_scenario(bool *ret_complete)
{
    static const struct http_header headers[] = {{"X-One", "1"}, {"X-Two", ""}};
    char url[URL_SIZE];
    struct http_settings settings = {.auth = HTTP_AUTH_HEADER,
                                     .credentials_file = place.secret,
                                     .follow_redirects = true,
                                     .headers = headers,
                                     .n_headers = 2};
    run_twice(&(struct http_request){.url = server_url(place.server, "/start", url),
                                     .settings = &settings,
                                     .timeout_ms = 2000,
                                     .max_body = 100},
              ret_complete);
}

/* A host by its name, through a proxy that has one as well. */
static void name_scenario(bool *ret_complete)
{
    char proxy[URL_SIZE];
    struct http_settings settings = {.proxy_url = proxy, .no_proxy = "direct.test"};
    (void)snprintf(proxy, sizeof(proxy), "http://proxy.test:%u", place.server->port);
    run_twice(
        &(struct http_request){
            .url = "http://far.test/", .settings = &settings, .timeout_ms = 2000, .max_body = 100},
        ret_complete);
}

static void post_scenario(bool *ret_complete)
{
    static const struct http_part parts[] = {{"ab", 2}, {"cde", 3}};
    char url[URL_SIZE];
    struct http_settings settings = {
        .auth = HTTP_AUTH_BASIC, .username = "u", .password_file = place.secret};
    run_twice(&(struct http_request){.method = "POST",
                                     .url = server_url(place.server, "/", url),
                                     .settings = &settings,
                                     .body = parts,
                                     .n_body = 2,
                                     .timeout_ms = 2000,
                                     .max_body = 100},
              ret_complete);
}

/* The token comes from the same server. */
static void token_scenario(bool *ret_complete)
{
    static const char *const scopes[] = {"a", "b"};
    static const struct http_header params[] = {{"audience", "x"}};
    static const struct http_header proxy[] = {{"X-Proxy", "x"}};
    char url[URL_SIZE];
    char token_url[URL_SIZE];
    struct http_oauth2 oauth2 = {.client_id = "i",
                                 .client_secret_file = place.secret,
                                 .token_url = server_url(place.server, "/token", token_url),
                                 .scopes = scopes,
                                 .n_scopes = 2,
                                 .params = params,
                                 .n_params = 1};
    struct http_settings settings = {
        .auth = HTTP_AUTH_OAUTH2, .oauth2 = &oauth2, .proxy_headers = proxy, .n_proxy_headers = 1};
    place.oauth2 = &oauth2;
    run_twice(&(struct http_request){.url = server_url(place.server, "/", url),
                                     .settings = &settings,
                                     .timeout_ms = 2000,
                                     .max_body = 100},
              ret_complete);
    place.oauth2 = NULL;
}

TEST(test_token)
{
    assert_true(failing_malloc_each(FAIL_OURS, token_scenario) > 50);
}

TEST(test_get)
{
    size_t n = failing_malloc_each(FAIL_OURS, get_scenario);
    print_message("%zu allocations\n", n);
    assert_true(n > 50);
}

TEST(test_name)
{
    assert_true(failing_malloc_each(FAIL_OURS, name_scenario) > 50);
}

TEST(test_post)
{
    assert_true(failing_malloc_each(FAIL_OURS, post_scenario) > (only_libcurl ? 50 : 20));
}

static int set_up(void **state)
{
    (void)state;
    char *dir = testing_mkdtemp();
    (void)snprintf(place.dir, sizeof(place.dir), "%s", dir);
    (void)snprintf(place.secret, sizeof(place.secret), "%s/secret", dir);
    testing_write_file(dir, "secret", "abc");
    free(dir);
    place.server = server_new(serve, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_free(place.server);
    testing_rmdir(place.dir);
    return 0;
}

int main(void)
{
    /* First of all, so that the allocations of libcurl fail too. */
    if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, free, realloc, strdup, calloc) !=
        CURLE_OK) {
        return 1;
    }
    hang_watch();
    int failed = run_both_ways(set_up, tear_down);
    curl_global_cleanup();
    return failed;
}
