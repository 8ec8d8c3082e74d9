/* Values of Secrets and ConfigMaps that a configuration names in place of files. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "config/content.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static struct config *parse(const char *text)
{
    struct config_options options = {.protocols = testing_protocols};
    return valid_config("f", text, &options);
}

TEST(names_are_taken_apart)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        {"kubernetes:secret/n/s/k", true},
        {"kubernetes:configmap/n-1/s.a-b/K_a.b-1", true},
        {"kubernetes:secret/n/s", false},
        {"kubernetes:secret/n/s/", false},
        {"kubernetes:secret//s/k", false},
        {"kubernetes:secret/n//k", false},
        {"kubernetes:secret/n/s/k/l", false},
        {"kubernetes:secrets/n/s/k", false},
        {"kubernetes:secret/N/s/k", false},
        {"kubernetes:secret/n/S/k", false},
        {"kubernetes:secret/a.b/s/k", false},
        {"kubernetes:secret/n/../k", false},
        {"kubernetes:secret/n/s?x/k", false},
        {"kubernetes:", false},
        {"secret/n/s/k", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct content_name name;
        CHECK_INT(content_name_parse(sv_from(cases[i].text), &name), cases[i].ok, cases[i].text);
    }
    struct content_name name;
    assert_true(content_name_parse(SV("kubernetes:configmap/n/s/k"), &name));
    CHECK_INT(name.kind, CONTENT_CONFIGMAP, "");
    assert_true(sv_eq_str(name.namespace, "n") && sv_eq_str(name.object, "s") &&
                sv_eq_str(name.key, "k"));
}

TEST(contents_are_listed_once)
{
    SCOPED(config) *c =
        parse("write:\n"
              "- url: http://x\n"
              "  basic_auth: {username_file: 'kubernetes:configmap/n/c.1/user_A', password_file: "
              "'kubernetes:secret/n/s/p'}\n"
              "  tls_config: {ca_file: 'kubernetes:secret/n/s/ca.crt', cert_file: /c, key_file: "
              "'kubernetes:secret/n/s/p'}\n");
    CHECK_INT(c->contents.n, 3, "");
    CHECK_STR(c->contents.at[0], "kubernetes:configmap/n/c.1/user_A", "");
    CHECK_STR(c->contents.at[1], "kubernetes:secret/n/s/p", "");
    CHECK_STR(c->contents.at[2], "kubernetes:secret/n/s/ca.crt", "");
    CHECK_STR(c->endpoints[0].http.password_file, "kubernetes:secret/n/s/p", "not a file");
    CHECK_STR(c->endpoints[0].http.tls.key_file, "kubernetes:secret/n/s/p", "");
}

TEST(too_many_contents_are_an_error)
{
    SCOPED(buf) text = testing_buf((size_t)1 << 20);
    buf_puts(&text, "write:\n- url: http://x\nscrape_configs:\n");
    for (int i = 0; i <= CONFIG_CONTENTS_MAX; i++) {
        buf_printf(&text,
                   "- job_name: j%d\n  static_configs: [{targets: ['h:1']}]\n"
                   "  bearer_token_file: 'kubernetes:secret/n/s/k%d'\n",
                   i, i);
    }
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_parse("f", (struct sv){text.data, text.len}, NULL, errors));
    CHECK_INT(config_errors_count(errors), 1, "");
    CHECK_STR(config_errors_at(errors, 0)->message,
              "a configuration names at most 256 values of Secrets and ConfigMaps", "");
}
