/* Sources of credentials: what they are asked, when they are asked again, and what is said if they
 * fail. */
#include "tests/unit/bucket/credentials_rig.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/base64.h"

/* ---- environment and configuration ----------------------------------------------------------- */

TEST(test_environment)
{
    SCOPED(rig) r;
    struct err err = ERR_INIT;
    rig_init(&r, CREDENTIALS_ENVIRONMENT);
    rig_start(&r);
    check_failure(&r, "the environment variable AWS_ACCESS_KEY_ID is not set");
    credentials_free(r.credentials);
    set_env(&r, "AWS_ACCESS_KEY_ID", KEY_ID);
    set_env(&r, "AWS_SECRET_ACCESS_KEY", SECRET);
    rig_start(&r);
    const struct http_settings *http = get(&r, &err);
    CHECK_STR(http->username, KEY_ID, "");
    CHECK_STR(http->password, SECRET, "");
    assert_null(http->session_token);
    credentials_free(r.credentials);
    set_env(&r, "AWS_SESSION_TOKEN", SESSION);
    rig_start(&r);
    CHECK_STR(get(&r, &err)->session_token, SESSION, "");
}

/* Without `credentials`, nothing but the configured keys is used, whatever the environment has. */
TEST(test_configured_keys_alone)
{
    SCOPED(rig) r;
    struct err err = ERR_INIT;
    rig_init(&r, CREDENTIALS_CONFIGURED);
    r.settings.http.username = "AKIDCONFIG";
    r.settings.http.password_file = "/some/file";
    set_env(&r, "AWS_ACCESS_KEY_ID", KEY_ID);
    set_env(&r, "AWS_SECRET_ACCESS_KEY", SECRET);
    set_env_url(&r, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "");
    set_env_url(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    rig_start(&r);
    const struct http_settings *http = get(&r, &err);
    CHECK_STR(http->username, "AKIDCONFIG", "");
    CHECK_STR(http->password_file, "/some/file", "");
    assert_null(http->password);
    CHECK_INT(atomic_load(&r.server->accepted), 0, "no request");
}

/* ---- web identity ---------------------------------------------------------------------------- */

static void web_identity(struct rig *r)
{
    set_env(r, "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/my role");
    set_env_file(r, "AWS_WEB_IDENTITY_TOKEN_FILE", "token", "hunter2-jwt+1\n");
    set_env_url(r, "AWS_ENDPOINT_URL_STS", "/sts");
}

#define FORM_START                                                                                 \
    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%"              \
    "3A123456789012%3Arole%2Fmy%20role&RoleSessionName=profpull&WebIdentityToken="

TEST(test_web_identity)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    check_aws(&r, 0, "first");
    CHECK_STR(r.source.form, FORM_START "hunter2-jwt%2B1", "");
    r.wall_ns = START + HOUR_NS - 241 * NS_PER_S;
    check_aws(&r, 0, "valid: no request");
    CHECK_INT(atomic_load(&r.source.asked), 1, "");
    /* The cluster rotates the token; the keys are renewed before their end, while the old ones are
     * used. */
    testing_write_file(r.dir, "token", "hunter2-jwt2");
    atomic_store(&r.source.version, 1);
    set_expiry(&r.source, START + 2 * HOUR_NS);
    r.wall_ns = START + HOUR_NS - 239 * NS_PER_S;
    check_aws(&r, 0, "renewal has begun");
    settle(&r, "ok", 2);
    CHECK_STR(r.source.form, FORM_START "hunter2-jwt2", "");
    check_aws(&r, 1, "renewed");
    CHECK_INT(atomic_load(&r.source.asked), 2, "");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "");
    CHECK_INT(testing_metric(r.f.metrics,
                             "profpull_credentials_fetches_total{bucket=\"test\",source="
                             "\"web_identity\",result=\"ok\"}"),
              2, "");
}

/* Old keys are used to their end, however often the renewal fails; then requests fail with its
 * reason, and within a pause without another try. */
TEST(test_renewal_fails)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    testing_log_expect(r.f.log, "cannot renew the credentials of a bucket");
    check_aws(&r, 0, "first");
    atomic_store(&r.source.forbid, 1);
    r.wall_ns = START + HOUR_NS - 100 * NS_PER_S;
    check_aws(&r, 0, "renewal has begun");
    settle(&r, "failed", 1);
    check_aws(&r, 0, "renewal has failed");
    r.wall_ns = START + HOUR_NS;
    atomic_store(&r.source.forbid, 1);
    check_failure(&r, "HTTP 403 AccessDenied: Not authorized to perform");
    check_failure(&r, "HTTP 403 AccessDenied: Not authorized to perform");
    CHECK_INT(atomic_load(&r.source.asked), 1, "no request in the pause of two seconds");
    set_expiry(&r.source, START + 2 * HOUR_NS);
    r.wall_ns += 2 * NS_PER_S;
    check_aws(&r, 0, "renewed");
}

TEST(test_source_recovers)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    atomic_store(&r.source.refuse, 2);
    check_aws(&r, 0, "two of three tries fail");
    CHECK_INT(atomic_load(&r.source.asked), 1, "");
}

TEST(test_source_is_down)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    atomic_store(&r.source.refuse, 3);
    check_failure(&r, "/sts/ answered HTTP 500: hold on: allow the way to the token service");
    check_failure(&r, "/sts/ answered HTTP 500");
    CHECK_INT(atomic_load(&r.source.asked), 0, "in the pause, no request is made");
}

TEST(test_web_identity_mistakes)
{
    static const struct text_case rows[] = {
        {"<html>", "expected XML with AccessKeyId"},
        {"<a><Credentials><AccessKeyId>a</AccessKeyId></Credentials></a>", "expected XML with"},
        {"<a><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>hunter2 "
         "x</SecretAccessKey><SessionToken>t</SessionToken>"
         "<Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></a>",
         "expected XML with"},
        {"<a><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey>"
         "<SessionToken>t</SessionToken><Expiration>2020-01-01T00:00:00Z</Expiration>"
         "</Credentials></a>",
         "credentials that have expired already: check the clock"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        rig_init(&r, CREDENTIALS_WEB_IDENTITY);
        web_identity(&r);
        r.source.answer = rows[i].text;
        rig_start(&r);
        check_failure(&r, rows[i].want);
    }
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    set_env(&r, "AWS_ROLE_ARN", "arn");
    set_env(&r, "AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token");
    rig_start(&r);
    check_failure(&r, "/nonexistent/token: cannot open: No such file or directory");
}

/* ---- containers ------------------------------------------------------------------------------ */

TEST(test_container)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_CONTAINER);
    set_env_url(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    set_env_file(&r, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "auth", "hunter2-a\n");
    (void)snprintf(r.source.token, sizeof(r.source.token), "hunter2-a");
    rig_start(&r);
    check_aws(&r, 0, "");
    /* The file is rotated, and the old token no longer accepted. */
    testing_write_file(r.dir, "auth", "hunter2-b\n");
    (void)snprintf(r.source.token, sizeof(r.source.token), "hunter2-b");
    atomic_store(&r.source.version, 1);
    set_expiry(&r.source, START + 2 * HOUR_NS);
    r.wall_ns = START + HOUR_NS;
    check_aws(&r, 1, "");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "");
}

TEST(test_container_token_in_environment)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_CONTAINER);
    set_env_url(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    set_env(&r, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2-c");
    (void)snprintf(r.source.token, sizeof(r.source.token), "hunter2-c");
    rig_start(&r);
    check_aws(&r, 0, "");
}

/* A token cannot add a header of its own. */
TEST(test_container_token_of_two_lines)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_CONTAINER);
    set_env_url(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    set_env_file(&r, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "auth",
                 "hunter2\r\nX-Other: hunter2");
    (void)snprintf(r.source.token, sizeof(r.source.token), "hunter2");
    rig_start(&r);
    check_failure(&r, "header Authorization: expected a name and a value of one line");
    CHECK_INT(atomic_load(&r.source.asked), 0, "no request");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "no request");
}

/* The token is sent over TLS, or to an agent of this machine or node. */
TEST(test_container_hosts)
{
    static const struct {
        const char *url;
        bool ok;
    } rows[] = {
        {"http://127.0.0.1/x", true},
        {"http://127.8.9.10:80/x", true},
        {"http://[::1]/x", true},
        {"http://localhost/x", true},
        {"http://169.254.170.2/x", true},
        {"http://169.254.170.23/v1/credentials", true},
        {"http://[fd00:ec2::23]/v1", true},
        {"https://example.com/x", true},
        {"http://example.com/x", false},
        {"http://169.254.169.254/x", false},
        {"http://10.0.0.1/x", false},
        {"http://127.0.0.1.example.com/x", false},
        {"http://localhost.example/", false},
        {"ftp://127.0.0.1/", false},
        {"169.254.170.2/x", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        struct err err = ERR_INIT;
        struct credentials_fetch f;
        rig_init(&r, CREDENTIALS_CONTAINER);
        set_env(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", rows[i].url);
        credentials_fetch_init(&f, &r.settings, &r.world);
        CHECK_INT(source_container.request(&f, 0, &err), rows[i].ok, rows[i].url);
        CHECK_STR(rows[i].ok ? f.url.data : rows[i].url, rows[i].url, "");
        credentials_fetch_done(&f);
    }
}

TEST(test_container_relative)
{
    SCOPED(rig) r;
    struct err err = ERR_INIT;
    struct credentials_fetch f;
    rig_init(&r, CREDENTIALS_CONTAINER);
    set_env(&r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x");
    set_env(&r, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1");
    credentials_fetch_init(&f, &r.settings, &r.world);
    assert_true(source_container.request(&f, 0, &err));
    CHECK_STR(f.url.data, "http://169.254.170.2/v2/credentials/1", "");
    assert_true(f.on_link);
    credentials_fetch_done(&f);
    (void)snprintf(r.texts[1], sizeof(r.texts[1]), "@example.com/");
    credentials_fetch_init(&f, &r.settings, &r.world);
    assert_false(source_container.request(&f, 0, &err));
    CHECK_CONTAINS(err.msg, "expected a path", "");
    credentials_fetch_done(&f);
}

/* ---- instances ------------------------------------------------------------------------------- */

TEST(test_instance)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_INSTANCE);
    set_env_url(&r, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "/");
    rig_start(&r);
    check_aws(&r, 0, "");
    CHECK_INT(atomic_load(&r.source.asked), 3, "");
    atomic_store(&r.source.version, 1);
    set_expiry(&r.source, START + 2 * HOUR_NS);
    r.wall_ns = START + HOUR_NS;
    check_aws(&r, 1, "");
    CHECK_INT(atomic_load(&r.source.asked), 6, "");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "");
}

/* An instance that refuses a token is not asked without one. */
TEST(test_instance_without_token)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_INSTANCE);
    set_env_url(&r, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "");
    atomic_store(&r.source.forbid, 1);
    rig_start(&r);
    check_failure(&r, "/latest/api/token answered HTTP 403");
    CHECK_INT(atomic_load(&r.source.asked), 0, "");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "");
}

/* ---- Google ---------------------------------------------------------------------------------- */

static char *make_key(EVP_PKEY **ret)
{
    char *text;
    BIO *bio = BIO_new(BIO_s_mem());
    *ret = EVP_RSA_gen(2048);
    assert_non_null(*ret);
    assert_int_equal(PEM_write_bio_PrivateKey(bio, *ret, NULL, NULL, 0, NULL, NULL), 1);
    long n = BIO_get_mem_data(bio, &text);
    SCOPED(buf) json = testing_buf(100000);
    json_escape((struct sv){text, (size_t)n}, &json);
    BIO_free(bio);
    return buf_take(&json, NULL);
}

/* Decodes base64 with the alphabet for URLs. */
static void decode(struct sv v, struct buf *out)
{
    SCOPED(buf) text = testing_buf(100000);
    for (size_t i = 0; i < v.n; i++) {
        buf_putc(&text, v.p[i] == '-' ? '+' : v.p[i] == '_' ? '/' : v.p[i]);
    }
    while (text.len % 4 != 0) {
        buf_putc(&text, '=');
    }
    assert_true(base64_decode((struct sv){text.data, text.len}, out));
}

static void check_signature(EVP_PKEY *key, struct sv text, struct sv signature)
{
    SCOPED(buf) bytes = testing_buf(10000);
    decode(signature, &bytes);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(ctx, (const unsigned char *)bytes.data, bytes.len,
                                      (const unsigned char *)text.p, text.n),
                     1);
    EVP_MD_CTX_free(ctx);
}

/* Checks that a key has signed the JWT of the last form. */
static void check_jwt_of(struct rig *r, EVP_PKEY *key)
{
    const char *jwt = strstr(r->source.form, "&assertion=");
    assert_non_null(jwt);
    jwt += strlen("&assertion=");
    const char *end = strrchr(jwt, '.');
    assert_non_null(end);
    check_signature(key, (struct sv){jwt, (size_t)(end - jwt)}, sv_from(end + 1));
}

static void check_jwt(struct rig *r, EVP_PKEY *key)
{
    static const char start[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    char want[1024];
    struct sv jwt = sv_from(r->source.form);
    struct sv header;
    struct sv claims;
    struct sv signature;
    assert_true(sv_starts_with(jwt, sv_from(start)));
    jwt = sv_skip(jwt, strlen(start));
    assert_true(sv_cut(jwt, '.', &header, &signature));
    assert_true(sv_cut(signature, '.', &claims, &signature));
    check_signature(key, (struct sv){jwt.p, (size_t)(signature.p - jwt.p) - 1}, signature);
    SCOPED(buf) text = testing_buf(10000);
    decode(header, &text);
    CHECK_STR(text.data, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"abc\"}", "");
    buf_clear(&text);
    decode(claims, &text);
    (void)snprintf(want, sizeof(want),
                   "{\"iss\":\"p@example.iam.gserviceaccount.com\",\"scope\":\"https://"
                   "www.googleapis.com/auth/devstorage.read_write\",\"aud\":\"http://"
                   "127.0.0.1:%u/token\",\"iat\":1795231414,\"exp\":1795235014}",
                   r->server->port);
    CHECK_STR(text.data, want, "");
}

/* Writes a new key of a service account. */
static EVP_PKEY *write_account(struct rig *r)
{
    EVP_PKEY *key;
    SCOPED_MEMORY char *pem = make_key(&key);
    char json[8192];
    char url[URL_SIZE];
    (void)snprintf(json, sizeof(json),
                   "{\"type\":\"service_account\",\"project_id\":\"p\",\"private_key_id\":\"abc\","
                   "\"private_key\":\"%s\",\"client_email\":\"p@example.iam.gserviceaccount.com\","
                   "\"token_uri\":\"%s\"}",
                   pem, server_url(r->server, "/token", url));
    testing_write_file(r->dir, "key.json", json);
    return key;
}

TEST(test_service_account)
{
    SCOPED(rig) r;
    char path[512];
    rig_init(&r, CREDENTIALS_SERVICE_ACCOUNT);
    EVP_PKEY *key = write_account(&r);
    (void)snprintf(path, sizeof(path), "%s/key.json", r.dir);
    r.settings.service_account_file = path;
    rig_start(&r);
    check_google(&r, 0, "");
    check_jwt(&r, key);
    EVP_PKEY_free(key);
    /* The key is replaced while the token is valid. The next token is asked for with the new one.
     */
    key = write_account(&r);
    atomic_store(&r.source.version, 1);
    check_google(&r, 0, "still valid");
    r.wall_ns = START + 3590 * NS_PER_S;
    check_google(&r, 1, "expired");
    check_jwt_of(&r, key);
    CHECK_INT(atomic_load(&r.source.asked), 2, "");
    EVP_PKEY_free(key);
}

TEST(test_service_account_mistakes)
{
#define ACCOUNT(type, key, uri)                                                                    \
    "{\"type\":\"" type "\",\"private_key\":\"" key "\",\"client_email\":\"p\",\"token_uri\":"     \
    "\"" uri "\"}"
    static const struct text_case rows[] = {
        {"{}", "expected the JSON key of a service account"},
        {"hunter2", "expected the JSON key of a service account"},
        {"", "the file is empty"},
        {ACCOUNT("authorized_user", "k", "https://h/"), "expected the JSON key"},
        {ACCOUNT("service_account", "hunter2", "https://h/"), "no usable RSA key"},
        {ACCOUNT("service_account", "hunter2", "http://example.com/"), "token_uri: expected https"},
        {ACCOUNT("service_account", "hunter2", "x"), "token_uri: "},
        {"{\"error\":\"invalid_grant\"}", "expected the JSON key"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        rig_init(&r, CREDENTIALS_SERVICE_ACCOUNT);
        set_env_file(&r, "GOOGLE_APPLICATION_CREDENTIALS", "key.json", rows[i].text);
        rig_start(&r);
        check_failure(&r, rows[i].want);
        CHECK_INT(atomic_load(&r.server->accepted), 0, "");
    }
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_SERVICE_ACCOUNT);
    rig_start(&r);
    check_failure(&r, "set service_account_file, or the environment variable");
}

static void set_metadata_host(struct rig *r)
{
    char host[64];
    (void)snprintf(host, sizeof(host), "127.0.0.1:%u", r->server->port);
    set_env(r, "GCE_METADATA_HOST", host);
}

TEST(test_metadata)
{
    SCOPED(rig) r;
    rig_init(&r, CREDENTIALS_METADATA);
    set_metadata_host(&r);
    r.source.flavor = "Google";
    rig_start(&r);
    check_google(&r, 0, "");
    atomic_store(&r.source.version, 1);
    r.wall_ns = START + 3599 * NS_PER_S;
    check_google(&r, 1, "");
    CHECK_INT(atomic_load(&r.source.wrong), 0, "");
}

TEST(test_another_server_than_metadata)
{
    static const struct {
        const char *flavor, *answer, *says;
    } rows[] = {
        {NULL, NULL, "without the header Metadata-Flavor"},
        {"Other", NULL, "without the header Metadata-Flavor"},
        {"Google", "{}", "expected JSON with access_token"},
        {"Google", "{\"access_token\":\"hunter2\"}", "expected JSON with access_token"},
        {"Google", "{\"access_token\":\"hunter2\",\"expires_in\":-1}", "expected JSON"},
        {"Google", "{\"access_token\":\"hunter2\",\"expires_in\":5}", "have expired already"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        rig_init(&r, CREDENTIALS_METADATA);
        set_metadata_host(&r);
        r.source.flavor = rows[i].flavor;
        r.source.answer = rows[i].answer;
        rig_start(&r);
        check_failure(&r, rows[i].says);
    }
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The addresses of the services when no variable replaces them, as AWS and Google document them. */
TEST(test_addresses)
{
#define EC2 "http://169.254.169.254/latest/"
    static const struct {
        const struct credentials_method *source;
        const char *name;
        const char *value;
        unsigned step;
        const char *method;
        const char *url;
        bool on_link; /* without a proxy */
    } rows[] = {
        {&source_instance, NULL, NULL, 0, "PUT", EC2 "api/token", true},
        {&source_instance, NULL, NULL, 1, "GET", EC2 "meta-data/iam/security-credentials/", true},
        {&source_instance, NULL, NULL, 2, "GET", EC2 "meta-data/iam/security-credentials/role",
         true},
        {&source_instance, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6", 0, "PUT",
         "http://[fd00:ec2::254]/latest/api/token", true},
        {&source_metadata, NULL, NULL, 0, "GET",
         "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/"
         "token",
         true},
        {&source_web_identity, NULL, NULL, 0, "POST", "https://sts.eu-test-1.amazonaws.com/",
         false},
        {&source_web_identity, "AWS_REGION", "us-west-2", 0, "POST",
         "https://sts.us-west-2.amazonaws.com/", false},
        {&source_web_identity, "AWS_DEFAULT_REGION", "cn-north-1", 0, "POST",
         "https://sts.cn-north-1.amazonaws.com.cn/", false},
        {&source_container, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1", 0, "GET",
         "http://169.254.170.2/v2/credentials/1", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        struct err err = ERR_INIT;
        struct credentials_fetch f;
        rig_init(&r, rows[i].source->source);
        set_env(&r, "AWS_ROLE_ARN", "arn");
        set_env_file(&r, "AWS_WEB_IDENTITY_TOKEN_FILE", "token", "hunter2");
        if (rows[i].name != NULL) {
            set_env(&r, rows[i].name, rows[i].value);
        }
        credentials_fetch_init(&f, &r.settings, &r.world);
        buf_puts(&f.role, "role");
        buf_puts(&f.secret, "hunter2");
        CHECK_INT(rows[i].source->request(&f, rows[i].step, &err), true, rows[i].url);
        CHECK_STR(f.url.data, rows[i].url, "");
        CHECK_STR(f.method, rows[i].method, rows[i].url);
        CHECK_INT(f.on_link, rows[i].on_link, rows[i].url);
        credentials_fetch_done(&f);
    }
}

/* ---- the order ------------------------------------------------------------------------------- */

TEST(test_auto)
{
    static const struct {
        const char *url, *names[4];
        enum credentials_source source; /* CREDENTIALS_SOURCES: none */
    } rows[] = {
        {"s3://bbb",
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ROLE_ARN"},
         CREDENTIALS_ENVIRONMENT},
        {"s3://bbb",
         {"AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI"},
         CREDENTIALS_WEB_IDENTITY},
        {"s3://bbb", {"AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}, CREDENTIALS_CONTAINER},
        {"s3://bbb", {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}, CREDENTIALS_CONTAINER},
        {"s3://bbb", {"AWS_ROLE_ARN"}, CREDENTIALS_INSTANCE},
        {"s3://bbb", {"AWS_EC2_METADATA_DISABLED"}, CREDENTIALS_SOURCES},
        {"gs://bbb", {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, CREDENTIALS_METADATA},
        {"gs://bbb", {"GOOGLE_APPLICATION_CREDENTIALS"}, CREDENTIALS_SERVICE_ACCOUNT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        struct err err = ERR_INIT;
        struct credentials_fetch f;
        rig_init(&r, CREDENTIALS_AUTO);
        r.settings.url = rows[i].url;
        for (size_t n = 0; n < 4 && rows[i].names[n] != NULL; n++) {
            set_env(&r, rows[i].names[n], "true");
        }
        credentials_fetch_init(&f, &r.settings, &r.world);
        const struct credentials_method *m = credentials_method_of(&f, &err);
        CHECK_INT(m != NULL ? m->source : CREDENTIALS_SOURCES, rows[i].source, rows[i].names[0]);
        CHECK_CONTAINS(err.msg, m != NULL ? "" : "no credentials: ", "");
        credentials_fetch_done(&f);
    }
}

/* ---- many requests --------------------------------------------------------------------------- */

TEST(test_one_fetch_at_a_time)
{
    SCOPED(rig) r;
    struct wait waits[5];
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    for (size_t i = 0; i < 5; i++) {
        ask(&r, &waits[i]);
        assert_false(waits[i].done);
    }
    credentials_cancel(&waits[1].use);
    credentials_cancel(&waits[1].use);
    for (size_t i = 0; i < 5; i++) {
        if (i != 1) {
            finish(&waits[i]);
            assert_non_null(waits[i].keys);
            credentials_keys_unref(waits[i].keys);
        }
    }
    assert_false(waits[1].done);
    CHECK_INT(atomic_load(&r.source.asked), 1, "");
}

/* Keys that a request still uses stay as they are when others come. */
TEST(test_keys_in_use)
{
    SCOPED(rig) r;
    struct wait w;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    ask(&r, &w);
    finish(&w);
    atomic_store(&r.source.version, 1);
    set_expiry(&r.source, START + 2 * HOUR_NS);
    r.wall_ns = START + HOUR_NS;
    check_aws(&r, 1, "");
    CHECK_STR(w.keys->http->password, SECRET "0", "");
    credentials_keys_unref(w.keys);
}

/* Keys that a server does not accept are replaced once, unless they are new. */
TEST(test_refused_keys)
{
    SCOPED(rig) r;
    struct wait w;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    ask(&r, &w);
    finish(&w);
    assert_false(credentials_refused(r.credentials, w.keys));
    check_aws(&r, 0, "they have just been fetched");
    r.wall_ns += 5 * NS_PER_S;
    atomic_store(&r.source.version, 1);
    assert_true(credentials_refused(r.credentials, w.keys));
    check_aws(&r, 1, "others");
    r.wall_ns += 5 * NS_PER_S;
    assert_true(credentials_refused(r.credentials, w.keys));
    check_aws(&r, 1, "the old ones were refused");
    CHECK_INT(atomic_load(&r.source.asked), 2, "");
    credentials_keys_unref(w.keys);
}

/* Other settings take effect for requests that wait and for later ones. */
TEST(test_other_settings)
{
    SCOPED(rig) r;
    struct wait w;
    struct bucket_settings other;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    ask(&r, &w);
    other = r.settings;
    other.http.proxy_url = "http://other";
    credentials_configure(r.credentials, &other);
    check_failure(&r, "other");
    finish(&w);
    assert_null(w.keys);
    other = r.settings;
    other.credentials = CREDENTIALS_ENVIRONMENT;
    set_env(&r, "AWS_ACCESS_KEY_ID", KEY_ID);
    set_env(&r, "AWS_SECRET_ACCESS_KEY", SECRET);
    credentials_configure(r.credentials, &other);
    ask(&r, &w);
    finish(&w);
    struct http_settings http = {.region = "stays", .auth_type = "x"};
    credentials_apply(w.keys, &http);
    CHECK_STR(http.username, KEY_ID, "");
    CHECK_STR(http.region, "stays", "");
    credentials_keys_unref(w.keys);
}

/* No memory is lost when the credentials end within a fetch. */
TEST(test_free_within_a_fetch)
{
    SCOPED(rig) r;
    struct wait w;
    rig_init(&r, CREDENTIALS_WEB_IDENTITY);
    web_identity(&r);
    rig_start(&r);
    ask(&r, &w);
    credentials_cancel(&w.use);
    assert_false(w.done);
}
