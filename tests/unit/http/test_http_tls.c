/* TLS of the HTTP client against `openssl s_server`, with certificates made here. Skipped where
 * there is no openssl command. */
#include "tests/unit/lib/http_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "http/private.h"

#define ARGS_MAX 32

/* The directory of the certificates, and a path in it. */
static char *dir;

static const char *in_dir(const char *name, char out[256])
{
    (void)snprintf(out, 256, "%s/%s", dir, name);
    return out;
}

/* Starts openssl in the directory. out: becomes its standard output; -1: /dev/null. */
static pid_t start_openssl(const char *const *args, int out)
{
    const char *argv[ARGS_MAX] = {"openssl"};
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    for (size_t i = 0; i < ARGS_MAX - 2 && args[i] != NULL; i++) {
        argv[i + 1] = args[i];
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, dir);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (out >= 0) {
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    }
    if (posix_spawnp(&pid, "openssl", &actions, NULL, (char **)(uintptr_t)argv, environ) != 0) {
        pid = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static bool run_openssl(const char *const *args)
{
    int status = -1;
    pid_t pid = start_openssl(args, -1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A key and a certificate signed by the CA named "ca" (itself, if that is the name). */
static bool make_cert(const char *name, const char *subject, const char *alt_names)
{
    char key[64], cert[64], ext[256];
    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(cert, sizeof(cert), "%s.pem", name);
    (void)snprintf(ext, sizeof(ext), "subjectAltName=%s", alt_names);
    const char *args[ARGS_MAX] = {
        "req",    "-x509",   "-newkey", "ec",      "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes", "-keyout", key,       "-out",    cert,       "-subj",
        subject,  "-days",   "2",       "-addext", ext};
    if (strcmp(name, "ca") != 0 && strcmp(name, "other-ca") != 0) {
        static const char *const signing[] = {
            "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"};
        size_t n = 0;
        while (args[n] != NULL) {
            n++;
        }
        memcpy(args + n, signing, sizeof(signing));
    }
    return run_openssl(args);
}

static int make_certs(void **state)
{
    (void)ignore_sigpipe(state); /* OpenSSL writes without MSG_NOSIGNAL */
    dir = testing_mkdtemp();
    if (make_cert("ca", "/CN=test CA", "DNS:ca") && make_cert("other-ca", "/CN=other", "DNS:ca") &&
        make_cert("named", "/CN=named", "DNS:name.example") &&
        make_cert("address", "/CN=address", "IP:127.0.0.1") &&
        make_cert("client", "/CN=client", "DNS:client")) {
        return 0;
    }
    testing_directory_leave(&dir);
    dir = NULL;
    print_message("no usable openssl command: TLS is not tested\n");
    return 0;
}

static int drop_certs(void **state)
{
    (void)state;
    if (dir != NULL) {
        testing_rmdir(dir);
    }
    free(dir);
    return 0;
}

static char *read_text(const char *name)
{
    char path[256];
    struct buf text = testing_read_file(in_dir(name, path));
    return buf_take(&text, NULL);
}

/* ---- the server ------------------------------------------------------------------------------ */

struct tls_server {
    pid_t pid;
    unsigned port;
    FILE *out;
    struct fixture f; /* its client */
};

/* Starts a server, which prints "ACCEPT <address>:<port>" when it listens. */
static struct tls_server tls_server_new(const char *cert, const char *const *options)
{
    struct tls_server s = {.f = fixture_new(1)};
    char cert_file[64], key_file[64], line[256];
    int pipe_fds[2];
    (void)snprintf(cert_file, sizeof(cert_file), "%s.pem", cert);
    (void)snprintf(key_file, sizeof(key_file), "%s.key", cert);
    const char *args[ARGS_MAX] = {"s_server", "-accept", "127.0.0.1:0", "-www",
                                  "-cert",    cert_file, "-key",        key_file};
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        args[8 + i] = options[i];
    }
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    s.pid = start_openssl(args, pipe_fds[1]);
    close(pipe_fds[1]);
    assert_true(s.pid > 0);
    s.out = fdopen(pipe_fds[0], "r");
    assert_non_null(s.out);
    while (s.port == 0 && fgets(line, sizeof(line), s.out) != NULL) {
        struct sv text = sv_trim(sv_from(line)), host;
        uint16_t port = 0;
        if (sv_starts_with(text, SV("ACCEPT ")) &&
            split_host_port((struct sv){text.p + 7, text.n - 7}, &host, &port, NULL)) {
            s.port = port;
        }
    }
    assert_true(s.port != 0);
    return s;
}

static void tls_server_stop(struct tls_server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    (void)fclose(s->out);
    fixture_done(&s->f);
}
SCOPED_VALUE(tls_server, tls_server_stop)

static const struct call *tls_get(struct tls_server *s, const struct http_settings *settings)
{
    char url[URL_SIZE];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/x", s->port);
    fixture_do(&s->f, &s->f.call, &(struct http_request){.url = url, .settings = settings});
    return &s->f.call;
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define SKIP_WITHOUT_OPENSSL()                                                                     \
    do {                                                                                           \
        if (!dir)                                                                                  \
            skip();                                                                                \
    } while (0)

TEST(test_verification)
{
    SKIP_WITHOUT_OPENSSL();
    SCOPED_MEMORY char *ca = read_text("ca.pem"), *other = read_text("other-ca.pem");
    char ca_file[256], other_file[256], nothing[256];
    in_dir("ca.pem", ca_file);
    in_dir("other-ca.pem", other_file);
    in_dir("not-there.pem", nothing);
    testing_write_file(dir, "junk.pem", "this is no certificate\n");
    char junk_file[256];
    in_dir("junk.pem", junk_file);
    const struct {
        const char *name, *cert;
        struct http_settings settings;
        enum http_result result;
        const char *error;
    } rows[] = {
        {"unknown CA", "address", {0}, HTTP_ERR_TLS, "certificate"},
        {"CA from text", "address", {.tls.ca_pem = ca}, HTTP_DONE, ""},
        {"CA from file", "address", {.tls.ca_file = ca_file}, HTTP_DONE, ""},
        {"wrong CA", "address", {.tls.ca_pem = other}, HTTP_ERR_TLS, "certificate"},
        {"wrong CA file", "address", {.tls.ca_file = other_file}, HTTP_ERR_TLS, "certificate"},
        {"no CA file",
         "address",
         {.tls.ca_file = nothing},
         HTTP_ERR_CONFIG,
         "not-there.pem: cannot"},
        {"bad CA file", "address", {.tls.ca_file = junk_file}, HTTP_ERR_CONFIG, ""},
        {"not verified", "address", {.tls.insecure_skip_verify = true}, HTTP_DONE, ""},
        {"wrong name", "named", {.tls.ca_pem = ca}, HTTP_ERR_TLS, "127.0.0.1"},
        {"wrong name, not verified", "named", {.tls.insecure_skip_verify = true}, HTTP_DONE, ""},
        {"server name",
         "named",
         {.tls = {.ca_pem = ca, .server_name = "name.example"}},
         HTTP_DONE,
         ""},
        {"wrong server name",
         "named",
         {.tls = {.ca_pem = ca, .server_name = "other.example"}},
         HTTP_ERR_TLS,
         "other.example"},
        {"bad server name",
         "named",
         {.tls = {.ca_pem = ca, .server_name = "a b/c"}},
         HTTP_ERR_CONFIG,
         "server_name: expected a host name, got \"a b/c\""},
        {"TLS 1.3", "address", {.tls = {.ca_pem = ca, .min_version = HTTP_TLS_1_3}}, HTTP_DONE, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(tls_server) s = tls_server_new(rows[i].cert, NULL);
        const struct call *call = tls_get(&s, &rows[i].settings);
        check_result(call, rows[i].result, rows[i].name);
        CHECK_CONTAINS(call->error, rows[i].error, rows[i].name);
        if (rows[i].result == HTTP_DONE) {
            CHECK_INT(call->status, 200, rows[i].name);
        }
    }
}

TEST(test_versions)
{
    SKIP_WITHOUT_OPENSSL();
    static const struct {
        const char *name;
        const char *option; /* of the server */
        enum http_tls_version min;
        enum http_result result;
    } rows[] = {
        {"1.2 by default", "-tls1_2", HTTP_TLS_DEFAULT, HTTP_DONE},
        {"1.2", "-tls1_2", HTTP_TLS_1_2, HTTP_DONE},
        {"1.2 is too old", "-tls1_2", HTTP_TLS_1_3, HTTP_ERR_TLS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_settings settings = {
            .tls = {.insecure_skip_verify = true, .min_version = rows[i].min}};
        SCOPED(tls_server)
        s = tls_server_new("address", (const char *const[]){rows[i].option, NULL});
        const struct call *call = tls_get(&s, &settings);
        check_result(call, rows[i].result, rows[i].name);
    }
}

TEST(test_client_certificate)
{
    SKIP_WITHOUT_OPENSSL();
    SCOPED_MEMORY char *ca = read_text("ca.pem"), *cert = read_text("client.pem"),
                       *key = read_text("client.key");
    char cert_file[256], key_file[256], ca_file[256], both[4096];
    in_dir("client.pem", cert_file);
    in_dir("client.key", key_file);
    in_dir("ca.pem", ca_file);
    assert_true((size_t)snprintf(both, sizeof(both), "%s%s", cert, key) < sizeof(both));
    /* With TLS 1.2 the server's refusal is part of the handshake. */
    static const char *const options[] = {
        "-Verify", "1", "-verify_return_error", "-CAfile", "ca.pem", "-tls1_2", NULL};
    const struct {
        const char *name;
        struct http_settings settings;
        enum http_result result;
    } rows[] = {
        {"none", {0}, HTTP_ERR_TLS},
        {"from files", {.tls = {.cert_file = cert_file, .key_file = key_file}}, HTTP_DONE},
        {"from text", {.tls = {.cert_pem = cert, .key_pem = key}}, HTTP_DONE},
        {"both in one text", {.tls = {.cert_pem = both}}, HTTP_DONE},
        {"key of another", {.tls = {.cert_pem = cert, .key_file = ca_file}}, HTTP_ERR_CONFIG},
        {"no key file", {.tls = {.cert_pem = cert, .key_file = "/none"}}, HTTP_ERR_CONFIG},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_settings settings = rows[i].settings;
        settings.tls.ca_pem = ca;
        SCOPED(tls_server) s = tls_server_new("address", options);
        const struct call *call = tls_get(&s, &settings);
        check_result(call, rows[i].result, rows[i].name);
        assert_null(strstr(call->error, "PRIVATE"));
    }
}

/* A CA that is replaced on disk is used for the next connection. */
TEST(test_ca_rotation)
{
    SKIP_WITHOUT_OPENSSL();
    SCOPED_MEMORY char *ca = read_text("ca.pem"), *other = read_text("other-ca.pem");
    char file[256];
    struct http_settings settings = {.tls.ca_file = in_dir("rotating.pem", file)};
    SCOPED(tls_server) s = tls_server_new("address", NULL);
    testing_write_file(dir, "rotating.pem", other);
    check_result(tls_get(&s, &settings), HTTP_ERR_TLS, "");
    testing_write_file(dir, "rotating.pem", ca);
    http_files_forget(s.f.client->files, file);
    check_result(tls_get(&s, &settings), HTTP_DONE, "");
    /* Removed: the old content stays in use. */
    assert_int_equal(unlink(file), 0);
    http_files_forget(s.f.client->files, file);
    testing_log_expect(s.f.log, "cannot re-read a file, keeping its old content");
    check_result(tls_get(&s, &settings), HTTP_DONE, "");
}

static void say_hello(struct server_conn *c)
{
    server_send(c, "220 this is not TLS\r\n");
    server_wait_close(c);
}

TEST(test_server_without_tls)
{
    SCOPED(fixture) f = fixture_with(1, say_hello, NULL);
    (void)snprintf(f.url, sizeof(f.url), "https://127.0.0.1:%u/", f.server->port);
    fixture_do(&f, &f.call, &(struct http_request){.url = f.url});
    check_result(&f.call, HTTP_ERR_TLS, "");
}

/* The Host header has the name of the URL, whatever name the certificate has. */
TEST(test_host_beside_server_name)
{
    static const struct {
        const char *url, *host, *connect_to;
    } rows[] = {
        {"https://10.0.0.1/x", "Host: 10.0.0.1", "::10.0.0.1:443"},
        {"https://10.0.0.1:8443/x", "Host: 10.0.0.1:8443", "::10.0.0.1:8443"},
        {"https://[::1]:8443/x", "Host: [::1]:8443", "::[::1]:8443"},
    };
    struct http_settings settings = {.tls.server_name = "name.example"};
    SCOPED(fixture) f = fixture_new(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct call call = {0};
        fixture_start(&f, &call, &(struct http_request){.url = rows[i].url, .settings = &settings});
        const struct http_transfer *t = call.transfer;
        assert_non_null(t->headers);
        CHECK_STR(t->headers->data, rows[i].host, rows[i].url);
        assert_non_null(t->connect_to);
        CHECK_STR(t->connect_to->data, rows[i].connect_to, rows[i].url);
        http_cancel(call.transfer);
        f.waiting--;
    }
    /* Without TLS there is nothing to verify. */
    struct call call = {0};
    fixture_start(&f, &call,
                  &(struct http_request){.url = "http://10.0.0.1/", .settings = &settings});
    assert_null(call.transfer->connect_to);
    http_cancel(call.transfer);
    f.waiting--;
}

MAIN_THAT_MAY_HANG(testing_run("tests", make_certs, drop_certs))
