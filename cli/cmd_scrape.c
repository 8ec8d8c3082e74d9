/* `profpull scrape`: fetches one profile now and describes it. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cluster/proxy.h"
#include "cli/cmd.h"
#include "cli/output.h"
#include "cli/query/question.h"
#include "cli/recording.h"
#include "http/http.h"
#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"
#include "pprof/summary.h"
#include "scraper/scraper.h"

/* Limit of an inflated profile; a larger one is not described. */
#define TEXT_MAX ((size_t)1024 * 1024)
#define INFLATED_MAX ((size_t)64 * 1024 * 1024)
#define SECONDS_MAX 86400
#define JOBS_SUGGESTED 256
#define ARENA_MAX (UINT64_C(64) * 1024 * 1024)
/* The type that is fetched of a pod, unless another one is named. */
#define DEFAULT_TYPE "process_cpu"

struct scrape_args {
    struct cmd_config_flags config;
    struct cluster_flags cluster;
    const char *namespace; /* of a pod; NULL: that of the context */
    const char *port;      /* of a pod */
    const char *job;
    const char *type;
    const char *output;
    bool flame;
    uint64_t seconds;
    int64_t timeout_ms;
    uint64_t max_size;
};

struct scrape {
    const struct scrape_args *args;
    /* the job whose credentials and TLS settings are used; NULL: none */
    const struct config_job *job;
    const char *url;
    const char *pod;  /* NAMESPACE/NAME of a pod that the API server reaches; NULL: none */
    uint64_t seconds; /* seconds for which the target samples; 0: it does not sample */
    struct loop *loop;
    int code;
};

/* ---- the URL --------------------------------------------------------------------------------- */

/* Returns the N of seconds=N in the query of a URL, or 0. */
static uint64_t url_seconds(CURLU *u)
{
    char *query = NULL;
    struct sv name;
    struct sv value;
    uint64_t seconds = 0;
    bool found = false;
    curl_url_get(u, CURLUPART_QUERY, &query, 0);
    for (const char *at = query; at != NULL && *at != '\0' && !found;) {
        struct sv pair = {.p = at, .n = strcspn(at, "&")};
        found = sv_cut(pair, '=', &name, &value) && sv_eq_str(name, "seconds") &&
                parse_u64(value, SECONDS_MAX, &seconds);
        at += pair.n + (at[pair.n] == '&');
    }
    curl_free(query);
    return seconds;
}

static bool url_has_path(CURLU *u)
{
    char *path = NULL;
    curl_url_get(u, CURLUPART_PATH, &path, 0);
    bool has = path != NULL && path[0] != '\0' && strcmp(path, "/") != 0;
    curl_free(path);
    return has;
}

static bool url_is_http(CURLU *u)
{
    char *scheme = NULL;
    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
    struct sv v = sv_from(scheme);
    bool is = sv_eq_nocase(v, "http") || sv_eq_nocase(v, "https");
    curl_free(scheme);
    return is;
}

static bool apply_type(CURLU *u, const struct config_type *type, uint64_t seconds)
{
    char text[40];
    if (!url_has_path(u) && curl_url_set(u, CURLUPART_PATH, type->path, 0) != CURLUE_OK) {
        return false;
    }
    if (!type->sampling || url_seconds(u) > 0) {
        return true;
    }
    snprintf(text, sizeof(text), "seconds=%llu", (unsigned long long)seconds);
    return curl_url_set(u, CURLUPART_QUERY, text, CURLU_APPENDQUERY) == CURLUE_OK;
}

/* The scrape that the command line describes. */
struct asked {
    const char *url;
    const char *scheme; /* used if the URL has no scheme */
    uint64_t seconds;
    const struct config_type *type; /* NULL: the URL is complete */
};

static bool fill_url(CURLU *u, const struct asked *asked, struct err *err)
{
    const struct config_type *type = asked->type;
    bool bare = strstr(asked->url, "://") == NULL;
    struct buf text;
    buf_init(&text, (size_t)64 * 1024);
    buf_printf(&text, "%s%s%s", bare ? asked->scheme : "", bare ? "://" : "", asked->url);
    CURLUcode rc =
        buf_ok(&text) ? curl_url_set(u, CURLUPART_URL, text.data, 0) : CURLUE_MALFORMED_INPUT;
    buf_done(&text);
    if (rc != CURLUE_OK) {
        return err_set(err, ERR_INPUT, "invalid URL: %s", curl_url_strerror(rc));
    }
    if (!url_is_http(u)) {
        return err_set(err, ERR_INPUT, "invalid URL: expected http or https");
    }
    if (type == NULL && !url_has_path(u)) {
        return err_set(err, ERR_INPUT, "the URL has no path: add one, or say --type");
    }
    return type == NULL || apply_type(u, type, asked->seconds) ||
           err_set(err, ERR_INPUT, "invalid URL");
}

/* Makes the URL to fetch, which is freed with curl_free(), and the time for which the target will
 * sample. NULL if the URL on the command line is wrong. */
static char *make_url(const struct asked *asked, uint64_t *ret_seconds, struct err *err)
{
    char *url = NULL;
    CURLU *u = curl_url();
    if (u == NULL) {
        err_memory(err);
        return NULL;
    }
    if (fill_url(u, asked, err)) {
        *ret_seconds = url_seconds(u);
        if (curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK) {
            err_set(err, ERR_INPUT, "invalid URL");
        }
    }
    curl_url_cleanup(u);
    return url;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Returns the advice for a failure: the usual one, but with flags of this command instead of keys
 * of a job. */
static const char *advice_for_reason(const struct scrape *s, enum reason reason)
{
    switch (reason) {
    case REASON_TIMEOUT:
        return "raise --timeout, or find out why the target is slow";
    case REASON_TOO_LARGE:
        return "raise --max-size";
    case REASON_HTTP_401:
    case REASON_HTTP_403:
        return s->job == NULL ? "the target refuses access: --config FILE --job JOB sends the "
                                "credentials of a job"
                              : reason_advice(reason);
    default:
        return reason_advice(reason);
    }
}

static int fail(const struct scrape *s, enum reason reason, const char *error)
{
    const char *advice = advice_for_reason(s, reason);
    fprintf(stderr, "profpull: %s: %s%s%s\n", reason_name(reason), error,
            advice[0] == '\0' ? "" : "\nprofpull: ", advice);
    return EXIT_PEER;
}

static int fail_fetch(const struct scrape *s, const struct http_response *r)
{
    struct sv body = {.p = r->body->data, .n = r->body->len};
    enum reason reason = reason_of_response(r->result, r->status, body);
    if (r->result != HTTP_DONE) {
        return fail(s, reason, r->error); /* the message has the URL */
    }
    struct buf text;
    buf_init(&text, (size_t)128 * 1024);
    buf_printf(&text, "GET %s: HTTP %ld%s%s", s->url, r->status,
               r->location[0] == '\0' ? "" : " to ", r->location);
    body.n = body.n < 1024 ? body.n : 1024;
    body = sv_trim(body);
    buf_puts(&text, body.n == 0 ? "" : ": ");
    json_escape(body, &text);
    int code = fail(s, reason, buf_ok(&text) ? text.data : r->error);
    buf_done(&text);
    return code;
}

/* Prints the content of a pprof profile. */
static void describe_content(FILE *out, struct scratch *scratch, struct sv body)
{
    struct pprof_summary s;
    struct err err = ERR_INIT;
    char text[512];
    if (!pprof_summary_read(scratch, body, INFLATED_MAX, &s, &err)) {
        fprintf(out, "content:   cannot be read: %s\n", err.msg);
        return;
    }
    format_size(s.plain_size, text, sizeof(text));
    fprintf(out, "content:   %zu samples, %s inflated\n", s.n[PROFILE_SAMPLE], text);
    pprof_summary_print_types(&s, "?", text, sizeof(text));
    fprintf(out, "types:     %s\n", text[0] == '\0' ? "none" : text);
    if (s.time_ns > 0) {
        clock_format_rfc3339(s.time_ns, text, sizeof(text));
        fprintf(out, "taken:     %s\n", text);
    }
    fprintf(out, "duration:  %.3f s\n", (double)s.duration_ns / (double)NS_PER_S);
}

/* Prints the content of a recording. */
static void describe_recording(FILE *out, struct sv body)
{
    struct recording r;
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    if (recording_read_bytes(body, 0, &r, &err)) {
        struct jfr_facts facts;
        jfr_reader_facts(r.reader, &facts);
        buf_printf(&text, "content:   %zu chunks, %llu events, %llu samples\n", facts.chunks,
                   (unsigned long long)facts.events, (unsigned long long)facts.samples);
        recording_print_profiles(&r, "profile:   ", &text);
        if (r.damage.kind != ERR_NONE) {
            buf_printf(&text, "damaged:   %s\n", r.damage.msg);
        }
    } else {
        buf_printf(&text, "content:   cannot be read: %s\n", err.msg);
    }
    recording_done(&r);
    fputs(buf_ok(&text) ? text.data : "content:   out of memory\n", out);
    buf_done(&text);
}

static void describe(FILE *out, const struct scrape *s, enum sniff_result kind, struct sv body,
                     int64_t duration_ns)
{
    static const char *const formats[] = {
        [SNIFF_PPROF_GZIP] = "pprof",
        [SNIFF_PPROF_PLAIN] = "pprof",
        [SNIFF_LEGACY] = "an old format, converted to pprof",
        [SNIFF_JFR] = "JFR",
    };
    char size[32];
    format_size(body.n, size, sizeof(size));
    if (s->pod != NULL) {
        fprintf(out, "pod:       %s, through the API server\n", s->pod);
    }
    fprintf(out, "url:       %s\n", s->url);
    fprintf(out, "format:    %s, %s\n", formats[kind], gzip_is(body) ? "gzip" : "plain");
    fprintf(out, "size:      %s\n", size);
    fprintf(out, "fetched:   in %.3f s\n", (double)duration_ns / (double)NS_PER_S);
    if (kind == SNIFF_JFR) {
        describe_recording(out, body);
    } else {
        struct scratch *scratch = scratch_new();
        describe_content(out, scratch, body);
        scratch_free(scratch);
    }
}

/* Draws a profile as a flame graph, on standard output. */
static int draw(const struct scrape *s, struct sv body)
{
    char name[32];
    struct err err = ERR_INIT;
    FILE *file = tmpfile(); /* the reader of profiles takes a file */
    if (file == NULL || fwrite(body.p, 1, body.n, file) != body.n || fflush(file) != 0) {
        err_sys(&err, "a temporary file");
        if (file != NULL) {
            fclose(file);
        }
        return cmd_fail(EXIT_INPUT, &err);
    }
    snprintf(name, sizeof(name), "/dev/fd/%d", fileno(file));
    struct query_args args = {.common = QUERY_COMMON_DEFAULTS(1),
                              .protocol = "pyroscope",
                              .colour = "auto",
                              .file = name,
                              .title = s->pod == NULL ? s->url : s->pod};
    int code = question_run(&args, "flame", NULL);
    fclose(file);
    return code;
}

/* Describes a profile and writes it to the output, if there is one. */
static int deliver(const struct scrape *s, enum sniff_result kind, struct sv body,
                   int64_t duration_ns)
{
    struct err err = ERR_INIT;
    const char *output = s->args->output;
    bool to_stdout = output != NULL && output_is_stdout(output);
    describe(to_stdout || s->args->flame ? stderr : stdout, s, kind, body, duration_ns);
    if (output != NULL && !output_write(output, body, &err)) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    if (s->args->flame) {
        return draw(s, body);
    }
    return to_stdout ? EXIT_DONE : cmd_flush(EXIT_DONE);
}

/* Converts a profile in an older format, then describes and writes it. */
static int check_and_deliver(const struct scrape *s, const struct http_response *r)
{
    struct err err = ERR_INIT;
    struct sv body = {.p = r->body->data, .n = r->body->len};
    struct legacy_output converted = {.data = NULL};
    int64_t duration_ns = r->end_ns - r->start_ns;
    enum sniff_result kind = sniff_any(body, &err);
    enum reason reason = reason_of_sniff(kind);
    if (kind == SNIFF_LEGACY) {
        reason = reason_of_legacy(
            legacy_convert_one(body, clock_wall_ns() - duration_ns, duration_ns, &converted, &err));
        body = (struct sv){.p = converted.data, .n = converted.size};
    }
    if (reason != REASON_NONE) {
        err_wrap(&err, "GET %s", s->url);
    }
    int code =
        reason == REASON_NONE ? deliver(s, kind, body, duration_ns) : fail(s, reason, err.msg);
    free(converted.data);
    return code;
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void scrape_on_done(void *arg, const struct http_response *r)
{
    struct scrape *s = arg;
    bool ok = r->result == HTTP_DONE && r->status / 100 == 2;
    s->code = ok ? check_and_deliver(s, r) : fail_fetch(s, r);
    loop_stop(s->loop);
}

static bool run_request(struct scrape *s, struct http_client *client, struct err *err)
{
    static const struct http_settings plain = {.follow_redirects = true};
    struct http_request request = {
        .url = s->url,
        .settings = s->job == NULL ? &plain : &s->job->http,
        .timeout_ms = s->args->timeout_ms + (int64_t)s->seconds * MS_PER_S,
        .max_body = (size_t)s->args->max_size,
        .on_done = scrape_on_done,
        .arg = s,
    };
    if (http_start(client, &request) == NULL) {
        return err_memory(err);
    }
    loop_run(s->loop);
    return true;
}

static int scrape(struct scrape *s)
{
    struct err err = ERR_INIT;
    s->loop = loop_new(&err);
    if (s->loop == NULL) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    if (s->seconds > 1) {
        fprintf(stderr, "profpull: sampling for %llu s\n", (unsigned long long)s->seconds);
    }
    struct http_client_options options = {.loop = s->loop, .name = "scrape"};
    struct http_client *client = http_client_new(&options, &err);
    if (client == NULL || !run_request(s, client, &err)) {
        s->code = cmd_fail(EXIT_INPUT, &err);
    }
    http_client_free(client);
    loop_free(s->loop);
    return s->code;
}

/* Returns the type as a job configures it, or the built-in one; NULL if the URL is complete. */
static const struct config_type *find_type(const struct scrape *s)
{
    const struct config_type_name *row = config_type_name_find(sv_from(s->args->type));
    const char *key = row == NULL ? s->args->type : row->key;
    for (size_t i = 0; key != NULL && s->job != NULL && i < s->job->n_types; i++) {
        if (strcmp(s->job->types[i].key, key) == 0) {
            return &s->job->types[i];
        }
    }
    const struct config_builtin_type *builtin = config_builtin_type_find(sv_from(key));
    return builtin == NULL ? NULL : &builtin->type;
}

static bool find_job(struct scrape *s, const struct config *config, struct err *err)
{
    const char *names[JOBS_SUGGESTED];
    size_t n = 0;
    for (size_t i = 0; i < config->n_jobs; i++) {
        if (strcmp(config->jobs[i].name, s->args->job) == 0) {
            s->job = &config->jobs[i];
            return true;
        }
        if (n < JOBS_SUGGESTED) {
            names[n++] = config->jobs[i].name;
        }
    }
    const char *near = suggest(sv_from(s->args->job), names, n);
    return err_set(err, ERR_INPUT, "%s has no job \"%s\"%s%s%s", config->file, s->args->job,
                   near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                   near == NULL ? "" : "\"?");
}

static int scrape_url(struct scrape *s, const char *given)
{
    struct err err = ERR_INIT;
    struct asked asked = {.url = given,
                          .scheme = s->job == NULL ? "http" : s->job->scheme,
                          .seconds = s->args->seconds,
                          .type = find_type(s)};
    char *url = make_url(&asked, &s->seconds, &err);
    s->url = url;
    int code = url == NULL ? cmd_fail(EXIT_INPUT, &err) : scrape(s);
    curl_free(url);
    return code;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* Prints that the API server could not reach the pod. */
static int fail_proxy(const struct scrape *s, const struct cluster_answer *a)
{
    json_t *status = json_loadb(a->body.data, a->body.len, 0, NULL);
    const char *said = json_string_value(json_object_get(status, "message"));
    fprintf(stderr,
            "profpull: GET %s: the API server cannot reach the pod: HTTP %ld: %s\n"
            "profpull: does the program listen on this port? One that listens on 127.0.0.1 only "
            "cannot be reached through the API server: let it listen on all addresses\n",
            s->url, a->status, said == NULL ? "" : said);
    json_decref(status);
    return EXIT_PEER;
}

static int take_answer(struct scrape *s, struct proxy_result *r)
{
    struct http_response response = {
        .result = HTTP_DONE,
        .status = r->answer.status,
        .error = "",
        .content_type = r->answer.content_type,
        .location = "",
        .body = &r->answer.body,
        .end_ns = r->answer.duration_ns,
    };
    int code;
    s->url = r->url;
    s->pod = r->pod;
    if (r->is_status) {
        code = fail_proxy(s, &r->answer);
    } else if (r->answer.status / 100 == 2) {
        code = check_and_deliver(s, &response);
    } else {
        code = fail_fetch(s, &response);
    }
    s->url = s->pod = NULL;
    return code;
}

static int scrape_pods(struct scrape *s, struct cluster *cluster, const json_t *pods,
                       const struct config *config)
{
    const struct scrape_args *args = s->args;
    struct proxy_result result;
    struct err err = ERR_INIT;
    struct proxy_options options = {
        .cluster = cluster,
        .pods = pods,
        .config = config,
        .job = args->job,
        .type = find_type(s),
        .port = args->port,
        .seconds = args->seconds,
        .max_body = (size_t)args->max_size,
    };
    if (!proxy_fetch(&options, &result, &err)) {
        bool peer = err.kind == ERR_NETWORK || err.kind == ERR_REFUSED;
        return cmd_fail(peer ? EXIT_PEER : EXIT_INPUT, &err);
    }
    int code = take_answer(s, &result);
    proxy_result_done(&result);
    return code;
}

/* Finds the pods that the operand names. */
static json_t *find_pods(const struct scrape_args *args, const char *operand,
                         struct cluster *cluster, struct err *err)
{
    struct pods_name name;
    const char *of_context = cluster_access(cluster)->access.namespace;
    const char *namespace = args->namespace != NULL ? args->namespace : of_context;
    if (!pods_parse(operand, &name, err)) {
        return NULL;
    }
    if (args->namespace != NULL && name.namespace.n > 0 &&
        !sv_eq_str(name.namespace, args->namespace)) {
        err_set(err, ERR_INPUT, "two namespaces are given: %.*s and %s", SV_ARG(name.namespace),
                args->namespace);
        return NULL;
    }
    return pods_of(cluster, &name, namespace == NULL ? "default" : namespace, err);
}

static int scrape_in_cluster(struct scrape *s, const char *operand, const struct config *config)
{
    const struct scrape_args *args = s->args;
    struct cluster_access access;
    struct cluster *cluster = NULL;
    struct err err = ERR_INIT;
    json_t *pods = NULL;
    struct arena *arena = arena_new(ARENA_MAX);
    if (arena == NULL) {
        err_memory(&err);
    } else if (cluster_access_find(&args->cluster, arena, &access, &err)) {
        cluster = cluster_new(&access, args->timeout_ms, &err);
    }
    if (cluster != NULL) {
        pods = find_pods(args, operand, cluster, &err);
    }
    bool peer = err.kind == ERR_NETWORK || err.kind == ERR_REFUSED;
    int code = pods != NULL ? scrape_pods(s, cluster, pods, config)
                            : cmd_fail(peer ? EXIT_PEER : EXIT_INPUT, &err);
    json_decref(pods);
    cluster_free(cluster);
    arena_free(arena);
    return code;
}

static int scrape_pod(struct scrape *s, const char *operand)
{
    struct cmd_config_flags which = s->args->config;
    struct err err = ERR_INIT;
    if (which.file == NULL) {
        which.write_url = "http://127.0.0.1"; /* a placeholder: the command writes nothing */
    }
    struct config *config = cmd_load_config(&which);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    bool ok = s->args->job == NULL || find_job(s, config, &err);
    int code = ok ? scrape_in_cluster(s, operand, config) : cmd_fail(EXIT_INPUT, &err);
    config_unref(config);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Checks which flags go together. Returns EXIT_DONE if they do. */
static int check_flags(const struct scrape_args *args, char *const *operands, size_t n)
{
    if (n != 1) {
        return cmd_usage_error("scrape",
                               n == 0 ? "a URL or a pod is needed" : "one URL or pod at a time");
    }
    bool pod = pods_is_name(operands[0]);
    if (!pod && (args->config.file == NULL) != (args->job == NULL)) {
        return cmd_usage_error("scrape", "--config and --job belong together");
    }
    bool of_pod = args->namespace != NULL || args->port != NULL ||
                  args->cluster.kubeconfig != NULL || args->cluster.context != NULL;
    if (!pod && of_pod) {
        return cmd_usage_error("scrape",
                               "--namespace, --port, --kubeconfig and --context go with a "
                               "pod, such as pod/shop/cart-1");
    }
    if (args->flame && args->output != NULL && output_is_stdout(args->output)) {
        return cmd_usage_error("scrape", "--flame and --output - both want standard output");
    }
    if (args->output != NULL && output_is_stdout(args->output) && isatty(STDOUT_FILENO) == 1) {
        return cmd_usage_error("scrape", "--output: a profile is binary and not printed on a "
                                         "terminal: name a file, or use a pipe");
    }
    return EXIT_DONE;
}

static int run_scrape(const void *arg, char *const *operands, size_t n)
{
    struct scrape_args args = *(const struct scrape_args *)arg;
    struct err err = ERR_INIT;
    struct scrape s = {.args = &args};
    /* A URL alone is scraped without a configuration. */
    bool configured = args.job != NULL || (n > 0 && pods_is_name(operands[0]));
    if (args.config.file == NULL && configured) {
        args.config.file = cmd_environment("PROFPULL_CONFIG");
    }
    int code = check_flags(&args, operands, n);
    if (code != EXIT_DONE) {
        return code;
    }
    if (pods_is_name(operands[0])) {
        args.type = args.type == NULL ? DEFAULT_TYPE : args.type;
        return scrape_pod(&s, operands[0]);
    }
    if (args.job == NULL) {
        return scrape_url(&s, operands[0]);
    }
    struct config *config = cmd_load_config(&args.config);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    code = find_job(&s, config, &err) ? scrape_url(&s, operands[0]) : cmd_fail(EXIT_INPUT, &err);
    config_unref(config);
    return code;
}

/* Lists the built-in types, then the other names of types. */
static const char *choose_type(size_t i)
{
    const struct config_builtin_type *t = config_builtin_type(i);
    const struct config_type_name *row;
    size_t more = CONFIG_BUILTIN_TYPES;
    for (size_t k = 0; t == NULL && (row = config_type_name(k)) != NULL; k++) {
        if (config_builtin_type_find(sv_from(row->name)) == NULL && more++ == i) {
            return row->name;
        }
    }
    return t == NULL ? NULL : t->type.key;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', scrape_args, config.file, "FILE",
         "the configuration of --job; for a pod, that of the rules that choose its port and path; "
         "or "
         "PROFPULL_CONFIG"),
    FLAG(TEXT, "job", 'j', scrape_args, job, "JOB",
         "use the credentials, TLS settings, scheme and types of this job of the configuration"),
    FLAG(CHOICE, "type", 't', scrape_args, type, "TYPE", "the profile type", .choice = choose_type),
    FLAG(TEXT, "namespace", 'n', scrape_args, namespace, "NAME",
         "the namespace of the pod; by default that of the context"),
    FLAG(TEXT, "port", 'p', scrape_args, port, "PORT",
         "the port of the pod, a number or a name, instead of the one that its annotations name"),
    CLUSTER_FLAGS(scrape_args, cluster),
    FLAG(NUMBER, "seconds", 's', scrape_args, seconds, "N", "sampling time of types that sample",
         .min = 1, .max = SECONDS_MAX),
    FLAG(DURATION, "timeout", 0, scrape_args, timeout_ms, "DUR",
         "time limit of the request, without the time of sampling"),
    FLAG(SIZE, "max-size", 0, scrape_args, max_size, "SIZE", "refuse bodies above this size",
         .min = 1, .max = CMD_BODY_MAX),
    FLAG(BOOL, "flame", 0, scrape_args, flame, NULL,
         "draw the profile as a flame graph on standard output (the description then goes to "
         "standard error)"),
    FLAG(TEXT, "output", 'o', scrape_args, output, "FILE",
         "write the profile as received, or converted if it is in an old format; - is standard "
         "output (the description then goes to standard error)"),
};

const struct command cmd_scrape = {
    .name = "scrape",
    .summary = "fetch one profile now and say what it is",
    .usage = "scrape URL [--type TYPE] [--config FILE --job JOB] [OPTIONS]\n"
             "scrape KIND/NAMESPACE/NAME [--type TYPE] [--port PORT] [--context NAME] [OPTIONS]",
    .description =
        "Fetches one profile now, checks it and says what it is. URL may be host:port "
        "alone; with --type the path and, for types that sample, seconds=N come from "
        "the type. With --config and --job the request is that of the job.\n"
        "KIND is pod, deployment, statefulset, daemonset, replicaset, job or service: a pod of it "
        "is "
        "asked through the API server of the cluster. KIND/NAME is in the namespace of --namespace "
        "or of the context. The annotations of the pod name the port and the path. It needs the "
        "permissions to list pods and to get pods/proxy.",
    .exit_codes = "Exit code: 0 done; 1 the URL is wrong or FILE cannot be written; 2 usage; 3 no "
                  "answer, an error, or something that is not a profile.",
    COMMAND_FLAGS(flags, scrape_args),
    .defaults = &(const struct scrape_args){.seconds = 10,
                                            .timeout_ms = 10 * MS_PER_S,
                                            .max_size = UINT64_C(64) * 1024 * 1024},
    .operands_max = SIZE_MAX,
    .run = run_scrape,
};
