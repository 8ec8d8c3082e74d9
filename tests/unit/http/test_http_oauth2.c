/* Tokens by client credentials: when they are fetched, the form, waiting transfers, failures. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

/* The behaviour of the token server, whose requests come one after the other. */
struct issuer {
    atomic_int asked;
    int refuse;          /* the number of requests that it answers with 401 */
    const char *expires; /* ",\"expires_in\":3600" */
    const char *answer;  /* instead of a token */
    char form[512];      /* of the last request */
    char authorization[256];
};

static void issue(struct server_conn *c)
{
    struct issuer *me = server_arg(c);
    char length[16];
    char answer[512];
    while (server_read_request(c)) {
        int n = atomic_fetch_add(&me->asked, 1) + 1;
        size_t size = server_header(c->head, "Content-Length", length, sizeof(length))
                          ? strtoul(length, NULL, 10)
                          : 0;
        if (size >= sizeof(me->form) || !server_read_body(c, me->form, size)) {
            return;
        }
        me->form[size] = '\0';
        if (!server_header(c->head, "Authorization", me->authorization,
                           sizeof(me->authorization))) {
            me->authorization[0] = '\0';
        }
        char body[256];
        (void)snprintf(body, sizeof(body), "{\"access_token\":\"t%d\",\"token_type\":\"bearer\"%s}",
                       n, me->expires != NULL ? me->expires : "");
        const char *text = me->answer != NULL ? me->answer : body;
        bool refused = n <= me->refuse;
        if (refused) {
            text = "{\"error\":\"invalid_client\",\"error_description\":\"s3cret\"}";
        }
        (void)snprintf(
            answer, sizeof(answer),
            "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            refused ? "401 Unauthorized" : "200 OK", strlen(text), text);
        server_send(c, answer);
    }
}

/* A server that accepts the token in its argument (any if NULL). */
static void guarded(struct server_conn *c)
{
    const char *want = server_arg(c);
    char got[256];
    while (server_read_request(c)) {
        bool ok = server_header(c->head, "Authorization", got, sizeof(got)) &&
                  (want == NULL || strcmp(got, want) == 0);
        server_send(c, ok ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                          : "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    }
}

struct rig {
    struct fixture f;
    struct issuer issuer;
    struct server *tokens;
    char token_url[URL_SIZE];
    struct http_oauth2 oauth2;
    struct http_settings settings;
};

static void rig_init(struct rig *r)
{
    r->f = fixture_with(1, guarded, NULL);
    r->tokens = server_new(issue, &r->issuer);
    r->oauth2 = (struct http_oauth2){.client_id = "me:1",
                                     .client_secret = "s3cret/+",
                                     .token_url = server_url(r->tokens, "/token", r->token_url)};
    r->settings = (struct http_settings){.auth = HTTP_AUTH_OAUTH2, .oauth2 = &r->oauth2};
}

static void rig_done(struct rig *r)
{
    fixture_done(&r->f);
    server_free(r->tokens);
}
SCOPED_VALUE(rig, rig_done)

SETUP_OF(rig)

static void get(struct rig *r)
{
    fixture_get(&r->f, &r->f.call, r->f.server, &r->settings);
    assert_null(strstr(r->f.call.error, "s3cret"));
}

TEST_ON(struct rig *r, test_fetched_once)
{
    static const char *const scopes[] = {"a", "b:c"};
    static const struct http_header params[] = {{"audience", "x y"}};
    server_set_arg(r->f.server, "Bearer t1");
    r->oauth2.scopes = scopes;
    r->oauth2.n_scopes = 2;
    r->oauth2.params = params;
    r->oauth2.n_params = 1;
    for (int i = 0; i < 3; i++) {
        get(r);
        CHECK_INT(r->f.call.result, HTTP_DONE, r->f.call.error);
        CHECK_INT(r->f.call.status, 200, "");
    }
    CHECK_INT(atomic_load(&r->issuer.asked), 1, "");
    CHECK_STR(r->issuer.form, "grant_type=client_credentials&scope=a%20b%3Ac&audience=x%20y", "");
    /* me%3A1:s3cret%2F%2B */
    CHECK_STR(r->issuer.authorization, "Basic bWUlM0ExOnMzY3JldCUyRiUyQg==", "");
}

/* Transfers that need the token at the same time wait for one fetch. */
TEST_ON(struct rig *r, test_shared_fetch)
{
    struct call calls[8] = {{0}};
    server_set_arg(r->f.server, "Bearer t1");
    for (size_t i = 0; i < 8; i++) {
        fixture_start_path(&r->f, &calls[i], "/", &(struct http_request){.settings = &r->settings});
    }
    /* The first one is cancelled: the fetch used its settings, and is started again. */
    http_cancel(calls[0].transfer);
    http_cancel(calls[5].transfer);
    r->f.waiting -= 2;
    fixture_wait(&r->f);
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(calls[i].done, i == 0 || i == 5 ? 0 : 1, "");
        CHECK_INT(calls[i].status, i == 0 || i == 5 ? 0 : 200, calls[i].error);
        call_clear(&calls[i]);
    }
    CHECK_INT(r->f.client->in_flight, 0, "");
}

/* A server that wants the credentials in the form gets them there, the next time immediately. */
TEST_ON(struct rig *r, test_credentials_in_form)
{
    r->issuer.refuse = 1;
    get(r);
    CHECK_INT(r->f.call.status, 200, r->f.call.error);
    CHECK_INT(atomic_load(&r->issuer.asked), 2, "");
    CHECK_STR(r->issuer.authorization, "", "");
    CHECK_STR(r->issuer.form,
              "grant_type=client_credentials&client_id=me%3A1&client_secret=s3cret%2F%2B", "");
}

/* Without a token, all transfers that need it fail with the reason, and not each one asks again. */
TEST_ON(struct rig *r, test_refused_client)
{
    r->issuer.refuse = 100;
    for (int i = 0; i < 3; i++) {
        get(r);
        CHECK_INT(r->f.call.result, HTTP_ERR_CONFIG, "");
        CHECK_CONTAINS(r->f.call.error, "oauth2: the token URL answered HTTP 401: invalid_client",
                       "");
    }
    CHECK_INT(atomic_load(&r->issuer.asked), 2, "one fetch, both ways");
    CHECK_INT(atomic_load(&r->f.server->requests), 0, "nothing went out without a token");
}

TEST(test_bad_answers)
{
    static const char *const answers[] = {
        "", "null", "[]", "{}", "{\"access_token\":1}", "{\"access_token\":\"\"}", "<html>"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        SCOPED(rig) r = {.issuer.answer = answers[i]};
        rig_init(&r);
        get(&r);
        CHECK_INT(r.f.call.result, HTTP_ERR_CONFIG, answers[i]);
        CHECK_CONTAINS(r.f.call.error, "answered HTTP 200", answers[i]);
    }
}

/* A token with a line break would inject a header. */
TEST_ON(struct rig *r, test_token_of_two_lines)
{
    r->issuer.answer = "{\"access_token\":\"a\\r\\nX-Evil: 1\"}";
    get(r);
    CHECK_INT(r->f.call.result, HTTP_ERR_CONFIG, "");
    CHECK_INT(atomic_load(&r->f.server->requests), 0, "");
}

TEST_ON(struct rig *r, test_no_token_server)
{
    r->oauth2.token_url = "http://127.0.0.1:1/token";
    get(r);
    CHECK_INT(r->f.call.result, HTTP_ERR_CONNECT, "");
    CHECK_CONTAINS(r->f.call.error, "oauth2: POST http://127.0.0.1:1/token", "");
}

/* Fetches a token with the secret in this file. */
static void get_with_file(struct rig *r, const char *path)
{
    rig_init(r);
    r->oauth2.client_secret = NULL;
    r->oauth2.client_secret_file = path;
    get(r);
}

TEST(test_secret_file)
{
    SCOPED(rig) without = {0}, r = {0};
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/secret", dir);
    get_with_file(&without, path);
    CHECK_INT(without.f.call.result, HTTP_ERR_CONFIG, "no file");
    testing_write_file(dir, "secret", "of file\n");
    get_with_file(&r, path);
    CHECK_INT(r.f.call.status, 200, r.f.call.error);
    CHECK_STR(r.issuer.authorization, "Basic bWUlM0ExOm9mJTIwZmlsZQ==", "me%3A1:of%20file");
}

/* A token that has expired is fetched again: a life of one millisecond ends before the next
 * request.
 */
TEST_ON(struct rig *r, test_expiry)
{
    r->issuer.expires = ",\"expires_in\":0.001";
    get(r);
    int64_t until = clock_mono_ms() + 2;
    while (clock_mono_ms() < until) {
        ;
    }
    get(r);
    CHECK_INT(r->f.call.status, 200, r->f.call.error);
    CHECK_INT(atomic_load(&r->issuer.asked), 2, "");
}

/* Freeing the client ends waiting transfers like all others. */
TEST_ON(struct rig *r, test_client_freed)
{
    fixture_start_path(&r->f, &r->f.call, "/", &(struct http_request){.settings = &r->settings});
    http_client_free(r->f.client);
    r->f.client = NULL;
    CHECK_INT(r->f.call.done, 1, "");
    CHECK_INT(r->f.call.result, HTTP_ERR_ABORTED, "");
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
