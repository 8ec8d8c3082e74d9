/* An endpoint from flags is checked and completed like one of a file. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const struct config_options options = {.protocols = testing_protocols};

static struct config *parse(const char *text)
{
    return valid_config("f", text, &options);
}

static void dump_endpoint(const struct config *c, struct buf *out)
{
    buf_init(out, 1 << 20);
    assert_true(config_dump(c, out));
    const char *write = strstr(out->data, "\nwrite:\n");
    assert_non_null(write);
    assert_true(strstr(write, "\nscrape_configs:") == NULL);
    memmove(out->data, write, strlen(write) + 1);
}

TEST(flags_give_the_same_endpoint_as_a_file)
{
    const struct config_endpoint_flags flags = {
        .name = "import",
        .url = "https://h:4040/api/v1/profile",
        .tenant = "team-a",
        .username = "ann",
        .password_file = "/etc/password",
        .ca_file = "/etc/ca.pem",
        .insecure_skip_verify = true,
    };
    SCOPED(config) *file =
        parse("scrape_configs: [{job_name: j}]\n"
              "write:\n"
              "- name: import\n"
              "  url: https://h:4040/api/v1/profile\n"
              "  tenant_id: team-a\n"
              "  basic_auth: {username: ann, password_file: /etc/password}\n"
              "  tls_config: {ca_file: /etc/ca.pem, insecure_skip_verify: true}\n");
    struct err err = ERR_INIT;
    SCOPED(buf) want;
    SCOPED(buf) got;
    SCOPED(config) *c = config_endpoint_from_flags(&flags, &options, &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(c);
    assert_int_equal(c->n_endpoints, 1);
    assert_ptr_equal(c->endpoints[0].protocol, &testing_ingest);
    dump_endpoint(file, &want);
    dump_endpoint(c, &got);
    CHECK_STR(got.data, want.data, "");
}

TEST(nothing_in_a_flag_is_expanded)
{
    const struct config_endpoint_flags flags = {
        .name = "n", .url = "http://h", .username = "${HOME} $${x} \"\n", .password_file = "${A}"};
    struct err err = ERR_INIT;
    SCOPED(config) *c = config_endpoint_from_flags(&flags, &options, &err);
    assert_non_null(c);
    CHECK_STR(c->endpoints[0].http.username, flags.username, "");
    CHECK_STR(c->endpoints[0].http.password_file, flags.password_file, "");
}

TEST(mistakes_have_the_messages_of_a_file)
{
    static const struct {
        struct config_endpoint_flags flags;
        const char *want;
    } rows[] = {
        {{.name = "n"}, "missing required key \"url\""},
        {{.name = "n", .url = "http://h?q", .protocol = "ingest"},
         "url: expected a URL such as \"http://host:4040\" without user, query and fragment, or "
         "\"file:///directory\", \"store:///directory\" or \"s3://bucket/prefix\" (the name of a "
         "bucket has 3 to 63 letters, digits, \".\", \"_\" and \"-\")"},
        {{.name = "n", .url = "http://h", .tenant = "a/b"},
         "tenant_id: expected at most 150 letters, digits and !-_.*'() (not \".\" or \"..\"), got "
         "\"a/b\""},
        {{.name = "n", .url = "http://h", .protocol = "file"},
         "protocol: protocol \"file\" does not go with a URL that begins with http"},
        {{.name = "n", .url = "http://h", .username = "u", .bearer_token_file = "/t"},
         "bearer_token_file: at most one of basic_auth, authorization, oauth2, bearer_token & "
         "bearer_token_file must be configured"},
        {{.name = "n", .url = "http://h", .username = "u", .password_file = ""},
         "basic_auth.password_file: expected a file name, got \"\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        assert_null(config_endpoint_from_flags(&rows[i].flags, &options, &err));
        CHECK_STR(err.msg, rows[i].want, "");
        CHECK_INT(err.kind, ERR_INPUT, "");
    }
}
