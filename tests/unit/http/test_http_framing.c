/* Responses whose bytes never become a body, or hardly: chunks and their extensions have no limit
 * in HTTP, and none in libcurl. What ordinary servers send is far below the limits. */
#include "tests/unit/lib/http_server.h"

#include "http/private.h"

#define CHUNKED OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"

/* The head once, then the same bytes so many times (SIZE_MAX: until the client has gone). */
struct script {
    const char *head;
    const char *again;
    size_t times;
    const char *end;
};

static void send_script(struct server_conn *c)
{
    const struct script *s = server_arg(c);
    if (!server_read_request(c) || !server_send(c, s->head)) {
        return;
    }
    /* In large pieces: the client is to meet its limits and not the end of its patience. */
    size_t n = strlen(s->again), per = s->times < 65536 / n ? s->times : 65536 / n;
    SCOPED_MEMORY char *many = testing_memory(n * per);
    for (size_t i = 0; i < per; i++) {
        memcpy(many + i * n, s->again, n);
    }
    bool ok = true;
    for (size_t left = s->times; ok && left > 0; left -= left < per ? left : per) {
        ok = server_send_bytes(c, many, n * (left < per ? left : per));
    }
    if (ok) {
        server_send(c, s->end);
    }
}

struct row {
    const char *name;
    struct script script;
    enum http_result result;
    const char *error;
};

static void check_rows(const struct row *rows, size_t n)
{
    SCOPED(fixture) f = fixture_with(1, send_script, NULL);
    for (size_t i = 0; i < n; i++) {
        server_set_arg(f.server, &rows[i].script);
        fixture_ask(&f, "/", &(struct http_request){.max_body = (size_t)16 * 1024 * 1024});
        check_result(&f.call, rows[i].result, rows[i].name);
        CHECK_CONTAINS(f.call.error, rows[i].error, rows[i].name);
    }
}

#define WIRE "expected at most as many bytes of framing as of content and 262144 more, got "
#define PIECES "expected at least 16 bytes at a time, got "

TEST(test_floods_end)
{
    static const struct row rows[] = {
        {"an extension without end",
         {CHUNKED "1;", "xxxxxxxxxxxxxxxx", SIZE_MAX, ""},
         HTTP_ERR_PROTOCOL,
         WIRE},
        {"long extensions",
         {CHUNKED,
          "20;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"
          "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
          SIZE_MAX, ""},
         HTTP_ERR_PROTOCOL,
         WIRE},
        {"chunks of a byte", {CHUNKED, "1\r\nx\r\n", SIZE_MAX, ""}, HTTP_ERR_PROTOCOL, PIECES},
        {"chunks of 15 bytes",
         {CHUNKED, "f\r\nxxxxxxxxxxxxxxx\r\n", SIZE_MAX, ""},
         HTTP_ERR_PROTOCOL,
         PIECES},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(test_ordinary_responses)
{
    static const struct row rows[] = {
        {"a few chunks of a byte",
         {CHUNKED, "1\r\nx\r\n", HTTP_PIECES_SLACK, "0\r\n\r\n"},
         HTTP_DONE,
         ""},
        {"many chunks of 32 bytes",
         {CHUNKED, "20\r\nyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 200000, "0\r\n\r\n"},
         HTTP_DONE,
         ""},
        {"eight megabytes",
         {"HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n", "yyyyyyyyyyyyyyyy", 524288, ""},
         HTTP_DONE,
         ""},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

MAIN_THAT_MAY_HANG(run_both_ways(NULL, NULL))
