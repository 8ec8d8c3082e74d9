#include "cli/import/args.h"

#include <string.h>

#include "base/ascii.h"
#include "base/labels.h"
#include "base/utf8.h"

/* ---- the command line ------------------------------------------------------------------------ */

const char *import_args_problem(const struct import_args *a, char *const *paths, size_t n)
{
    const struct config_endpoint_flags *e = &a->endpoint;
    bool others = e->protocol != NULL || e->username != NULL || e->password_file != NULL ||
                  e->bearer_token_file != NULL || e->ca_file != NULL || e->insecure_skip_verify;
    if ((a->config.file == NULL) == (e->url == NULL)) {
        return "either --url or --config is needed";
    }
    if (a->config.file != NULL && others) {
        return "with --config the endpoint's own protocol, credentials and tls_config are used: "
               "set them there";
    }
    if (a->config.file == NULL && a->endpoint_name != NULL) {
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
    if (n == 0) {
        return "a FILE, a directory or - is needed";
    }
    size_t n_stdin = 0;
    for (size_t i = 0; i < n; i++) {
        n_stdin += strcmp(paths[i], "-") == 0;
    }
    return n_stdin > 1 ? "standard input can be read once only" : "";
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns true if v has only letters, digits, "_" and the characters in `more`. */
static bool is_word(struct sv v, const char *more)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_word(v.p[i]) && strchr(more, v.p[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* Checks the name of a label. dots: the protocol allows dots; every version of Pyroscope accepts
 * them by push, but DeepFlow does not by ingest. */
static bool name_fits(struct sv name, bool dots)
{
    return name.n > 0 && name.p[0] != '.' && !ascii_is_digit(name.p[0]) &&
           is_word(name, dots ? "." : "");
}

static bool check_label_name(struct sv name, const struct series_rules *rules, struct err *err)
{
    bool service = sv_eq_str(name, LABEL_SERVICE_NAME);
    bool dots = rules->names != SERIES_NAMES_PLAIN;
    if (service || sv_starts_with(name, SV("__"))) {
        return err_set(err, ERR_INPUT, "--label: \"%.*s\" is set by %s", SV_ARG(name),
                       service ? "--name" : "profpull itself (see --type and --tenant)");
    }
    return name_fits(name, dots) ||
           err_set(err, ERR_INPUT,
                   "--label: the name \"%.*s\" has characters that the protocol cannot carry: "
                   "expected letters, digits%s and \"_\", no digit first",
                   SV_ARG(name), dots ? ", \".\"" : "");
}

static bool check_label_value(const struct flag_pair *l, const struct series_rules *rules,
                              struct err *err)
{
    if (l->value[0] == '\0') {
        return err_set(err, ERR_INPUT, "--label: \"%.*s\" has no value", SV_ARG(l->name));
    }
    if (!utf8_valid(sv_from(l->value))) {
        return err_set(err, ERR_INPUT, "--label: the value of \"%.*s\" is not UTF-8",
                       SV_ARG(l->name));
    }
    if (rules->in_braces && strpbrk(l->value, ",}") != NULL) {
        return err_set(err, ERR_INPUT,
                       "--label: the value of \"%.*s\" holds \",\" or \"}\", which the protocol "
                       "cannot carry",
                       SV_ARG(l->name));
    }
    return true;
}

bool import_check_labels(const struct import_args *args, const struct series_rules *rules,
                         struct err *err)
{
    if (!utf8_valid(sv_from(args->name))) {
        return err_set(err, ERR_INPUT, "--name is not UTF-8");
    }
    if (rules->in_braces && !is_word(sv_from(args->name), ".-")) {
        return err_set(err, ERR_INPUT,
                       "--name: \"%s\" has characters that the protocol cannot carry: expected "
                       "letters, digits, \"_\", \".\" and \"-\"",
                       args->name);
    }
    if (args->type != NULL && !name_fits(sv_from(args->type), false)) {
        return err_set(err, ERR_INPUT,
                       "--type: expected letters, digits and \"_\" such as \"process_cpu\", got "
                       "\"%s\"",
                       args->type);
    }
    for (size_t i = 0; i < args->labels.n; i++) {
        const struct flag_pair *l = &args->labels.at[i];
        if (!check_label_name(l->name, rules, err) || !check_label_value(l, rules, err)) {
            return false;
        }
    }
    return true;
}

/* ---- one file -------------------------------------------------------------------------------- */

const char *import_type(const struct import_args *args, const struct import_summary *summary,
                        const char *path, struct err *err)
{
    if (args->type != NULL) {
        const struct config_type_name *row = config_type_name_find(sv_from(args->type));
        return row == NULL ? args->type : config_builtin_type_find(sv_from(row->key))->type.name;
    }
    const char *type = summary->type != NULL ? summary->type : import_type_of_name(summary, path);
    if (type == NULL) {
        err_set(err, ERR_INPUT, "its samples (%s) do not show its type: set --type",
                summary->types);
    }
    return type;
}

/* Returns the end of a range. The range is empty if its end would overflow or precede 1970. */
static int64_t end_of(int64_t from_ns, int64_t duration_ns)
{
    return duration_ns <= INT64_MAX - from_ns ? from_ns + duration_ns : from_ns;
}

static int64_t start_of(int64_t until_ns, int64_t duration_ns)
{
    return duration_ns < until_ns ? until_ns - duration_ns : until_ns;
}

struct import_window import_choose_window(const struct import_args *args,
                                          const struct import_summary *summary, int64_t mtime_ns,
                                          int64_t now_ns)
{
    bool from_given = args->from_ns != IMPORT_NO_TIME;
    bool until_given = args->until_ns != IMPORT_NO_TIME;
    int64_t written_ns = mtime_ns > 0 ? mtime_ns : now_ns;
    int64_t duration = summary->duration_ns;
    struct import_window w = {
        .from_ns = from_given ? args->from_ns : summary->time_ns,
        .until_ns = until_given ? args->until_ns : written_ns,
        .duration_ns = -1,
    };
    if (from_given && until_given) {
        duration = w.until_ns - w.from_ns;
    } else if (from_given || (summary->time_ns > 0 && !until_given)) {
        w.until_ns = end_of(w.from_ns, duration);
    } else {
        w.from_ns = start_of(w.until_ns, duration);
    }
    bool pprof = summary->format == PROFILE_PPROF;
    if (pprof && duration != summary->duration_ns) {
        w.duration_ns = duration;
    }
    w.restamp = pprof && (w.from_ns != summary->time_ns || w.duration_ns >= 0);
    return w;
}
