/* The configuration that `profpull run --target` makes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/run_targets.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(config, config_unref)

TEST(targets_make_a_configuration)
{
    struct flag_list targets = {.at = {"127.0.0.1:6060", "\"c${x}\"=[::1]:6061"}, .n = 2};
    struct err err = ERR_INIT;
    SCOPED(buf) text = testing_buf((size_t)1 << 20);
    assert_true(run_targets_config(&targets, "/var/lib/a \"b\" ${HOME}", &text, &err));
    struct cmd_config_flags flags = {.file = "--target", .text = {text.data, text.len}};
    SCOPED(config) *config = cmd_load_config(&flags);
    assert_non_null(config);
    assert_int_equal(config->n_jobs, 1);
    SCOPED(buf) dump = testing_buf((size_t)1 << 20);
    assert_true(config_dump(config, &dump));
    assert_non_null(strstr(dump.data, "\"service_name\": \"127.0.0.1:6060\""));
    assert_non_null(strstr(dump.data, "c$${x}"));
    assert_non_null(strstr(dump.data, "listen: \"127.0.0.1:4041\""));
    assert_string_equal(config->endpoints[0].url, "store:///var/lib/a \"b\" ${HOME}");
}

TEST(a_directory_is_below_the_working_one)
{
    struct flag_list targets = {.at = {"h:1"}, .n = 1};
    struct err err = ERR_INIT;
    SCOPED_MEMORY char *here = getcwd(NULL, 0);
    assert_non_null(here);
    SCOPED(buf) text = testing_buf((size_t)1 << 20);
    assert_true(run_targets_config(&targets, "data", &text, &err));
    assert_non_null(strstr(text.data, here));
    assert_non_null(strstr(text.data, "/data\""));
}

TEST(wrong_targets_are_named)
{
    static const struct text_case rows[] = {
        {"cart", "--target: expected HOST:PORT, got \"cart\", without a port"},
        {"=h:1", "--target: expected HOST:PORT or SERVICE=HOST:PORT, got \"=h:1\""},
        {"h:99999", "--target: expected a port within 1-65535"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct flag_list targets = {.at = {rows[i].text}, .n = 1};
        struct err err = ERR_INIT;
        SCOPED(buf) text = testing_buf((size_t)1 << 20);
        assert_false(run_targets_config(&targets, "/d", &text, &err));
        assert_non_null(strstr(err.msg, rows[i].want));
    }
}

/* Spaces, '%', '#', '?' and slashes are part of the path. */
TEST(a_directory_is_a_path)
{
    static const struct {
        const char *data, *url;
    } rows[] = {
        {"/var/a b", "store:///var/a b"},     {"/var/x%41y", "store:///var/x%2541y"},
        {"/var/h#1?x", "store:///var/h#1?x"}, {"//var//lib", "store:///var//lib"},
        {"/var/lib/", "store:///var/lib/"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct flag_list targets = {.at = {"h:1"}, .n = 1};
        struct err err = ERR_INIT;
        SCOPED(buf) text = testing_buf((size_t)1 << 20);
        assert_true(run_targets_config(&targets, rows[i].data, &text, &err));
        struct cmd_config_flags flags = {.file = "--target", .text = {text.data, text.len}};
        SCOPED(config) *config = cmd_load_config(&flags);
        assert_non_null(config);
        CHECK_STR(config->endpoints[0].url, rows[i].url, rows[i].data);
    }
}
