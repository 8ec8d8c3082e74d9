#include "cli/import/args.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/utf8.h"
#include "cli/cmd.h"

#define MAX_SIZE_LARGEST (UINT64_C(1) << 30)
#define SECONDS_MAX UINT64_C(9223372036)

/* ---- times ----------------------------------------------------------------------------------- */

static bool two_digits(const char *p, int max, int *ret)
{
    uint64_t v = 0;
    bool ok = strlen(p) >= 2 && parse_u64((struct sv){.p = p, .n = 2}, (uint64_t)max, &v);
    *ret = (int)v;
    return ok;
}

/* "Z", "+01:00", "-0330"; in seconds. */
static bool parse_zone(const char *p, int64_t *ret_s)
{
    int hours;
    int minutes;
    *ret_s = 0;
    if (strcmp(p, "Z") == 0 || strcmp(p, "z") == 0) {
        return true;
    }
    if ((p[0] != '+' && p[0] != '-') || !two_digits(p + 1, 23, &hours)) {
        return false;
    }
    const char *rest = p + 3 + (p[3] == ':');
    if (!two_digits(rest, 59, &minutes) || rest[2] != '\0') {
        return false;
    }
    *ret_s = (p[0] == '-' ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return true;
}

/* ".123456": at most nine digits; moves *p behind them. */
static bool parse_fraction(const char **p, int64_t *ret_ns)
{
    int64_t unit = NS_PER_S;
    *ret_ns = 0;
    if (**p != '.') {
        return true;
    }
    const char *first = ++*p;
    for (; **p >= '0' && **p <= '9' && unit > 1; ++*p) {
        unit /= 10;
        *ret_ns += (**p - '0') * unit;
    }
    return *p != first;
}

static bool parse_rfc3339(const char *text, int64_t *ret_ns)
{
    struct tm tm = {0};
    int64_t fraction;
    int64_t zone;
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (p == NULL || tm.tm_year < 70 || tm.tm_year > 300 || !parse_fraction(&p, &fraction) ||
        !parse_zone(p, &zone)) {
        return false;
    }
    int64_t seconds = (int64_t)timegm(&tm) - zone;
    if (seconds < 0 || seconds > (int64_t)SECONDS_MAX) {
        return false;
    }
    *ret_ns = seconds * NS_PER_S + fraction;
    return true;
}

bool import_parse_time(const char *text, int64_t *ret_ns, struct err *err)
{
    uint64_t seconds;
    if (parse_u64(sv_from(text), SECONDS_MAX - 1, &seconds)) {
        *ret_ns = (int64_t)seconds * NS_PER_S;
        return true;
    }
    return parse_rfc3339(text, ret_ns) ||
           err_set(err, ERR_INPUT,
                   "expected a time such as \"2026-11-21T03:23:34Z\", or seconds since 1970, got "
                   "\"%s\"",
                   text);
}

/* ---- options --------------------------------------------------------------------------------- */

enum {
    OPT_URL = 256,
    OPT_PROTOCOL,
    OPT_ENDPOINT,
    OPT_NAME,
    OPT_LABEL,
    OPT_TYPE,
    OPT_FROM,
    OPT_UNTIL,
    OPT_TENANT,
    OPT_USERNAME,
    OPT_PASSWORD_FILE,
    OPT_BEARER_FILE,
    OPT_CA_FILE,
    OPT_INSECURE,
    OPT_MAX_SIZE,
    OPT_TIMEOUT,
    OPT_RETRY_FOR,
    OPT_DRY_RUN,
};

static const struct option options[] = {
    {"url", required_argument, NULL, OPT_URL},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"config", required_argument, NULL, 'c'},
    {"endpoint", required_argument, NULL, OPT_ENDPOINT},
    {"name", required_argument, NULL, OPT_NAME},
    {"label", required_argument, NULL, OPT_LABEL},
    {"type", required_argument, NULL, OPT_TYPE},
    {"from", required_argument, NULL, OPT_FROM},
    {"until", required_argument, NULL, OPT_UNTIL},
    {"tenant", required_argument, NULL, OPT_TENANT},
    {"username", required_argument, NULL, OPT_USERNAME},
    {"password-file", required_argument, NULL, OPT_PASSWORD_FILE},
    {"bearer-token-file", required_argument, NULL, OPT_BEARER_FILE},
    {"ca-file", required_argument, NULL, OPT_CA_FILE},
    {"insecure-skip-verify", no_argument, NULL, OPT_INSECURE},
    {"max-size", required_argument, NULL, OPT_MAX_SIZE},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"retry-for", required_argument, NULL, OPT_RETRY_FOR},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool complain(const char *name, const char *flag, const struct err *err)
{
    cmd_usage_error(name, "%s: %s", flag, err->msg);
    return false;
}

static bool add_label(struct import_args *args, const char *name)
{
    const char *equals = strchr(optarg, '=');
    if (equals == NULL || equals == optarg) {
        cmd_usage_error(name, "--label: expected NAME=VALUE, got \"%s\"", optarg);
        return false;
    }
    if (args->n_labels == IMPORT_LABELS_MAX) {
        cmd_usage_error(name, "--label: at most %d labels", IMPORT_LABELS_MAX);
        return false;
    }
    char *label = strndup(optarg, (size_t)(equals - optarg));
    if (label == NULL) {
        cmd_usage_error(name, "out of memory");
        return false;
    }
    for (size_t i = 0; i < args->n_labels; i++) {
        if (strcmp(args->labels[i].name, label) == 0) {
            cmd_usage_error(name, "--label: \"%s\" is given twice", label);
            free(label);
            return false;
        }
    }
    args->labels[args->n_labels++] = (struct config_pair){.name = label, .value = equals + 1};
    return true;
}

static bool take_time(const char *name, const char *flag, int64_t *ret_ns)
{
    struct err err = ERR_INIT;
    return import_parse_time(optarg, ret_ns, &err) || complain(name, flag, &err);
}

static bool take_size(const char *name, uint64_t *ret)
{
    struct err err = ERR_INIT;
    if (!parse_size(sv_from(optarg), ret, &err)) {
        return complain(name, "--max-size", &err);
    }
    if (*ret == 0 || *ret > MAX_SIZE_LARGEST) {
        cmd_usage_error(name, "--max-size: expected a size from 1B to 1GiB, got \"%s\"", optarg);
        return false;
    }
    return true;
}

/* Where a flag goes that is only a text; NULL if it is of another kind. */
static const char **text_of(struct import_args *args, int c)
{
    switch (c) {
    case OPT_URL:
        return &args->endpoint.url;
    case OPT_PROTOCOL:
        return &args->endpoint.protocol;
    case 'c':
        return &args->config;
    case OPT_ENDPOINT:
        return &args->endpoint_name;
    case OPT_NAME:
        return &args->name;
    case OPT_TYPE:
        return &args->type;
    case OPT_TENANT:
        return &args->endpoint.tenant;
    case OPT_USERNAME:
        return &args->endpoint.username;
    case OPT_PASSWORD_FILE:
        return &args->endpoint.password_file;
    case OPT_BEARER_FILE:
        return &args->endpoint.bearer_token_file;
    case OPT_CA_FILE:
        return &args->endpoint.ca_file;
    default:
        return NULL;
    }
}

static bool take_option(struct import_args *args, const char *name, int c)
{
    const char **text = text_of(args, c);
    if (text != NULL) {
        *text = optarg;
        return true;
    }
    switch (c) {
    case OPT_LABEL:
        return add_label(args, name);
    case OPT_FROM:
        return take_time(name, "--from", &args->from_ns);
    case OPT_UNTIL:
        return take_time(name, "--until", &args->until_ns);
    case OPT_MAX_SIZE:
        return take_size(name, &args->max_size);
    case OPT_TIMEOUT:
        return cmd_parse_duration(name, "--timeout", optarg, &args->timeout_ms);
    case OPT_RETRY_FOR:
        return cmd_parse_duration(name, "--retry-for", optarg, &args->retry_ms);
    case OPT_INSECURE:
        return args->endpoint.insecure_skip_verify = true;
    case OPT_DRY_RUN:
        return args->dry_run = true;
    case 'q':
        return args->quiet = true;
    case 'h':
        return args->help = true;
    default:
        cmd_usage_error(name, "see above");
        return false;
    }
}

/* What goes together, and what must be there. "" if all is well. */
static const char *problem(const struct import_args *a)
{
    const struct endpoint_flags *e = &a->endpoint;
    bool others = e->protocol != NULL || e->username != NULL || e->password_file != NULL ||
                  e->bearer_token_file != NULL || e->ca_file != NULL || e->insecure_skip_verify;
    if ((a->config == NULL) == (e->url == NULL)) {
        return "either --url or --config is needed";
    }
    if (a->config != NULL && others) {
        return "with --config the endpoint's own protocol, credentials and tls_config are used: "
               "set them there";
    }
    if (a->config == NULL && a->endpoint_name != NULL) {
        return "--endpoint names an endpoint of --config";
    }
    if (a->name == NULL || a->name[0] == '\0') {
        return "--name is needed: the service that the profiles are of";
    }
    if (a->type != NULL && a->type[0] == '\0') {
        return "--type: expected a name such as \"memory\"";
    }
    if (a->from_ns != IMPORT_NO_TIME && a->until_ns != IMPORT_NO_TIME && a->from_ns > a->until_ns) {
        return "--from is later than --until";
    }
    return a->n_paths == 0 ? "a FILE, a directory or - is needed" : "";
}

static bool only_one_stdin(const struct import_args *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_paths; i++) {
        n += strcmp(a->paths[i], "-") == 0;
    }
    return n <= 1;
}

bool import_args_parse(struct import_args *args, int argc, char **argv)
{
    int c;
    *args = (struct import_args){.from_ns = IMPORT_NO_TIME,
                                 .until_ns = IMPORT_NO_TIME,
                                 .max_size = UINT64_C(64) * 1024 * 1024,
                                 .timeout_ms = 30 * MS_PER_S,
                                 .retry_ms = 60 * MS_PER_S};
    optind = 0; /* GNU's way to begin anew */
    while ((c = getopt_long(argc, argv, "c:qh", options, NULL)) != -1) {
        if (!take_option(args, argv[0], c)) {
            return false;
        }
    }
    args->paths = argv + optind;
    args->n_paths = (size_t)(argc - optind);
    const char *wrong = args->help ? "" : problem(args);
    if (wrong[0] == '\0' && !only_one_stdin(args)) {
        wrong = "standard input can be read once only";
    }
    if (wrong[0] != '\0') {
        cmd_usage_error(argv[0], "%s", wrong);
    }
    return wrong[0] == '\0';
}

void import_args_done(struct import_args *args)
{
    for (size_t i = 0; i < args->n_labels; i++) {
        free((char *)(uintptr_t)args->labels[i].name);
    }
    args->n_labels = 0;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Every version of Pyroscope takes dots by push; by ingest DeepFlow does not. */
static bool name_fits(const char *name, bool dots)
{
    if (!letter(name[0])) {
        return false;
    }
    for (const char *p = name; *p != '\0'; p++) {
        if (!letter(*p) && !digit(*p) && !(dots && *p == '.')) {
            return false;
        }
    }
    return true;
}

static bool app_fits(const char *name)
{
    for (const char *p = name; *p != '\0'; p++) {
        if (!letter(*p) && !digit(*p) && *p != '.' && *p != '-') {
            return false;
        }
    }
    return true;
}

static bool check_label(const struct config_pair *l, bool ingest, struct err *err)
{
    if (strncmp(l->name, "__", 2) == 0 || strcmp(l->name, LABEL_SERVICE_NAME) == 0) {
        return err_set(err, ERR_INPUT, "--label: \"%s\" is set by %s", l->name,
                       l->name[0] == 's' ? "--name" : "profpull itself (see --type and --tenant)");
    }
    if (!name_fits(l->name, !ingest)) {
        return err_set(err, ERR_INPUT,
                       "--label: the name \"%s\" has characters that the protocol cannot carry: "
                       "expected letters, digits%s and \"_\", no digit first",
                       l->name, ingest ? "" : ", \".\"");
    }
    if (l->value[0] == '\0') {
        return err_set(err, ERR_INPUT, "--label: \"%s\" has no value", l->name);
    }
    if (!utf8_valid(sv_from(l->value))) {
        return err_set(err, ERR_INPUT, "--label: the value of \"%s\" is not UTF-8", l->name);
    }
    if (ingest && strpbrk(l->value, ",}") != NULL) {
        return err_set(err, ERR_INPUT,
                       "--label: the value of \"%s\" holds \",\" or \"}\", which the protocol "
                       "cannot carry",
                       l->name);
    }
    return true;
}

bool import_check_labels(const struct import_args *args, enum config_protocol protocol,
                         struct err *err)
{
    bool ingest = protocol == PROTOCOL_INGEST;
    if (!utf8_valid(sv_from(args->name))) {
        return err_set(err, ERR_INPUT, "--name is not UTF-8");
    }
    if (ingest && !app_fits(args->name)) {
        return err_set(err, ERR_INPUT,
                       "--name: \"%s\" has characters that the protocol cannot carry: expected "
                       "letters, digits, \"_\", \".\" and \"-\"",
                       args->name);
    }
    if (args->type != NULL && !name_fits(args->type, false)) {
        return err_set(err, ERR_INPUT,
                       "--type: expected letters, digits and \"_\" such as \"process_cpu\", got "
                       "\"%s\"",
                       args->type);
    }
    for (size_t i = 0; i < args->n_labels; i++) {
        if (!check_label(&args->labels[i], ingest, err)) {
            return false;
        }
    }
    return true;
}

/* ---- one file -------------------------------------------------------------------------------- */

const char *import_type(const struct import_args *args, const struct profile_facts *facts,
                        const char *path, struct err *err)
{
    if (args->type != NULL) {
        return args->type;
    }
    const char *type = facts->type;
    if (type == NULL) {
        type = profile_facts_type_of_name(facts, path);
    }
    if (type == NULL) {
        err_set(err, ERR_INPUT, "its type cannot be told from its samples (%s): say --type",
                facts->types);
    }
    return type;
}

struct import_window import_choose_window(const struct import_args *args,
                                          const struct profile_facts *facts, int64_t mtime_ns,
                                          int64_t now_ns)
{
    struct import_window w = {.duration_ns = -1};
    bool from_given = args->from_ns != IMPORT_NO_TIME;
    bool until_given = args->until_ns != IMPORT_NO_TIME;
    int64_t duration = facts->duration_ns;
    if (from_given && until_given) {
        w.from_ns = args->from_ns;
        w.until_ns = args->until_ns;
        duration = w.until_ns - w.from_ns;
    } else if (from_given || (facts->time_ns > 0 && !until_given)) {
        w.from_ns = from_given ? args->from_ns : facts->time_ns;
        w.until_ns = duration <= INT64_MAX - w.from_ns ? w.from_ns + duration : w.from_ns;
    } else {
        w.until_ns = until_given ? args->until_ns : mtime_ns > 0 ? mtime_ns : now_ns;
        w.from_ns = duration < w.until_ns ? w.until_ns - duration : w.until_ns;
    }
    bool pprof = facts->format == PROFILE_PPROF;
    if (pprof && duration != facts->duration_ns) {
        w.duration_ns = duration;
    }
    w.restamp = pprof && (w.from_ns != facts->time_ns || w.duration_ns >= 0);
    return w;
}
