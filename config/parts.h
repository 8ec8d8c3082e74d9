/* Shared by the files of config/ that each read one part of the configuration; for config/ only.
 * Functions that read report errors through the reader.
 */
#ifndef PROFPULL_CONFIG_PARTS_H
#define PROFPULL_CONFIG_PARTS_H

#include "base/map.h"
#include "config/config.h"
#include "config/schema.h"

/* ---- values shared by several parts (checks.c) ----------------------------------------------- */

extern const struct text_kind text_http_url;  /* no user, query or fragment */
extern const struct text_kind text_query_url; /* may have a query, which may hold a secret */
extern const struct text_kind text_proxy_url; /* may hold a password: never shown */
extern const struct text_kind text_header_value;
extern const struct text_kind text_label_name;
extern const struct text_kind text_path_prefix;
extern const struct text_kind text_target;
/* for files that others write: environment variables are not expanded */
extern const struct text_kind text_raw_target;
extern const struct text_kind text_namespace;
extern const struct text_kind text_listen; /* host:port, :port, port 0 allowed, "" for none */
extern const struct text_kind text_tenant;
/* Labels and query parameters. */
extern const struct pairs_kind pairs_labels;
extern const struct pairs_kind pairs_params;
extern const struct pairs_kind pairs_external; /* external_labels */
/* Scrape intervals and timeouts. */
extern const struct range range_interval;

/* http(s):// and a host. */
bool check_http_url(struct sv v);
/* Return true for a text that holds only characters of RFC 1123 names, or is empty: such a text is
 * safe in the path of a request. */
#define DNS_LABEL_MAX 63
#define DNS_SUBDOMAIN_MAX 253
bool check_dns_label(struct sv v);
bool check_dns_subdomain(struct sv v);
/* Returns true for a text without line breaks and control characters. */
bool check_header_value(struct sv v);
/* A header name that users may set; *ret_problem says why not. */
bool check_header_name(struct sv v, const char **ret_problem);

/* Reports an error if both keys are given. group: their mapping, with a space; or "" (http_keys.c).
 */
void check_exclusive(struct reader *r, const struct place *at, const char *group, const char *one,
                     const char *other);
/* Reports an error unless exactly one of two keys is given. clean: the mapping has no other error
 * (http_keys.c). */
void check_one_of(struct reader *r, const struct place *at, bool clean, const char *group,
                  const char *one, const char *other);

/* ---- buckets (s3.c, gs.c) -------------------------------------------------------------------- */

#define S3_SCHEME "s3"
/* "s3://bucket/prefix" */
bool s3_is_url(struct sv v);
extern const struct schema schema_s3; /* struct bucket_settings */
/* "gs://bucket/prefix" */
bool gs_is_url(struct sv v);
extern const struct schema schema_gs; /* struct bucket_settings */
/* The names that buckets may have, for messages. */
#define BUCKET_NAMES "the name of a bucket has 3 to 63 letters, digits, \".\", \"_\" and \"-\""
/* Completes the settings that schema_s3 or schema_gs has read: the URL, and TLS, proxy and headers
 * from `transport`, whose credentials are not used. */
void bucket_complete(struct bucket_settings *b, const char *url,
                     const struct http_settings *transport);
extern const struct schema schema_archive; /* struct config_archive (archive.c) */
/* Completes an endpoint whose URL begins with s3://; at: its mapping. Reports keys that do not fit
 * such an endpoint. */
void s3_complete(struct reader *r, const struct place *at, struct config_endpoint *e);

/* ---- schemas and kinds ----------------------------------------------------------------------- */

extern const struct schema schema_root;        /* struct config (config.c) */
extern const struct schema schema_http;        /* struct http_settings (http_keys.c) */
extern const struct schema schema_target_http; /* the same, for the targets of a job */
/* the same, the keys for credentials alone (http_keys.c) */
extern const struct schema schema_credentials;
extern const struct schema
    schema_access; /* struct config_server, TLS and credentials (servers.c) */
extern const struct schema schema_server;         /* the same, all of the admin server */
extern const struct schema schema_query;          /* the same, of queries */
extern const struct schema schema_receive_server; /* the same, of the receiver */
/* Checks the addresses and credentials of all servers against each other (servers.c). */
void check_servers(struct reader *r, const struct place *root, const struct config *c);
extern const struct schema schema_peers; /* struct config_server, its peers (peers.c) */
/* Checks the peers of queries against the other parts, and completes them (peers.c). */
void check_peers(struct reader *r, const struct place *root, struct config *c);
extern const struct schema schema_label_limits; /* struct config_label_limits (checks.c) */
extern const struct schema schema_sharding;     /* struct config_sharding (sharding.c) */
/* Sets up sharding through the Service that the command line names; does nothing if it names none
 * (sharding.c). */
void apply_sharding_service(struct reader *r, struct config *c);
extern const struct schema schema_record;          /* struct config_record (record.c) */
extern const struct schema schema_symbols;         /* struct symbols_settings (symbols.c) */
extern const struct schema schema_symbols_sources; /* struct symbols_sources (symbols.c) */
extern const struct schema schema_receive;         /* struct config_receive (receive.c) */
extern const struct schema schema_enrich;          /* struct config_enrich (receive.c) */
/* Adds the job that discovers the targets of `enrich`, after all others (receive.c). */
void append_enrich_job(struct reader *r, struct config *c);
/* Completes `receive`; the endpoints must be complete (receive.c). */
void read_receive(struct reader *r, const struct place *root, struct config *c);
extern const struct schema schema_job;         /* struct config_job (jobs.c) */
extern const struct schema schema_sources;     /* the lists of sources in a job (sources.c) */
extern const struct schema schema_rule;        /* struct config_rule (rules.c) */
extern const struct schema schema_type;        /* struct config_type, built in (profiles.c) */
extern const struct schema schema_custom_type; /* the same, custom */
extern const struct schema schema_endpoint;    /* struct config_endpoint (endpoints.c) */

/* The key `forward_to` of a job, for dumps; read_forward_to() reads it (jobs.c). */
extern const struct kind kind_forward_to;
/* struct config_rules; arg: &schema_rule (rules.c). */
extern const struct kind kind_rules;
/* The key `profiles` of a job, for dumps; read_profiles() reads it (profiles.c). */
extern const struct kind kind_profiles;

/* ---- the rest -------------------------------------------------------------------------------- */

struct arena;
struct config_language;
struct config_texts;

/* Fills c from its input, arg, or reports errors. */
typedef void root_fn(struct reader *r, const void *arg, struct config *c, void *out);
/* Returns a configuration that fn fills; NULL if fn reported any error, or memory ran out
 * (config.c). */
struct config *config_read(const char *name, const struct config_options *options,
                           struct config_errors *errors, root_fn *fn, const void *arg, void *out);
/* Fills c from a tree of nodes, however that was made. */
void config_read_tree(struct reader *r, const struct yaml_node *root, struct config *c);
/* Reads a file, a directory of files of the first language, or standard input ("-"). The texts are
 * in a new arena, which the caller frees. */
bool config_read_texts(const char *path, const struct config_options *options,
                       struct config_errors *errors, struct arena **ret_arena,
                       struct config_texts *ret_texts);
/* Returns a configuration that a language reads; NULL after errors. */
struct config *config_read_language(const struct config_language *language,
                                    const struct config_texts *texts,
                                    const struct config_options *options,
                                    struct config_errors *errors);
/* Returns the first language of the options; NULL if there is none, options NULL included. */
const struct config_language *config_first_language(const struct config_options *options);
/* Names the file that errors, warnings and notes are about. */
void config_name_file(const struct config_options *options, struct config_errors *errors,
                      const char *name);
void set_defaults(struct config *c);
/* Slots are indices until config_assign_slots() says otherwise (change.c). */
void config_number_slots(struct config *c);

/* Reads the types of a job from its key "profiles", which may be absent (profiles.c). */
void read_profiles(struct reader *r, const struct place *job_place, struct config_job *job);

/* Returns the protocols of the options, NULL-terminated; an empty list if there are none
 * (endpoints.c). */
const struct config_protocol *const *reader_protocols(const struct reader *r);
/* The list `write` of a root; checks it and adds the settings of the command line (endpoints.c). */
void read_endpoints(struct reader *r, const struct place *root, struct config *c);

/* Fills in the settings of endpoints that were not given and depend on other parts: the ceiling of
 * queues, from c->memory, and the retention of directories (endpoints.c). */
void endpoints_complete(struct config *c);

/* Reads one endpoint, which becomes the only one of the configuration (endpoints.c). */
void read_one_endpoint(struct reader *r, const struct place *at, struct config *c);

/* Reads the key `forward_to` in the mapping `at`; the key may be absent. The endpoints must be
 * complete (jobs.c). */
void read_forward_to(struct reader *r, const struct place *at, const struct config *c,
                     struct config_job *job);

/* Returns true if a configuration without a job has something to do: it receives profiles, or has a
 * store that can be queried. Endpoints must be complete (jobs.c). */
bool config_works_without_jobs(const struct config *c);
/* Returns true if an endpoint is a store, which queries can read. */
bool config_has_store(const struct config *c);
/* Reads the list `scrape_configs`; endpoints and global must be complete (jobs.c). */
void read_jobs(struct reader *r, const struct place *root, struct config *c);

/* Reports an error if the name has been seen; otherwise remembers it with its node. */
void check_unique(struct reader *r, const struct place *at, const char *name, struct map *seen);
/* Reports that a name is used a second time, with the line of its first use. */
void complain_twice(struct reader *r, const struct place *at, const char *name, int first_line);

#endif
