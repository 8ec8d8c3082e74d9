#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/pipeline.h"
#include "base/clock.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "cli/discover.h"
#include "cli/explain/explain.h"
#include "cli/leaders.h"
#include "discovery/discovery.h"
#include "model/masking.h"

#define LINE_MAX_BYTES (16 * 1024 * 1024)
/* Time in ms for the other sources to answer, after a missing permission was found. */
#define FORBIDDEN_MS 1500
/* Time in ms for a single request to the API server, before and after discovery. */
#define ASK_MS (10 * MS_PER_S)
#define ARENA_MAX (UINT64_C(64) * 1024 * 1024)

struct discover {
    const struct discover_args *args;
    struct loop *loop;
    struct loop_timer *timer;
    struct intern *intern;
    struct log *log;
    struct http_contents *contents;
    struct pipeline *pipeline;
    struct sharding *sharding; /* NULL unless targets are shared */
    const struct config *config;
    struct config *narrow; /* reads nothing but one pod; NULL: `config` is read */
    struct arena *arena;
    /* the access of the kubeconfig; access.server is NULL if it is not used */
    struct cluster_access local;
    struct leaders *leaders;
    size_t duplicates;     /* number of scrapes that are set aside as duplicates */
    struct buf duplicate;  /* the text about the first one */
    struct explain *words; /* with --explain */
    bool synced;
    bool forbidden;
    struct sources *sources;
    struct buf missing; /* the names of sources that could not be read */
};

/* Appends which scrape of the same URL the i-th scrape follows or duplicates, if there is one. */
static void put_sharing(struct discover *d, struct target *t, const char *source, size_t i,
                        struct buf *line)
{
    struct leaders_verdict v = leaders_of(d->leaders, t, source, i);
    if (v.follows != NULL) {
        json_member("follows", sv_from(v.follows), line);
    }
    if (v.duplicate_of != NULL) {
        json_member("duplicate_of", sv_from(v.duplicate_of), line);
        if (d->duplicates++ == 0) {
            buf_printf(&d->duplicate, "%s of the job \"%s\", which has it from %s: ", source,
                       target_job(t)->name, v.duplicate_of);
            (void)target_shown_url(t, i, &d->duplicate);
        }
    }
}

static void put_scrapes(struct discover *d, struct target *t, const char *source, struct buf *line)
{
    struct buf url;
    buf_init(&url, LINE_MAX_BYTES);
    json_key("scrapes", line);
    buf_putc(line, '[');
    for (size_t i = 0; i < target_scrape_count(t); i++) {
        char interval[32];
        format_duration_ms(target_interval_ms(t, i), interval, sizeof(interval));
        buf_clear(&url);
        target_shown_url(t, i, &url);
        buf_puts(line, i == 0 ? "{" : ",{");
        json_member("type", sv_from(target_scrape_type(t, i)->name), line);
        json_member("url", sv_from(url.data), line);
        json_member("interval", sv_from(interval), line);
        put_sharing(d, t, source, i, line);
        buf_putc(line, '}');
    }
    buf_putc(line, ']');
    buf_done(&url);
}

/* Appends the types that the target lacks because one of its labels is wrong. */
static void put_problems(const struct target *t, struct buf *line)
{
    size_t n = target_problem_count(t);
    for (size_t i = 0; i < n; i++) {
        const char *type;
        buf_puts(line, i == 0 ? ",\"problems\":[" : ",");
        json_quote(sv_from(target_problem(t, i, &type)), line);
    }
    buf_puts(line, n > 0 ? "]" : "");
}

static void put_dropped(const struct discover *d, const struct pipeline_verdict *v,
                        struct buf *line)
{
    if (v->rule > 0) {
        struct buf rule;
        buf_init(&rule, LINE_MAX_BYTES);
        relabel_describe(pipeline_rules(d->pipeline, v->group->job), v->rule, &rule);
        json_key(v->outcome == RELABEL_DROPPED ? "dropped_by" : "failed_in", line);
        buf_printf(line, "{\"rule\":%zu", v->rule);
        json_member("text", sv_from(rule.data), line);
        buf_putc(line, '}');
        buf_done(&rule);
    }
    if (v->set_aside) {
        json_member("set_aside", SV("no profile type is scraped on this port"), line);
    }
    if (v->err != NULL) {
        json_member("error", sv_from(v->err->msg), line);
    }
}

/* Returns true if another replica scrapes the target; false if this process is not a replica. */
static bool is_elsewhere(const struct discover *d, const struct pipeline_verdict *v)
{
    return d->sharding != NULL && v->target != NULL && sharding_is_member(d->sharding) &&
           !sharding_is_ours(d->sharding, v->key);
}

static void put_owner(const struct discover *d, const struct pipeline_verdict *v, struct buf *line)
{
    if (d->sharding == NULL || v->target == NULL) {
        return;
    }
    json_member("owner", sv_from(sharding_owner(d->sharding, v->key)), line);
    struct buf words;
    buf_init(&words, LINE_MAX_BYTES);
    if (d->args->explain && sharding_explain(d->sharding, v->key, &words)) {
        json_member("shard", sv_from(words.data), line);
    }
    buf_done(&words);
}

static void discover_on_verdict(void *arg, const struct pipeline_verdict *v)
{
    struct discover *d = arg;
    if (d->words != NULL) {
        explain_verdict(d->words, v);
    }
    if (d->args->pod != NULL || ((v->target == NULL || is_elsewhere(d, v)) && !d->args->explain)) {
        return;
    }
    struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_putc(&line, '{');
    json_member("job", sv_from(d->config->jobs[v->group->job].name), &line);
    json_member("source", sv_from(v->group->source), &line);
    json_key("labels", &line);
    mask_labels_json(v->target == NULL ? v->discovered : target_labels(v->target),
                     d->config->global.mask_all_params, &line);
    if (v->target == NULL) {
        put_dropped(d, v, &line);
    } else {
        put_scrapes(d, v->target, v->group->source, &line);
        put_problems(v->target, &line);
    }
    put_owner(d, v, &line);
    buf_puts(&line, "}\n");
    if (buf_ok(&line)) {
        fwrite(line.data, 1, line.len, stdout);
    }
    buf_done(&line);
}

static void discover_on_synced(void *arg)
{
    struct discover *d = arg;
    d->synced = true;
    loop_stop(d->loop);
}

static void discover_on_group(void *arg, const struct target_group *group)
{
    struct discover *d = arg;
    leaders_group(d->leaders);
    pipeline_group(d->pipeline, group);
}

static void discover_on_timeout(void *arg)
{
    loop_stop(arg);
}

/* A source without permission never answers, so the wait is shortened. */
static void discover_on_forbidden(void *arg, const struct discovery_forbidden *what)
{
    struct discover *d = arg;
    if (!d->forbidden) {
        d->forbidden = true;
        explain_forbidden(d->words, what);
        loop_timer_after(d->timer, FORBIDDEN_MS);
    }
}

/* Runs discovery once. If ret_missing is not NULL, the names of the sources that could not be read
 * are appended to it. */
static bool run_discovery(struct discover *d, const struct discovery_options *options,
                          struct buf *ret_missing, struct err *err)
{
    struct discovery *discovery = discovery_new(options, err);
    if (discovery == NULL) {
        return false;
    }
    d->timer = loop_timer_new(d->loop, discover_on_timeout, d->loop);
    if (d->timer != NULL) {
        loop_timer_after(d->timer, d->args->timeout_ms);
        loop_run(d->loop);
    }
    d->timer = loop_timer_free(d->timer);
    if (ret_missing != NULL) {
        sources_missing(d->sources, ret_missing);
    }
    discovery_free(discovery);
    return true;
}

/* Returns the access of the kubeconfig, or NULL if it is not used. */
static const struct cluster_access *local_of(const struct discover *d)
{
    return d->local.access.server == NULL ? NULL : &d->local;
}

/* No job has discovered the pod: asks the API server whether it exists at all. */
static void look_up(struct discover *d)
{
    struct err err = ERR_INIT;
    struct pod_found found;
    if (d->args->pod == NULL || d->forbidden || explain_found(d->words)) {
        return;
    }
    if (pod_lookup(d->config, local_of(d), d->intern, d->args->pod, ASK_MS, &found, &err)) {
        explain_looked_up(d->words, &found);
    }
    labels_unref(found.labels);
}

/* Prints the report about pods, in words or as JSON. Frees the text. */
static int print_report(const struct discover *d, bool ok, struct buf *text)
{
    FILE *to = d->args->pod != NULL ? stdout : stderr;
    struct buf out;
    if (!ok || !d->args->json || d->args->pod == NULL) {
        return cmd_print(ok, text, to);
    }
    buf_init(&out, 8UL * LINE_MAX_BYTES);
    buf_putc(&out, '{');
    json_member("pod", sv_from(d->args->pod), &out);
    buf_printf(&out, ",\"found\":%s,\"scraped\":%s", explain_found(d->words) ? "true" : "false",
               explain_scraped(d->words) ? "true" : "false");
    json_member("explanation", sv_trim((struct sv){text->data, text->len}), &out);
    buf_puts(&out, "}\n");
    buf_done(text);
    return cmd_print(buf_ok(&out), &out, to);
}

/* Prints the words of --explain. Returns the exit code. */
static int print_words(struct discover *d)
{
    struct buf text;
    buf_init(&text, SIZE_MAX);
    int code = print_report(d, explain_report(d->words, &text), &text);
    bool missed = d->args->only_pod && !explain_scraped(d->words);
    return code == EXIT_DONE && missed ? EXIT_PEER : code;
}

static int conclude(struct discover *d)
{
    if (d->synced && d->words != NULL) {
        look_up(d);
    }
    int code = d->words == NULL ? EXIT_DONE : print_words(d);
    code = cmd_flush(code);
    if (d->sharding != NULL && d->synced && !sharding_is_member(d->sharding)) {
        fprintf(stderr,
                "profpull: this is %s, which is not a member of the Service: the targets of all "
                "members are shown\n",
                sharding_self(d->sharding));
    }
    if (d->duplicates > 0) {
        fprintf(stderr,
                "profpull: %zu scrape%s set aside as duplicate%s: another target of the job is "
                "scraped there for the same type; the first is %s\n",
                d->duplicates, d->duplicates == 1 ? " is" : "s are", d->duplicates == 1 ? "" : "s",
                d->duplicate.data);
    }
    if (d->synced && d->missing.len == 0) {
        return code;
    }
    fprintf(stderr, "profpull: %s: %s\n",
            d->synced ? "not everything could be read" : "not every source answered in time",
            d->missing.data);
    return EXIT_PEER;
}

static int discover(struct discover *d)
{
    struct err err = ERR_INIT;
    const struct cluster_access *local = local_of(d);
    struct discovery_options options = {
        .config = d->narrow == NULL ? d->config : d->narrow,
        .loop = d->loop,
        .intern = d->intern,
        .log = d->log,
        .sources = d->sources,
        .on_group = discover_on_group,
        .on_synced = discover_on_synced,
        .on_forbidden = d->words == NULL ? NULL : discover_on_forbidden,
        .arg = d,
        .contents = d->contents,
        .sharing = sharding_of_discovery(d->sharding),
        .local = local == NULL ? NULL : &local->access,
    };
    if (!run_discovery(d, &options, &d->missing, &err)) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    return conclude(d);
}

static bool make_sharding(struct discover *d, struct err *err)
{
    if (d->config->sharding.mode == SHARDING_NONE) {
        return true;
    }
    struct sharding_options options = {.config = d->config, .loop = d->loop, .log = d->log};
    d->sharding = sharding_new(&options, err);
    return d->sharding != NULL;
}

static bool prepare(struct discover *d, struct err *err)
{
    d->intern = intern_new();
    d->log = log_new(STDERR_FILENO, LOG_WARN, d->config->log.format);
    d->loop = loop_new(err);
    d->leaders = leaders_new();
    d->contents = http_contents_new();
    d->sources = sources_new(NULL);
    if (d->intern == NULL || d->log == NULL || d->loop == NULL || d->leaders == NULL ||
        d->contents == NULL || d->sources == NULL) {
        return err->kind == ERR_NONE && err_memory(err);
    }
    if (!make_sharding(d, err)) {
        return false;
    }
    struct pipeline_options options = {
        .config = d->config,
        .intern = d->intern,
        .sharding = d->sharding,
        .on_verdict = discover_on_verdict,
        .arg = d,
    };
    d->pipeline = pipeline_new(&options, err);
    if (d->pipeline == NULL || !d->args->explain) {
        return d->pipeline != NULL;
    }
    struct explain_options words = {
        .config = d->config,
        .intern = d->intern,
        .pipeline = d->pipeline,
        .sharding = d->sharding,
        .pattern = d->args->pod,
        .person = local_of(d),
    };
    d->words = explain_new(&words);
    return d->words != NULL || err_memory(err);
}

/* ---- the cluster ----------------------------------------------------------------------------- */

/* Returns true if a part of the configuration leaves it open which cluster it reads. */
static bool needs_cluster(const struct config *config)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        const struct config_job *job = &config->jobs[i];
        for (size_t j = 0; j < job->n_sources; j++) {
            const struct config_kubernetes *k = &job->sources[j].kubernetes;
            if (job->sources[j].kind == SOURCE_KUBERNETES && k->api_server == NULL &&
                k->kubeconfig_file == NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Finds the cluster of the kubeconfig, and checks that it answers: discovery itself would try
 * again, until the time is over. */
static bool find_cluster(struct discover *d, struct err *err)
{
    const struct cluster_flags *flags = &d->args->cluster;
    if (!needs_cluster(d->config)) {
        return (flags->kubeconfig == NULL && flags->context == NULL) ||
               err_set(err, ERR_INPUT, "--%s has no effect: every source of %s names its cluster",
                       flags->kubeconfig != NULL ? "kubeconfig" : "context", d->config->file);
    }
    if (!cluster_access_find(flags, d->arena, &d->local, err)) {
        d->local.access.server = NULL;
        return false;
    }
    if (!d->local.is_person) {
        d->local.access.server = NULL; /* discovery finds the service account itself */
        return true;
    }
    struct cluster *cluster = cluster_new(&d->local, ASK_MS, err);
    bool ok = cluster != NULL && cluster_check(cluster, err);
    cluster_free(cluster);
    return ok;
}

static bool prepare_all(struct discover *d, struct err *err)
{
    d->arena = arena_new(ARENA_MAX);
    if (d->arena == NULL) {
        return err_memory(err);
    }
    if (!find_cluster(d, err) || !prepare(d, err)) {
        return false;
    }
    if (d->args->only_pod) {
        d->narrow = pod_narrow(d->config, d->args->pod, d->arena);
    }
    return true;
}

int discover_run(const struct discover_args *args)
{
    struct cmd_config_flags which = args->config;
    if (which.file == NULL && which.write_url == NULL) {
        which.write_url = "http://127.0.0.1"; /* a placeholder: the command writes nothing */
    }
    struct config *config = cmd_load_config(&which);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    struct err err = ERR_INIT;
    struct discover d = {.args = args, .config = config};
    buf_init(&d.missing, LINE_MAX_BYTES);
    buf_init(&d.duplicate, LINE_MAX_BYTES);
    bool ok = prepare_all(&d, &err);
    bool peer = err.kind == ERR_NETWORK || err.kind == ERR_REFUSED;
    int code = ok ? discover(&d) : cmd_fail(peer ? EXIT_PEER : EXIT_INPUT, &err);
    explain_free(d.words);
    pipeline_free(d.pipeline);
    leaders_free(d.leaders);
    sharding_free(d.sharding);
    loop_free(d.loop);
    http_contents_free(d.contents);
    sources_free(d.sources);
    buf_done(&d.missing);
    buf_done(&d.duplicate);
    config_unref(d.narrow);
    intern_free(d.intern);
    log_free(d.log);
    arena_free(d.arena);
    config_unref(config);
    return code;
}

static int run_discover(const void *arg, char *const *operands, size_t n)
{
    const struct discover_args *args = arg;
    (void)operands;
    (void)n;
    if (args->pod != NULL && !args->explain) {
        return cmd_usage_error("discover", "--pod goes with --explain");
    }
    return discover_run(args);
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', discover_args, config.file, "FILE",
         "the configuration, - for standard input; without it, that of annotated pods in the "
         "cluster",
         .env = "PROFPULL_CONFIG"),
    CLUSTER_FLAGS(discover_args, cluster),
    FLAG(TEXT, "write.url", 0, discover_args, config.write_url, "URL",
         "as for `profpull run`; nothing is written there"),
    FLAG(BOOL, "explain", 'e', discover_args, explain, NULL,
         "also print label sets that were dropped or refused, with the rule and the reason, and on "
         "stderr how many pods are not scraped for each reason"),
    FLAG(TEXT, "pod", 0, discover_args, pod, "POD",
         "say in words why this pod is scraped or not, and what to change. POD is NAMESPACE/NAME, "
         "a pattern such as shop/cart-*, or part of a name"),
    FLAG(DURATION, "timeout", 0, discover_args, timeout_ms, "DUR",
         "give up after this time if a source has not answered"),
};

const struct command cmd_discover = {
    .name = "discover",
    .summary = "print the targets that are found now",
    .usage = "discover [--config FILE] [--explain] [--timeout 30s]\n"
             "discover [--config FILE] --explain --pod NAMESPACE/NAME\n"
             "discover [--kubeconfig FILE] [--context NAME] [OPTIONS]",
    .description = "Reads every source of the configuration once and prints the targets found, one "
                   "JSON object a line: job, source, labels and the scrapes with their URLs. "
                   "Nothing is scraped.",
    .exit_codes = "Exit code: 0 done, 1 the configuration is wrong, 2 usage, 3 a source did not "
                  "answer.",
    COMMAND_FLAGS(flags, discover_args),
    .defaults = &(const struct discover_args){.timeout_ms = 30 * MS_PER_S},
    .run = run_discover,
};
