/* Alloy files -> the tree of our own keys: each file of data/alloy gives what the file of the same
 * name that ends in .yaml says; and errors, warnings and notes. */
#include "tests/unit/lib/testing.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloy/alloy.h"
#include "config/file.h"

#define ARENA_MAX ((size_t)512 * 1024 * 1024)
#define TEXT_MAX ((size_t)16 * 1024 * 1024)
#define DIRECTORY "tests/unit/data/alloy"

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "HOME") == 0 ? "/home/u" : strcmp(name, "URL") == 0 ? "http://e" : NULL;
}

static const struct config_options options = {.env = env};

/* ---- trees as text --------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct yaml_item *x = a;
    const struct yaml_item *y = b;
    return sv_cmp(x->key->text, y->key->text);
}

/* Writes a text as YAML has it: "${" is doubled in a text that is not said in another form. */
static void show_text(const struct yaml_node *n, bool from_yaml, struct buf *out)
{
    if (n->form.p != NULL || from_yaml) {
        struct sv text = n->form.p != NULL ? n->form : n->text;
        buf_printf(out, "\"%.*s\"", SV_ARG(text));
        return;
    }
    buf_putc(out, '"');
    for (size_t i = 0; i < n->text.n; i++) {
        if (n->text.p[i] == '$' && i + 1 < n->text.n && n->text.p[i + 1] == '{') {
            buf_putc(out, '$');
        }
        buf_putc(out, n->text.p[i]);
    }
    buf_putc(out, '"');
}

static void show(const struct yaml_node *n, bool from_yaml, int indent, struct buf *out)
{
    if (n->kind == YAML_SCALAR) {
        buf_putc(out, ' ');
        show_text(n, from_yaml, out);
        buf_putc(out, '\n');
        return;
    }
    buf_puts(out, n->n_items == 0 ? " nothing\n" : "\n");
    SCOPED_MEMORY struct yaml_item *items = testing_memory((n->n_items + 1) * sizeof(*items));
    for (size_t i = 0; i < n->n_items; i++) {
        items[i] = n->items[i];
    }
    if (n->kind == YAML_MAPPING) {
        qsort(items, n->n_items, sizeof(*items), by_key);
    }
    for (size_t i = 0; i < n->n_items; i++) {
        buf_printf(out, "%*s", indent, "");
        if (n->kind == YAML_MAPPING) {
            buf_printf(out, "%.*s:", SV_ARG(items[i].key->text));
        } else {
            buf_putc(out, '-');
        }
        show(items[i].value, from_yaml, indent + 2, out);
    }
}

static void show_messages(const struct config_errors *e, const char *kind, struct buf *out)
{
    for (size_t i = 0; i < config_errors_count(e); i++) {
        const struct config_error *m = config_errors_at(e, i);
        buf_printf(out, "%s %d:%d %s%s%s\n", kind, m->pos.line, m->pos.column, m->path,
                   m->path[0] != '\0' ? ": " : "", m->message);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

struct run {
    struct arena *arena;
    struct config_messages messages;
    const struct yaml_node *root;
};

static void run_text(struct run *run, const char *text)
{
    struct config_text source = {.name = "x.alloy", .text = sv_from(text)};
    struct config_texts sources = {.at = &source, .n = 1, .directory = "/etc/alloy"};
    *run = (struct run){.arena = arena_new(ARENA_MAX),
                        .messages = {.errors = config_errors_new(),
                                     .warnings = config_errors_new(),
                                     .notes = config_errors_new()}};
    run->root = alloy_read(&sources, &options, run->arena, &run->messages);
    bool whole = run->root != NULL && !run->root->incomplete;
    assert_int_equal(!whole, config_errors_count(run->messages.errors) > 0);
}

static void done(struct run *run)
{
    config_errors_free(run->messages.errors);
    config_errors_free(run->messages.warnings);
    config_errors_free(run->messages.notes);
    arena_free(run->arena);
}
SCOPED_VALUE(run, done)

static char *read_file(const char *name, const char *ending)
{
    char path[512];
    struct err err = ERR_INIT;
    snprintf(path, sizeof(path), DIRECTORY "/%s%s", name, ending);
    struct buf text = testing_buf(TEXT_MAX);
    CHECK(file_read(path, TEXT_MAX - 1, &text, &err), "%s: %s", path, err.msg);
    buf_putc(&text, '\0');
    return buf_take(&text, NULL);
}

static void check_file(const char *name)
{
    SCOPED(run) run;
    struct yaml_place place;
    struct err err = ERR_INIT;
    const struct yaml_node *expected;
    SCOPED_MEMORY char *alloy = read_file(name, ".alloy");
    SCOPED_MEMORY char *yaml = read_file(name, ".yaml");
    SCOPED(buf) got = testing_buf(TEXT_MAX);
    SCOPED(buf) want = testing_buf(TEXT_MAX);
    run_text(&run, alloy);
    show_messages(run.messages.errors, "error", &got);
    if (run.root != NULL) {
        show(run.root, false, 0, &got);
    }
    CHECK(yaml_parse(sv_from(yaml), run.arena, &expected, &place, &err), "%s: %s", name, err.msg);
    show(expected, true, 0, &want);
    CHECK(strcmp(got.data, want.data) == 0, "%s\n--- got:\n%s\n--- want:\n%s", name, got.data,
          want.data);
}

TEST(files_become_jobs_and_endpoints)
{
    DIR *directory = opendir(DIRECTORY);
    const struct dirent *entry;
    size_t n = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        struct sv name = sv_from(entry->d_name);
        char stem[256];
        if (sv_ends_with(name, SV(".alloy"))) {
            snprintf(stem, sizeof(stem), "%.*s", (int)name.n - 6, name.p);
            check_file(stem);
            n++;
        }
    }
    closedir(directory);
    assert_true(n >= 18);
}

/* ---- messages -------------------------------------------------------------------------------- */

#define W "pyroscope.write \"w\" {\n endpoint { url = \"http://h:4040\" }\n}\n"
#define K "discovery.kubernetes \"k\" { role = \"pod\" }\n"
#define S(targets)                                                                                 \
    "pyroscope.scrape \"s\" {\n targets = " targets "\n"                                           \
    " forward_to = [pyroscope.write.w.receiver]\n}\n"
#define H "[{\"__address__\" = \"h:1\"}]"

struct message_case {
    const char *text;
    const char *want;
};

static void check_messages(const struct message_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED(run) run;
        SCOPED(buf) got = testing_buf(TEXT_MAX);
        run_text(&run, cases[i].text);
        show_messages(run.messages.errors, "error", &got);
        show_messages(run.messages.warnings, "warning", &got);
        show_messages(run.messages.notes, "note", &got);
        CHECK(strcmp(got.data != NULL ? got.data : "", cases[i].want) == 0,
              "%s\n--- got:\n%s\n--- want:\n%s", cases[i].text, got.data, cases[i].want);
    }
}

#define CHECK_MESSAGES(cases) check_messages(cases, sizeof(cases) / sizeof((cases)[0]))

TEST(references)
{
    static const struct message_case cases[] = {
        {K W S("discovery.kubernetes.kk.targets"),
         "error 6:12 pyroscope.scrape.s.targets: no discovery.kubernetes.kk; did you mean "
         "\"discovery.kubernetes.k\"?\n"},
        {W W S(H), "error 4:1 pyroscope.write.w: declared twice, first at 1:1\n"},
        {W S(H) "nosuch.thing \"x\" { }",
         "note 8:1 nosuch.thing.x: has nothing to do with pulled profiles\n"},
        {W S(H) "pyroscope.wirte \"x\" { }",
         "error 8:1 pyroscope.wirte: no such component; did you mean \"pyroscope.write\"?\n"},
        {W S(H) "pyroscope.write {\n endpoint { url = \"x\" }\n}",
         "error 8:1 pyroscope.write: a component needs a label\n"},
        {"discovery.relabel \"a\" { targets = discovery.relabel.b.output }\n"
         "discovery.relabel \"b\" { targets = discovery.relabel.a.output }\n" W S(H),
         "error 2:35 discovery.relabel.b.targets: discovery.relabel.a refers to itself, directly "
         "or through others\n"},
        {"discovery.relabel \"a\" { targets = discovery.relabel.a.output }\n" W S(H),
         "error 1:35 discovery.relabel.a.targets: discovery.relabel.a refers to itself, directly "
         "or through others\n"},
        {"foo = 1\n" W S(H),
         "error 1:1 foo: unknown attribute: outside of blocks there are none\n"},
        {K W S("discovery.kubernetes.k.target"),
         "error 6:35 pyroscope.scrape.s.targets: no export \"target\" in discovery.kubernetes.k; "
         "did you mean \"targets\"?\n"},
        {K W S("discovery.kubernetes.k"),
         "error 6:12 pyroscope.scrape.s.targets: expected a list of targets, got a component; did "
         "you mean \"discovery.kubernetes.k.targets\"?\n"},
        {K W S("[discovery.kubernetes.k.targets]"),
         "warning 6:13 pyroscope.scrape.s.targets[0]: is a list within the list of targets: its "
         "targets are used as if the inner brackets were not there\n"},
        {K W S("[[discovery.kubernetes.k.targets]]"),
         "error 6:14 pyroscope.scrape.s.targets[0][0]: expected a target, got a list within a "
         "list; leave out the brackets, or use array.concat(...)\n"
         "warning 6:13 pyroscope.scrape.s.targets[0]: is a list within the list of targets: its "
         "targets are used as if the inner brackets were not there\n"},
        {W S("[{\"__address__\" = \"a:1\"}, [{\"__address__\" = \"b:1\"}, 1]]"),
         "error 5:64 pyroscope.scrape.s.targets[1][1]: expected a target, which is an object of "
         "labels, got a number\n"
         "warning 5:38 pyroscope.scrape.s.targets[1]: is a list within the list of targets: its "
         "targets are used as if the inner brackets were not there\n"},
        {W "pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = pyroscope.write.w.receiver\n}\n",
         "error 6:15 pyroscope.scrape.s.forward_to: expected a list, got a receiver; did you mean "
         "\"[pyroscope.write.w.receiver]\"?\n"},
        {W "pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = [null, pyroscope.write.w.receiver]\n}\n",
         ""},
    };
    CHECK_MESSAGES(cases);
}

TEST(blocks_and_attributes)
{
    static const struct message_case cases[] = {
        {W "pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = [pyroscope.write.w.receiver]\n"
           " scrape_intervall = \"1s\"\n bogus2 = 2\n bogus { }\n scrape_timeout = \"1s\"\n"
           " scrape_timeout = \"2s\"\n}\n",
         "error 7:2 pyroscope.scrape.s.scrape_intervall: unknown attribute; did you mean "
         "\"scrape_interval\"?\n"
         "error 8:2 pyroscope.scrape.s.bogus2: unknown attribute\n"
         "error 9:2 pyroscope.scrape.s.bogus: unknown block\n"
         "error 11:2 pyroscope.scrape.s.scrape_timeout: given twice, first at 10:2\n"},
        {W "pyroscope.scrape \"s\" {\n targets = " H "\n}\n",
         "error 4:1 pyroscope.scrape.s: missing required attribute \"forward_to\"\n"},
        {W "pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = [pyroscope.write.w.receiver]\n"
           " profiling_config = { path_prefix = \"/x\" }\n}\n",
         "error 7:2 pyroscope.scrape.s.profiling_config: is a block: write it without \"=\"\n"},
        {W "pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = [pyroscope.write.w.receiver]\n"
           " profiling_config \"l\" {\n profile.custom { \n enabled = true\n path = \"/x\"\n }\n"
           " profile.cpu { }\n profile.memory { enabled = \"yes\" }\n }\n clustering { }\n}\n",
         "error 7:19 pyroscope.scrape.s.profiling_config: has no label\n"
         "error 8:2 pyroscope.scrape.s.profiling_config.profile.custom: needs a label: the name of "
         "the type\n"
         "error 12:2 pyroscope.scrape.s.profiling_config.profile.cpu: unknown block; "
         "did you mean \"profile.process_cpu\"?\n"
         "error 13:29 pyroscope.scrape.s.profiling_config.profile.memory.enabled: expected true or "
         "false, got \"yes\"\n"
         "error 15:2 pyroscope.scrape.s.clustering: missing required attribute \"enabled\"\n"},
        {W S("[{\"a\" = null}]"),
         "error 5:14 pyroscope.scrape.s.targets[0].a: expected a string, a number or a bool, got "
         "null\n"},
        {W S("[{\"service_name\" = \"x\"}]"),
         "error 5:13 pyroscope.scrape.s.targets[0]: missing label \"__address__\"\n"},
        {K W "discovery.relabel \"r\" {\n targets = " H "\n rule {\n regex = null\n target_label = "
             "\"x\"\n }\n}\n" S(H),
         "error 8:10 discovery.relabel.r.rule[0].regex: expected a value, got null\n"},
        {"pyroscope.write \"w\" { }\n" S(H),
         "warning 1:1 pyroscope.write.w: has no endpoint: nothing is sent\n"},
        {"pyroscope.write \"w\" {\n endpoint { url = sys.env(\"NOPE\") }\n}\n" S(H),
         "error 2:19 pyroscope.write.w.endpoint[0].url: expected a URL, got \"\" (the variable "
         "NOPE "
         "is not set)\n"},
        {W S(H) "logging { level = 5 }\nargument \"x\" { }\n",
         "error 9:1 argument: is allowed in a declare only\n"},
    };
    CHECK_MESSAGES(cases);
}

TEST(modules)
{
    static const struct message_case cases[] = {
        {"declare \"p\" {\n argument \"t\" { }\n}\np \"one\" {\n bogus = 1\n}\n" W S(H),
         "error 4:1 p.one: missing required argument \"t\"\n"
         "error 5:2 p.one.bogus: the module has no such argument\n"},
        {W "declare \"p\" {\n pyroscope.scrape \"s\" {\n targets = " H
           "\n forward_to = [pyroscope.write.w.receiver]\n }\n}\np \"one\" { }\n" S(H),
         "error 7:16 one/pyroscope.scrape.s.forward_to: no pyroscope.write.w (in one, "
         "x.alloy:10)\n"},
        {"declare \"p\" {\n argument \"t\" { }\n}\np \"one\" {\n t = 1\n t = 2\n}\n" W S(H),
         "error 6:2 p.one.t: given twice, first at 5:2\n"},
        {"declare \"b\" {\n local.file \"f\" {\n filename = [1]\n }\n}\ndeclare \"a\" {\n b \"in\" "
         "{ "
         "}\n}\na \"out\" { }\n" W S(H),
         "error 3:13 out/in/local.file.f.filename: expected a string, got an array (in out/in, "
         "x.alloy:7) (in out, x.alloy:9)\n"},
        {"declare \"a\" {\n a \"x\" { }\n}\na \"y\" { }\n" W S(H),
         "error 2:2 y/a.x: a module that contains itself (in y, x.alloy:4)\n"},
        {"import.string \"ns\" {\n content = `import.http \"lib\" { url = \"http://x\" }`\n}\n"
         "ns.lib \"a\" { }\n" W S(H),
         "error 4:1 ns.lib: no such component\n"
         "warning 1:1 import.http.lib: is not supported: components that use it are left out\n"},
        {"import.http \"lib\" {\n url = \"http://x\"\n}\nlib.pull \"b\" { }\n" W S(H),
         "warning 1:1 import.http.lib: is not supported: components that use it are left out\n"
         "warning 4:1 lib.pull.b: comes from an import that is not supported; left out\n"},
        {"foreach \"f\" {\n collection = 1\n var = [2]\n template { }\n}\n" W S(H),
         "error 2:15 foreach.f.collection: expected a list, got a number\n"
         "error 3:8 foreach.f.var: expected a string, got an array\n"},
        {"declare \"unused\" {\n nosuch.thing { bogus = nope.nope }\n}\n" W S(H), ""},
    };
    CHECK_MESSAGES(cases);
}

/* The text may be a secret, so it is not shown. */
TEST(texts_that_yaml_cannot_have)
{
    static const struct message_case cases[] = {
        {W S("[{\"__address__\" = \"h:1\", \"a\" = \"x\\u0000y\"}]"),
         "error 5:37 pyroscope.scrape.s.targets[0].a: a NUL character is not allowed\n"},
        {W S(H) "pyroscope.write \"x\" {\n endpoint {\n  url = \"http://h\"\n  basic_auth {\n"
                "   password = \"\\xff\"\n  }\n }\n}\n",
         "error 12:15 pyroscope.write.x.endpoint[0].basic_auth.password: expected UTF-8, got a "
         "byte that is not part of a character\n"},
    };
    CHECK_MESSAGES(cases);
}

/* A declaration in one file is known in the files before it. */
TEST(files_of_a_directory_are_one)
{
    static const char a[] = "sink \"w\" { }\n";
    static const char b[] = "declare \"sink\" {\n" W "}\n";
    const struct config_text at[] = {
        {"a.alloy", {a, sizeof(a) - 1}},
        {"b.alloy", {b, sizeof(b) - 1}},
    };
    struct config_texts sources = {.at = at, .n = 2, .directory = "/"};
    SCOPED(run) run = {.arena = arena_new(ARENA_MAX), .messages = {.errors = config_errors_new()}};
    run.root = alloy_read(&sources, &options, run.arena, &run.messages);
    assert_int_equal(config_errors_count(run.messages.errors), 1);
    assert_string_equal(config_errors_at(run.messages.errors, 0)->message,
                        "nothing in this file is scraped: there is no pyroscope.scrape that sends "
                        "anywhere");
}

/* The files of an imported directory know what the others declare and import; whoever imports the
 * directory knows what they declare alone. */
TEST(an_imported_directory_is_one_scope)
{
    static const char *const uses[] = {"one", "two", "inner.three"};
    static const char *const errors[] = {NULL, NULL, "no such component"};
    SCOPED_DIRECTORY char *directory = testing_mkdtemp();
    testing_write_file(directory, "a.alloy", "declare \"one\" {\n two \"x\" { }\n}\n");
    testing_write_file(directory, "b.alloy",
                       "declare \"two\" {\n inner.three \"x\" { }\n}\nimport.string \"inner\" {\n "
                       "content = `declare \"three\" { }`\n}\n");
    for (size_t i = 0; i < 3; i++) {
        SCOPED(run) run;
        SCOPED(buf) text = testing_buf(TEXT_MAX);
        buf_printf(&text, "import.file \"lib\" {\n filename = \"%s\"\n}\nlib.%s \"i\" { }\n%s",
                   directory, uses[i], W S(H));
        run_text(&run, text.data);
        CHECK_STR(config_errors_count(run.messages.errors) > 0
                      ? config_errors_at(run.messages.errors, 0)->message
                      : NULL,
                  errors[i], uses[i]);
    }
}

/* The depth is bounded, and no import comes twice on the way down. */
TEST(a_file_that_imports_itself)
{
    char name[] = "/tmp/test_alloy_XXXXXX.alloy";
    struct run run;
    int fd = mkstemps(name, 6);
    assert_true(fd >= 0);
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    buf_printf(&text,
               "import.file \"a\" {\n filename = \"%s\"\n}\nimport.file \"b\" {\n filename = "
               "\"%s\"\n}\n",
               name, name);
    assert_int_equal(write(fd, text.data, text.len), text.len);
    close(fd);
    buf_puts(&text, W S(H));
    run_text(&run, text.data);
    assert_int_equal(config_errors_count(run.messages.errors), 2);
    assert_non_null(strstr(config_errors_at(run.messages.errors, 0)->message, "imports itself: "));
    done(&run);
    assert_int_equal(unlink(name), 0);
}

TEST(what_is_not_supported)
{
    static const struct message_case cases[] = {
        {K W S("[discovery.kubernetes.k.targets[0]]"),
         "error 6:44 pyroscope.scrape.s.targets: an index of discovered targets is not supported: "
         "the targets change while profpull runs\n"},
        {"discovery.docker \"d\" { }\n" W S("discovery.docker.d.targets"),
         "error 1:1 nothing in this file is scraped: discovery.docker.d is not supported\n"
         "warning 1:1 discovery.docker.d: is not supported; its targets are left out of "
         "pyroscope.scrape.s\n"
         "warning 5:1 pyroscope.scrape.s: is left out: nothing is left to scrape\n"
         "note 2:1 pyroscope.write.w: nothing is sent to it; left out\n"},
        {"pyroscope.ebpf \"host\" {\n forward_to = [pyroscope.write.w.receiver]\n}\n" W,
         "error 1:1 nothing in this file is scraped: pyroscope.ebpf.host is not supported\n"
         "warning 1:1 pyroscope.ebpf.host: is left out: profpull pulls pprof over HTTP\n"
         "note 4:1 pyroscope.write.w: nothing is sent to it; left out\n"},
        {"remote.vault \"s\" { }\npyroscope.write \"w\" {\n endpoint {\n url = "
         "\"http://h\"\n basic_auth {\n username = \"u\"\n password = "
         "remote.vault.s.data[\"pw\"]\n }\n }\n}\n" S(H),
         "error 7:13 pyroscope.write.w.endpoint[0].basic_auth.password: expected a string or a "
         "secret, got a value of remote.vault.s, which is not supported\n"
         "note 1:1 remote.vault.s: is not supported; mount its content as a file and use "
         "local.file\n"},
    };
    CHECK_MESSAGES(cases);
}

#define REMOTE(arguments) "remote.kubernetes.secret \"s\" {\n" arguments "\n}\n"
#define LOGIN(attribute)                                                                           \
    "pyroscope.write \"w\" {\n endpoint {\n url = \"http://h\"\n " attribute "\n }\n}\n" S(H)

#define RECEIVE(to) "pyroscope.receive_http \"a\" {\n forward_to = " to "\n}\n"
#define ENRICH(targets)                                                                            \
    "pyroscope.enrich \"e\" {\n targets = " targets                                                \
    "\n target_match_label = \"a\"\n forward_to = [pyroscope.write.w.receiver]\n}\n"

TEST(receivers)
{
    static const struct message_case cases[] = {
        {"pyroscope.receive_http \"a\" {\n forward_to = [pyroscope.write.w.receiver]\n}\n" W, ""},
        {"pyroscope.receive_http \"a\" {\n forward_to = [pyroscope.write.w.receiver]\n}\n"
         "pyroscope.receive_http \"b\" {\n forward_to = [pyroscope.write.w.receiver]\n}\n" W,
         "warning 4:1 pyroscope.receive_http.b: is left out: another one receives already\n"},
        {RECEIVE("[pyroscope.enrich.e.receiver]") ENRICH(H) W, ""},
        {RECEIVE("[pyroscope.enrich.e.receiver, pyroscope.write.w.receiver]") ENRICH(H) W,
         "warning 4:1 pyroscope.enrich.e: adds no labels: not all profiles that are received pass "
         "it\n"},
        {RECEIVE("[pyroscope.enrich.e.receiver]") ENRICH("[]") W,
         "warning 4:1 pyroscope.enrich.e: adds no labels: it has no targets\n"},
        {ENRICH(H) W "pyroscope.scrape \"s\" {\n targets = " H
                     "\n forward_to = [pyroscope.enrich.e.receiver]\n}\n",
         "warning 1:1 pyroscope.enrich.e: adds no labels here: only received profiles can get "
         "labels, before pyroscope.relabel\n"},
        {RECEIVE("[pyroscope.enrich.e.receiver]") "pyroscope.enrich \"e\" {\n targets = " H
                                                  "\n forward_to = [pyroscope.write.w.receiver]\n"
                                                  "}\n" W,
         "error 4:1 pyroscope.enrich.e: missing required attribute \"target_match_label\"\n"},
        {"pyroscope.receive_http \"a\" {\n forward_to = []\n}\n" W S(H),
         "warning 1:1 pyroscope.receive_http.a: is left out: it sends nowhere\n"},
        {"pyroscope.receive_http \"a\" {\n http {\n  port = 1\n  listen_port = 70000\n  tls {\n   "
         "key = "
         "1\n  }\n }\n}\n" W S(H),
         "error 1:1 pyroscope.receive_http.a: missing required attribute \"forward_to\"\n"
         "error 3:3 pyroscope.receive_http.a.http.port: unknown attribute; did you mean "
         "\"listen_port\"?\n"
         "error 4:17 pyroscope.receive_http.a.http: expected a port of 0-65535\n"
         "error 6:4 pyroscope.receive_http.a.http.tls.key: unknown attribute\n"},
    };
    CHECK_MESSAGES(cases);
}

TEST(secrets_of_kubernetes)
{
    static const struct message_case cases[] = {
        {REMOTE("namespace = \"n\"\nname = \"s\"")
             LOGIN("bearer_token = remote.kubernetes.secret.s.data[\"t\"]"),
         ""},
        {REMOTE("namespace = \"n\"\nname = \"s\"\npoll_frequency = \"1m\"\npoll_timeout = \"9s\"")
             LOGIN("bearer_token = string.trim_space(remote.kubernetes.secret.s.data.t)"),
         ""},
        {REMOTE("namespace = \"n\"\nname = \"s\"")
             LOGIN("headers = {\"X\" = remote.kubernetes.secret.s.data[\"t\"]}"),
         "error 8:13 pyroscope.write.w.endpoint[0].headers.X: expected a string, got a value of "
         "the Secret n/s, which is read while running, and only for user names, passwords, tokens, "
         "certificates and keys; mount it as a file and use local.file\n"},
        {REMOTE("namespace = \"n\"\nname = \"s\"")
             LOGIN("bearer_token = \"a\" + remote.kubernetes.secret.s.data[\"t\"]"),
         "error 8:23 pyroscope.write.w.endpoint[0].bearer_token: expected a string after \"+\", "
         "got a value of the Secret n/s, which is read while running, and only for user names, "
         "passwords, tokens, certificates and keys; mount it as a file and use local.file\n"},
        {REMOTE("namespace = \"n\"\nname = \"s\"")
             LOGIN("bearer_token = remote.kubernetes.secret.s.data[\"a/b\"]"),
         "error 8:49 pyroscope.write.w.endpoint[0].bearer_token: expected a key of letters, "
         "digits, \"-\", \"_\" and \".\", got \"a/b\"\n"},
        {REMOTE("namespace = \"n\"\nname = \"s\"")
             LOGIN("bearer_token = remote.kubernetes.secret.s.data"),
         "error 8:17 pyroscope.write.w.endpoint[0].bearer_token: expected a string or a secret, "
         "got the data of a Secret\n"},
        {REMOTE("namespace = \"N\"\nname = \"s\"")
             LOGIN("bearer_token = remote.kubernetes.secret.s.data[\"t\"]"),
         "error 3:8 remote.kubernetes.secret.s: expected the names of a namespace and of a Secret "
         "in it, got \"N\" and \"s\"\n"},
        {REMOTE("name = \"s\"") LOGIN("bearer_token = remote.kubernetes.secret.s.data[\"t\"]"),
         "error 1:1 remote.kubernetes.secret.s: missing required attribute \"namespace\"\n"},
        {REMOTE("namespace = \"n\"\nname = \"s\"\npoll_frequency = \"5m\"\nclient { }")
             LOGIN("bearer_token = remote.kubernetes.secret.s.data[\"t\"]"),
         "error 5:1 remote.kubernetes.secret.s: client is not supported: Secrets and ConfigMaps "
         "are read with the rights of profpull's pod\n"
         "note 4:1 remote.kubernetes.secret.s: poll_frequency has no effect: it is read every "
         "minute, and soon after a server has refused it\n"},
    };
    CHECK_MESSAGES(cases);
}

TEST(doubling_lists_stay_small)
{
    SCOPED(run) run;
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    buf_puts(&text, K W "discovery.relabel \"r0\" { targets = discovery.kubernetes.k.targets }\n");
    for (int i = 1; i < 60; i++) {
        buf_printf(&text,
                   "discovery.relabel \"r%d\" { targets = concat(discovery.relabel.r%d.output, "
                   "discovery.relabel.r%d.output) }\n",
                   i, i - 1, i - 1);
    }
    buf_puts(&text, S("discovery.relabel.r59.output"));
    run_text(&run, text.data);
    assert_int_equal(config_errors_count(run.messages.errors), 0);
    assert_int_equal(yaml_get(run.root, "scrape_configs")->n_items, 1);
}

TEST(limits_are_errors)
{
    struct run run;
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    /* References in a long row. */
    buf_puts(&text, W S("discovery.relabel.r0.output"));
    for (int i = 0; i < 1000; i++) {
        buf_printf(&text, "discovery.relabel \"r%d\" { targets = discovery.relabel.r%d.output }\n",
                   i, i + 1);
    }
    run_text(&run, text.data);
    assert_non_null(strstr(config_errors_at(run.messages.errors, 0)->message,
                           "more than 400 components refer to one another in a row"));
    done(&run);
    /* Endpoints. */
    buf_clear(&text);
    buf_puts(&text, "pyroscope.write \"w\" {\n");
    for (int i = 0; i < 70; i++) {
        buf_puts(&text, " endpoint { url = \"http://h:4040\" }\n");
    }
    buf_puts(&text, "}\n" S(H));
    run_text(&run, text.data);
    assert_string_equal(config_errors_at(run.messages.errors, 0)->message,
                        "more than 64 endpoints in all");
    done(&run);
}
