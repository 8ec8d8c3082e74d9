/* The files and ports that a configuration needs, and the check that a later one needs no others. A
 * sandbox cannot be left: each case is a child. */
#include "tests/unit/lib/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confinement.h"
#include "alloy/alloy.h"
#include "config/config.h"
#include "tests/unit/lib/valid_config.h"
#include "write/protocol.h"

SCOPED_VALUE(confinement, confinement_done)

#define EXPECT(ok)                                                                                 \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "line %d: %s\n", __LINE__, #ok);                                       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static char *directory;

static int setup(void **state)
{
    (void)state;
    directory = testing_mkdtemp();
    testing_write_file(directory, "token", "t");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testing_directory_leave(&directory);
    return 0;
}

/* A configuration with further keys of the job, the endpoint and the whole. "@" stands for the
 * directory of the test. */
static struct config *load(const char *job, const char *endpoint, const char *rest)
{
    struct config_options options = {.protocols = write_protocols()};
    struct config_errors *errors = config_errors_new();
    struct buf text = testing_buf(1 << 16);
    SCOPED(buf) whole = testing_buf(1 << 16);
    buf_printf(&text, "scrape_configs: [{job_name: a, %s}]\nwrite: [{name: main, %s}]\n%s\n", job,
               endpoint, rest);
    for (const char *p = text.data; *p != '\0'; p++) {
        if (*p == '@') {
            buf_puts(&whole, directory);
        } else {
            buf_putc(&whole, *p);
        }
    }
    struct config *c = config_parse("f", (struct sv){whole.data, whole.len}, &options, errors);
    if (c == NULL) {
        buf_init(&text, 1 << 16);
        config_errors_format(errors, &text);
        fprintf(stderr, "%s\n%s", whole.data, text.data);
    }
    EXPECT(c != NULL);
    buf_done(&text);
    config_errors_free(errors);
    return c;
}

static void in_child(void (*fn)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fn();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define JOB "static_configs: [{targets: [\"h:1\"]}]"
#define ENDPOINT "url: \"file://@/out/deep\", queue: {spool_directory: \"@/spool\"}"

static bool exists(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static bool is_on(const struct confinement *c)
{
    return c->report.on[SANDBOX_LANDLOCK];
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void child_of_directories(void)
{
    SCOPED(config) *config = load(JOB, ENDPOINT, "");
    SCOPED(confinement) c;
    EXPECT(confinement_enter(&c, CONFINEMENT_ON, config, NULL));
    EXPECT(exists("out/deep") && exists("spool"));
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/spool/new", directory);
    EXPECT(mkdir(path, 0700) == 0);
    (void)snprintf(path, sizeof(path), "%s/new", directory);
    EXPECT(!is_on(&c) || (mkdir(path, 0700) != 0 && errno == EACCES));
    (void)snprintf(path, sizeof(path), "%s/token", directory);
    EXPECT(!is_on(&c) || (open(path, O_RDONLY) < 0 && errno == EACCES));
    EXPECT(access("/etc/passwd", R_OK) != 0 || open("/etc/passwd", O_RDONLY) >= 0);
}

TEST_WITH(what_is_written_to_is_made_first, setup, teardown)
{
    in_child(child_of_directories);
}

static void check_next(const struct confinement *c, struct config *next, const char *problem)
{
    struct err err = ERR_INIT;
    bool ok = confinement_allows(c, next, &err);
    if (ok != (problem == NULL) || (!ok && strstr(err.msg, problem) == NULL) ||
        (!ok && strstr(err.msg, ": the sandbox does not allow it: restart profpull") == NULL)) {
        fprintf(stderr, "expected \"%s\", got \"%s\"\n", problem == NULL ? "" : problem, err.msg);
        _exit(1);
    }
    config_unref(next);
}

static void child_of_changes(void)
{
    SCOPED(config) *config =
        load("bearer_token_file: \"@/secrets/a\", " JOB, ENDPOINT, "server: {listen: \"h:1\"}");
    SCOPED(confinement) c;
    EXPECT(mkdir("secrets", 0700) == 0);
    EXPECT(confinement_enter(&c, CONFINEMENT_ON, config, NULL));
    const char *server = "server: {listen: \"h:1\"}";
    check_next(&c, config_ref(config), NULL);
    check_next(&c, load("bearer_token_file: \"@/secrets/b\", " JOB, ENDPOINT, server), NULL);
    check_next(&c, load(JOB, "url: \"http://h\"", server), NULL);
    check_next(&c, load(JOB, "url: \"store://@/out/deep/store\"", server), NULL);
    check_next(&c, load("bearer_token_file: \"@/token\", " JOB, ENDPOINT, server), "reading ");
    check_next(&c, load("file_sd_configs: [{files: [\"@/*.yaml\"]}]", ENDPOINT, server),
               "reading ");
    check_next(&c, load(JOB, "url: \"file://@/other\"", server), "writing to ");
    check_next(&c, load(JOB, ENDPOINT, "server: {listen: \"h:2\"}"), "listening on port 2");
    check_next(&c,
               load(JOB, ENDPOINT,
                    "server: {listen: \"h:1\", tls: {cert_file: \"@/c\", "
                    "key_file: \"@/k\"}}"),
               "reading ");
}

TEST_WITH(a_later_configuration_keeps_to_it, setup, teardown)
{
    assert_int_equal(chdir(directory), 0);
    in_child(child_of_changes);
    assert_int_equal(chdir("/"), 0);
}

/* Files that an Alloy configuration imports are read again with it. */
static void child_of_imports(void)
{
    char main_file[4096];
    char text[8192];
    const struct config_language *const languages[] = {&alloy_language, NULL};
    struct config_options options = {.languages = languages, .protocols = write_protocols()};
    SCOPED(config_errors) *errors = config_errors_new();
    EXPECT(mkdir("modules", 0700) == 0 && mkdir("main", 0700) == 0);
    testing_write_file("modules", "lib.alloy", "declare \"nothing\" { }\n");
    (void)snprintf(text, sizeof(text),
                   "import.file \"lib\" {\n filename = \"%s/modules/lib.alloy\"\n}\n"
                   "pyroscope.write \"w\" {\n endpoint {\n url = \"http://h\"\n }\n}\n"
                   "pyroscope.scrape \"s\" {\n targets = [{\"__address__\" = \"h:1\"}]\n"
                   " forward_to = [pyroscope.write.w.receiver]\n}\n",
                   directory);
    testing_write_file("main", "c.alloy", text);
    (void)snprintf(main_file, sizeof(main_file), "%s/main/c.alloy", directory);
    SCOPED(config) *config = config_load(main_file, &options, errors);
    EXPECT(config != NULL && config->imports.n == 1);
    struct confinement c;
    EXPECT(confinement_enter(&c, CONFINEMENT_ON, config, NULL));
    int fd = open("modules/lib.alloy", O_RDONLY);
    EXPECT(fd >= 0);
    close(fd);
    EXPECT(!is_on(&c) || (open("token", O_RDONLY) < 0 && errno == EACCES));
    confinement_done(&c);
}

TEST_WITH(what_is_imported_stays_readable, setup, teardown)
{
    assert_int_equal(chdir(directory), 0);
    in_child(child_of_imports);
    assert_int_equal(chdir("/"), 0);
}

static void child_of_off(void)
{
    SCOPED(config) *config = load(JOB, ENDPOINT, "");
    struct confinement c;
    SCOPED(testing_log) *log = testing_log_new();
    SCOPED(metrics) *metrics = metrics_new();
    EXPECT(confinement_enter(&c, CONFINEMENT_OFF, config, NULL));
    confinement_report(&c, testing_log(log), metrics);
    EXPECT(strstr(testing_log_text(log), "no_new_privs=off seccomp=off landlock=off") != NULL);
    EXPECT(testing_metric(metrics, "profpull_sandbox{part=\"seccomp\"}") == 0);
    EXPECT(!exists("out"));
    check_next(&c, load(JOB, "url: \"file://@/other\"", ""), NULL);
    confinement_done(&c);
}

TEST_WITH(it_can_be_off, setup, teardown)
{
    in_child(child_of_off);
}

static void child_of_required(void)
{
    SCOPED(config) *config = load(JOB, ENDPOINT, "");
    SCOPED(testing_log) *log = testing_log_new(); /* the sandbox refuses memfd_create() */
    struct confinement c;
    struct err err = ERR_INIT;
    bool ok = confinement_enter(&c, CONFINEMENT_REQUIRED, config, &err);
    bool all = true;
    for (enum sandbox_part i = 0; i < SANDBOX_PARTS; i++) {
        all = all && c.report.on[i];
    }
    EXPECT(ok == all);
    EXPECT(ok || strstr(err.msg, "--sandbox=required: ") == err.msg);
    SCOPED(metrics) *metrics = metrics_new();
    confinement_report(&c, testing_log(log), metrics);
    EXPECT(testing_metric(metrics, "profpull_sandbox{part=\"landlock\"}") == is_on(&c));
    EXPECT(is_on(&c) == (strstr(testing_log_text(log), "landlock=\"version ") != NULL));
    confinement_done(&c);
}

TEST_WITH(it_can_be_required, setup, teardown)
{
    in_child(child_of_required);
}
