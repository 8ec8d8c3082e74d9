#include "cli/run_targets.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/str.h"

#define TEXT_MAX ((size_t)1 << 20)

/* Appends a text as a YAML string without variables: "${" becomes "$${". */
static void put_text(struct buf *out, struct sv text)
{
    struct buf plain;
    buf_init(&plain, TEXT_MAX);
    for (size_t i = 0; i < text.n; i++) {
        bool is_variable = text.p[i] == '$' && i + 1 < text.n && text.p[i + 1] == '{';
        buf_puts(&plain, is_variable ? "$" : "");
        buf_putc(&plain, text.p[i]);
    }
    json_quote((struct sv){plain.data, plain.len}, out);
    buf_done(&plain);
}

static bool put_target(struct buf *out, const char *text, struct err *err)
{
    struct sv service;
    struct sv address;
    struct sv host;
    uint16_t port;
    if (!sv_cut(sv_from(text), '=', &service, &address)) {
        service = address = sv_from(text);
    }
    if (service.n == 0) {
        return err_set(err, ERR_INPUT,
                       "--target: expected HOST:PORT or SERVICE=HOST:PORT, got \"%s\"", text);
    }
    if (!split_host_port(address, &host, &port, err)) {
        return err_wrap(err, "--target");
    }
    if (port == 0) {
        return err_set(err, ERR_INPUT, "--target: expected HOST:PORT, got \"%s\", without a port",
                       text);
    }
    buf_puts(out, "      - {targets: [");
    put_text(out, address);
    buf_puts(out, "], labels: {service_name: ");
    put_text(out, service);
    buf_puts(out, "}}\n");
    return true;
}

/* Appends a path as part of a URL, in which "%41" means "A": so '%' becomes "%25". */
static void put_path(struct buf *out, const char *path)
{
    for (; *path != '\0'; path++) {
        buf_puts(out, *path == '%' ? "%25" : (const char[]){*path, '\0'});
    }
}

bool run_targets_config(const struct flag_list *targets, const char *data, struct buf *out,
                        struct err *err)
{
    char here[PATH_MAX] = "";
    if (data[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        return err_sys(err, "the working directory");
    }
    buf_puts(out, "global: {scrape_interval: 10s}\n"
                  "server: {listen: \"127.0.0.1:4041\"}\n"
                  "scrape_configs:\n"
                  "  - job_name: targets\n"
                  "    profiles: {process_cpu: {seconds: 5s}}\n"
                  "    static_configs:\n");
    for (size_t i = 0; i < targets->n; i++) {
        if (!put_target(out, targets->at[i], err)) {
            return false;
        }
    }
    struct buf url;
    buf_init(&url, TEXT_MAX);
    while (data[0] == '/' && data[1] == '/') {
        data++; /* a path may begin with several slashes, a URL may not */
    }
    buf_puts(&url, "store://");
    put_path(&url, here);
    buf_puts(&url, data[0] != '/' ? "/" : "");
    put_path(&url, data);
    buf_puts(out, "write:\n  - name: local\n    url: ");
    put_text(out, (struct sv){url.data, url.len});
    buf_puts(out, "\n");
    buf_done(&url);
    return buf_ok(out) || err_memory(err);
}
