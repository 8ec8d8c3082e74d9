/* Settings that make the same requests and settings that do not: each member counts, texts by their
 * contents. */
#include "tests/unit/lib/testing.h"

#include "http/http.h"

static struct http_settings plain(void)
{
    return (struct http_settings){.follow_redirects = true};
}

/* One line for each member: settings that differ in it only, from plain() and from each other. */
#define EACH(ROW)                                                                                  \
    ROW(auth, HTTP_AUTH_BASIC)                                                                     \
    ROW(username, "x")                                                                             \
    ROW(username_file, "x")                                                                        \
    ROW(password, "x")                                                                             \
    ROW(password_file, "x")                                                                        \
    ROW(auth_type, "x")                                                                            \
    ROW(credentials, "x")                                                                          \
    ROW(credentials_file, "x")                                                                     \
    ROW(oauth2, &(struct http_oauth2){.client_id = "x"})                                           \
    ROW(tls.ca_pem, "x")                                                                           \
    ROW(tls.ca_file, "x")                                                                          \
    ROW(tls.cert_pem, "x")                                                                         \
    ROW(tls.cert_file, "x")                                                                        \
    ROW(tls.key_pem, "x")                                                                          \
    ROW(tls.key_file, "x")                                                                         \
    ROW(tls.server_name, "x")                                                                      \
    ROW(tls.insecure_skip_verify, true)                                                            \
    ROW(tls.min_version, (enum http_tls_version)1)                                                 \
    ROW(tls.max_version, (enum http_tls_version)1)                                                 \
    ROW(proxy_url, "x")                                                                            \
    ROW(no_proxy, "x")                                                                             \
    ROW(proxy_from_environment, true)                                                              \
    ROW(follow_redirects, false)                                                                   \
    ROW(enable_http2, true)

TEST(each_member_counts)
{
    const struct http_settings a = plain();
#define ROW(member, value)                                                                         \
    {                                                                                              \
        struct http_settings b = plain();                                                          \
        b.member = value;                                                                          \
        CHECK_INT(http_settings_equal(&a, &b), false, #member);                                    \
        CHECK_INT(http_settings_equal(&b, &a), false, #member);                                    \
        struct http_settings c = b;                                                                \
        CHECK_INT(http_settings_equal(&b, &c), true, #member);                                     \
    }
    EACH(ROW)
#undef ROW
}

TEST(lists_are_compared_by_their_contents)
{
    static const struct http_header one[] = {{"X-A", "1"}};
    static const struct http_header same[] = {{"X-A", "1"}, {"X-B", "2"}};
    static const struct http_header other[] = {{"X-A", "2"}};
    static const struct {
        const struct http_header *at;
        size_t n;
        bool equal;
    } rows[] = {{one, 1, true}, {same, 1, true}, {same, 2, false}, {other, 1, false}, {NULL, 0, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_settings a = {.headers = one, .n_headers = 1};
        struct http_settings b = {.headers = rows[i].at, .n_headers = rows[i].n};
        CHECK_INT(http_settings_equal(&a, &b), rows[i].equal, "headers");
        a = (struct http_settings){.proxy_headers = one, .n_proxy_headers = 1};
        b = (struct http_settings){.proxy_headers = rows[i].at, .n_proxy_headers = rows[i].n};
        CHECK_INT(http_settings_equal(&a, &b), rows[i].equal, "headers of the proxy");
        struct http_oauth2 oa = {.client_id = "c", .params = one, .n_params = 1};
        struct http_oauth2 ob = {.client_id = "c", .params = rows[i].at, .n_params = rows[i].n};
        a = (struct http_settings){.oauth2 = &oa};
        b = (struct http_settings){.oauth2 = &ob};
        CHECK_INT(http_settings_equal(&a, &b), rows[i].equal, "parameters of OAuth 2.0");
    }
}

TEST(oauth2_is_compared_by_its_contents)
{
    static const char *const scopes[] = {"s", "t"};
    const struct http_oauth2 base = {
        .client_id = "i", .client_secret = "s", .scopes = scopes, .n_scopes = 1};
    struct http_oauth2 rows[7];
    for (size_t i = 0; i < 7; i++) {
        rows[i] = base;
    }
    rows[1].client_secret = "x";
    rows[2].client_secret_file = "x";
    rows[3].token_url = "x";
    rows[4].n_scopes = 2;
    rows[5].scopes = scopes + 1;
    rows[6].transport.proxy_url = "x";
    for (size_t i = 0; i < 7; i++) {
        const struct http_settings a = {.oauth2 = &base};
        const struct http_settings b = {.oauth2 = &rows[i]};
        CHECK_INT(http_settings_equal(&a, &b), i == 0, "row");
    }
}
