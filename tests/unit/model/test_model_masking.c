/* Which values of parameters people get to see. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "http/url.h"
#include "model/masking.h"

TEST(names)
{
    static const struct {
        const char *name;
        bool secret;
    } rows[] = {
        {"token", true},
        {"access_token", true},
        {"Access-Token", true},
        {"apiKey", true},
        {"X-Api-Key", true},
        {"key", true},
        {"password", true},
        {"passwd", true},
        {"pwd", true},
        {"client_secret", true},
        {"auth", true},
        {"Authorization", true},
        {"sig", true},
        {"X-Amz-Signature", true},
        {"se_sig", true},
        {"credential", true},
        {"sessionid", true},
        {"sid", true},
        {"", false},
        {"gc", false},
        {"seconds", false},
        {"debug", false},
        {"signal", false},
        {"design", false},
        {"spinning", false},
        {"inside", false},
        {"cluster", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(url_name_is_secret(sv_from(rows[i].name)), rows[i].secret, rows[i].name);
    }
}

TEST(urls)
{
    static const struct {
        const char *url, *want, *all;
    } rows[] = {
        {"http://h:1/p", "http://h:1/p", "http://h:1/p"},
        {"/p?", "/p", "/p"},
        {"/p?gc=1&token=abc&x=y", "/p?gc=1&token=<secret>&x=y",
         "/p?gc=<secret>&token=<secret>&x=<secret>"},
        {"/p?seconds=14&api_key=", "/p?seconds=14&api_key=<secret>",
         "/p?seconds=14&api_key=<secret>"},
        {"/p?%74oken=abc", "/p?%74oken=<secret>", "/p?%74oken=<secret>"},
        {"/p?to%6Ben=a=b&token=c", "/p?to%6Ben=<secret>&token=<secret>",
         "/p?to%6Ben=<secret>&token=<secret>"},
        {"/p?word", "/p?word", "/p?<secret>"},
        {"/p?a?token=b", "/p?a?token=<secret>", "/p?a?token=<secret>"},
        {"/p?&&token=b", "/p?&&token=<secret>", "/p?<secret>&<secret>&token=<secret>"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int all = 0; all < 2; all++) {
            SCOPED(buf) out = testing_buf(4096);
            assert_true(mask_url(sv_from(rows[i].url), all == 1, &out));
            CHECK_STR(out.data, all == 1 ? rows[i].all : rows[i].want, rows[i].url);
        }
    }
}

TEST(labels)
{
    static const char *const pairs[] = {
        "__address__", "h:1",        "__meta_kubernetes_pod_annotation_example_com_param_token",
        "s3cret",      "__meta_url", "http://x/list?token=s3cret&a=b",
        "__param_gc",  "1",          "__param_token",
        "s3cret",      "token",      "a label of the pod",
    };
    SCOPED(intern) *intern = intern_new();
    SCOPED(labels_builder) *b = labels_builder_new(intern);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i += 2) {
        labels_builder_set_str(b, pairs[i], pairs[i + 1]);
    }
    SCOPED(labels) *l = labels_builder_build(b);
    SCOPED(buf) out = testing_buf(4096);
    assert_true(mask_labels_json(l, false, &out));
    CHECK_STR(out.data,
              "{\"__address__\":\"h:1\","
              "\"__meta_kubernetes_pod_annotation_example_com_param_token\":\"<secret>\","
              "\"__meta_url\":\"http://x/list?token=<secret>&a=b\",\"__param_gc\":\"1\","
              "\"__param_token\":\"<secret>\",\"token\":\"a label of the pod\"}",
              "secrets");
    buf_clear(&out);
    assert_true(mask_labels_json(l, true, &out));
    assert_null(strstr(out.data, "s3cret"));
    CHECK_CONTAINS(out.data, "\"__param_gc\":\"<secret>\"", "all");
}

TEST(echoes)
{
    static const struct {
        const char *url, *page, *want;
    } rows[] = {
        {"/p?token=s3cret&gc=1234", "no s3cret here, s3cret, 1234", "no ****** here, ******, 1234"},
        {"/p?token=a%2Fb%20c", "a/b c or a%2Fb%20c", "***** or *********"},
        {"/p?token=abc", "abc is too short", "abc is too short"},
        {"/p", "nothing", "nothing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "%s", rows[i].page);
        mask_echo(sv_from(rows[i].url), false, text, strlen(text));
        CHECK_STR(text, rows[i].want, rows[i].url);
    }
}
