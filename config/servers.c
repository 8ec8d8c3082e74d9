/* The keys `server`, `query` and `receive`: addresses, credentials of clients, and limits. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

static const struct range range_connections = {2, 1024};
/* Ranges of the limits of a server. */
static const struct range range_many = {2, 65536};
static const struct range range_timeout = {1000, 600000};
static const struct range range_threads = {1, 64};
static const struct range range_helped = {1, QUERY_THREADS_MAX};
static const struct range range_waiting = {0, 65536};
static const struct range range_memory = {1 << 20, UINT64_C(1) << 40};
static const struct range range_body = {1024, UINT64_C(1) << 30};

/* ---- TLS and credentials --------------------------------------------------------------------- */

static bool has_tls(const void *record)
{
    return ((const struct config_server *)record)->tls.cert_file != NULL;
}

static const struct field tls_rows[] = {
    ROW(config_server, "cert_file", tls.cert_file, &kind_text, .arg = &text_content,
        .required = true),
    ROW(config_server, "key_file", tls.key_file, &kind_text, .arg = &text_content,
        .required = true),
    ROW(config_server, "client_ca_file", tls.client_ca_file, &kind_text, .arg = &text_content),
};
static const struct schema tls = SCHEMA(tls_rows, 0);

static const struct field access_rows[] = {
    PART("tls", &kind_mapping, .arg = &tls, .when = has_tls),
    ROW(config_server, NULL, access, &kind_mapping, .arg = &schema_credentials),
    ROW(config_server, "web_config_file", web_config_file, &kind_text, .arg = &text_file_name,
        .optional = true),
};

/* Refuses other access keys beside web_config_file, so that one place alone says who is let in. */
static void check_access(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_server *s = out;
    bool has_own = s->tls.cert_file != NULL || s->access.auth != HTTP_AUTH_NONE;
    if (clean && s->web_config_file != NULL && has_own) {
        struct place key = place_of_key(at, "web_config_file");
        reader_error(r, &key,
                     "the file has TLS and users: expected no \"tls\", \"basic_auth\", "
                     "\"authorization\" or \"bearer_token\" beside it");
    }
}

const struct schema schema_access =
    SCHEMA(access_rows, sizeof(struct config_server), .check = check_access);

/* ---- the three servers ----------------------------------------------------------------------- */

#define CONNECTION_ROWS(range, all, of_one, streams)                                               \
    ROW(config_server, "max_connections", max_connections, &kind_unsigned, .arg = &(range),        \
        .initial.number = (all)),                                                                  \
        ROW(config_server, "max_connections_per_address", max_connections_per_address,             \
            &kind_unsigned, .arg = &(range), .initial.number = (of_one)),                          \
        ROW(config_server, "max_streams", max_streams, &kind_unsigned, .arg = &range_many,         \
            .initial.number = (streams)),                                                          \
        ROW(config_server, "max_streams_per_connection", max_streams_per_connection,               \
            &kind_unsigned, .arg = &range_many, .initial.number = 100),                            \
        ROW(config_server, "request_timeout", request_timeout_ms, &kind_duration,                  \
            .arg = &range_timeout, .initial.ms = 10 * MS_PER_S),                                   \
        ROW(config_server, "answer_timeout", answer_timeout_ms, &kind_duration,                    \
            .arg = &range_timeout, .initial.ms = 60 * MS_PER_S),                                   \
        ROW(config_server, "idle_timeout", idle_timeout_ms, &kind_duration, .arg = &range_timeout, \
            .initial.ms = 60 * MS_PER_S),                                                          \
        PART(NULL, &kind_mapping, .arg = &schema_access)

static const struct field server_rows[] = {
    ROW(config_server, "listen", listen, &kind_text, .arg = &text_listen,
        .initial.text = "127.0.0.1:4041"),
    CONNECTION_ROWS(range_connections, 64, 16, 256),
};
const struct schema schema_server = SCHEMA(server_rows, sizeof(struct config_server));

/* max_bytes and bodies_max_bytes are shares of memory_limit unless they are given. */
#define WORK_ROWS(waiting, body)                                                                   \
    ROW(config_server, "max_waiting", max_waiting, &kind_unsigned, .arg = &range_waiting,          \
        .initial.number = (waiting)),                                                              \
        ROW(config_server, "timeout", timeout_ms, &kind_duration, .arg = &range_timeout,           \
            .initial.ms = 30 * MS_PER_S),                                                          \
        ROW(config_server, "max_bytes", max_bytes, &kind_size, .arg = &range_memory),              \
        ROW(config_server, "max_body_size", max_body_size, &kind_size, .arg = &range_body,         \
            .initial.size = (body)),                                                               \
        ROW(config_server, "bodies_max_bytes", bodies_max_bytes, &kind_size,                       \
            .arg = &range_memory),                                                                 \
        ROW(config_server, "concurrency", concurrency, &kind_unsigned, .arg = &range_threads,      \
            .initial.number = 2)

static bool has_peers(const void *record)
{
    const struct config_peers *p = &((const struct config_server *)record)->peers;
    return p->hosts.n > 0 || p->dns != NULL || p->sharding;
}

static const struct field query_rows[] = {
    ROW(config_server, "listen", listen, &kind_text, .arg = &text_listen, .initial.text = ""),
    ROW(config_server, "path_prefix", path_prefix, &kind_text, .arg = &text_path_prefix),
    PART("peers", &kind_mapping, .arg = &schema_peers, .when = has_peers),
    CONNECTION_ROWS(range_many, 256, 64, 1024),
    WORK_ROWS(64, UINT64_C(4) << 20),
    ROW(config_server, "threads", threads, &kind_unsigned, .arg = &range_helped,
        .initial.number = 4),
};
const struct schema schema_query = SCHEMA(query_rows, sizeof(struct config_server));

static const struct field receive_server_rows[] = {
    ROW(config_server, "listen", listen, &kind_text, .arg = &text_listen, .initial.text = ""),
    ROW(config_server, "allow_unauthenticated", allow_unauthenticated, &kind_bool),
    CONNECTION_ROWS(range_many, 1024, 256, 2048),
    WORK_ROWS(1024, UINT64_C(64) << 20),
};
const struct schema schema_receive_server =
    SCHEMA(receive_server_rows, sizeof(struct config_server));

/* ---- rules ----------------------------------------------------------------------------------- */

bool config_server_shares(const struct config_server *s, const struct config_server *other)
{
    return other->listen[0] != '\0' && strcmp(s->listen, other->listen) == 0;
}

bool config_server_is_open(const struct config_server *s)
{
    return s->access.auth == HTTP_AUTH_NONE && s->tls.client_ca_file == NULL &&
           s->web_config_file == NULL;
}

/* Returns true for an address that only this machine can reach. */
static bool is_loopback(const char *listen)
{
    struct sv text = sv_from(listen);
    struct sv host;
    uint16_t none;
    if (sv_ends_with(text, SV(":0"))) {
        text.n -= 2;
        return sv_eq(text, SV("localhost")) || sv_starts_with(text, SV("127.")) ||
               sv_eq(text, SV("[::1]"));
    }
    return split_host_port(text, &host, &none, NULL) &&
           (sv_eq(host, SV("localhost")) || sv_starts_with(host, SV("127.")) ||
            sv_eq(host, SV("::1")));
}

/* Refuses TLS settings of a server that shares the address of another one, whose TLS applies. */
static void check_shared(struct reader *r, const struct place *root, const char *key,
                         const struct config_server *s, const char *with)
{
    struct place section = place_of_key(root, key);
    const char *own = s->tls.cert_file != NULL     ? "tls"
                      : s->web_config_file != NULL ? "web_config_file"
                                                   : NULL;
    if (own != NULL) {
        struct place at = place_of_key(&section, own);
        reader_error(r, &at,
                     "this address is that of \"%s\", which has the key \"%s\" for both: expected "
                     "another \"listen\", or no \"%s\" here",
                     with, own, own);
    }
}

static void check_receive(struct reader *r, const struct place *root, const struct config *c)
{
    const struct config_server *s = &c->receive.server;
    const struct config_server *host = config_server_shares(s, &c->server)  ? &c->server
                                       : config_server_shares(s, &c->query) ? &c->query
                                                                            : s;
    if (host != s) {
        check_shared(r, root, "receive", s, host == &c->server ? "server" : "query");
    }
    if (s->listen[0] == '\0' || s->allow_unauthenticated || is_loopback(s->listen) ||
        !config_server_is_open(s) || !config_server_is_open(host)) {
        return;
    }
    struct place section = place_of_key(root, "receive");
    struct place at = place_of_key(&section, "listen");
    reader_error(
        r, &at,
        "anybody who reaches this address could send profiles: expected \"basic_auth\", "
        "\"authorization\", \"bearer_token_file\" or \"tls.client_ca_file\", or a loopback "
        "address such as \"127.0.0.1:4040\", or \"allow_unauthenticated: true\", got \"%s\"",
        s->listen);
}

void check_servers(struct reader *r, const struct place *root, const struct config *c)
{
    if (c->server.listen == NULL) { /* an error of the command line */
        return;
    }
    if (c->query.listen[0] == '\0' || config_server_shares(&c->query, &c->server)) {
        check_shared(r, root, "query", &c->query, "server");
    }
    check_receive(r, root, c);
}
