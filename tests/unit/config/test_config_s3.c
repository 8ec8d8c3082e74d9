/* The key `s3`: where the objects of a bucket go, and what does not go with it. */
#include "config/change.h"
#include "config/file_names.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define KEYS "access_key_id: A, secret_access_key: hunter2"
#define BUCKET(url, keys) "write:\n- url: '" url "'\n  s3: {" keys "}\n"

static const struct config_options options = {.protocols = testing_protocols};

TEST(objects_go_below_bucket_and_prefix)
{
    static const struct {
        const char *text, *url;
    } rows[] = {
        {BUCKET("s3://bucket", KEYS ", region: eu-north-1"),
         "https://bucket.s3.eu-north-1.amazonaws.com"},
        {BUCKET("s3://bucket/", KEYS ", region: cn-north-1"),
         "https://bucket.s3.cn-north-1.amazonaws.com.cn"},
        {BUCKET("s3://bucket/a/b//", KEYS ", region: r, path_style: true"),
         "https://s3.r.amazonaws.com/bucket/a/b"},
        {BUCKET("s3://bucket.with.dots/a", KEYS ", region: r"),
         "https://s3.r.amazonaws.com/bucket.with.dots/a"},
        {BUCKET("s3://bucket/a=b/c+d~", KEYS ", endpoint: 'http://minio:9000'"),
         "http://minio:9000/bucket/a%3Db/c%2Bd~"},
        {BUCKET("s3://bucket/a", KEYS ", endpoint: 'https://host/storage/v1/s3/'"),
         "https://host/storage/v1/s3/bucket/a"},
        {BUCKET("s3://bucket/a", KEYS ", endpoint: 'https://[::1]:1', path_style: false"),
         "https://bucket.[::1]:1/a"},
        {BUCKET("s3://b.c/a", KEYS ", endpoint: 'https://host', path_style: false"),
         "https://b.c.host/a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config) *c = valid_config("f", rows[i].text, &options);
        assert_non_null(c);
        const struct config_endpoint *e = &c->endpoints[0];
        CHECK_STR(e->s3_url, rows[i].url, rows[i].text);
        CHECK_STR(e->protocol->name, "s3", rows[i].text);
        assert_true(e->http.auth == HTTP_AUTH_S3 && !config_endpoint_is_directory(e));
    }
}

TEST(mistakes_have_a_place)
{
    static const struct text_case rows[] = {
        {BUCKET("s3://bucket", "access_key_id: A, region: r"),
         "f:3:7: write[0].s3: missing required key \"secret_access_key\" or "
         "\"secret_access_key_file\"\n"},
        {BUCKET("s3://bucket", KEYS),
         "f:3:7: write[0].s3: missing required key \"region\" (or \"endpoint\")\n"},
        {BUCKET("s3://bucket", KEYS ", region: r, access_key_id_file: f, session_token: t, "
                                    "session_token_file: f"),
         "f:3:85: write[0].s3.access_key_id_file: at most one of s3 access_key_id & "
         "access_key_id_file must be configured\n"
         "f:3:126: write[0].s3.session_token_file: at most one of s3 session_token & "
         "session_token_file must be configured\n"},
        {BUCKET("s3://bucket",
                "region: 'a:b', access_key_id: 'A/b', secret_access_key: \"hunter\\n\""),
         "f:3:16: write[0].s3.region: expected the name of a region, such as \"eu-central-1\", got "
         "\"a:b\"\n"
         "f:3:38: write[0].s3.access_key_id: expected the id of an access key, such as "
         "\"AKIAIOSFODNN7EXAMPLE\", got \"A/b\"\n"
         "f:3:64: write[0].s3.secret_access_key: expected a text that is not empty, without line "
         "breaks and control characters\n"},
        {"write: [{url: 's3://bucket'}]\n",
         "f:1:9: write[0]: missing required key \"s3\": a bucket needs an access key\n"},
        {"write: [{url: 'http://x', s3: {region: r, " KEYS "}}]\n",
         "f:1:31: write[0].s3: has no effect without a URL that begins with s3://\n"},
        {BUCKET("s3://bucket", KEYS ", region: r") "  basic_auth: {username: u}\n",
         "f:2:8: write[0].url: a bucket takes the access key of s3, and no other credentials\n"},
        {BUCKET("s3://bucket", KEYS ", region: r") "  retention: {max_age: 1d}\n",
         "f:4:14: write[0].retention: has no effect: only file:// and store:// keep profiles\n"},
        {BUCKET("s3://bucket", KEYS ", region: r") "  protocol: push\n",
         "f:4:13: write[0].protocol: protocol \"push\" does not go with a URL that begins with "
         "s3://\n"},
        {"write: [{url: 'http://x', protocol: s3}]\n",
         "f:1:37: write[0].protocol: protocol \"s3\" does not go with a URL that begins with "
         "http\n"},
        {BUCKET("s3://bucket",
                KEYS ", region: r") "  headers: {x-a: b, X-A-c: d, x-amz-date: z, e: ''}\n",
         "f:4:12: write[0].headers: x-a and X-A-c cannot be signed together\n"
         "f:4:12: write[0].headers: x-amz-date is a part of the signature\n"
         "f:4:12: write[0].headers: e: an empty header cannot be signed\n"},
        {BUCKET("s3://bucket", "region: r, credentials: automatic"),
         "f:3:32: write[0].s3.credentials: expected \"configured\", \"auto\", \"environment\", "
         "\"web_identity\", \"container\" or \"instance\", got \"automatic\"\n"},
        {BUCKET("s3://bucket", "credentials: auto"),
         "f:3:7: write[0].s3: missing required key \"region\" (or \"endpoint\")\n"},
        {BUCKET("s3://bucket", KEYS ", region: r, credentials: instance, session_token_file: f"),
         "f:3:23: write[0].s3.access_key_id: has no effect with credentials: instance; remove one "
         "of both\n"
         "f:3:45: write[0].s3.secret_access_key: has no effect with credentials: instance; remove "
         "one of both\n"
         "f:3:108: write[0].s3.session_token_file: has no effect with credentials: instance; "
         "remove "
         "one of both\n"},
        {BUCKET("s3://bucket", KEYS ", region: r") "  http_headers: {x-a: b}\n",
         "f:4:17: write[0].http_headers: a bucket takes headers of the key \"headers\" only\n"},
    };
    CHECK_REFUSED(rows, &options);
}

TEST(sources_of_credentials)
{
    static const struct {
        const char *keys;
        enum credentials_source source;
    } rows[] = {{KEYS, CREDENTIALS_CONFIGURED},
                {KEYS ", credentials: configured", CREDENTIALS_CONFIGURED},
                {"credentials: auto", CREDENTIALS_AUTO},
                {"credentials: environment", CREDENTIALS_ENVIRONMENT},
                {"credentials: web_identity", CREDENTIALS_WEB_IDENTITY},
                {"credentials: container", CREDENTIALS_CONTAINER},
                {"credentials: instance", CREDENTIALS_INSTANCE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       BUCKET("s3://bucket/p", "%s, region: eu-test-1") "  proxy_url: http://p:1\n",
                       rows[i].keys);
        SCOPED(config) *c = valid_config("f", text, &options);
        const struct bucket_settings *b = &c->endpoints[0].bucket;
        CHECK_INT(b->credentials, rows[i].source, text);
        CHECK_STR(b->url, "s3://bucket/p", text);
        CHECK_STR(b->http.region, "eu-test-1", text);
        CHECK_STR(b->http.proxy_url, "http://p:1", text);
        assert_true((b->http.username != NULL) == (rows[i].source == CREDENTIALS_CONFIGURED));
    }
}

TEST(urls_that_name_no_bucket)
{
    static const char *const urls[] = {
        "s3://",
        "s3:///a",
        "s3://ab",
        "s3://-ab",
        "s3://ab_",
        "s3://b~c",
        "s3://bucket//a",
        "s3://abc/a//b",
        "s3://abc/./a",
        "s3://abc/..",
        "s3://abc/a?b=c",
        "s3://abc/a%20b",
        "s3://abc/a b",
        "s3://abc/\xc3\xa9",
        "s3://u@bucket",
        "s3://bucket:80",
        "S3://bucket",
        "s3:/bucket",
        "s3://bucketbucketbucketbucketbucketbucketbucketbucketbucketbucketbuck"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char text[256];
        SCOPED(config_errors) *errors = config_errors_new();
        (void)snprintf(text, sizeof(text), BUCKET("%s", KEYS ", region: r"), urls[i]);
        struct config *c = config_parse("f", sv_from(text), &options, errors);
        assert_null(c);
        CHECK_INT(config_errors_count(errors), 1, urls[i]);
        CHECK_CONTAINS(config_errors_at(errors, 0)->message, "or \"s3://bucket/prefix\"", urls[i]);
    }
}

/* A command line has no place for the keys of a bucket, and sends no keys of one elsewhere. */
TEST(the_command_line_takes_no_bucket)
{
    static const struct text_case rows[] = {
        {"s3://other", "expected a URL such as \"http://host:4040\" without user, query and "
                       "fragment, or \"file:///directory\" or \"store:///directory\""},
        {"http://x", "http://x is not the server of the endpoint \"main\""}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config_errors) *errors = config_errors_new();
        struct config_options o = options;
        o.write_url = rows[i].text;
        struct config *c =
            config_parse("f", SV(BUCKET("s3://bucket", KEYS ", region: r")), &o, errors);
        assert_null(c);
        CHECK_CONTAINS(config_errors_at(errors, 0)->message, rows[i].want, rows[i].text);
    }
}

static void note_file(void *arg, const struct file_name *name)
{
    buf_printf(arg, "%s=%s ", name->key, name->file);
}

/* `check` opens them, and the sandbox lets them be read. */
TEST(files_of_keys_are_known)
{
    SCOPED(config) *c =
        valid_config("f",
                     BUCKET("s3://bucket", "region: r, access_key_id_file: /a, "
                                           "secret_access_key_file: /b, session_token_file: /c"),
                     &options);
    SCOPED(buf) got = testing_buf(1024);
    config_file_names_of(&c->endpoints[0].http, &(struct file_name){.kind = "endpoint"}, note_file,
                         &got);
    CHECK_STR(got.data, "access_key_id_file=/a secret_access_key_file=/b session_token_file=/c ",
              "");
}
