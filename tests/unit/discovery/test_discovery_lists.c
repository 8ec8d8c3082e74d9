/* Sources that list their targets: files (with inotify) and URLs. */
#include "tests/unit/discovery/patience.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discovery/lists/file.h"
#include "discovery/lists/http.h"
#include "discovery/lists/listing.h"

SCOPED_POINTER(file_sd, file_sd_free)

struct world {
    struct loop *loop;
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct discovery_counters counters;
    struct patience patience;
    struct buf reported; /* source and addresses, one change per line */
    const char *until;
    char *dir;
    char state[1024];
};

static void on_change(void *arg, const char *source, struct labels *const *targets, size_t n)
{
    struct world *w = arg;
    const char *name = strrchr(source, '/');
    buf_puts(&w->reported, name == NULL ? source : name + 1);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&w->reported, " %.*s", SV_ARG(labels_get(targets[i], SV(LABEL_ADDRESS))));
        struct sv path = labels_get(targets[i], SV("__meta_filepath"));
        assert_true(strncmp(source, "file/0/", 7) != 0 || sv_eq_str(path, source + 7));
    }
    buf_putc(&w->reported, '\n');
    if (w->until != NULL && strstr(w->reported.data, w->until) != NULL) {
        loop_stop(w->loop);
    }
}

static void world_init(struct world *w)
{
    struct err err = ERR_INIT;
    *w = (struct world){.loop = loop_new(&err), .intern = intern_new()};
    w->metrics = metrics_new();
    w->log = testing_log_new();
    w->dir = testing_mkdtemp();
    patience_init(&w->patience, w->loop);
    buf_init(&w->reported, 1 << 20);
    discovery_counters_init(&w->counters, w->metrics);
}

static void world_done(struct world *w)
{
    patience_done(&w->patience);
    loop_free(w->loop);
    intern_free(w->intern);
    metrics_free(w->metrics);
    testing_log_done(w->log);
    testing_directory_leave(&w->dir);
    buf_done(&w->reported);
}
SCOPED_VALUE(world, world_done)

SETUP_OF(world)

/* Waits for a change. */
static void wait_for(struct world *w, const char *until)
{
    w->until = until;
    bool reported = strstr(w->reported.data, until) != NULL;
    CHECK_INT(reported || patience_run(&w->patience, PATIENCE_MS), true, until);
    w->until = NULL;
    buf_clear(&w->reported);
}

static void check_metric(struct world *w, const char *line)
{
    SCOPED(buf) text = testing_buf(1 << 20);
    metrics_render(w->metrics, &text);
    CHECK_CONTAINS(text.data, line, "");
}

struct update {
    size_t calls;
    size_t n; /* targets of the last call */
};

static void on_update(void *arg, const char *source, struct labels *const *targets, size_t n)
{
    struct update *u = arg;
    CHECK_STR(source, "http/0", "");
    u->calls++;
    u->n = n;
    if (n > 0) {
        assert_true(sv_eq_str(labels_get(targets[0], SV("__meta_url")), "http://x"));
    }
}

/* A list reports changes only, keeps its targets while it is broken, and logs changes of state. */
TEST_ON(struct world *w, listings)
{
    testing_log_expect(w->log, "it broke");
    static const struct listing_messages messages = {"url", "it broke", "it is good"};
    struct listing l = {.messages = &messages,
                        .source = "http/0",
                        .mark = {"__meta_url", "http://x"},
                        .groups = w->counters.groups[GROUPS_HTTP],
                        .refreshes = w->counters.file_refreshes};
    struct update u = {0};
    const struct list_options options = {
        .intern = w->intern, .log = testing_log(w->log), .on_change = on_update, .arg = &u};
    static const struct {
        const char *text;
        size_t n;
        enum discovery_refresh want;
        bool logged;
    } rows[] = {
        {"oops", 0, REFRESH_FAILED, true},
        {"[{\"targets\":[\"a:1\",\"b:1\"],\"labels\":{\"__meta_url\":\"lie\"}}]", 2,
         REFRESH_CHANGED, true},
        {"[{\"targets\":[\"a:1\",\"b:1\"],\"labels\":{\"__meta_url\":\"lie\"}}]", 2,
         REFRESH_UNCHANGED, false},
        {"[{\"targets\":[\"a:1\",", 2, REFRESH_FAILED, true},
        {"[{\"targets\":[\"a:1\",", 2, REFRESH_FAILED, false},
        {NULL, 2, REFRESH_FAILED, false},
        {"[{\"targets\":[\"a:1\",\"b:1\"],\"labels\":{\"__meta_url\":\"lie\"}}]", 2,
         REFRESH_UNCHANGED, true},
        {"[]", 0, REFRESH_CHANGED, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *row = rows[i].text == NULL ? "unreadable" : rows[i].text;
        struct metric_cell *const *cells = w->counters.file_refreshes;
        uint64_t counted = metric_value(cells[rows[i].want]);
        size_t logged = strlen(testing_log_text(w->log));
        size_t calls = u.calls;
        struct err err = ERR_INIT;
        const struct sv text = sv_from(rows[i].text == NULL ? "" : rows[i].text);
        listing_update(&l, &options, rows[i].text == NULL ? NULL : &text, &err);
        CHECK_INT(metric_value(cells[rows[i].want]), counted + 1, row);
        CHECK_INT(u.calls - calls, rows[i].want == REFRESH_CHANGED ? 1 : 0, row);
        CHECK_INT(l.n, rows[i].n, row);
        CHECK_INT(metric_value(w->counters.groups[GROUPS_HTTP]), rows[i].n > 0 ? 1 : 0, row);
        CHECK_INT(u.n, rows[i].n, row);
        CHECK_INT(l.broken, rows[i].want == REFRESH_FAILED, row);
        CHECK_INT(strlen(testing_log_text(w->log)) > logged, rows[i].logged, row);
        CHECK_INT(err.kind != ERR_NONE, rows[i].want == REFRESH_FAILED && rows[i].text != NULL,
                  err.msg);
    }
}

/* The last state, as text. */
static void on_state(void *arg, enum source_state state, const char *why)
{
    struct world *w = arg;
    snprintf(w->state, sizeof(w->state), "%s %s", source_state_name(state), why);
}

static struct file_sd *start_files(struct world *w, const struct config_file_sd *config)
{
    struct file_sd *f = file_sd_new(config, &(struct list_options){
                                                .source = "file/0/",
                                                .loop = w->loop,
                                                .intern = w->intern,
                                                .log = testing_log(w->log),
                                                .counters = &w->counters,
                                                .on_change = on_change,
                                                .on_state = on_state,
                                                .arg = w,
                                            });
    assert_non_null(f);
    file_sd_start(f);
    return f;
}

static void write_and_rename(struct world *w, const char *name, const char *text)
{
    char from[4096];
    char to[4096];
    testing_write_file(w->dir, "new.tmp", text);
    snprintf(from, sizeof(from), "%s/new.tmp", w->dir);
    snprintf(to, sizeof(to), "%s/%s", w->dir, name);
    assert_int_equal(rename(from, to), 0);
}

static void remove_file(struct world *w, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(unlink(path), 0);
}

/* The refresh interval is a day: changes are only seen because the directory is watched. */
TEST_ON(struct world *w, files)
{
    char wild[4096];
    char named[4096];
    char again[4096];
    snprintf(wild, sizeof(wild), "%s/t*.yaml", w->dir);
    snprintf(named, sizeof(named), "%s/named.json", w->dir);
    snprintf(again, sizeof(again), "%s/t1.yaml", w->dir);
    const char *names[] = {wild, named, again};
    struct config_file_sd config = {.files = {names, 3}, .refresh_ms = INT64_C(86400) * 1000};
    testing_write_file(w->dir, "t1.yaml", "- targets: [a:1]\n");
    testing_write_file(w->dir, "other.yaml", "- targets: [z:1]\n");
    testing_log_expect(w->log, "cannot be used");
    SCOPED(file_sd) *f = start_files(w, &config);
    CHECK_STR(w->reported.data, "t1.yaml a:1\n", "once, though two patterns name it");
    CHECK_CONTAINS(testing_log_text(w->log), "named.json", "what is not there is said");
    CHECK_CONTAINS(w->state, "down /", "the source does not work");
    CHECK_CONTAINS(w->state, "/named.json: ", "and why");
    buf_clear(&w->reported);

    testing_write_file(w->dir, "named.json", "[{\"targets\":[\"n:1\"]}]");
    wait_for(w, "named.json n:1\n");
    CHECK_STR(w->state, "up ", "it works");
    testing_write_file(w->dir, "t2.yaml", "- targets: [b:1, b:2]\n");
    wait_for(w, "t2.yaml b:1 b:2\n");
    CHECK_INT(metric_value(w->counters.groups[GROUPS_FILE]), 3, "");

    /* Broken and gone: nothing is reported before the next change. */
    testing_write_file(w->dir, "t2.yaml", "- targets: [b:1, ");
    remove_file(w, "named.json");
    write_and_rename(w, "t1.yaml", "- targets: [a:2]\n");
    w->until = "a:2";
    assert_true(patience_run(&w->patience, PATIENCE_MS));
    CHECK_STR(w->reported.data, "t1.yaml a:2\n", "");
    CHECK_INT(metric_value(w->counters.groups[GROUPS_FILE]), 3, "");
    buf_clear(&w->reported);

    /* A removed file that only a pattern matched loses its targets. */
    remove_file(w, "t2.yaml");
    wait_for(w, "t2.yaml\n");
    testing_write_file(w->dir, "named.json", "[]");
    wait_for(w, "named.json\n");
    CHECK_INT(metric_value(w->counters.groups[GROUPS_FILE]), 1, "");
    check_metric(w, "profpull_discovery_refreshes_total{kind=\"file\",result=\"changed\"} 5\n");
    CHECK_CONTAINS(testing_log_text(w->log), "good again", "");
}

TEST_ON(struct world *w, lost_directory)
{
    char sub[4096];
    char moved[4096];
    char wild[8192];
    snprintf(sub, sizeof(sub), "%s/sub", w->dir);
    snprintf(moved, sizeof(moved), "%s/moved", w->dir);
    snprintf(wild, sizeof(wild), "%s/*.yml", sub);
    const char *names[] = {wild};
    /* inotify does not report a new directory: the refresh finds it. */
    struct config_file_sd config = {.files = {names, 1}, .refresh_ms = 50};
    testing_log_expect(w->log, "targets of this pattern stay");
    SCOPED(file_sd) *f = start_files(w, &config);
    assert_int_equal(mkdir(sub, 0700), 0);
    testing_write_file(sub, "a.yml", "- targets: [a:1]\n");
    wait_for(w, "a.yml a:1\n");
    assert_int_equal(rename(sub, moved), 0);
    assert_false(patience_run(&w->patience, 300));
    CHECK_STR(w->reported.data, "", "a missing directory removes nothing");
    CHECK_INT(metric_value(w->counters.groups[GROUPS_FILE]), 1, "");
    assert_int_equal(rename(moved, sub), 0);
    testing_write_file(sub, "a.yml", "- targets: [a:2]\n");
    wait_for(w, "a.yml a:2\n");
}

/* Files beyond the limit of a source are logged once, counted, and not read. */
TEST_ON(struct world *w, too_many_files)
{
    char wild[4096];
    snprintf(wild, sizeof(wild), "%s/*", w->dir);
    const char *names[] = {wild};
    struct config_file_sd config = {.files = {names, 1}, .refresh_ms = INT64_C(86400) * 1000};
    for (int i = 0; i < FILE_SD_FILES_MAX + 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%05d", i);
        /* Files are read in the order of their names: the last ones exceed the limit. */
        testing_write_file(w->dir, name, i < FILE_SD_FILES_MAX - 1 ? "[]" : "- targets: [a:1]\n");
    }
    testing_log_expect(w->log, "too many files");
    SCOPED(file_sd) *f = start_files(w, &config);
    CHECK_CONTAINS(w->reported.data, "09999 a:1\n", "the last that is read");
    assert_null(strstr(w->reported.data, "10000"));
    CHECK_INT(metric_value(w->counters.groups[GROUPS_FILE]), 1, "");
    check_metric(w, "profpull_discovery_refreshes_total{kind=\"file\",result=\"failed\"} 3\n");
    const char *said = strstr(testing_log_text(w->log), "too many files");
    assert_non_null(said);
    assert_null(strstr(said + 1, "too many files"));
    CHECK_CONTAINS(said, "limit=10000", "");
}

TEST(content_types)
{
    static const struct {
        const char *type;
        bool want;
    } rows[] = {
        {"application/json", true},
        {"Application/JSON", true},
        {"application/json; charset=utf-8", true},
        {"application/json;charset=UTF-8", true},
        {"application/json; charset=\"utf-8\"", true},
        {"application/json; charset=latin1", false},
        {"application/json;", false},
        {"application/jsonx", false},
        {"text/html", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(http_sd_is_json(rows[i].type), rows[i].want, rows[i].type);
    }
}
