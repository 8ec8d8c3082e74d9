/* The output of convert --diff for two configurations that differ, and for two that do not. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/convert_diff.h"
#include "config/file.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define JOB(rest)                                                                                  \
    "scrape_configs:\n- job_name: a\n  static_configs: [{targets: ['x:1']}]\n"                     \
    "  profiles: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: "       \
    "false}, goroutine: {enabled: false}}\n" rest "write: [{url: 'http://h'}]\n"

static struct config *load(const char *text)
{
    const struct config_options options = {.check_rule = cmd_check_rule,
                                           .protocols = testing_protocols};
    return valid_config("f", text, &options);
}

static int file_with(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

/* The exit code; what it prints goes to out. */
static int diff(const char *a, const char *b, const char *list, struct buf *out)
{
    char targets[] = "/tmp/convertdiffXXXXXX";
    char printed[] = "/tmp/convertdiffXXXXXX";
    struct err err = ERR_INIT;
    struct config *file = load(a);
    struct config *converted = load(b);
    close(file_with(targets, list));
    int fd = file_with(printed, "");
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
    int code = convert_diff(file, converted, targets);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    buf_clear(out);
    assert_true(file_read(printed, 1 << 16, out, &err));
    unlink(targets);
    unlink(printed);
    config_unref(file);
    config_unref(converted);
    return code;
}

TEST(differences_are_printed_with_their_side)
{
    static const char list[] = "[{targets: ['h:1', 'h:2'], labels: {team: x}}]";
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_int_equal(diff(JOB(""), JOB(""), list, &out), EXIT_DONE);
    CHECK_STR(out.data, "no difference: 2 scrapes of the same targets, with the same labels\n", "");
    assert_int_equal(diff(JOB(""),
                          JOB("  relabel_configs: [{action: drop, source_labels: [__address__], "
                              "regex: 'h:2'}]\n"),
                          list, &out),
                     EXIT_INPUT);
    CHECK_CONTAINS(out.data,
                   "- {\"job\":\"a\",\"type\":\"memory\",\"interval\":\"15s\",\"url\":"
                   "\"http://h:2/debug/pprof/allocs\",\"labels\":{",
                   "");
    CHECK_CONTAINS(out.data, "\n1 difference: the file has 2 scrapes, the converted YAML 1\n", "");
    assert_int_equal(diff(JOB(""),
                          JOB("  relabel_configs: [{target_label: team, replacement: y}]\n"), list,
                          &out),
                     EXIT_INPUT);
    CHECK_CONTAINS(out.data, "\"team\":\"x\"", "");
    CHECK_CONTAINS(out.data, "\n+ {\"job\":\"a\"", "");
    CHECK_CONTAINS(out.data, "\"team\":\"y\"", "");
    CHECK_CONTAINS(out.data, "\n4 differences: ", "");
    assert_int_equal(diff(JOB(""), JOB(""), "[{targets: 5}]", &out), EXIT_INPUT);
    assert_int_equal(out.len, 0);
}
