/* Web configuration files of Prometheus and its exporters. */
#include "tests/unit/lib/testing.h"

#include "config/web_config.h"

#define HASH "$2b$10$abcdefghijklmnopqrstuufSOlAlDHX6OpYZF25f9x6UkWjRId9eS"
#define TLS "tls_server_config: {cert_file: c, key_file: k"

static struct web_config parse(const char *text)
{
    struct web_config w;
    struct err err = ERR_INIT;
    bool ok = web_config_parse("dir/web.yml", sv_from(text), &w, &err);
    CHECK_STR(err.msg, "", text);
    assert_true(ok);
    return w;
}

TEST(all_keys)
{
    struct web_config w = parse("tls_server_config:\n"
                                "  cert_file: server.crt\n"
                                "  key_file: /abs/server.key\n"
                                "  client_auth_type: RequireAndVerifyClientCert\n"
                                "  client_ca_file: ca.crt\n"
                                "  client_allowed_sans: [a.b, 10.0.0.1]\n"
                                "  min_version: TLS13\n"
                                "  max_version: TLS13\n"
                                "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"
                                "  curve_preferences: [X25519]\n"
                                "  prefer_server_cipher_suites: false\n"
                                "http_server_config:\n"
                                "  http2: false\n"
                                "  headers:\n"
                                "    Content-Security-Policy: default-src 'self' ${X}\n"
                                "    X-Frame-Options: deny\n"
                                "    X-Content-Type-Options: nosniff\n"
                                "    X-XSS-Protection: 1; mode=block\n"
                                "    Strict-Transport-Security: max-age=1\n"
                                "basic_auth_users:\n"
                                "  alice: " HASH "\n"
                                "  bob: " HASH "\n");
    CHECK_STR(w.tls.cert_file, "dir/server.crt", "");
    CHECK_STR(w.tls.key_file, "/abs/server.key", "");
    CHECK_STR(w.tls.client_ca_file, "dir/ca.crt", "");
    CHECK_INT(w.tls.client_auth, WEB_CLIENT_VERIFY, "");
    CHECK_INT(w.tls.client_allowed_sans.n, 2, "");
    CHECK_INT(w.tls.min_version, WEB_TLS_13, "");
    CHECK_INT(w.tls.max_version, WEB_TLS_13, "");
    CHECK_STR(w.tls.cipher_suites.at[0], "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "");
    CHECK_STR(w.tls.curves.at[0], "X25519", "");
    assert_false(w.tls.prefer_server_cipher_suites);
    CHECK_STR(w.headers[WEB_CONTENT_SECURITY_POLICY], "default-src 'self' ${X}", "");
    CHECK_STR(w.headers[WEB_STRICT_TRANSPORT_SECURITY], "max-age=1", "");
    CHECK_STR(web_header_name(WEB_XSS_PROTECTION), "X-XSS-Protection", "");
    CHECK_INT(w.users.n, 2, "");
    CHECK_STR(w.users.at[0].name, "alice", "");
    CHECK_STR(w.users.at[0].value, HASH, "");
    web_config_done(&w);
}

TEST(missing_keys_have_defaults)
{
    struct web_config w = parse(TLS "}\n");
    CHECK_INT(w.tls.client_auth, WEB_CLIENT_NONE, "");
    CHECK_INT(w.tls.min_version, WEB_TLS_12, "");
    CHECK_INT(w.tls.max_version, WEB_TLS_13, "");
    assert_true(w.tls.prefer_server_cipher_suites);
    CHECK_INT(w.users.n, 0, "");
    web_config_done(&w);
    w = parse("{}\n");
    assert_null(w.tls.cert_file);
    web_config_done(&w);
}

TEST(mistakes_have_their_lines)
{
    static const struct text_case rows[] = {
        {"tls_server_confi: {}\n",
         ":1:1: tls_server_confi: unknown key; did you mean \"tls_server_config\"?"},
        {"tls_server_config:\n  cert_file: a\n",
         ":2:3: tls_server_config: missing required key \"key_file\""},
        {TLS ", rate: 1}\n", ":1:48: tls_server_config.rate: unknown key"},
        {TLS ", min_version: SSL3}\n", "tls_server_config.min_version: expected "},
        {TLS ", min_version: TLS13, max_version: TLS12}\n", "min_version is above max_version"},
        {TLS ", client_auth_type: Any}\n", "tls_server_config.client_auth_type: expected "},
        {TLS ", client_auth_type: RequireAndVerifyClientCert}\n",
         "client_auth_type: RequireAndVerifyClientCert needs client_ca_file"},
        {TLS ", client_ca_file: a}\n",
         "client_ca_file has no effect with the client_auth_type NoClientCert"},
        {TLS ", client_allowed_sans: [a], client_auth_type: RequireAnyClientCert}\n",
         "client_allowed_sans has no effect with the client_auth_type RequireAnyClientCert"},
        {"http_server_config: {headers: {X-Frame-Options: maybe}}\n",
         "http_server_config.headers.X-Frame-Options: expected \"deny\" or \"sameorigin\""},
        {"http_server_config: {headers: {X-Other: a}}\n",
         "http_server_config.headers.X-Other: unknown key"},
        {"http_server_config: {headers: {X-XSS-Protection: \"a\\r\\nb\"}}\n",
         "http_server_config.headers.X-XSS-Protection: expected a header value"},
        {"basic_auth_users:\n  alice: hunter2\n",
         ":2:10: basic_auth_users.alice: expected a bcrypt hash with a cost of 4 to 16"},
        {"basic_auth_users: {a: "
         "\"$2b$17$abcdefghijklmnopqrstuufSOlAlDHX6OpYZF25f9x6UkWjRId9eS\"}\n",
         "basic_auth_users.a: expected a bcrypt hash"},
        {"basic_auth_users: {\"a:b\": \"" HASH "\"}\n", "expected a name without colons"},
        {"[1]\n", ":1:1: expected a mapping, got a list"},
        {"a: [\n", "dir/web.yml:"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct web_config w;
        struct err err = ERR_INIT;
        CHECK_INT(web_config_parse("dir/web.yml", sv_from(rows[i].text), &w, &err), false,
                  rows[i].text);
        CHECK_CONTAINS(err.msg, rows[i].want, rows[i].text);
        CHECK_CONTAINS(err.msg, "dir/web.yml:", rows[i].text);
        CHECK(strstr(err.msg, "hunter2") == NULL, "the message shows a secret: %s", err.msg);
    }
}
