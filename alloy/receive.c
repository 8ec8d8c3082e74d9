/* Converts pyroscope.receive_http to the key `receive`. */
#include <string.h>

#include "alloy/profiles.h"

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])
#define BLOCKS(table) .blocks = (table), .n_blocks = sizeof(table) / sizeof((table)[0])

/* Alloy's default address. */
#define DEFAULT_ADDRESS "0.0.0.0"
#define DEFAULT_PORT 8080
#define PORT_MAX 65535

static const struct alloy_attr tls_attrs[] = {
    {.name = "cert_file", .type = ATTR_STRING, .key = "tls.cert_file", .file_name = true},
    {.name = "key_file", .type = ATTR_STRING, .key = "tls.key_file", .file_name = true},
    {.name = "client_ca_file", .type = ATTR_STRING, .key = "tls.client_ca_file", .file_name = true},
    {.name = "client_auth_type", .type = ATTR_STRING, .ignored = true},
};
static const struct alloy_schema tls = {ROWS(tls_attrs)};

static const struct alloy_attr http_attrs[] = {
    {.name = "listen_address", .type = ATTR_STRING},
    {.name = "listen_port", .type = ATTR_INT},
    {.name = "conn_limit", .type = ATTR_INT},
    {.name = "server_read_timeout", .type = ATTR_DURATION, .key = "request_timeout"},
    {.name = "server_write_timeout", .type = ATTR_DURATION, .key = "answer_timeout"},
    {.name = "server_idle_timeout", .type = ATTR_DURATION, .key = "idle_timeout"},
};
static const struct alloy_inner http_blocks[] = {{.name = "tls", .schema = &tls}};
static const struct alloy_schema http = {ROWS(http_attrs), BLOCKS(http_blocks)};

static const struct alloy_attr receive_attrs[] = {
    {.name = "forward_to", .type = ATTR_VALUE, .required = true},
};

/* State while the block http, if there is one, is read. */
struct reading {
    struct alloy_load *l;
    const struct alloy_node *node;
    struct yaml_node *settings;
    const char *address;
    int64_t port;
    struct config_place place;
};

static void put_number(struct alloy_load *l, struct yaml_node *out, struct config_place place,
                       const char *path, const char *key, int64_t number)
{
    tree_put(&l->tree, out, key,
             tree_word(&l->tree, place, path, alloy_text(l, "%lld", (long long)number)));
}

static bool read_http(void *arg, const struct alloy_stmt *s, const char *path)
{
    struct reading *r = arg;
    struct alloy_load *l = r->l;
    struct alloy_reading reading = alloy_reading(l, NULL);
    struct alloy_given given;
    const struct alloy_stmt *stmt;
    const struct alloy_value *text;
    int64_t limit;
    if (!sv_eq_str(s->name, "http")) {
        return false;
    }
    r->place = s->place;
    alloy_read_block(&reading, &http, s, path, r->settings, &given);
    const struct alloy_value *v = alloy_given(&given, "listen_address", &stmt);
    if (v != NULL && alloy_as_string(&l->ev, stmt->value->place, v, &text) && text->text.n > 0) {
        r->address = alloy_text(l, "%.*s", SV_ARG(text->text));
    }
    v = alloy_given(&given, "listen_port", &stmt);
    if (v != NULL && alloy_as_int(&l->ev, stmt->value->place, v, &r->port) &&
        (r->port < 0 || r->port > PORT_MAX)) {
        (void)alloy_fail(&l->ev, stmt->value->place, "expected a port of 0-%d", PORT_MAX);
    }
    v = alloy_given(&given, "conn_limit", &stmt);
    if (v != NULL && alloy_as_int(&l->ev, stmt->value->place, v, &limit) && limit > 0) {
        put_number(l, r->settings, stmt->value->place, path, "max_connections", limit);
    }
    return true;
}

/* Sets the address, and allows senders without credentials, since Alloy asks for none. */
static void put_address(const struct reading *r)
{
    struct alloy_load *l = r->l;
    const char *path = r->node->path;
    bool ipv6 = strchr(r->address, ':') != NULL && r->address[0] != '[';
    const char *listen = alloy_text(l, "%s%s%s:%lld", ipv6 ? "[" : "", r->address, ipv6 ? "]" : "",
                                    (long long)r->port);
    struct sv none = {.p = NULL};
    tree_put(&l->tree, r->settings, "listen",
             tree_text(&l->tree, r->place, path, sv_from(listen), none));
    const struct yaml_node *of_tls = yaml_get(r->settings, "tls");
    if (of_tls == NULL || yaml_get(of_tls, "client_ca_file") == NULL) {
        tree_put(&l->tree, r->settings, "allow_unauthenticated",
                 tree_word(&l->tree, r->place, path, "true"));
    }
}

const struct alloy_value *alloy_pyroscope_receive(struct alloy_load *l, struct alloy_node *n)
{
    static const char *const names[] = {"http", NULL};
    static const struct alloy_schema schema = {ROWS(receive_attrs), .other = read_http,
                                               .other_names = names};
    struct alloy_given given;
    const struct alloy_stmt *stmt;
    struct alloy_receive *receive = arena_alloc(l->arena, sizeof(*receive));
    struct reading arg = {.l = l,
                          .node = n,
                          .settings = tree_mapping(&l->tree, n->stmt->place, n->path),
                          .address = DEFAULT_ADDRESS,
                          .port = DEFAULT_PORT,
                          .place = n->stmt->place};
    struct alloy_reading r = alloy_reading(l, &arg);
    if (receive == NULL || arg.settings == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    receive->settings = arg.settings;
    n->data = receive;
    alloy_read_block(&r, &schema, n->stmt, n->path, arg.settings, &given);
    put_address(&arg);
    const struct alloy_value *forward = alloy_given(&given, "forward_to", &stmt);
    if (forward != NULL && forward->kind != VALUE_UNKNOWN) {
        receive->place = stmt->value->place;
        receive->complete = alloy_read_receivers(l, stmt->value->place,
                                                 alloy_path(l->arena, n->path, SV("forward_to")),
                                                 forward, &receive->receivers);
    }
    return NULL;
}
