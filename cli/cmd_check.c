#include <getopt.h>
#include <stdio.h>

#include "cli/cmd.h"

static const char help[] =
    "Usage: profpull check --config FILE [--dump]\n"
    "       profpull check --print-default\n"
    "\n"
    "Reads a configuration and reports every mistake in it as file:line:column: key: message.\n"
    "Nothing is contacted.\n"
    "\n"
    "  -c, --config FILE   the configuration (or give FILE as the only argument)\n"
    "      --dump          print the normalised configuration instead of a summary\n"
    "      --print-default print the configuration that stands in for missing scrape_configs\n"
    "      --write.url URL as for `profpull run`\n"
    "      --listen ADDR   as for `profpull run`\n"
    "\n"
    "Exit code: 0 the configuration is good, 1 it is not, 2 usage.\n";

static void print_job(const struct config_job *job)
{
    printf("job %s:", job->name);
    for (size_t i = 0; i < job->n_sources; i++) {
        printf(" %s", config_source_kind_name(job->sources[i].kind));
    }
    printf(", %zu relabel rule%s, types", job->relabel.n, job->relabel.n == 1 ? "" : "s");
    bool any = false;
    for (size_t i = 0; i < job->n_types; i++) {
        if (job->types[i].enabled) {
            printf(" %s", job->types[i].key);
            any = true;
        }
    }
    if (!any) {
        printf(" as labels enable them");
    }
    putchar('\n');
}

static void print_summary(const struct config *config)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        print_job(&config->jobs[i]);
    }
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        printf("endpoint %s: %s\n", e->name, config_protocol_name(e->protocol));
    }
    const struct config_sharding *sharding = &config->sharding;
    if (sharding->mode == SHARDING_STATIC) {
        printf("sharding: static, index %u of %u replicas\n", sharding->index, sharding->replicas);
    } else if (sharding->mode == SHARDING_KUBERNETES) {
        printf("sharding: kubernetes, the endpoints of the Service %s\n", sharding->service);
    }
    printf("%s: the configuration is good\n", config->file);
}

static int print_default(void)
{
    struct sv text = config_builtin();
    fwrite(text.p, 1, text.n, stdout);
    return EXIT_DONE;
}

static int check(const struct cmd_config_flags *flags, bool dump)
{
    struct config *config = cmd_load_config(flags);
    if (config == NULL) {
        return EXIT_INPUT;
    }
    int code = EXIT_DONE;
    if (dump) {
        struct buf text;
        buf_init(&text, 64 * 1024 * 1024);
        if (config_dump(config, &text)) {
            fwrite(text.data, 1, text.len, stdout);
        } else {
            fputs("profpull: out of memory\n", stderr);
            code = EXIT_INPUT;
        }
        buf_done(&text);
    } else {
        print_summary(config);
    }
    config_unref(config);
    return code;
}

int cmd_check(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"dump", no_argument, NULL, 'd'},
        {"print-default", no_argument, NULL, 'p'},
        {"write.url", required_argument, NULL, 'w'},
        {"listen", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct cmd_config_flags flags = {0};
    bool dump = false;
    int c;
    while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
        switch (c) {
        case 'c':
            flags.file = optarg;
            break;
        case 'd':
            dump = true;
            break;
        case 'p':
            return print_default();
        case 'w':
            flags.write_url = optarg;
            break;
        case 'l':
            flags.listen = optarg;
            break;
        case 'h':
            return cmd_help(help);
        default:
            return cmd_usage_error(argv[0], "see above");
        }
    }
    if (flags.file == NULL && optind < argc) {
        flags.file = argv[optind++];
    }
    if (optind < argc) {
        return cmd_usage_error(argv[0], "unexpected argument: %s", argv[optind]);
    }
    if (flags.file == NULL && flags.write_url == NULL) {
        return cmd_usage_error(argv[0], "--config FILE, or --write.url URL alone, is needed");
    }
    return check(&flags, dump);
}
