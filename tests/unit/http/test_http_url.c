/* URLs: percent-encoding, joining, parsing, redirect targets, redaction. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "http/url.h"

#define PUSH "/push.v1.PusherService/Push"
#define INGEST "/ingest"

TEST(test_percent_encoding)
{
    SCOPED(buf) out = testing_buf(1000);
    assert_true(url_encode(SV("aZ09-._~ /?&=+%\xc3\xa9\0{}"), &out));
    CHECK_STR(out.data, "aZ09-._~%20%2F%3F%26%3D%2B%25%C3%A9%00%7B%7D", "");
    buf_done(&out);
    buf_init(&out, 2);
    assert_false(url_encode(SV("%"), &out));
}

TEST(test_join)
{
    static const struct {
        const char *base, *path, *query, *want;
    } rows[] = {
        {"http://p:4040", PUSH, "", "http://p:4040/push.v1.PusherService/Push"},
        {"http://p:4040/", PUSH, "", "http://p:4040/push.v1.PusherService/Push"},
        {"http://p:4040///", PUSH, "", "http://p:4040/push.v1.PusherService/Push"},
        {"https://kfuse.example/profile", PUSH, "",
         "https://kfuse.example/profile/push.v1.PusherService/Push"},
        {"https://kfuse.example/profile/", PUSH, "",
         "https://kfuse.example/profile/push.v1.PusherService/Push"},
        {"http://p:4040/push.v1.PusherService/Push", PUSH, "",
         "http://p:4040/push.v1.PusherService/Push"},
        {"http://p:4040/push.v1.PusherService/Push/", PUSH, "",
         "http://p:4040/push.v1.PusherService/Push"},
        {"http://p:4040/x?key=1#frag", PUSH, "",
         "http://p:4040/x/push.v1.PusherService/Push?key=1"},
        {"http://u:p%40w@p:4040", PUSH, "", "http://u:p%40w@p:4040/push.v1.PusherService/Push"},
        {"http://p:4040", INGEST, "name=a", "http://p:4040/ingest?name=a"},
        {"http://p:4040/ingest", INGEST, "name=a", "http://p:4040/ingest?name=a"},
        {"http://p:4040/pyroscope/", INGEST, "name=a", "http://p:4040/pyroscope/ingest?name=a"},
        {"https://kfuse.example/profile", INGEST, "name=a",
         "https://kfuse.example/profile/ingest?name=a"},
        {"http://deepflow-agent.deepflow/api/v1/profile", INGEST, "name=a",
         "http://deepflow-agent.deepflow/api/v1/profile/ingest?name=a"},
        {"http://deepflow-agent.deepflow/api/v1/profile/ingest", INGEST, "name=a",
         "http://deepflow-agent.deepflow/api/v1/profile/ingest?name=a"},
        {"http://p/?a=1&b=2", INGEST, "name=a", "http://p/ingest?a=1&b=2&name=a"},
        {"http://p/?", INGEST, "name=a", "http://p/ingest?name=a"},
        {"http://p/reingest", INGEST, "name=a", "http://p/reingest/ingest?name=a"},
        {"http://[::1]:4040", INGEST, "name=a", "http://[::1]:4040/ingest?name=a"},
        {"https://h/profile", "/ingest", "", "https://h/profile/ingest"},
        {"https://h/profile///", "/ingest", "a=b", "https://h/profile/ingest?a=b"},
        {"https://h/x?k=v", "/ingest", "a=b", "https://h/x/ingest?k=v&a=b"},
        {"https://h/x/ingest?k=v", "/ingest", "", "https://h/x/ingest?k=v"},
        {"http://h/push.v1.PusherService/Push/", PUSH, "", "http://h/push.v1.PusherService/Push"},
        {"http://h/api/0/profiles", "/api/0/profiles", "", "http://h/api/0/profiles"},
        {"http://[::1]:4040", "/ingest", "", "http://[::1]:4040/ingest"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) out = testing_buf(4096);
        assert_true(
            url_join(sv_from(rows[i].base), sv_from(rows[i].path), sv_from(rows[i].query), &out));
        CHECK_STR(out.data, rows[i].want, rows[i].base);
    }
}

TEST(test_directory_of_a_file_url)
{
    static const struct {
        const char *url;
        const char *want; /* NULL: an error */
    } rows[] = {
        {"file:///var/lib/x", "/var/lib/x"},
        {"file:///var/lib/x//", "/var/lib/x"},
        {"file://localhost/var/x", "/var/x"},
        {"file:/var/x", "/var/x"},
        {"/var/x", "/var/x"},
        {"file:///a%20b", "/a b"},
        {"/a%20b", "/a%20b"},
        {"file://host/x", NULL},
        {"file://data", NULL},
        {"data", NULL},
        {"", NULL},
        {"file:///", NULL},
        {"/", NULL},
        {"file:///a%2", NULL},
        {"file:///a%zz", NULL},
        {"file:///a%00", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(buf) out = testing_buf(4096);
        bool ok = url_to_directory(sv_from(rows[i].url), &out, &err);
        CHECK_INT(ok, rows[i].want != NULL, rows[i].url);
        if (ok) {
            CHECK_STR(out.data, rows[i].want, rows[i].url);
        } else {
            CHECK_CONTAINS(err.msg, "file:///var/lib/profiles", rows[i].url);
        }
    }
}

TEST(test_url_parse)
{
    static const struct {
        const char *in;
        const char *text; /* NULL: refused */
        const char *host;
        uint16_t port;
        bool https;
        const char *user, *password;
    } rows[] = {
        {"http://h", "http://h/", "h", 80, false, NULL, NULL},
        {"https://h/x", "https://h/x", "h", 443, true, NULL, NULL},
        {"HTTP://Host.Example:8080/A?b=C", "http://Host.Example:8080/A?b=C", "host.example", 8080,
         false, NULL, NULL},
        {"http://10.0.0.1:6060/debug/pprof/profile?seconds=14",
         "http://10.0.0.1:6060/debug/pprof/profile?seconds=14", "10.0.0.1", 6060, false, NULL,
         NULL},
        {"http://[::1]:6060/x", "http://[::1]:6060/x", "::1", 6060, false, NULL, NULL},
        {"http://user:pa%3Ass@h:1/x", "http://h:1/x", "h", 1, false, "user", "pa:ss"},
        {"http://user@h/", "http://h/", "h", 80, false, "user", NULL},
        {"http://h/x#frag", "http://h/x", "h", 80, false, NULL, NULL},
        {"http://h/a/../b/./c", "http://h/a/../b/./c", "h", 80, false, NULL, NULL},
        {"http://h?x=1", "http://h/?x=1", "h", 80, false, NULL, NULL},
        {"", NULL, NULL, 0, false, NULL, NULL},
        {"h:80/x", NULL, NULL, 0, false, NULL, NULL},
        {"/x", NULL, NULL, 0, false, NULL, NULL},
        {"ftp://h/", NULL, NULL, 0, false, NULL, NULL},
        {"file:///etc/passwd", NULL, NULL, 0, false, NULL, NULL},
        {"http:///x", NULL, NULL, 0, false, NULL, NULL},
        {"http:/h/x", NULL, NULL, 0, false, NULL, NULL},
        {"http:h", NULL, NULL, 0, false, NULL, NULL},
        {"http://", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:0/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:65536/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:x/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h/a b", NULL, NULL, 0, false, NULL, NULL},
        {"http://h/a\r\nX: 1", NULL, NULL, 0, false, NULL, NULL},
        {"http://[::1/", NULL, NULL, 0, false, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct url url;
        CHECK_INT(url_parse(rows[i].in, &url, &err), rows[i].text != NULL, rows[i].in);
        CHECK_STR(url.text, rows[i].text, rows[i].in);
        CHECK_STR(url.host, rows[i].host, rows[i].in);
        CHECK_INT(url.port, rows[i].port, rows[i].in);
        CHECK_INT(url.https, rows[i].https, rows[i].in);
        CHECK_STR(url.user, rows[i].user, rows[i].in);
        CHECK_STR(url.password, rows[i].password, rows[i].in);
        CHECK_INT(err.kind, rows[i].text ? ERR_NONE : ERR_INPUT, rows[i].in);
        url_done(&url);
    }
}

TEST(test_url_origin)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"http://h/x", "http://H:80/y?z", true}, {"https://h/x", "https://u:p@h:443/", true},
        {"http://h/", "https://h/", false},      {"http://h:1/", "http://h:2/", false},
        {"http://h/", "http://g/", false},       {"http://h:80/", "https://h:80/", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url a, b;
        bool same = !rows[i].same;
        assert_true(url_parse(rows[i].a, &a, NULL));
        assert_true(url_parse(rows[i].b, &b, NULL));
        CHECK_INT(url_origin_hash(&a) == url_origin_hash(&b), rows[i].same, rows[i].b);
        SCOPED_MEMORY char *target = url_resolve(rows[i].a, rows[i].b, &same);
        CHECK_STR(target, b.text, rows[i].b);
        CHECK_INT(same, rows[i].same, rows[i].b);
        url_done(&a);
        url_done(&b);
    }
}

TEST(test_url_resolve)
{
    static const struct text_case rows[] = {
        {"/x", "http://h:1/x"},         {"x", "http://h:1/a/x"},
        {"?q=2", "http://h:1/a/b?q=2"}, {"//g/x", "http://g/x"},
        {"a b", "http://h:1/a/a%20b"},  {"https://u:p@g/#f", "https://g/"},
        {"javascript:alert(1)", NULL},  {"mailto:x@y", NULL},
        {"http://h:99999/", NULL},      {"ftp://h/", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool same = false;
        SCOPED_MEMORY char *got = url_resolve("http://h:1/a/b?q=1", rows[i].text, &same);
        /* "javascript:x" may also be read as a path of the same host: never another host. */
        if (rows[i].want != NULL || got == NULL || !same) {
            CHECK_STR(got, rows[i].want, rows[i].text);
        }
    }
}

TEST(test_url_redact)
{
    static const struct text_case rows[] = {
        {"http://h:1/a/b", "http://h:1/a/b"},
        {"http://user:s3cret@h:1/a", "http://h:1/a"},
        {"http://h/a?seconds=14&debug=0", "http://h/a?seconds=14&debug=0"},
        {"http://h/a?token=s3cret&x=", "http://h/a?token=...&x=..."},
        {"http://h/a?s3cret", "http://h/a?..."},
        {"http://h/a?pin=12345678901", "http://h/a?pin=..."},
        {"http://h/a#s3cret", "http://h/a"},
        /* Not URLs, but they may contain a secret. */
        {"h:80/x", "h:80/x"},
        {"http://user:s3c ret@h/x", "...@h/x"},
        {"http://user:s3/cr@et@h/x", "...@h/x"},
        {"user:s3cret@h", "...@h"},
        {"http://h/x?seconds=14&token=123456&pin=99", "http://h/x?seconds=14&token=...&pin=..."},
        {"h/x?s3cret", "h/x?..."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[URL_REDACTED_MAX];
        url_redact(rows[i].text, out, sizeof(out));
        CHECK_STR(out, rows[i].want, rows[i].text);
    }
    char small[16];
    url_redact("http://host/a/long/path", small, sizeof(small));
    CHECK_STR(small, "http://host/...", "cut");
}
