#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/app.h"
#include "agent/confinement.h"
#include "agent/memory.h"
#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/exit_guard.h"
#include "cli/run_targets.h"
#include "cli/servers.h"

/* A signal to the process and then to its group, as timeout(1) sends them, counts as one. */
#define SAME_SIGNAL_MS 500

/* How long a drain may take beyond its deadline, stopping the sources and writing spools included.
 */
#define STOP_MS (INT64_C(15) * MS_PER_S)
/* The configuration of --target. */
#define TARGETS_TEXT_MAX ((size_t)1 << 20)
/* How long it may take to join all threads at the end. */
#define FREE_MS (INT64_C(5) * MS_PER_S)

/* Waits for one of our signals or, where fd >= 0, for fd to become readable.
 * Returns the signal's number, or 0 for fd. */
static int wait_for(int signal_fd, int fd)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        if (poll(fds, fd >= 0 ? 2 : 1, -1) < 0 && errno != EINTR) {
            return SIGTERM;
        }
        struct signalfd_siginfo info;
        if ((fds[0].revents & POLLIN) != 0 &&
            read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            return (int)info.ssi_signo;
        }
        if (fd >= 0 && (fds[1].revents & POLLIN) != 0) {
            return 0;
        }
    }
}

static void wait_for_end(struct app *app, int signal_fd)
{
    for (;;) {
        int sig = wait_for(signal_fd, -1);
        if (sig != SIGHUP) {
            log_info(app_log(app), "stopping", LOG_STR("signal", sig == SIGINT ? "INT" : "TERM"),
                     LOG_STR("note", "another signal ends at once, without the rest of the drain"));
            return;
        }
        log_warn(app_log(app), "SIGHUP: reload is not supported yet, ignoring");
    }
}

static int serve(struct app *app, int signal_fd, int64_t drain_ms)
{
    struct err err = ERR_INIT;
    if (!app_start(app, &err)) {
        return cmd_fail(EXIT_INPUT, &err);
    }
    wait_for_end(app, signal_fd);
    exit_guard_start(drain_ms + STOP_MS, EXIT_DONE);
    app_drain(app, drain_ms);
    int64_t began_ms = clock_mono_ms();
    int sig;
    do {
        sig = wait_for(signal_fd, app_drained_fd(app));
    } while (sig == SIGHUP || (sig != 0 && clock_mono_ms() - began_ms < SAME_SIGNAL_MS));
    if (sig != 0) {
        log_warn(app_log(app), "second signal: ending without the rest of the drain");
        exit_guard_start(FREE_MS, EXIT_DONE);
        app_halt(app);
    }
    app_summary(app);
    exit_guard_start(FREE_MS, EXIT_DONE);
    return EXIT_DONE;
}

/* The main thread handles signals: they are blocked here, before any thread starts, and read from a
 * descriptor. A peer that hangs up must not end the process. */
static int open_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

struct run_args {
    struct cmd_config_flags config;
    struct flag_list targets;
    const char *data;
    const char *sandbox;
    int64_t drain_ms;
};

/* The configuration of the flags: a file, or what --target says. NULL after a message. */
static struct config *load(const struct run_args *args)
{
    struct cmd_config_flags which = args->config;
    which.for_this_machine = true;
    if (args->targets.n == 0) {
        return cmd_load_config(&which);
    }
    struct err err = ERR_INIT;
    struct buf text;
    struct config *config = NULL;
    buf_init(&text, TARGETS_TEXT_MAX);
    if (run_targets_config(&args->targets, args->data, &text, &err)) {
        which.file = "--target";
        which.text = (struct sv){text.data, text.len};
        config = cmd_load_config(&which);
    } else {
        (void)cmd_fail(EXIT_INPUT, &err);
    }
    buf_done(&text);
    return config;
}

/* Where to look at what is kept. The port of the address may be 0, the server's is not. */
static void say_address(const struct servers *servers, const struct config *config)
{
    struct sv listen = sv_from(config->server.listen);
    const char *colon = listen.n > 0 ? memrchr(listen.p, ':', listen.n) : NULL;
    if (servers->n == 0 || colon == NULL) {
        return;
    }
    struct sv host = {.p = listen.p, .n = (size_t)(colon - listen.p)};
    bool is_any = host.n == 0 || sv_eq_str(host, "0.0.0.0") || sv_eq_str(host, "[::]");
    if (is_any) {
        host = SV("localhost");
    }
    fprintf(stderr, "profpull: profiles are shown at http://%.*s:%u/\n", SV_ARG(host),
            (unsigned)server_port(servers->at[0]));
}

static int run_command(const void *arg, char *const *operands, size_t n)
{
    const struct run_args *args = arg;
    (void)operands;
    (void)n;
    if (args->config.file == NULL && args->config.write_url == NULL && args->targets.n == 0) {
        return cmd_usage_error("run", "--target HOST:PORT, --write.url URL or --config FILE is "
                                      "needed");
    }
    if (args->targets.n > 0 && args->config.file != NULL) {
        return cmd_usage_error("run", "--target and --config exclude each other");
    }
    /* First of all: a SIGHUP must not end the process while it reads its configuration. */
    int signal_fd = open_signals();
    struct config *config = load(args);
    if (config == NULL) {
        close(signal_fd);
        return EXIT_INPUT;
    }
    memory_tune_allocator();
    struct err err = ERR_INIT;
    struct confinement confinement;
    struct app *app =
        confinement_enter(&confinement, confinement_mode_named(args->sandbox), config, &err)
            ? app_new(config, &err)
            : NULL;
    if (app != NULL) {
        confinement_report(&confinement, app_log(app), app_metrics(app));
    }
    struct servers servers = {.n = 0};
    int code;
    if (app == NULL || !servers_start(&servers, app, config, &err)) {
        code = cmd_fail(EXIT_INPUT, &err);
    } else {
        if (args->targets.n > 0) {
            say_address(&servers, config);
        }
        code = serve(app, signal_fd, args->drain_ms);
    }
    servers_stop(&servers);
    app_free(app);
    confinement_done(&confinement);
    config_unref(config);
    close(signal_fd);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', run_args, config.file, "FILE",
         "the configuration, - for standard input; see docs/configuration.md. Without it, or "
         "without scrape_configs in "
         "it, annotated pods are scraped (see `profpull check --print-default` and "
         "docs/annotations.md)"),
    FLAG(LIST, "target", 0, run_args, targets, "[NAME=]HOST:PORT",
         "no configuration: scrape this program's /debug/pprof, keep its profiles in --data, and "
         "show them in the browser. NAME is its service. May be given several times"),
    FLAG(TEXT, "data", 0, run_args, data, "DIR",
         "where --target keeps profiles (default ./profpull-data)"),
    FLAG(TEXT, "write.url", 0, run_args, config.write_url, "URL",
         "push here (Pyroscope): makes or replaces the endpoint \"main\""),
    FLAG(TEXT, "sharding.service", 0, run_args, config.service, "NAME",
         "share the targets with the other endpoints of this Service, as sharding: {mode: "
         "kubernetes} does; for files of Grafana Alloy, which cannot say it"),
    FLAG(TEXT, "listen", 0, run_args, config.listen, "ADDR",
         "admin server, instead of server.listen; \"\" for none"),
    FLAG(DURATION, "drain-timeout", 0, run_args, drain_ms, "DUR",
         "time for scrapes in flight to end, and for queues to empty, after a signal; a second "
         "signal "
         "ends at once"),
    FLAG(CHOICE, "sandbox", 0, run_args, sandbox, "MODE",
         "gives up files, ports and system calls that the process does not need (default on); "
         "`required` is an error where the kernel cannot do all of it",
         .choice = confinement_mode_name),
};

const struct command cmd_run = {
    .name = "run",
    .summary = "discover, scrape and push until stopped",
    .usage = "run --target [NAME=]HOST:PORT ... [--data DIR] [--listen ADDR]\n"
             "run [--config FILE] [--write.url URL] [--listen ADDR] [--drain-timeout 20s]",
    .description =
        "Discovers targets, scrapes their profiles and pushes them, until SIGTERM or SIGINT.",
    .exit_codes =
        "Exit code: 0 ended by a signal, 1 the configuration is wrong or start failed, 2 usage.",
    COMMAND_FLAGS(flags, run_args),
    .defaults = &(
        const struct run_args){.data = "profpull-data", .sandbox = "on", .drain_ms = 20 * MS_PER_S},
    .run = run_command,
};
