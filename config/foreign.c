#include "config/foreign.h"

#include <string.h>

/* The places of a mapping in the file, as bits, because a row may apply to several. */
enum {
    IN_ROOT = 1,
    IN_GLOBAL = 2,
    IN_SERVER = 4,
    IN_JOB = 8,
    IN_PROFILES = 16,
    IN_TYPE = 32,
    IN_ENDPOINT = 64,
};

#define NO_SOURCE                                                                                  \
    "there is no such source: use kubernetes_sd_configs, or let another program write a list for " \
    "file_sd_configs or serve one for http_sd_configs"
#define NOT_FOR_PROFILES "it has no meaning for profiles: leave it out"
#define CALLED(name) "it is called \"" name "\" here"
#define IN_A_JOB "it is a key of a job, an element of the list \"scrape_configs\""
#define TYPE_OF_JOB(name)                                                                          \
    "types are keys of \"profiles\", and this one is called \"" name "\" there"

static const struct {
    const char *key;
    unsigned where;
    const char *advice;
} keys[] = {
    /* Parca, and the Pyroscope agent */
    {"profiling_config", IN_JOB,
     "it is called \"profiles\" here: a key for each type, and path_prefix; `profpull convert` "
     "rewrites the file"},
    {"pprof_config", IN_JOB,
     "types are keys of \"profiles\" here; `profpull convert` rewrites the file"},
    {"pprof_config", IN_PROFILES, "types are keys of \"profiles\" itself"},
    {"keep_sample_type", IN_TYPE, "profiles are sent with all their sample types: leave it out"},
    {"normalized_addresses", IN_JOB,
     "addresses in profiles are passed on as they are: leave it out"},
    {"object_storage", IN_ROOT,
     "nothing is stored here: profiles are sent to the endpoints of \"write\""},
    {"client", IN_ROOT, "it is called \"write\" here: a list of endpoints, each with a url"},
    {"enabled-profiles", IN_JOB, "types are keys of \"profiles\" here, each with enabled"},
    {"enabled_profiles", IN_JOB, "types are keys of \"profiles\" here, each with enabled"},
    {"http_listen_port", IN_SERVER, "it is part of \"listen\" here: \"0.0.0.0:4041\""},
    {"http_listen_address", IN_SERVER, "it is part of \"listen\" here: \"0.0.0.0:4041\""},

    /* Grafana Alloy */
    {"endpoint", IN_ROOT, "endpoints are the elements of the list \"write\""},
    {"endpoints", IN_ROOT, "endpoints are the elements of the list \"write\""},
    {"clustering", IN_ROOT, CALLED("sharding")},
    {"clustering", IN_JOB,
     "it is called \"sharding\" here, for all jobs: a key of the file itself"},
    {"cluster", IN_ROOT, CALLED("sharding")},
    {"logging", IN_ROOT, CALLED("log")},
    {"targets", IN_JOB, "it is a key of an element of \"static_configs\""},
    {"labels", IN_JOB,
     "labels of targets are a key of an element of \"static_configs\"; for other sources, "
     "relabel_configs set them"},
    {"external_labels", IN_JOB,
     "it is a key of \"global\" or of an endpoint; relabel_configs set labels for a job"},
    {"external_labels", IN_ROOT, "it is a key of \"global\" or of an endpoint"},
    {"max_backoff_retries", IN_ENDPOINT, CALLED("retry.max_attempts")},
    {"min_backoff_period", IN_ENDPOINT, CALLED("retry.min_backoff")},
    {"max_backoff_period", IN_ENDPOINT, CALLED("retry.max_backoff")},
    {"retry_on_http_429", IN_ENDPOINT, CALLED("retry.on_429")},
    {"tenant", IN_ENDPOINT, CALLED("tenant_id")},
    {"delta_profiling_duration", IN_JOB,
     "it is called \"seconds\" here, a key of each type in \"profiles\""},

    /* Prometheus */
    {"remote_write", IN_ROOT, "it is called \"write\" here: a list of endpoints, each with a url"},
    {"remote_write", IN_JOB,
     "endpoints are the elements of the list \"write\", a key of the file itself; forward_to "
     "chooses among them"},
    {"remote_read", IN_ROOT, NOT_FOR_PROFILES},
    {"rule_files", IN_ROOT, NOT_FOR_PROFILES},
    {"alerting", IN_ROOT, NOT_FOR_PROFILES},
    {"evaluation_interval", IN_GLOBAL, NOT_FOR_PROFILES},
    {"metrics_path", IN_JOB,
     "each type has its own path, such as profiles.memory.path; profiles.path_prefix goes in front "
     "of all"},
    {"path_prefix", IN_JOB, "it is a key of \"profiles\""},
    {"sample_limit", IN_JOB, NOT_FOR_PROFILES},
    {"label_limit", IN_JOB, CALLED("label_limits.max_names") ", in \"global\" or an endpoint"},
    {"honor_labels", IN_JOB, NOT_FOR_PROFILES},
    {"honor_timestamps", IN_JOB, NOT_FOR_PROFILES},
    {"metric_relabel_configs", IN_JOB, CALLED("profile_relabel_configs")},
    {"write_relabel_configs", IN_ENDPOINT,
     "rules for one endpoint are the profile_relabel_configs of an entry of forward_to in a job"},
    {"queue_config", IN_ENDPOINT,
     "its parts are called \"queue\", \"retry\" and \"concurrency\" here"},
    {"dns_sd_configs", IN_JOB, NO_SOURCE},
    {"docker_sd_configs", IN_JOB, NO_SOURCE},
    {"dockerswarm_sd_configs", IN_JOB, NO_SOURCE},
    {"consul_sd_configs", IN_JOB, NO_SOURCE},
    {"ec2_sd_configs", IN_JOB, NO_SOURCE},
    {"gce_sd_configs", IN_JOB, NO_SOURCE},
    {"azure_sd_configs", IN_JOB, NO_SOURCE},
    {"nomad_sd_configs", IN_JOB, NO_SOURCE},
    {"openstack_sd_configs", IN_JOB, NO_SOURCE},
    {"eureka_sd_configs", IN_JOB, NO_SOURCE},
    {"digitalocean_sd_configs", IN_JOB, NO_SOURCE},
    {"hetzner_sd_configs", IN_JOB, NO_SOURCE},
    {"linode_sd_configs", IN_JOB, NO_SOURCE},
    {"marathon_sd_configs", IN_JOB, NO_SOURCE},
    {"serverset_sd_configs", IN_JOB, NO_SOURCE},
    {"triton_sd_configs", IN_JOB, NO_SOURCE},

    /* names of types in the programs above, in annotations and in Go */
    {"cpu", IN_PROFILES, CALLED("process_cpu")},
    {"cpu", IN_JOB, TYPE_OF_JOB("process_cpu")},
    {"profile", IN_PROFILES, CALLED("process_cpu")},
    {"process.cpu", IN_PROFILES, CALLED("process_cpu")},
    {"allocs", IN_PROFILES, CALLED("memory")},
    {"allocs", IN_JOB, TYPE_OF_JOB("memory")},
    {"alloc", IN_PROFILES, CALLED("memory")},
    {"mem", IN_PROFILES, CALLED("memory")},
    {"inuse", IN_PROFILES, CALLED("memory")},
    {"goroutines", IN_PROFILES, CALLED("goroutine")},
    {"memory", IN_JOB, "types are keys of \"profiles\""},
    {"process_cpu", IN_JOB, "types are keys of \"profiles\""},

    /* keys of profpull that belong in another place */
    {"scrape_interval", IN_ROOT, "it is a key of \"global\" or of a job"},
    {"scrape_timeout", IN_ROOT, "it is a key of \"global\" or of a job"},
    {"scrape_interval", IN_TYPE, CALLED("interval")},
    {"scrape_timeout", IN_TYPE, CALLED("timeout")},
    {"profiles", IN_ROOT, IN_A_JOB},
    {"static_configs", IN_ROOT, IN_A_JOB},
    {"file_sd_configs", IN_ROOT, IN_A_JOB},
    {"http_sd_configs", IN_ROOT, IN_A_JOB},
    {"kubernetes_sd_configs", IN_ROOT, IN_A_JOB},
    {"relabel_configs", IN_ROOT, IN_A_JOB},
    {"write", IN_JOB, "it is a key of the file itself; forward_to chooses among its endpoints"},
};

static bool is(const struct place *at, const char *key)
{
    return at != NULL && at->key != NULL && strcmp(at->key, key) == 0;
}

static bool is_element_of(const struct place *at, const char *key)
{
    return at->key == NULL && is(at->parent, key);
}

static unsigned where(const struct place *at)
{
    if (at->parent == NULL) {
        return IN_ROOT;
    }
    if (at->parent->parent == NULL) {
        return is(at, "global") ? IN_GLOBAL : is(at, "server") ? IN_SERVER : 0;
    }
    if (is_element_of(at, "scrape_configs")) {
        return IN_JOB;
    }
    if (is_element_of(at, "write")) {
        return IN_ENDPOINT;
    }
    if (is(at, "profiles")) {
        return IN_PROFILES;
    }
    return is(at->parent, "profiles") || is_element_of(at, "custom") ? IN_TYPE : 0;
}

const char *foreign_key(const struct place *mapping, struct sv key)
{
    unsigned in = where(mapping);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if ((keys[i].where & in) != 0 && sv_eq_str(key, keys[i].key)) {
            return keys[i].advice;
        }
    }
    return NULL;
}
