#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/app.h"
#include "agent/confinement.h"
#include "agent/memory.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/files.h"
#include "cli/cmd.h"
#include "cli/exit_guard.h"
#include "cli/reload.h"
#include "cli/run_targets.h"
#include "cli/servers.h"
#include "config/change.h"
#include "symbols/helper.h"

/* timeout(1) sends a signal to the process, then to its group. Two signals within this time count
 * as one. */
#define SAME_SIGNAL_MS 500

/* Time beyond the deadline of the drain that stopping may take, including stopping the sources and
 * writing the spools. */
#define STOP_MS (INT64_C(15) * MS_PER_S)
/* Limit of the configuration that is made of --target. */
#define TARGETS_TEXT_MAX ((size_t)1 << 20)
/* Time that joining all threads at the end may take. */
#define FREE_MS (INT64_C(5) * MS_PER_S)

/* Indexes of the descriptors that the main thread waits for. */
enum { WAIT_SIGNAL, WAIT_OTHER, WAITS };
/* Results of wait_for() that are no number of a signal. */
#define WOKEN_OTHER 0
#define WOKEN_LATE (-1)

/* Waits for one of our signals, for fd to become readable, or for an instant (monotonic ms).
 * Returns the signal's number, WOKEN_OTHER or WOKEN_LATE. */
static int wait_for(int signal_fd, int fd, int64_t until_ms)
{
    for (;;) {
        struct pollfd fds[WAITS] = {[WAIT_SIGNAL] = {.fd = signal_fd, .events = POLLIN},
                                    [WAIT_OTHER] = {.fd = fd, .events = POLLIN}};
        int64_t left_ms = until_ms - clock_mono_ms();
        if (left_ms <= 0) {
            return WOKEN_LATE;
        }
        if (poll(fds, WAITS, left_ms > INT_MAX ? INT_MAX : (int)left_ms) < 0 && errno != EINTR) {
            return SIGTERM;
        }
        struct signalfd_siginfo info;
        if ((fds[WAIT_SIGNAL].revents & POLLIN) != 0 &&
            read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            return (int)info.ssi_signo;
        }
        if ((fds[WAIT_OTHER].revents & POLLIN) != 0) {
            return WOKEN_OTHER;
        }
    }
}

/* Serves until a signal arrives, or until the time of --for is over. */
static void serve(struct app *app, struct reload *reload, int signal_fd, int64_t for_ms)
{
    int64_t until_ms = for_ms == 0 ? INT64_MAX : clock_mono_ms() + for_ms;
    for (;;) {
        int sig = wait_for(signal_fd, reload_fd(reload), until_ms);
        if (sig == WOKEN_OTHER) {
            reload_run(reload);
        } else if (sig == SIGHUP) {
            reload_signal(reload);
        } else if (sig == WOKEN_LATE) {
            log_info(app_log(app), "stopping: the time of --for is over");
            return;
        } else {
            log_info(app_log(app), "stopping", LOG_STR("signal", sig == SIGINT ? "INT" : "TERM"),
                     LOG_STR("note", "another signal ends at once, without the rest of the drain"));
            return;
        }
    }
}

static void drain(struct app *app, int signal_fd, int64_t drain_ms)
{
    exit_guard_start(drain_ms + STOP_MS, EXIT_DONE);
    app_drain(app, drain_ms);
    int64_t began_ms = clock_mono_ms();
    int sig;
    do {
        sig = wait_for(signal_fd, app_drained_fd(app), INT64_MAX);
    } while (sig == SIGHUP || (sig != WOKEN_OTHER && clock_mono_ms() - began_ms < SAME_SIGNAL_MS));
    if (sig != WOKEN_OTHER) {
        log_warn(app_log(app), "second signal: ending without the rest of the drain");
        exit_guard_start(FREE_MS, EXIT_DONE);
        app_halt(app);
    }
    app_summary(app);
    exit_guard_start(FREE_MS, EXIT_DONE);
}

/* Blocks signals before any thread starts, and opens a descriptor from which the main thread reads
 * them. Ignores SIGPIPE, since a peer that closes its connection must not end the process. */
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
    int64_t for_ms; /* 0: run until a signal */
    bool no_watch;
};

/* Makes the directory of --data. The error says what to mount in a container. */
static bool make_data(const char *data, struct err *err)
{
    if (data[strspn(data, "/")] == '\0') {
        return err_set(err, ERR_INPUT, "--data: expected a directory other than /, got \"%s\"",
                       data);
    }
    if (make_directories(data, 0777, err) &&
        (access(data, W_OK) == 0 || err_sys(err, "cannot write to the directory %s", data))) {
        return true;
    }
    err_wrap(err, "--data");
    return container_is_around("", NULL)
               ? err_append(err, "; in a container, mount a volume and name it: -v "
                                 "profiles:/data, --data /data")
               : false;
}

/* Loads the configuration that the flags name: a file, or the one that --target makes. Prints a
 * message and returns NULL on failure. */
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
    if (make_data(args->data, &err) &&
        run_targets_config(&args->targets, args->data, &text, &err)) {
        which.file = "--target";
        which.text = (struct sv){text.data, text.len};
        config = cmd_load_config(&which);
    } else {
        (void)cmd_fail(EXIT_INPUT, &err);
    }
    buf_done(&text);
    return config;
}

/* Prints the address at which stored profiles can be viewed. The configured port may be 0; the port
 * of the server is the real one. */
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

static void say_start(struct app *app, const struct run_args *args, const struct config *config)
{
    char hash[32];
    snprintf(hash, sizeof(hash), "%016" PRIx64, config_hash(config));
    log_info(app_log(app), "profpull runs", LOG_STR("version", PROFPULL_VERSION),
             LOG_STR("config", args->targets.n > 0         ? "--target"
                               : args->config.file != NULL ? args->config.file
                                                           : CONFIG_BUILTIN_NAME),
             LOG_STR("hash", hash), LOG_INT("jobs", config->n_jobs),
             LOG_INT("destinations", config->n_endpoints));
    if (config->lacks_cluster) {
        log_info(app_log(app), "nothing is scraped", LOG_STR("reason", CONFIG_LACKS_CLUSTER));
    }
}

/* Returns the file from which the configuration can be read again; NULL if it comes from a pipe,
 * for example. */
static const char *file_of(const struct run_args *args)
{
    const char *file = args->config.file;
    struct stat st;
    bool again = file != NULL && strcmp(file, "-") != 0 &&
                 (stat(file, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    return again ? file : NULL;
}

/* The parts of a running process. They are started in an order whose reverse stops them. */
struct run {
    struct symbols_helper *helper; /* reads debug information; NULL: it cannot be started */
    struct err no_helper;          /* the reason */
    struct confinement confinement;
    struct app *app;
    struct reload *reload;
    struct servers servers;
};

/* Starts the process that reads debug information. It has a copy of the memory of this moment, so
 * it is started before the configuration with its secrets is read; and it cannot be started later,
 * from within the sandbox, when a reload adds a section `symbols`. Returns NULL with an error. */
static struct symbols_helper *start_helper(const struct run_args *args, struct err *err)
{
    const struct symbols_helper_options options = {
        .max_memory = SYMBOLS_MEMORY_DEFAULT,
        .max_file = SYMBOLS_FILE_DEFAULT,
        .timeout_ms = SYMBOLS_TIMEOUT_DEFAULT_MS,
        .sandbox = strcmp(args->sandbox, "off") != 0,
    };
    return symbols_helper_start(&options, err);
}

/* Gives that process the limits of the configuration. */
static void limit_helper(struct symbols_helper *helper, const struct run_args *args,
                         const struct symbols_settings *s)
{
    const struct symbols_helper_options options = {
        .max_memory = s->max_memory,
        .max_file = s->max_file_size,
        .timeout_ms = (unsigned)s->timeout_ms,
        .sandbox = strcmp(args->sandbox, "off") != 0,
    };
    if (helper != NULL) {
        symbols_helper_limit(helper, &options);
    }
}

static bool start(struct run *run, const struct run_args *args, const struct config *config,
                  struct err *err)
{
    limit_helper(run->helper, args, &config->symbols);
    if (!confinement_enter(&run->confinement, confinement_mode_named(args->sandbox), config, err)) {
        return false;
    }
    run->app = app_new(config, run->helper, err);
    if (run->app == NULL) {
        return false;
    }
    confinement_report(&run->confinement, app_log(run->app), app_metrics(run->app));
    if (run->no_helper.kind != ERR_NONE) {
        log_warn(app_log(run->app), "debug information is not read", LOG_ERR(&run->no_helper));
    }
    struct reload_options options = {
        .app = run->app,
        .confinement = &run->confinement,
        .flags = args->config,
        .watch = !args->no_watch,
        .drain_ms = args->drain_ms,
    };
    options.flags.file = file_of(args);
    options.flags.for_this_machine = true;
    run->reload = reload_new(&options, err);
    return run->reload != NULL &&
           servers_start(&run->servers, run->app, run->reload, config, err) &&
           app_start(run->app, err);
}

static void stop(struct run *run)
{
    if (run->reload != NULL) {
        reload_close(run->reload);
    }
    servers_stop(&run->servers);
    reload_free(run->reload);
    app_free(run->app);
    confinement_done(&run->confinement);
}

static int run_config(struct run *run, const struct run_args *args, const struct config *config,
                      int signal_fd)
{
    struct err err = ERR_INIT;
    int code = EXIT_DONE;
    if (start(run, args, config, &err)) {
        say_start(run->app, args, config);
        if (args->targets.n > 0) {
            say_address(&run->servers, config);
        }
        serve(run->app, run->reload, signal_fd, args->for_ms);
        reload_close(run->reload);
        drain(run->app, signal_fd, args->drain_ms);
    } else {
        code = cmd_fail(EXIT_INPUT, &err);
    }
    stop(run);
    return code;
}

static int run_command(const void *arg, char *const *operands, size_t n)
{
    const struct run_args *args = arg;
    (void)operands;
    (void)n;
    if (args->config.file == NULL && args->config.write_url == NULL && args->targets.n == 0) {
        fputs("profpull run: expected a target, a server or a configuration; three ways to "
              "begin:\n"
              "\n"
              "  profpull run --target cart=127.0.0.1:6060   scrape one program, show flame graphs "
              "here\n"
              "  profpull run --write.url http://HOST:4040   in a cluster: annotated pods, to a "
              "Pyroscope\n"
              "  profpull run --config profpull.yaml         all of it: docs/configuration.md\n"
              "\n",
              stderr);
        return cmd_usage_hint("run");
    }
    if (args->targets.n > 0 && args->config.file != NULL) {
        return cmd_usage_error("run", "--target and --config exclude each other");
    }
    /* This comes first: a SIGHUP must not end the process while it reads its configuration. */
    int signal_fd = open_signals();
    struct run run = {.no_helper = ERR_INIT};
    run.helper = start_helper(args, &run.no_helper);
    struct config *config = load(args);
    int code = EXIT_INPUT;
    if (config != NULL) {
        memory_tune_allocator();
        code = run_config(&run, args, config, signal_fd);
    }
    symbols_helper_stop(run.helper);
    config_unref(config);
    close(signal_fd);
    return code;
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', run_args, config.file, "FILE",
         "the configuration, - for standard input; see docs/configuration.md. Without it, or "
         "without scrape_configs in "
         "it, annotated pods are scraped (see `profpull check --print-default` and "
         "docs/annotations.md)",
         .env = "PROFPULL_CONFIG", .env_without = "target"),
    FLAG(
        LIST, "target", 0, run_args, targets, "[NAME=]HOST:PORT",
        "without a configuration: scrape this program's /debug/pprof, keep its profiles in --data, "
        "and show them in the browser. NAME is the service of the program; may be repeated"),
    FLAG(TEXT, "data", 0, run_args, data, "DIR",
         "the directory in which --target keeps profiles (default ./profpull-data)"),
    FLAG(TEXT, "write.url", 0, run_args, config.write_url, "URL",
         "push to this Pyroscope: adds or replaces the endpoint \"main\""),
    FLAG(TEXT, "sharding.service", 0, run_args, config.service, "NAME",
         "share the targets with the other endpoints of this Service, like sharding: {mode: "
         "kubernetes} in YAML; for files of Grafana Alloy, which have no such setting"),
    FLAG(TEXT, "listen", 0, run_args, config.listen, "ADDR",
         "address of the admin server, instead of server.listen; \"\" for none"),
    FLAG(DURATION, "drain-timeout", 0, run_args, drain_ms, "DUR",
         "time for scrapes in flight to end, and for queues to empty, after a signal; a second "
         "signal "
         "ends at once"),
    FLAG(CHOICE, "sandbox", 0, run_args, sandbox, "MODE",
         "give up files, ports and system calls that the process does not need (default on); "
         "with `required`, profpull does not start if the kernel does not support all of it",
         .choice = confinement_mode_name),
    FLAG(DURATION, "for", 0, run_args, for_ms, "DUR",
         "end after this time, as after a signal; 0 for never"),
    FLAG(BOOL, "config.no-watch", 0, run_args, no_watch, NULL,
         "do not load the configuration again when its file changes, only after SIGHUP and POST "
         "/-/reload"),
};

const struct command cmd_run = {
    .name = "run",
    .summary = "discover, scrape and push until stopped",
    .usage = "run --target [NAME=]HOST:PORT ... [--data DIR] [--listen ADDR]\n"
             "run [--config FILE] [--write.url URL] [--listen ADDR] [--for 1h]",
    .description = "Discovers targets, scrapes their profiles and pushes them, until SIGTERM or "
                   "SIGINT. SIGHUP, "
                   "a change of the file and POST /-/reload load the configuration again: all of "
                   "it, or nothing "
                   "if there is an error in it.",
    .exit_codes = "Exit code: 0 ended by a signal or --for, 1 the configuration is wrong or the "
                  "start failed, 2 usage.",
    COMMAND_FLAGS(flags, run_args),
    .defaults = &(
        const struct run_args){.data = "profpull-data", .sandbox = "on", .drain_ms = 20 * MS_PER_S},
    .run = run_command,
};
