/* The configuration: text in, one validated, immutable `struct config` out.
 *
 * No other room reads YAML. Text becomes a tree with line numbers (yaml.h), the tree becomes typed
 * structs through tables (schema.h), the structs are completed with defaults and checked as a
 * whole. All mistakes of a file are reported in one run. A configuration lives in its own arena, is
 * reference-counted (atomic) and never changes; everything it points to dies with it.
 *
 * The model is a list of jobs, each with its sources and their rules; it does not depend on YAML,
 * so another front end can fill it as well.
 */
#ifndef PROFPULL_CONFIG_CONFIG_H
#define PROFPULL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "bucket/settings.h"
#include "config/protocol.h"
#include "http/http.h"
#include "model/record_rule.h"
#include "symbols/settings.h"

/* A position in a file; line and column count from 1, line 0 means "built in". */
struct config_pos {
    const char *file;
    int line;
    int column;
};

struct config_pair {
    const char *name;
    const char *value;
};

struct config_pairs {
    const struct config_pair *at;
    size_t n;
};

struct config_strings {
    const char *const *at;
    size_t n;
};

/* ---- relabelling ----------------------------------------------------------------------------- */

enum config_action {
    ACTION_REPLACE,
    ACTION_KEEP,
    ACTION_DROP,
    ACTION_KEEPEQUAL,
    ACTION_DROPEQUAL,
    ACTION_HASHMOD,
    ACTION_LABELMAP,
    ACTION_LABELDROP,
    ACTION_LABELKEEP,
    ACTION_LOWERCASE,
    ACTION_UPPERCASE,
};

/* "replace", "keep", ... */
const char *config_action_name(enum config_action action);
/* Parses the name of an action; upper and lower case are the same, as in Prometheus. False if there
 * is no such action. */
bool config_action_parse(struct sv text, enum config_action *ret_action);

/* One rule as written. A string that was not given is NULL (given and empty is ""), because the
 * checks of a rule depend on it. relabel/ applies the defaults when it compiles the rule. */
struct config_rule {
    struct config_pos pos;
    bool has_action;
    enum config_action action; /* ACTION_REPLACE if not given */
    bool has_source_labels;    /* the key was given, perhaps with an empty list */
    struct config_strings source_labels;
    const char *separator;
    const char *regex;
    bool has_modulus;
    uint64_t modulus;
    const char *target_label;
    const char *replacement;
    bool disabled; /* the key `enabled` is false: the rule has no effect */
};

struct config_rules {
    const struct config_rule *at;
    size_t n;
};

/* ---- profile types --------------------------------------------------------------------------- */

/* The ways to send counters that a process has kept since its start. */
enum config_delta {
    DELTA_OFF,    /* unchanged */
    DELTA_AUTO,   /* the scraper subtracts the previous profile */
    DELTA_SERVER, /* the target subtracts, over `seconds` (Go: ?seconds=N) */
};
/* "off", "auto", "server" */
const char *config_delta_name(enum config_delta delta);

/* The compression of deltas that profpull makes. */
enum config_compression {
    COMPRESSION_FAST, /* gzip */
    COMPRESSION_BEST, /* gzip; a seventh smaller than FAST, in more than twice the time */
    COMPRESSION_NONE, /* plain */
};

/* The format of the target's response. */
enum config_format { FORMAT_PPROF, FORMAT_JFR };

/* One profile type of one job, complete: defaults and job-wide settings are filled in. */
struct config_type {
    const char *key;  /* name in the configuration: "godeltaprof_memory" */
    const char *name; /* `__name__` of the series: "memory" */
    const char *path; /* "/debug/pprof/allocs" */
    bool enabled;
    bool sampling;   /* the target samples for `seconds` while we wait: adds seconds=N */
    bool cumulative; /* a built-in type with counters since process start */
    bool is_delta;   /* the target makes the delta itself (godeltaprof, DELTA_SERVER) */
    enum config_delta delta;
    enum config_format format;
    bool continuous;    /* a sampling type whose next profile starts when the last one ends */
    int64_t seconds;    /* N of seconds=N, whole seconds; 0 if not sampling */
    bool seconds_given; /* set in the file, so that the interval of a target does not change it */
    int64_t interval_ms;
    /* the seconds come on top: a whole request may take timeout_ms plus seconds */
    int64_t timeout_ms;
    struct config_pairs params; /* the job's, overridden by the type's; a name may repeat */
};

/* A type of a value in a profile. */
struct config_value_type {
    const char *type; /* "alloc_space" */
    const char *unit; /* "bytes" */
};

/* A type that programs commonly offer; every job has all of them. */
struct config_builtin_type {
    /* holds the defaults; interval, timeout and params come from the job */
    struct config_type type;
    const char *annotation; /* its name in profiles.grafana.com/<annotation>.scrape */
    const char *profefe;    /* its type in profefe; NULL: none */
    /* The sample types of this profile as Go writes it, in order; the last row has the type NULL.
     */
    const struct config_value_type *values;
};

#define CONFIG_BUILTIN_TYPES 11
/* Returns the i-th built-in type, in the order that they have in a job; NULL if i is
 * CONFIG_BUILTIN_TYPES or more. */
const struct config_builtin_type *config_builtin_type(size_t i);
/* Finds a built-in type by its key in the configuration ("process_cpu"); NULL if no type has that
 * key. */
const struct config_builtin_type *config_builtin_type_find(struct sv key);

/* A name that people use for a type, and its names elsewhere. */
struct config_type_name {
    const char *name;
    const char *key;   /* the built-in type that a job scrapes */
    const char *query; /* the beginning of its id in queries: __name__, sample type and unit */
    const char *event; /* its name in DeepFlow's queries */
};
/* Returns the i-th name; NULL past the last one. */
const struct config_type_name *config_type_name(size_t i);
/* Finds a row by its name; NULL if there is none. */
const struct config_type_name *config_type_name_find(struct sv name);
/* Returns the sample type of a row: "inuse_space". */
struct sv config_type_name_sample(const struct config_type_name *row);

/* ---- sources --------------------------------------------------------------------------------- */

enum config_source_kind { SOURCE_STATIC, SOURCE_FILE, SOURCE_HTTP, SOURCE_KUBERNETES };
/* "static", "file", "http", "kubernetes". */
const char *config_source_kind_name(enum config_source_kind kind);

struct config_static {
    struct config_strings targets; /* host:port */
    struct config_pairs labels;
};

/* Files with lists of targets (target_file.h). */
struct config_file_sd {
    /* Resolved against the directory of the configuration; the last part may hold wildcards. */
    struct config_strings files;
    int64_t refresh_ms;
};

/* A URL that answers with a list of targets in JSON. */
struct config_http_sd {
    const char *url;
    int64_t refresh_ms; /* the interval between requests, and the deadline of each */
    struct http_settings http;
};

/* The kind of object that a Kubernetes source discovers, or that a selector selects. */
enum config_role {
    ROLE_NONE, /* used by config_sharding, which needs only the connection to the API server */
    ROLE_POD,
    ROLE_SERVICE,
    ROLE_ENDPOINTS,
    ROLE_ENDPOINTSLICE,
    ROLE_NODE,
    ROLE_INGRESS,
    CONFIG_ROLES, /* the number of roles */
};
/* "pod", "service", ...; "" for ROLE_NONE. */
const char *config_role_name(enum config_role role);
/* Parses the name of a role; false if there is no such role. */
bool config_role_parse(struct sv text, enum config_role *ret_role);

struct config_selector {
    enum config_role role; /* the kind of the objects that it selects */
    const char *label;
    const char *field;
};

struct config_kubernetes {
    enum config_role role;
    bool attach_node; /* adds the labels of nodes (roles pod, endpoints and endpointslice only) */
    bool attach_namespace;
    bool own_namespace;
    /* if empty, and own_namespace is false, all namespaces are read */
    struct config_strings namespaces;
    const struct config_selector *selectors;
    size_t n_selectors;
    /* NULL: kubeconfig_file, or the cluster that the process runs in */
    const char *api_server;
    /* a path resolved against the directory of the configuration file */
    const char *kubeconfig_file;
    struct http_settings http; /* settings for requests to api_server; unused without it */
};

struct config_source {
    struct config_pos pos;
    enum config_source_kind kind;
    union {
        struct config_static fixed;
        struct config_file_sd file;
        struct config_http_sd http;
        struct config_kubernetes kubernetes;
    };
};

/* ---- jobs, endpoints, the whole -------------------------------------------------------------- */

/* A destination of a job with rules of its own. */
struct config_way {
    uint64_t endpoint; /* its bit in forward_to */
    struct config_rules rules;
};

struct config_job {
    struct config_pos pos;
    const char *name;
    unsigned slot; /* see change.h */
    /* the label `job` of its targets; "": no such label; NULL: the job's name */
    const char *job_label;
    int64_t interval_ms;
    int64_t timeout_ms;
    const char *scheme; /* "http" or "https" */
    struct config_pairs params;
    uint64_t body_size_limit;
    enum config_compression delta_compression;
    uint64_t target_limit;
    /* targets times types of one pod, or of one host for other Kubernetes objects */
    uint64_t pod_scrape_limit;
    /* The part of the processes of each service that is scraped. */
    unsigned sample_percent; /* 100 or 0: all */
    unsigned sample_max;     /* 0: any number */
    const char *path_prefix;
    const struct config_type *types; /* built-in ones first, all of them; then custom */
    size_t n_types;
    const struct config_source *sources;
    size_t n_sources;
    struct config_rules relabel;
    /* applied to the labels of each profile before it is written */
    struct config_rules profile_relabel;
    uint64_t forward_to; /* bit i: the endpoint with slot i */
    /* the subset of forward_to whose endpoints get recordings of Java unchanged */
    uint64_t recordings_to;
    /* The endpoints of forward_to with rules of their own, which apply after profile_relabel. */
    const struct config_way *ways;
    size_t n_ways;
    struct symbols_sources symbols; /* if the job sets none, those of `symbols` */
    bool enriches; /* not scraped: the labels of its targets are copied to pushed profiles */
    bool shared;   /* replicas divide its targets; false: each replica scrapes all of them */
    /* If false (the default), the address of a pod's target must still be one of the pod's own
     * addresses after relabelling. */
    bool allow_foreign_address;
    /* Permissions of targets made from Kubernetes objects: */
    bool allow_special_address; /* loopback, link-local, multicast, metadata services */
    bool allow_host_network;    /* pods that have the address of their node (hostNetwork) */
    /* a label may change https to http even if the job has credentials */
    bool allow_plain_credentials;
    struct http_settings http;
};

/* The limits of a server for labels; longer ones are cut (write/series.h), not refused. */
struct config_label_limits {
    unsigned max_names; /* labels in one profile, those that the server adds included */
    unsigned max_name_length;
    unsigned max_value_length;
};
/* Pyroscope's defaults, except that six of its 30 names are left to the string labels of samples,
 * which it counts as well. */
#define CONFIG_LABEL_LIMITS_DEFAULT                                                                \
    {                                                                                              \
        .max_names = 24, .max_name_length = 1024, .max_value_length = 2048                         \
    }

#define CONFIG_ENDPOINTS_MAX 64
/* The timeout of scrapes if the configuration sets none. */
#define CONFIG_TIMEOUT_MS INT64_C(10000)
#define CONFIG_FSYNC_ALWAYS INT64_C(0)
#define CONFIG_FSYNC_NEVER INT64_C(-1)

/* The compression of OTLP requests. */
enum config_otlp_compression { OTLP_GZIP, OTLP_PLAIN };

/* The form in which an endpoint receives a recording of Java's Flight Recorder (JFR). */
enum config_recordings {
    RECORDINGS_ORIGINAL, /* its bytes, if the protocol can carry them; otherwise as CONVERT */
    RECORDINGS_CONVERT,  /* the profiles that it contains, converted */
};

/* The archive of a store. */
struct config_archive {
    const char *url;    /* "s3://BUCKET/PREFIX", "gs://BUCKET/PREFIX"; NULL: there is no archive */
    const char *name;   /* the name of this writer; NULL: see docs/archive.md */
    int64_t max_age_ms; /* objects are kept for so long; 0: for ever */
    int64_t merge_ms;   /* a merged profile of a day covers this much; 0: days are not merged */
    const char *cache_directory; /* NULL: the cache is in memory */
    uint64_t cache_max_bytes;
    struct bucket_settings bucket;
};

struct config_endpoint {
    struct config_pos pos;
    const struct config *config; /* the configuration that the endpoint is a part of; not owned */
    const char *name;
    unsigned slot; /* below CONFIG_ENDPOINTS_MAX; see change.h */
    const char *url;
    const struct config_protocol *protocol; /* NULL only if the options listed none */
    const char *tenant_id;                  /* "" = none */
    struct config_pairs headers;
    int64_t remote_timeout_ms;
    int64_t min_backoff_ms;
    int64_t max_backoff_ms;
    int64_t max_age_ms;
    bool retry_on_429;
    unsigned max_attempts; /* attempts for each profile; 0: no limit */
    uint64_t queue_max_bytes;
    /* NULL: no spool; each endpoint uses a directory of its own inside it */
    const char *spool_directory;
    uint64_t spool_max_bytes;
    /* CONFIG_FSYNC_ALWAYS, CONFIG_FSYNC_NEVER, or the longest delay of a sync */
    int64_t spool_fsync_ms;
    unsigned concurrency;
    unsigned jfr; /* enum config_recordings */
    /* Retention of a directory or a store; 0: no limit. */
    int64_t retention_max_age_ms;
    uint64_t retention_max_bytes;
    /* For a store: */
    int64_t store_stretch_ms; /* the time that one file holds */
    int64_t store_merge_ms;   /* profiles of this much time are merged into one; 0: no merging */
    unsigned store_merge_cpu; /* limit for merging, in percent of one core */
    struct config_archive archive;
    bool store_read_only; /* nothing is stored; only the archive is read */
    /* syncs each commit, because senders wait for it (receive.acknowledge) */
    bool store_sync;
    /* For OTLP: */
    /* largest request that combines several profiles, before compression */
    uint64_t otlp_request_bytes;
    unsigned otlp_compression; /* enum config_otlp_compression */
    bool otlp_original_payload;
    /* labels and the attributes they become; these override the defaults */
    struct config_pairs otlp_attributes;
    /* For a bucket: */
    struct bucket_settings bucket; /* its `http` is a copy of the one below */
    const char *s3_url;            /* the URL of bucket and prefix, without a slash at its end */
    /* Rules for the labels within samples, by name. */
    struct config_strings sample_drop;
    struct config_strings sample_keep; /* if not empty, all other names are dropped */
    struct config_pairs sample_rename;
    unsigned sample_names_max; /* most label names of one sample; 0: no limit */
    /* the file sets it; otherwise the limit applies only as part of the repair */
    bool sample_names_given;
    bool sample_repair;
    struct config_pairs external_labels; /* the global ones, overridden by own_labels */
    struct config_pairs own_labels;      /* the endpoint's own external labels, as in the file */
    struct config_label_limits label_limits;
    struct http_settings http;
};

/* Returns true if the endpoint gets recordings of Java unchanged. */
bool config_endpoint_takes_recordings(const struct config_endpoint *e);
/* Returns true if the endpoint writes to a directory of this machine. */
bool config_endpoint_is_directory(const struct config_endpoint *e);

/* The ways in which several replicas can share the targets. */
enum config_sharding_mode { SHARDING_NONE, SHARDING_STATIC, SHARDING_KUBERNETES };

struct config_sharding {
    enum config_sharding_mode mode;
    /* Mode static: this process has the number `index`, counted from 0, among `replicas`. */
    unsigned replicas;
    unsigned index;
    /* Mode kubernetes: the replicas are the endpoints of this Service. */
    const char *service;
    const char *namespace; /* "": the own one */
    const char *pod_name;  /* "": from the environment */
    /* how to reach the API server; its other members are unused */
    struct config_kubernetes kubernetes;
    /* from the moment a replica gives up a target until another scrapes it */
    int64_t handover_ms;
    /* scraping stops after this long without the API server; 0: never */
    int64_t isolation_ms;
};

/* The division of memory: ceilings in bytes that together keep the process below a limit
 * (memory.h). */
struct config_memory {
    uint64_t limit;     /* of the whole process; 0: unlimited */
    uint64_t overhead;  /* set aside for everything without a ceiling of its own */
    uint64_t bodies;    /* response bodies that are being received */
    uint64_t pending;   /* bodies that wait for a worker */
    uint64_t work;      /* working memory of all workers together */
    uint64_t baselines; /* baselines of deltas */
    uint64_t merging;   /* merging of queued deltas */
    uint64_t queue;     /* the queue of each endpoint that has no ceiling of its own */
    uint64_t queues;    /* the queues of all endpoints together */
    uint64_t queries;   /* requests of `query` with their bodies; 0: no store to query */
    uint64_t received;  /* requests of `receive` with their bodies; 0: receiving is off */
    uint64_t sum;       /* the sum of all; above the limit if ceilings set in the file do not fit */
};

/* An HTTP server of this process: its address, the credentials that it asks for, and its limits. */
enum config_peers_scheme { PEERS_HTTP, PEERS_HTTPS };

/* Other processes that queries ask for what only their disks have. At most one of hosts, dns and
 * sharding is given; none: there are no peers. */
struct config_peers {
    struct config_strings hosts; /* host:port */
    const char *dns;             /* name:port, all of whose addresses are peers */
    bool sharding;               /* the replicas that share the targets are peers */
    unsigned port;               /* of their queries, for `sharding` */
    enum config_peers_scheme scheme;
    int64_t timeout_ms; /* of one request */
    struct http_settings http;
};

struct config_server {
    const char *listen; /* host:port; "": no address of its own */
    unsigned max_connections;
    unsigned max_connections_per_address;
    unsigned max_streams; /* requests over HTTP/2 at the same time, of all connections */
    unsigned max_streams_per_connection;
    int64_t request_timeout_ms;
    int64_t answer_timeout_ms;
    int64_t idle_timeout_ms;
    struct {
        const char *cert_file; /* NULL: no TLS */
        const char *key_file;
        /* clients need a certificate from this authority; NULL: no certificate */
        const char *client_ca_file;
    } tls;
    struct http_settings access; /* holds the credentials that clients must send */
    /* A file that sets TLS and users in place of the members above (web_config.h); NULL: none. */
    const char *web_config_file;
    /* Limits of the APIs: */
    bool allow_unauthenticated;
    unsigned concurrency;      /* requests that are processed at the same time */
    unsigned threads;          /* of `query`: threads of one flame graph */
    unsigned max_waiting;      /* further requests that wait for their turn */
    int64_t timeout_ms;        /* longest time for a request, waiting included */
    uint64_t max_bytes;        /* memory of a request */
    uint64_t max_body_size;    /* largest body of one request */
    uint64_t bodies_max_bytes; /* the bodies of all requests together */
    const char *path_prefix;   /* paths may begin with it; NULL: none */
    struct config_peers peers; /* of `query` */
};

/* The largest `query.threads`. */
#define QUERY_THREADS_MAX 16

/* The moment at which a sender gets its response with status 2xx. */
enum config_acknowledge {
    ACKNOWLEDGE_QUEUED, /* a queue has the profile */
    ACKNOWLEDGE_STORED, /* every destination has it on disk */
};

/* Labels of discovered targets for pushed profiles. */
struct config_enrich {
    const char *target_label; /* NULL: targets are found by what OpenTelemetry names only */
    /* the label of a profile that is compared with target_label of the targets */
    const char *profile_label;
    /* the labels to copy; if empty, all that do not begin with "__" */
    struct config_strings labels;
    /* Name, sources and rules of the job that discovers these targets. The last job of the
     * configuration is a copy of it with `enriches` set. */
    struct config_job job;
};

/* Returns true if profiles get labels of targets. */
static inline bool config_enriches(const struct config_enrich *e)
{
    return e->target_label != NULL || e->job.n_sources > 0;
}

/* Profiles that others push to us. */
struct config_receive {
    struct config_server server; /* without an address, nothing is received */
    /* Only its name, profile_relabel, forward_to and ways are used. */
    struct config_job job;
    struct config_enrich enrich;
    unsigned acknowledge;            /* enum config_acknowledge */
    uint64_t max_profile_size;       /* inflated */
    unsigned max_label_names;        /* of a profile */
    unsigned max_label_name_length;  /* bytes */
    unsigned max_label_value_length; /* bytes */
    int64_t max_age_ms;              /* oldest accepted time of a profile; 0: any age */
    int64_t max_ahead_ms;            /* how far the time of a profile may be ahead of our clock */
};

/* Returns true if both have the same address, so that one server serves both. */
bool config_server_shares(const struct config_server *s, const struct config_server *other);
/* Returns true if the server asks for neither credentials nor a certificate. */
bool config_server_is_open(const struct config_server *s);

/* Recorded metrics: the most rules together with those of the API, the most series of a rule, and
 * the time after which a gauge without profiles goes away. */
#define CONFIG_RECORD_RULES_DEFAULT 100
#define CONFIG_RECORD_SERIES_DEFAULT 1000
#define CONFIG_RECORD_STALE_MS ((int64_t)5 * 60 * 1000)

struct config_record_rule {
    struct config_pos pos;
    const char *metric_name;
    struct config_strings matchers;
    struct config_strings group_by;
    struct config_pairs external_labels;
    const char *function;
    struct record_rule rule; /* the same, checked, with its id */
};

struct config_record {
    unsigned max_rules;
    unsigned max_series;
    int64_t stale_ms;
    const struct config_record_rule *rules;
    size_t n_rules;
};

struct config {
    const char *file; /* name given at load, for messages */
    struct {
        int64_t scrape_interval_ms;
        int64_t scrape_timeout_ms;
        struct config_pairs external_labels;
        uint64_t memory_limit;          /* 0: from the system */
        uint64_t delta_state_max_bytes; /* the baselines of all deltas together */
        /* all response bodies that are being received, together */
        uint64_t bodies_max_bytes;
        /* hides all parameters, not only those that look like secrets */
        bool mask_all_params;
        struct config_label_limits label_limits; /* for endpoints that set none of their own */
    } global;
    struct config_server server; /* the admin server */
    struct config_server query;  /* the APIs that answer queries; without an address, on the admin
                                    server's */
    struct config_receive receive;
    struct config_record record; /* recorded metrics */
    struct {
        enum log_level level;
        enum log_format format;
    } log;
    struct config_sharding sharding;
    struct symbols_settings symbols;
    struct config_memory memory;
    const struct config_job *jobs;
    size_t n_jobs;
    bool lacks_cluster; /* scrape_configs is missing, and the built-in jobs need a cluster */
    const struct config_endpoint *endpoints;
    size_t n_endpoints;
    /* names of Secrets and ConfigMaps given in place of files (content.h), each once */
    struct config_strings contents;
    /* Files and directories that Alloy's import.file has read, absolute; the first
     * CONFIG_IMPORTS_MAX. */
    struct config_strings imports;
};

/* ---- loading --------------------------------------------------------------------------------- */

#define CONFIG_IMPORTS_MAX 1024

/* Limits of one file: bytes, YAML nodes (aliases expanded), and depth of nesting. */
#define CONFIG_FILE_MAX (4 << 20)
#define CONFIG_NODES_MAX 200000
#define CONFIG_DEPTH_MAX 64
/* The most errors reported for one file. If there are more, a last line says how many. */
#define CONFIG_ERRORS_MAX 100

struct config_error {
    struct config_pos pos;
    const char *path;    /* "scrape_configs[0].scheme"; "" for the file as a whole */
    const char *message; /* `expected "http" or "https", got "htttp"` */
};

struct config_language;
struct config_errors; /* a list in order of position, at most CONFIG_ERRORS_MAX */
struct config_errors *config_errors_new(void);
struct config_errors *config_errors_free(struct config_errors *e);
size_t config_errors_count(const struct config_errors *e);
/* Returns the number of errors beyond CONFIG_ERRORS_MAX. */
size_t config_errors_more(const struct config_errors *e);
const struct config_error *config_errors_at(const struct config_errors *e, size_t i);
/* Appends "file:line:column: path: message\n" for each. */
bool config_errors_format(const struct config_errors *e, struct buf *out);

struct config_options {
    /* Returns the value for ${NAME}; if the function is NULL, getenv(3) is used. */
    const char *(*env)(void *arg, const char *name);
    void *env_arg;
    /* Checks a rule whose values have the right types. relabel/ provides the function, because
     * config/ must not include that room. If it returns false, err->msg is reported at the position
     * of the rule, or of its regex. May be NULL. */
    bool (*check_rule)(void *arg, const struct config_rule *rule, struct err *err);
    void *check_arg;
    /* Languages of files besides YAML (config/language.h), NULL-terminated; NULL for none. */
    const struct config_language *const *languages;
    /* The protocols that an endpoint may speak, NULL-terminated; the first is the default. NULL if
     * nothing will be written to the endpoints. */
    const struct config_protocol *const *protocols;
    /* The URL given on the command line, or NULL. It replaces the URL of the endpoint "main", or
     * adds that endpoint with the default protocol. It is refused if it would send credentials of
     * the file to another server. */
    const char *write_url;
    const char *listen; /* replaces server.listen; NULL = none */
    /* True in a container, whose interfaces belong to this process alone. The default of
     * server.listen is then 0.0.0.0:4041, and 127.0.0.1:4041 otherwise. */
    bool in_container;
    const char *sharding_service; /* replaces sharding by that with this Service; NULL = none */
    /* These collect messages about parts of a file in another language that are left out or mean
     * something else: `warnings` if profiles are affected, `notes` if they are not. If a list is
     * NULL, its messages are dropped. */
    struct config_errors *warnings;
    struct config_errors *notes;
    /* Bytes that the kernel lets this process use (base/cgroup.h); memory_limit is a part of them
     * unless the file sets it. 0 = unlimited. */
    uint64_t memory_available;
};

/* The reason that messages give for a configuration without jobs if lacks_cluster is true. */
#define CONFIG_LACKS_CLUSTER                                                                       \
    "scrape_configs is missing, and its default needs a pod of Kubernetes "                        \
    "(KUBERNETES_SERVICE_HOST is not set)"

/* The name of the built-in configuration in positions and messages. */
#define CONFIG_BUILTIN_NAME "built-in configuration"
/* Returns the text of the built-in configuration. A file without the key scrape_configs gets its
 * jobs. */
struct sv config_builtin(void);

/* Reads and checks a file ("-": standard input), or text with a name for messages. A file that a
 * language of the options recognises, or a directory of such files, is read by that language; any
 * other file, and every text, is read as YAML. If path is NULL, config_builtin() is loaded. Without
 * the key scrape_configs, the jobs are those of config_builtin(), and their positions name
 * CONFIG_BUILTIN_NAME. There are no jobs, however, if KUBERNETES_SERVICE_HOST is not set and the
 * configuration receives profiles or has a store. Returns NULL if there was any error; the list
 * `errors`, which the caller owns, then has all of them. Files that the configuration names are not
 * opened here, but contradictions, such as a secret given both inline and by file, are refused. Any
 * thread: there is no shared state. */
struct config *config_load(const char *path, const struct config_options *options,
                           struct config_errors *errors);
struct config *config_parse(const char *name, struct sv text, const struct config_options *options,
                            struct config_errors *errors);
/* An endpoint given by flags of a command line; a member is NULL if its flag was not given. */
struct config_endpoint_flags {
    const char *name;
    const char *url;
    const char *protocol;
    const char *tenant;
    const char *username;
    const char *password_file;
    const char *bearer_token_file;
    const char *ca_file;
    bool insecure_skip_verify;
};
/* Returns a configuration without jobs and with only this endpoint, which is checked and completed
 * like one of a file. NULL, with the first error ("tenant_id: expected ..."), if the endpoint is
 * invalid. The caller unrefs the result. */
struct config *config_endpoint_from_flags(const struct config_endpoint_flags *flags,
                                          const struct config_options *options, struct err *err);
/* Returns a configuration with a copy of these values, slots included. The objects that they point
 * to must outlive it. NULL if out of memory. The caller unrefs the result. */
struct config *config_wrap(const struct config *values);
struct config *config_ref(const struct config *c);
struct config *config_unref(const struct config *c); /* accepts NULL, returns NULL */

/* Returns the number of jobs without that of receive.enrich, which is always the last one. */
size_t config_scrape_jobs(const struct config *c);

/* Appends the normalised configuration as YAML that loads to the same configuration, with
 * "<secret>" in place of secrets. `profpull check --dump` prints it, and golden tests compare it.
 */
bool config_dump(const struct config *c, struct buf *out);

/* Converts a file of one of the options' languages, or YAML of Parca, the Pyroscope agent or
 * Prometheus, and appends the result as YAML of profpull, with warnings and notes as comments. A
 * file that no language recognises, and that is not YAML, is read as the first language. False
 * after errors, or if out is full. */
bool config_convert(const char *path, const struct config_options *options,
                    struct config_errors *errors, struct buf *out);

/* Loads a file that holds only a list of relabel rules, or a mapping with the key relabel_configs.
 */
struct config *config_load_rules(const char *path, const struct config_options *options,
                                 struct config_errors *errors, struct config_rules *ret_rules);

#endif
