/* Sources of credentials: a server that is strict about their protocols, an environment and a clock
 * of the test, and requests for keys. */
#ifndef PROFPULL_TESTS_CREDENTIALS_RIG_H
#define PROFPULL_TESTS_CREDENTIALS_RIG_H

#include "tests/unit/lib/http_server.h"

#include "bucket/credentials.h"
#include "bucket/sources.h"

#define START (INT64_C(1795231414) * NS_PER_S) /* 2026-11-21T03:23:34Z */
#define HOUR_NS (3600 * NS_PER_S)
#define ENV_MAX 12
#define KEY_ID "ASIAEXAMPLE"
#define SECRET "hunter2/secret+key"
#define SESSION "hunter2-session"
#define IMDS_TOKEN "hunter2-imds"

/* ---- a server of secrets --------------------------------------------------------------------- */

struct source {
    atomic_int asked;   /* requests that were right */
    atomic_int wrong;   /* requests that were not */
    atomic_int refuse;  /* the next requests get 500 */
    atomic_int forbid;  /* the next requests get 403 */
    atomic_int version; /* of the secrets: a digit at their end */
    char expires[40];
    const char *flavor; /* header of the answer */
    const char *answer; /* instead of the right one */
    char token[64];     /* the token that must come along */
    char form[16384];   /* of the last POST */
};

static inline void set_expiry(struct source *s, int64_t wall_ns)
{
    clock_format_rfc3339(wall_ns, s->expires, sizeof(s->expires));
}

static inline void answer(struct server_conn *c, const char *status, const char *headers,
                          const char *body)
{
    char head[512];
    (void)snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status,
                   headers, strlen(body));
    server_send(c, head);
    server_send(c, body);
}

static inline void answer_json(struct server_conn *c, struct source *s)
{
    char body[512];
    int v = atomic_load(&s->version);
    (void)snprintf(body, sizeof(body),
                   "{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"%s%d\","
                   "\"SecretAccessKey\":\"%s%d\",\"Token\":\"%s%d\",\"Expiration\":\"%s\"}",
                   KEY_ID, v, SECRET, v, SESSION, v, s->expires);
    answer(c, "200 OK", "Content-Type: application/json\r\n", s->answer != NULL ? s->answer : body);
}

static inline void answer_sts(struct server_conn *c, struct source *s)
{
    char body[1024];
    int v = atomic_load(&s->version);
    (void)snprintf(
        body, sizeof(body),
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
        "  <AssumeRoleWithWebIdentityResult>\n    <Audience>sts.amazonaws.com</Audience>\n"
        "    <Credentials>\n      <SessionToken>%s%d</SessionToken>\n"
        "      <SecretAccessKey>%s%d</SecretAccessKey>\n      <Expiration>%s</Expiration>\n"
        "      <AccessKeyId>%s%d</AccessKeyId>\n    </Credentials>\n"
        "  </AssumeRoleWithWebIdentityResult>\n"
        "  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>\n"
        "</AssumeRoleWithWebIdentityResponse>\n",
        SESSION, v, SECRET, v, s->expires, KEY_ID, v);
    answer(c, "200 OK", "Content-Type: text/xml\r\n", s->answer != NULL ? s->answer : body);
}

static inline void answer_google(struct server_conn *c, struct source *s)
{
    char body[256];
    char flavor[64] = "";
    (void)snprintf(body, sizeof(body),
                   "{\"access_token\":\"hunter2-token%d\",\"expires_in\":3599,\"token_type\":"
                   "\"Bearer\"}",
                   atomic_load(&s->version));
    if (s->flavor != NULL) {
        (void)snprintf(flavor, sizeof(flavor), "Metadata-Flavor: %s\r\n", s->flavor);
    }
    answer(c, "200 OK", flavor, s->answer != NULL ? s->answer : body);
}

static inline bool begins(const struct server_conn *c, const char *line)
{
    return strncmp(c->head, line, strlen(line)) == 0;
}

static inline bool has(const struct server_conn *c, const char *name, const char *value)
{
    char text[512];
    return server_header(c->head, name, text, sizeof(text)) && strcmp(text, value) == 0;
}

static inline bool has_any(const struct server_conn *c, const char *name)
{
    char text[512];
    return server_header(c->head, name, text, sizeof(text));
}

static inline void read_form(struct server_conn *c, struct source *s)
{
    char length[16] = "0";
    (void)server_header(c->head, "Content-Length", length, sizeof(length));
    size_t n = strtoul(length, NULL, 10);
    n = n < sizeof(s->form) ? n : sizeof(s->form) - 1;
    if (server_read_body(c, s->form, n)) {
        s->form[n] = '\0';
    }
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

/* Answers one right request; returns false for any other. */
static inline bool serve_right(struct server_conn *c, struct source *s)
{
    if (begins(c, "POST /sts/ HTTP/1.1\r\n") || begins(c, "POST /token HTTP/1.1\r\n")) {
        bool is_sts = begins(c, "POST /sts/");
        if (!has(c, "Content-Type", "application/x-www-form-urlencoded") ||
            has_any(c, "Authorization")) {
            return false;
        }
        is_sts ? answer_sts(c, s) : answer_google(c, s);
    } else if (begins(c, "GET /container HTTP/1.1\r\n") && has(c, "Authorization", s->token)) {
        answer_json(c, s);
    } else if (begins(c, "PUT /latest/api/token HTTP/1.1\r\n") &&
               has(c, "X-aws-ec2-metadata-token-ttl-seconds", "300") &&
               has(c, "Content-Length", "0")) {
        answer(c, "200 OK", "", IMDS_TOKEN);
    } else if (begins(c, "GET " ROLES " HTTP/1.1\r\n") &&
               has(c, "X-aws-ec2-metadata-token", IMDS_TOKEN)) {
        answer(c, "200 OK", "", "my-role\n");
    } else if (begins(c, "GET " ROLES "my-role HTTP/1.1\r\n") &&
               has(c, "X-aws-ec2-metadata-token", IMDS_TOKEN)) {
        answer_json(c, s);
    } else if (begins(c, "GET /computeMetadata/v1/instance/service-accounts/default/token "
                         "HTTP/1.1\r\n") &&
               has(c, "Metadata-Flavor", "Google")) {
        answer_google(c, s);
    } else {
        return false;
    }
    return true;
}

static inline bool take_one(atomic_int *left)
{
    int n = atomic_load(left);
    while (n > 0 && !atomic_compare_exchange_weak(left, &n, n - 1)) {
    }
    return n > 0;
}

static inline void serve(struct server_conn *c)
{
    struct source *s = server_arg(c);
    while (server_read_request(c)) {
        if (begins(c, "POST ")) {
            read_form(c, s);
        }
        if (take_one(&s->refuse)) {
            answer(c, "500 Internal Server Error", "", "{\"message\":\"hold on\"}");
            continue;
        }
        if (take_one(&s->forbid)) {
            answer(c, "403 Forbidden", "",
                   "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not "
                   "authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error>"
                   "</ErrorResponse>");
            continue;
        }
        /* Counted before the answer, which a test may wait for. */
        atomic_fetch_add(&s->asked, 1);
        if (!serve_right(c, s)) {
            atomic_fetch_sub(&s->asked, 1);
            atomic_fetch_add(&s->wrong, 1);
            answer(c, "400 Bad Request", "", "");
        }
    }
}

/* ---- the rig --------------------------------------------------------------------------------- */

struct rig {
    struct fixture f;
    struct source source;
    struct server *server;
    char *dir;
    const char *env[ENV_MAX][2];
    char texts[ENV_MAX][512];
    size_t n_env;
    int64_t wall_ns;
    struct credentials_world world;
    struct bucket_settings settings;
    struct credentials *credentials;
};

static inline const char *rig_env(void *arg, const char *name)
{
    struct rig *r = arg;
    for (size_t i = 0; i < r->n_env; i++) {
        if (strcmp(r->env[i][0], name) == 0) {
            return r->env[i][1];
        }
    }
    return NULL;
}

static inline int64_t rig_wall_ns(void *arg)
{
    return ((struct rig *)arg)->wall_ns;
}

static inline void set_env(struct rig *r, const char *name, const char *value)
{
    size_t i = r->n_env++;
    assert_true(i < ENV_MAX);
    (void)snprintf(r->texts[i], sizeof(r->texts[i]), "%s", value);
    r->env[i][0] = name;
    r->env[i][1] = r->texts[i];
}

/* Sets a variable to a path on the server. */
static inline void set_env_url(struct rig *r, const char *name, const char *path)
{
    char url[URL_SIZE];
    set_env(r, name, server_url(r->server, path, url));
}

/* Sets a variable to a file with a text. */
static inline void set_env_file(struct rig *r, const char *name, const char *file, const char *text)
{
    char path[512];
    testing_write_file(r->dir, file, text);
    (void)snprintf(path, sizeof(path), "%s/%s", r->dir, file);
    set_env(r, name, path);
}

static inline void rig_init(struct rig *r, enum credentials_source source)
{
    *r = (struct rig){.wall_ns = START};
    bool google = source == CREDENTIALS_SERVICE_ACCOUNT || source == CREDENTIALS_METADATA;
    r->f = fixture_new(1);
    r->server = server_new(serve, &r->source);
    r->dir = testing_mkdtemp();
    set_expiry(&r->source, START + HOUR_NS);
    r->world = (struct credentials_world){.env = rig_env, .wall_ns = rig_wall_ns, .arg = r};
    r->settings = (struct bucket_settings){.url = google ? "gs://bbb/p" : "s3://bbb/p",
                                           .credentials = source,
                                           .http = {.region = "eu-test-1"}};
}

static inline void rig_start(struct rig *r)
{
    struct err err = ERR_INIT;
    r->credentials = credentials_new(&(struct credentials_options){.settings = &r->settings,
                                                                   .loop = r->f.loop,
                                                                   .http = r->f.client,
                                                                   .log = testing_log(r->f.log),
                                                                   .metrics = r->f.metrics,
                                                                   .name = "test",
                                                                   .world = &r->world},
                                     &err);
    assert_non_null(r->credentials);
}

static inline void rig_done(struct rig *r)
{
    credentials_free(r->credentials);
    assert_null(strstr(testing_log_text(r->f.log), "hunter2"));
    fixture_done(&r->f);
    server_free(r->server);
    testing_directory_leave(&r->dir);
}
SCOPED_VALUE(rig, rig_done)

/* One wait for keys. */
struct wait {
    struct rig *rig;
    struct credentials_use use;
    struct credentials_keys *keys;
    struct err err;
    bool done;
};

static inline void on_ready(void *arg, struct credentials_keys *keys, const struct err *why)
{
    struct wait *w = arg;
    w->keys = keys;
    w->err = *why;
    w->done = true;
    loop_stop(w->rig->f.loop);
}

static inline void ask(struct rig *r, struct wait *w)
{
    *w = (struct wait){.rig = r};
    w->use.on_ready = on_ready;
    w->use.arg = w;
    w->keys = credentials_get(r->credentials, &w->use);
    w->done = w->keys != NULL;
}

static inline void finish(struct wait *w)
{
    while (!w->done) {
        loop_run(w->rig->f.loop);
    }
    assert_null(strstr(w->err.msg, "hunter2"));
}

/* Asks for keys and gives their settings, which the next call may free; NULL with the error. */
static inline const struct http_settings *get(struct rig *r, struct err *err)
{
    struct wait w;
    ask(r, &w);
    finish(&w);
    *err = w.err;
    const struct http_settings *http = w.keys != NULL ? w.keys->http : NULL;
    credentials_keys_unref(w.keys);
    return http;
}

static inline void check_aws(struct rig *r, int version, const char *row)
{
    struct err err = ERR_INIT;
    char text[64];
    const struct http_settings *http = get(r, &err);
    CHECK_STR(err.msg, "", row);
    assert_non_null(http);
    CHECK_INT(http->auth, HTTP_AUTH_S3, row);
    (void)snprintf(text, sizeof(text), "%s%d", KEY_ID, version);
    CHECK_STR(http->username, text, row);
    (void)snprintf(text, sizeof(text), "%s%d", SECRET, version);
    CHECK_STR(http->password, text, row);
    (void)snprintf(text, sizeof(text), "%s%d", SESSION, version);
    CHECK_STR(http->session_token, text, row);
    CHECK_STR(http->region, "eu-test-1", row);
}

static inline void check_google(struct rig *r, int version, const char *row)
{
    struct err err = ERR_INIT;
    char text[64];
    const struct http_settings *http = get(r, &err);
    CHECK_STR(err.msg, "", row);
    assert_non_null(http);
    CHECK_INT(http->auth, HTTP_AUTH_HEADER, row);
    (void)snprintf(text, sizeof(text), "hunter2-token%d", version);
    CHECK_STR(http->credentials, text, row);
}

static inline void check_failure(struct rig *r, const char *says)
{
    struct err err = ERR_INIT;
    assert_null(get(r, &err));
    CHECK_CONTAINS(err.msg, says, "");
}

/* Runs the loop until so many fetches of web identity have ended with a result, whether somebody
 * waits for them or not. */
static inline void settle(struct rig *r, const char *result, unsigned n)
{
    char name[200];
    (void)snprintf(name, sizeof(name),
                   "profpull_credentials_fetches_total{bucket=\"test\",source=\"web_identity\","
                   "result=\"%s\"}",
                   result);
    while (testing_metric(r->f.metrics, name) != n) {
        loop_run_once(r->f.loop);
        usleep(1000);
    }
}

#endif
