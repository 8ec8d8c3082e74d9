/* Credentials and proxies of the HTTP client: what is sent, to which server, and what is never
 * shown. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

/* The last Authorization header that the server received. */
static void check_authorization(struct server *s, const char *want, const char *row)
{
    char got[512];
    CHECK_STR(server_saw(s, "Authorization", got, sizeof(got)), want, row);
}

TEST(test_authorization)
{
    static const struct http_header own[] = {{"authorization", "Own thing"}};
    static const struct {
        const char *name;
        struct http_settings settings;
        const char *want;
    } rows[] = {
        {"none", {0}, ""},
        {"basic",
         {.auth = HTTP_AUTH_BASIC, .username = "user", .password = "pass"},
         "Basic dXNlcjpwYXNz"},
        {"basic, no name", {.auth = HTTP_AUTH_BASIC, .password = "pass"}, "Basic OnBhc3M="},
        {"basic, no password", {.auth = HTTP_AUTH_BASIC, .username = "user"}, "Basic dXNlcjo="},
        {"basic, colon",
         {.auth = HTTP_AUTH_BASIC, .username = "u", .password = "a:b@c/\xc3\xa9"},
         "Basic dTphOmJAYy/DqQ=="},
        {"bearer", {.auth = HTTP_AUTH_HEADER, .credentials = "abc"}, "Bearer abc"},
        {"another type",
         {.auth = HTTP_AUTH_HEADER, .auth_type = "Token", .credentials = "abc"},
         "Token abc"},
        {"own header wins",
         {.auth = HTTP_AUTH_HEADER, .credentials = "abc", .headers = own, .n_headers = 1},
         "Own thing"},
    };
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_get(&f, &f.call, f.server, &rows[i].settings);
        check_result(&f.call, HTTP_DONE, rows[i].name);
        check_authorization(f.server, rows[i].want, rows[i].name);
    }
    CHECK_INT(atomic_load(&f.server->accepted), 1,
              "credentials belong to requests, not connections");
}

TEST(test_userinfo_in_url)
{
    struct http_settings settings = {.auth = HTTP_AUTH_HEADER, .credentials = "abc"};
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    (void)snprintf(f.url, sizeof(f.url), "http://user:s3c%%72et@127.0.0.1:%u/x", f.server->port);
    fixture_do(&f, &f.call, &(struct http_request){.url = f.url});
    check_result(&f.call, HTTP_DONE, "");
    check_authorization(f.server, "Basic dXNlcjpzM2NyZXQ=", "user:s3cret");
    assert_true(server_saw_text(f.server, "GET /x HTTP/1.1\r\n"));
    fixture_do(&f, &f.call, &(struct http_request){.url = f.url, .settings = &settings});
    check_authorization(f.server, "Bearer abc", "the settings win");
    server_free(f.server);
    f.server = NULL;
    /* An error names the URL without it. */
    fixture_do(&f, &f.call, &(struct http_request){.url = f.url});
    check_result(&f.call, HTTP_ERR_CONNECT, "");
    assert_null(strstr(f.call.error, "s3c"));
    assert_null(strstr(f.call.error, "user"));
    fixture_do(&f, &f.call, &(struct http_request){.url = "http://user:s3cret@ h/"});
    check_result(&f.call, HTTP_ERR_CONFIG, "");
    assert_null(strstr(f.call.error, "s3c"));
}

/* ---- credentials in files -------------------------------------------------------------------- */

struct secret {
    char *dir;
    char path[256];
};

static struct secret secret_new(const char *text)
{
    struct secret secret = {.dir = testing_mkdtemp()};
    (void)snprintf(secret.path, sizeof(secret.path), "%s/secret", secret.dir);
    if (text != NULL) {
        testing_write_file(secret.dir, "secret", text);
    }
    return secret;
}

static void secret_done(struct secret *secret)
{
    testing_directory_leave(&secret->dir);
}
SCOPED_VALUE(secret, secret_done)

/* The client checks a file once a second; the test does not wait for that. */
static void forget(struct fixture *f, const struct secret *secret)
{
    http_files_forget(f->client->files, secret->path);
}

TEST(test_credentials_in_files)
{
    SCOPED(secret) secret = secret_new("one\r\n");
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    struct http_settings bearer = {.auth = HTTP_AUTH_HEADER, .credentials_file = secret.path};
    struct http_settings basic = {
        .auth = HTTP_AUTH_BASIC, .username = "u", .password_file = secret.path};
    fixture_get(&f, &f.call, f.server, &bearer);
    check_authorization(f.server, "Bearer one", "the line end is not part of it");
    fixture_get(&f, &f.call, f.server, &basic);
    check_authorization(f.server, "Basic dTpvbmU=", "u:one");
    testing_write_file(secret.dir, "secret", "two!\n");
    forget(&f, &secret);
    fixture_get(&f, &f.call, f.server, &bearer);
    check_authorization(f.server, "Bearer two!", "re-read");
    fixture_get(&f, &f.call, f.server, &basic);
    check_authorization(f.server, "Basic dTp0d28h", "u:two!");
}

TEST(test_bad_credential_files)
{
    SCOPED_MEMORY char *huge = testing_memory(HTTP_SECRET_FILE_MAX + 2);
    memset(huge, 'x', HTTP_SECRET_FILE_MAX + 1);
    huge[HTTP_SECRET_FILE_MAX + 1] = '\0';
    const struct {
        const char *name, *text, *error;
    } rows[] = {
        {"missing", NULL, "cannot open"},
        {"empty", "", "the file is empty"},
        {"blank", "\r\n", "the file is empty"},
        {"too large", huge, "expected at most 65536 bytes"},
        {"two lines", "s3cret\r\nEvil: 1", "expected one line of text"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(secret) secret = secret_new(rows[i].text);
        SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
        struct http_settings settings = {.auth = HTTP_AUTH_HEADER, .credentials_file = secret.path};
        fixture_get(&f, &f.call, f.server, &settings);
        check_result(&f.call, HTTP_ERR_CONFIG, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
        CHECK_CONTAINS(f.call.error, secret.path, rows[i].name);
        assert_null(strstr(f.call.error, "s3cret"));
        assert_null(strstr(f.call.error, "xxxx"));
        fixture_get(&f, &f.call, f.server, NULL);
        check_result(&f.call, HTTP_DONE, "the neighbour");
    }
}

/* Accepts only the token "new". */
static void want_new(struct server_conn *c)
{
    char got[64];
    while (server_read_request(c)) {
        bool ok = server_header(c->head, "Authorization", got, sizeof(got)) &&
                  strcmp(got, "Bearer new") == 0;
        server_send(c, ok ? OK_HEAD "Content-Length: 0\r\n\r\n"
                          : "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    }
}

/* A token file that has changed is read again immediately after a 401. */
TEST(test_refused_token_is_read_again)
{
    SCOPED(secret) secret = secret_new("old");
    SCOPED(fixture) f = fixture_with(1, want_new, NULL);
    struct http_settings settings = {.auth = HTTP_AUTH_HEADER, .credentials_file = secret.path};
    fixture_get(&f, &f.call, f.server, &settings);
    CHECK_INT(f.call.status, 401, "");
    testing_write_file(secret.dir, "secret", "new");
    fixture_get(&f, &f.call, f.server, &settings);
    CHECK_INT(f.call.status, 200, "a refusal does not wait for the next look at the file");
}

/* ---- signatures ------------------------------------------------------------------------------ */

/* All headers that are sent are signed, and none that is not; a server that computes it
 * itself is in the end-to-end tests. */
TEST(test_signature)
{
    static const struct http_header own[] = {{"Content-Type", "a/b"},
                                             {"x-amz-content-sha256", "0123"}};
    static const struct http_part body = {"abc", 3};
    SCOPED(secret) secret = secret_new("token\n");
    char got[512];
    char date[64];
    char want[128];
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    struct http_settings settings = {.auth = HTTP_AUTH_S3,
                                     .username = "AKID",
                                     .password = "s3cret",
                                     .region = "eu-1",
                                     .session_token_file = secret.path};
    struct http_request request = {.method = "PUT",
                                   .settings = &settings,
                                   .headers = own,
                                   .n_headers = 2,
                                   .body = &body,
                                   .n_body = 1};
    fixture_ask(&f, "/x", &request);
    CHECK_INT(f.call.status, 200, "");
    CHECK_STR(server_saw(f.server, "x-amz-security-token", got, sizeof(got)), "token", "");
    CHECK_STR(server_saw(f.server, "Content-Length", got, sizeof(got)), "3", "");
    assert_non_null(server_saw(f.server, "X-Amz-Date", date, sizeof(date)));
    (void)snprintf(want, sizeof(want),
                   "AWS4-HMAC-SHA256 Credential=AKID/%.8s/eu-1/s3/aws4_request, ", date);
    CHECK_CONTAINS(server_saw(f.server, "Authorization", got, sizeof(got)), want, "");
    CHECK_CONTAINS(got,
                   "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;"
                   "x-amz-security-token, ",
                   "");
    assert_null(strstr(got, "s3cret"));
    /* The next request on the same connection has nothing of it. */
    fixture_get(&f, &f.call, f.server, NULL);
    check_authorization(f.server, "", "");
}

/* ---- credentials and redirects --------------------------------------------------------------- */

static void redirect_to_arg(struct server_conn *c)
{
    char answer[512];
    while (server_read_request(c)) {
        (void)snprintf(answer, sizeof(answer),
                       "HTTP/1.1 302 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                       (const char *)server_arg(c));
        server_send(c, answer);
    }
}

TEST(test_no_credentials_elsewhere)
{
    struct http_settings settings = {
        .auth = HTTP_AUTH_BASIC, .username = "u", .password = "s3cret", .follow_redirects = true};
    char url[URL_SIZE];
    SCOPED(server) *other = server_new(server_hello, NULL);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", other->port);
    SCOPED(fixture) f = fixture_with(1, redirect_to_arg, url);
    fixture_get(&f, &f.call, f.server, &settings);
    check_result(&f.call, HTTP_ERR_REDIRECT, "");
    CHECK_INT(atomic_load(&f.server->requests), 1, "");
    CHECK_INT(atomic_load(&other->accepted), 0, "it was not even contacted");
}

/* ---- proxies --------------------------------------------------------------------------------- */

static void clear_environment(void)
{
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
}

TEST(test_proxies)
{
    static const struct {
        const char *name;
        const char *variable; /* set to the proxy's URL */
        const char *no_proxy_variable;
        unsigned proxy_url, from_environment;
        const char *no_proxy;
        bool want_proxy;
    } rows[] = {
        {"none", NULL, NULL, false, false, NULL, false},
        {"environment ignored", "http_proxy", NULL, false, false, NULL, false},
        {"ALL_PROXY ignored", "ALL_PROXY", NULL, false, false, NULL, false},
        {"http_proxy", "http_proxy", NULL, false, true, NULL, true},
        {"HTTP_PROXY", "HTTP_PROXY", NULL, false, true, NULL, true},
        {"https_proxy is not for http", "https_proxy", NULL, false, true, NULL, false},
        {"NO_PROXY=*", "http_proxy", "*", false, true, NULL, false},
        {"NO_PROXY of others", "http_proxy", "example.com", false, true, NULL, true},
        {"asked for, none there", NULL, NULL, false, true, NULL, false},
        {"configured", NULL, NULL, true, false, NULL, true},
        {"configured, but not for this host", NULL, NULL, true, false, "127.0.0.1", false},
        {"configured, for others not", NULL, NULL, true, false, "example.com", true},
        {"the variable does not touch it", NULL, "*", true, false, NULL, true},
    };
    char proxy_url[URL_SIZE];
    SCOPED(server) *proxy = server_new(server_hello, NULL);
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    (void)snprintf(proxy_url, sizeof(proxy_url), "http://127.0.0.1:%u", proxy->port);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_settings settings = {.proxy_url = rows[i].proxy_url ? proxy_url : NULL,
                                         .no_proxy = rows[i].no_proxy,
                                         .proxy_from_environment = rows[i].from_environment};
        clear_environment();
        if (rows[i].variable != NULL) {
            setenv(rows[i].variable, proxy_url, 1);
        }
        if (rows[i].no_proxy_variable != NULL) {
            setenv("no_proxy", rows[i].no_proxy_variable, 1);
        }
        unsigned before = atomic_load(&proxy->requests);
        fixture_get(&f, &f.call, f.server, &settings);
        clear_environment();
        check_result(&f.call, HTTP_DONE, rows[i].name);
        CHECK_INT(atomic_load(&proxy->requests) - before, rows[i].want_proxy, rows[i].name);
    }
    assert_true(server_saw_text(proxy, "GET http://127.0.0.1:"));
}

/* The message names the proxy: the server of the URL was never asked. */
TEST(test_proxy_away)
{
    char proxy_url[URL_SIZE];
    char port[32];
    struct server *proxy = server_new(server_hello, NULL);
    struct http_settings settings = {.proxy_url = proxy_url};
    SCOPED(fixture) f = fixture_with(1, server_hello, NULL);
    (void)snprintf(proxy_url, sizeof(proxy_url), "http://u:s3cret@127.0.0.1:%u", proxy->port);
    (void)snprintf(port, sizeof(port), "port %u", proxy->port);
    server_free(proxy); /* the port no longer listens */
    fixture_get(&f, &f.call, f.server, &settings);
    check_result(&f.call, HTTP_ERR_CONNECT, "");
    CHECK_CONTAINS(f.call.error, "connection refused (", "");
    CHECK_CONTAINS(f.call.error, port, "");
    assert_null(strstr(f.call.error, "s3cret"));
    CHECK_INT(atomic_load(&f.server->requests), 0, "");
}

/* A CONNECT request to a proxy has no header that is meant for the server. */
TEST(test_no_credentials_for_the_proxy)
{
    static const struct http_header headers[] = {{"X-Secret", "s3cret"}};
    char proxy_url[URL_SIZE], text[64];
    const char *refusal = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
    SCOPED(fixture) f = fixture_with(1, server_answer, refusal);
    (void)snprintf(proxy_url, sizeof(proxy_url), "http://pu:pp@127.0.0.1:%u", f.server->port);
    struct http_settings settings = {.auth = HTTP_AUTH_HEADER,
                                     .credentials = "s3cret",
                                     .proxy_url = proxy_url,
                                     .headers = headers,
                                     .n_headers = 1};
    fixture_do(&f, &f.call,
               &(struct http_request){.url = "https://127.0.0.1:1/", .settings = &settings});
    check_result(&f.call, HTTP_ERR_CONNECT, "");
    CHECK_CONTAINS(f.call.error, "response 403", "");
    CHECK_INT(f.call.status, 0, "the proxy's status is not the server's");
    assert_null(strstr(f.call.error, "pp@"));
    assert_true(server_saw_text(f.server, "CONNECT 127.0.0.1:1 HTTP/1.1"));
    assert_false(server_saw_text(f.server, "s3cret"));
    CHECK_STR(server_saw(f.server, "Proxy-Authorization", text, sizeof(text)),
              "Basic cHU6cHA=", "pu:pp");
}

int main(void)
{
    clear_environment();
    hang_watch();
    return run_both_ways(NULL, NULL);
}
