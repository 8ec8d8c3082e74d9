/* The key `store.archive`: buckets of S3 and of Google, and what goes with which. */
#include "config/config.h"
#include "config/file_names.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define ARCHIVE(keys) "write:\n- url: 'store:///d'\n  store: {archive: {" keys "}}\n"
#define AT "write[0].store.archive"
#define EXPECTED                                                                                   \
    "expected a URL such as \"s3://BUCKET/PREFIX\" or \"gs://BUCKET/PREFIX\" (the name of a "      \
    "bucket has 3 to 63 letters, digits, \".\", \"_\" and \"-\")"

static const struct config_options options = {.protocols = testing_protocols};

TEST(sources_for_buckets_of_google)
{
    static const struct {
        const char *text;
        enum credentials_source source;
        const char *file, *root;
    } rows[] = {
        {ARCHIVE("url: 'gs://bkt/p', gs: {credentials_file: /k.json}"), CREDENTIALS_SERVICE_ACCOUNT,
         "/k.json", "https://storage.googleapis.com/bkt"},
        {ARCHIVE("url: 'gs://bkt', gs: {credentials: auto}"), CREDENTIALS_AUTO, NULL,
         "https://storage.googleapis.com/bkt"},
        {ARCHIVE("url: 'gs://bkt', gs: {credentials: metadata, endpoint: 'http://127.0.0.1:1/'}"),
         CREDENTIALS_METADATA, NULL, "http://127.0.0.1:1/bkt"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config) *c = valid_config("f", rows[i].text, &options);
        const struct bucket_settings *b = &c->endpoints[0].archive.bucket;
        SCOPED(buf) root = testing_buf(4096);
        assert_true(bucket_put_root(b, &root));
        CHECK_STR(root.data, rows[i].root, rows[i].text);
        CHECK_INT(b->credentials, rows[i].source, rows[i].text);
        CHECK_INT(b->http.auth, HTTP_AUTH_NONE, rows[i].text);
        assert_true((b->service_account_file == NULL) == (rows[i].file == NULL));
        if (rows[i].file != NULL) {
            CHECK_STR(b->service_account_file, rows[i].file, rows[i].text);
        }
    }
}

TEST(transport_comes_from_the_endpoint)
{
    SCOPED(config) *c = valid_config(
        "f",
        ARCHIVE("url: 's3://bkt/p', s3: {region: r, credentials: auto}") "  proxy_url: "
                                                                         "http://p:1\n",
        &options);
    const struct bucket_settings *b = &c->endpoints[0].archive.bucket;
    CHECK_INT(b->http.auth, HTTP_AUTH_S3, "");
    CHECK_STR(b->http.proxy_url, "http://p:1", "");
    CHECK_STR(b->url, "s3://bkt/p", "");
}

TEST(mistakes_have_a_place_and_a_remedy)
{
    static const struct text_case rows[] = {
        {ARCHIVE("url: 's3://b/p', s3: {region: r, credentials: auto}"),
         "f:3:26: " AT ".url: " EXPECTED ", got \"s3://b/p\"\n"},
        {ARCHIVE("url: 'gs://b_/p', gs: {credentials: auto}"),
         "f:3:26: " AT ".url: " EXPECTED ", got \"gs://b_/p\"\n"},
        {ARCHIVE("url: 'gs://bkt/p'"),
         "f:3:20: " AT ": missing required key \"gs\": a bucket of Google needs "
         "credentials_file, the JSON key of a service account, or credentials: auto or metadata\n"},
        {ARCHIVE("url: 's3://bkt/p'"),
         "f:3:20: " AT ": missing required key \"s3\": a bucket needs a region or an endpoint, "
         "and credentials\n"},
        {ARCHIVE("url: 'gs://bkt/p', gs: {endpoint: 'http://h'}"),
         "f:3:44: " AT ".gs: missing required key \"credentials_file\" or \"credentials\"\n"},
        {ARCHIVE("url: 'gs://bkt/p', gs: {credentials: auto, credentials_file: f}"),
         "f:3:58: " AT ".gs.credentials: at most one of gs credentials_file & credentials "
         "must be configured\n"},
        {ARCHIVE("url: 'gs://bkt/p', gs: {credentials: configured}"),
         "f:3:58: " AT ".gs.credentials: expected \"auto\" or \"metadata\", got \"configured\"\n"},
        {ARCHIVE("url: 'gs://bkt/p', gs: {credentials: auto}, s3: {region: r, credentials: auto}"),
         "f:3:69: " AT ".s3: has no effect without a URL that begins with s3://\n"},
        {ARCHIVE("url: 's3://bkt/p', s3: {region: r, credentials: auto}, gs: {credentials: auto}"),
         "f:3:80: " AT ".gs: has no effect without a URL that begins with gs://\n"},
        {ARCHIVE("url: 'gs://bkt/p', gs: {region: r, credentials: auto}"),
         "f:3:45: " AT ".gs.region: unknown key\n"},
    };
    CHECK_REFUSED(rows, &options);
}

/* The dump loads to the same configuration and shows no secret. */
TEST(dumps_load_again)
{
    static const char *const rows[] = {
        ARCHIVE("url: 'gs://bkt/p', gs: {credentials_file: /k.json}"),
        ARCHIVE("url: 'gs://bkt/p', gs: {credentials: metadata, endpoint: 'http://h:1'}"),
        ARCHIVE("url: 's3://bkt/p', name: w, s3: {region: r, credentials: auto}"),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config) *c = valid_config("f", rows[i], &options);
        SCOPED(buf) first = testing_buf(1 << 16);
        assert_true(config_dump(c, &first));
        assert_true((strstr(first.data, "gs:\n") != NULL) == (strstr(rows[i], " gs:") != NULL));
        assert_true((strstr(first.data, "s3:\n") != NULL) == (strstr(rows[i], " s3:") != NULL));
        SCOPED(config) *again = valid_config("f", first.data, &options);
        SCOPED(buf) second = testing_buf(1 << 16);
        assert_true(config_dump(again, &second));
        CHECK_STR(second.data, first.data, rows[i]);
    }
}

static void archive_on_name(void *arg, const struct file_name *n)
{
    buf_printf(arg, "%s %s=%s\n", n->kind, n->key, n->file);
}

/* The sandbox lets the process read these files, and `check` says if one is missing. */
TEST(the_key_of_a_service_account_is_a_file_of_the_configuration)
{
    SCOPED(config) *c =
        valid_config("f", ARCHIVE("url: 'gs://bkt', gs: {credentials_file: /k.json}"), &options);
    SCOPED(buf) got = testing_buf(4096);
    config_file_names(c, archive_on_name, &got);
    CHECK_STR(got.data, "endpoint credentials_file=/k.json\n", "");
}
