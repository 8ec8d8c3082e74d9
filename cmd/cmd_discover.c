#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/cmd.h"
#include "cmd/pipeline.h"
#include "discovery/discovery.h"

static const char help[] =
    "Usage: profpull discover --config FILE [--explain] [--timeout 30s]\n"
    "\n"
    "Reads every source of the configuration once and prints the targets found, one JSON object a\n"
    "line: job, source, labels and the scrapes with their URLs. Nothing is scraped.\n"
    "\n"
    "  -c, --config FILE   the configuration\n"
    "  -e, --explain       print what was dropped or refused as well, with the rule and why\n"
    "      --timeout D     give up when a source has not answered by then (30s)\n"
    "\n"
    "Exit code: 0 done, 1 the configuration is wrong, 2 usage, 3 a source did not answer.\n";

#define LINE_MAX_BYTES (16 * 1024 * 1024)

struct discover {
    struct loop *loop;
    struct pipeline *pipeline;
    const struct config *config;
    bool explain;
    bool synced;
};

static void put_scrapes(const struct target *t, struct buf *line)
{
    buf_puts(line, ",\"scrapes\":[");
    for (size_t i = 0; i < target_scrape_count(t); i++) {
        struct buf url;
        buf_init(&url, LINE_MAX_BYTES);
        target_scrape_url(t, i, &url);
        buf_printf(line, "%s{\"type\":\"", i == 0 ? "" : ",");
        json_escape(sv_from(target_scrape_type(t, i)->name), line);
        buf_puts(line, "\",\"url\":\"");
        json_escape(sv_from(url.data), line);
        char interval[32];
        format_duration_ms(target_interval_ms(t, i), interval, sizeof(interval));
        buf_printf(line, "\",\"interval\":\"%s\"}", interval);
        buf_done(&url);
    }
    buf_putc(line, ']');
}

/* Types that a wrong label has cost the target. */
static void put_problems(const struct target *t, struct buf *line)
{
    for (size_t i = 0; i < target_problem_count(t); i++) {
        const char *type;
        const char *sentence = target_problem(t, i, &type);
        buf_puts(line, i == 0 ? ",\"problems\":[\"" : ",\"");
        json_escape(sv_from(sentence), line);
        buf_puts(line, i + 1 == target_problem_count(t) ? "\"]" : "\"");
    }
}

static void put_dropped(const struct discover *d, const struct pipeline_verdict *v,
                        struct buf *line)
{
    if (v->rule > 0) {
        struct buf rule;
        buf_init(&rule, LINE_MAX_BYTES);
        relabel_describe(pipeline_rules(d->pipeline, v->group->job), v->rule, &rule);
        buf_printf(line, ",\"%s\":{\"rule\":%zu,\"text\":\"",
                   v->outcome == RELABEL_DROPPED ? "dropped_by" : "failed_in", v->rule);
        json_escape(sv_from(rule.data), line);
        buf_puts(line, "\"}");
        buf_done(&rule);
    }
    if (v->err != NULL) {
        buf_puts(line, ",\"error\":\"");
        json_escape(sv_from(v->err->msg), line);
        buf_putc(line, '"');
    }
}

static void on_verdict(void *arg, const struct pipeline_verdict *v)
{
    struct discover *d = arg;
    if (v->target == NULL && !d->explain) {
        return;
    }
    struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_puts(&line, "{\"job\":\"");
    json_escape(sv_from(d->config->jobs[v->group->job].name), &line);
    buf_puts(&line, "\",\"source\":\"");
    json_escape(sv_from(v->group->source), &line);
    buf_puts(&line, "\",\"labels\":");
    labels_format_json(v->target == NULL ? v->discovered : target_labels(v->target), &line);
    if (v->target == NULL) {
        put_dropped(d, v, &line);
    } else {
        put_scrapes(v->target, &line);
        put_problems(v->target, &line);
    }
    buf_puts(&line, "}\n");
    if (buf_ok(&line)) {
        fwrite(line.data, 1, line.len, stdout);
    }
    buf_done(&line);
}

static void on_synced(void *arg)
{
    struct discover *d = arg;
    d->synced = true;
    loop_stop(d->loop);
}

static void on_group(void *arg, const struct target_group *group)
{
    struct discover *d = arg;
    pipeline_group(d->pipeline, group);
}

static void on_timeout(void *arg)
{
    loop_stop(arg);
}

static int run_discovery(struct discover *d, struct log *log, struct intern *intern,
                         int64_t timeout_ms)
{
    struct err err = ERR_INIT;
    struct discovery_options options = {
        .config = d->config,
        .loop = d->loop,
        .intern = intern,
        .log = log,
        .user_agent = USER_AGENT,
        .on_group = on_group,
        .on_synced = on_synced,
        .arg = d,
    };
    struct discovery *discovery = discovery_new(&options, &err);
    if (discovery == NULL) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    struct loop_timer *timer = loop_timer_new(d->loop, on_timeout, d->loop);
    if (timer != NULL) {
        loop_timer_after(timer, timeout_ms);
        loop_run(d->loop);
    }
    loop_timer_free(timer);
    discovery_free(discovery);
    fflush(stdout);
    if (!d->synced) {
        fputs("profpull: not every source answered in time; see the log lines above\n", stderr);
        return EXIT_PEER;
    }
    return EXIT_DONE;
}

static int discover(const struct cmd_config_flags *flags, bool explain, int64_t timeout_ms)
{
    struct config *config = cmd_load_config(flags);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    struct err err = ERR_INIT;
    int code = EXIT_INPUT;
    struct intern *intern = intern_new();
    struct log *log = log_new(STDERR_FILENO, LOG_WARN, config->log.format);
    struct discover d = {.config = config, .explain = explain, .loop = loop_new(&err)};
    struct pipeline_options options = {
        .config = config, .intern = intern, .on_verdict = on_verdict, .arg = &d};
    if (intern == NULL || log == NULL || d.loop == NULL) {
        fputs("profpull: out of memory\n", stderr);
    } else if ((d.pipeline = pipeline_new(&options, &err)) == NULL) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        code = run_discovery(&d, log, intern, timeout_ms);
    }
    pipeline_free(d.pipeline);
    loop_free(d.loop);
    intern_free(intern);
    log_free(log);
    config_unref(config);
    return code;
}

int cmd_discover(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},  {"explain", no_argument, NULL, 'e'},
        {"timeout", required_argument, NULL, 't'}, {"write.url", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    struct cmd_config_flags flags = {0};
    bool explain = false;
    int64_t timeout_ms = 30 * MS_PER_S;
    int c;
    while ((c = getopt_long(argc, argv, "c:eh", options, NULL)) != -1) {
        switch (c) {
        case 'c':
            flags.file = optarg;
            break;
        case 'e':
            explain = true;
            break;
        case 't':
            if (!cmd_parse_duration(argv[0], "--timeout", optarg, &timeout_ms)) {
                return EXIT_USAGE;
            }
            break;
        case 'w':
            flags.write_url = optarg;
            break;
        case 'h':
            return cmd_help(help);
        default:
            return cmd_usage_error(argv[0], "see above");
        }
    }
    if (optind < argc) {
        return cmd_usage_error(argv[0], "unexpected argument: %s", argv[optind]);
    }
    if (flags.file == NULL) {
        return cmd_usage_error(argv[0], "--config FILE is needed");
    }
    return discover(&flags, explain, timeout_ms);
}
