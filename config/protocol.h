/* The properties of a destination's protocol that the configuration needs.
 *
 * The rows come from the caller (write/protocols/) through struct config_options: config/ can read
 * endpoints without a list of protocols of its own. Constant data.
 */
#ifndef PROFPULL_CONFIG_PROTOCOL_H
#define PROFPULL_CONFIG_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_PROTOCOL_PATHS 3
#define CONFIG_CONCURRENCY 16

struct config_protocol {
    const char *name; /* the value of the key protocol */
    /* HTTP: a URL that ends in one of these (NULL-terminated) speaks this protocol and no other.
     * The first is the path that profiles are posted to. */
    const char *paths[CONFIG_PROTOCOL_PATHS];
    /* The scheme of its URLs if it is neither http nor https: "file" for "file:///DIR"; every such
     * URL is this protocol's. */
    const char *scheme;
    /* The retention of an endpoint that sets none; 0: no limit. */
    int64_t max_age_ms;
    uint64_t max_bytes;
    unsigned concurrency; /* default of an endpoint; 0: CONFIG_CONCURRENCY */
    /* its servers turn labels of samples into labels, and may refuse profiles for them */
    bool reads_sample_labels;
    bool tells_refusals; /* a server that does not store a profile reports that */
    bool is_store;       /* it has the keys of `store` */
    bool is_otlp;        /* it has the keys of `otlp` */
    bool is_s3;          /* it has the keys of `s3`; of the others with a scheme, each URL is a
                            directory */
    /* uses HTTP/2 from the first byte on, whatever the scheme of the URL */
    bool needs_http2;
    /* accepts recordings of Java besides pprof, which all protocols accept */
    bool takes_jfr;
};

/* The protocol of a URL that can mean only one: file://, store://, s3://, or the path of a method.
 * NULL if it could mean any. all may be NULL. */
const struct config_protocol *config_protocol_of_url(const struct config_protocol *const *all,
                                                     const char *url);

#endif
