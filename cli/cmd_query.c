/* `profpull query`: asks a server about the profiles that it has stored. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/query/args.h"

#define HOUR_MS (3600 * MS_PER_S)

struct query_args {
    struct query_common common;
    const char *protocol;
    const char *type;
    const char *value;
    const char *language;
    const char *output;
    bool as_recorded;
    uint64_t limit;
};

/* One question to one server. */
struct question {
    const struct query_args *args;
    const struct query_source *source;
    struct remote *remote;
    struct query_ask ask;
};

static const struct query_source *source_at(size_t i)
{
    static const struct query_source *const sources[] = {&query_pyroscope, &query_profefe,
                                                         &query_deepflow};
    return i < sizeof(sources) / sizeof(sources[0]) ? sources[i] : NULL;
}

static const char *choose_protocol(size_t i)
{
    const struct query_source *s = source_at(i);
    return s == NULL ? NULL : s->name;
}

/* Reports that the API of the server does not support a subject. */
static int fail_missing(const struct question *q, const char *subject)
{
    return cmd_usage_error("query", "%s has no API for %s", q->source->name, subject);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Prints a list, one entry a line. Characters that a terminal would take for commands are escaped.
 */
static int print_list(json_t *list)
{
    struct buf text;
    buf_init(&text, REMOTE_BODY_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *item = json_string_value(json_array_get(list, i));
        if (item != NULL) {
            json_escape(sv_from(item), &text);
            buf_putc(&text, '\n');
        }
    }
    json_decref(list);
    int code = cmd_print(buf_ok(&text), &text, stdout);
    return code == EXIT_DONE ? cmd_flush(EXIT_DONE) : code;
}

static int show_services(const struct question *q)
{
    struct err err = ERR_INIT;
    if (q->source->services == NULL) {
        return fail_missing(q, "services");
    }
    json_t *list = q->source->services(q->remote, &q->ask, &err);
    return list == NULL ? query_fail(&err) : print_list(list);
}

static int show_types(const struct question *q)
{
    struct err err = ERR_INIT;
    if (q->source->types == NULL) {
        return fail_missing(q, "types");
    }
    json_t *list = q->source->types(q->remote, &q->ask, &err);
    return list == NULL ? query_fail(&err) : print_list(list);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static int fail_nothing(const struct question *q)
{
    struct err err = ERR_INIT;
    bool one = q->ask.service != NULL;
    (void)err_set(&err, ERR_REFUSED, "%s has no profile of the type \"%s\"%s%s%s in this time",
                  remote_url(q->remote), q->ask.type, one ? " and the service \"" : "",
                  one ? q->ask.service : "", one ? "\"" : "");
    return query_fail(&err);
}

static int write_merged(const struct question *q)
{
    struct err err = ERR_INIT;
    struct buf body;
    if (q->args->output == NULL) {
        return cmd_usage_error("query", "merge needs --output");
    }
    if (q->source->merge == NULL) {
        return fail_missing(q, "merged profiles");
    }
    if (!q->source->merge(q->remote, &q->ask, &body, &err)) {
        return query_fail(&err);
    }
    int code = body.len == 0
                   ? fail_nothing(q)
                   : query_write_profile(q->args->output, (struct sv){body.data, body.len});
    buf_done(&body);
    return code;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Builds the tree of a merged profile, or asks for the tree if the server has only trees. NULL with
 * err on failure; NULL without err if nothing was found. */
static struct tree *get_tree(const struct question *q, char unit[TOP_UNIT_MAX], struct err *err)
{
    struct buf body;
    if (q->source->merge == NULL) {
        return q->source->tree(q->remote, &q->ask, unit, err);
    }
    if (!q->source->merge(q->remote, &q->ask, &body, err)) {
        return NULL;
    }
    struct tree *t = body.len == 0 ? NULL
                                   : top_tree((struct sv){body.data, body.len}, q->args->value,
                                              q->args->as_recorded, unit, err);
    buf_done(&body);
    return t;
}

static int show_top(const struct question *q)
{
    struct err err = ERR_INIT;
    char unit[TOP_UNIT_MAX] = "";
    struct buf text;
    struct tree *t = get_tree(q, unit, &err);
    if (t == NULL) {
        return err.kind == ERR_NONE ? fail_nothing(q) : query_fail(&err);
    }
    if (tree_total(t) == 0) {
        tree_free(t);
        return fail_nothing(q);
    }
    buf_init(&text, REMOTE_BODY_MAX);
    bool ok = top_print(t, unit, (size_t)q->args->limit, &text, &err);
    tree_free(t);
    if (!ok) {
        buf_done(&text);
        return query_fail(&err);
    }
    int code = cmd_print(true, &text, stdout);
    return code == EXIT_DONE ? cmd_flush(EXIT_DONE) : code;
}

/* ---- the command ----------------------------------------------------------------------------- */

typedef int show_function(const struct question *q);

static const struct {
    const char *name;
    show_function *show;
} subjects[] = {
    {"services", show_services},
    {"types", show_types},
    {"top", show_top},
    {"merge", write_merged},
};

static show_function *find_subject(const char *name)
{
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        if (strcmp(subjects[i].name, name) == 0) {
            return subjects[i].show;
        }
    }
    return NULL;
}

static const struct query_source *find_source(const char *name)
{
    size_t i = 0;
    while (source_at(i) != NULL && strcmp(source_at(i)->name, name) != 0) {
        i++;
    }
    return source_at(i);
}

static int run_query(const void *arg, char *const *operands, size_t n)
{
    const struct query_args *args = arg;
    struct err err = ERR_INIT;
    struct question q = {.args = args, .source = find_source(args->protocol)};
    show_function *show = n == 1 ? find_subject(operands[0]) : NULL;
    if (show == NULL) {
        return cmd_usage_error("query", "expected one of services, types, top, merge%s%s",
                               n == 1 ? ", got " : "", n == 1 ? operands[0] : "");
    }
    q.ask.type = args->type;
    q.ask.language = args->language;
    if (!query_ask_from(&args->common, clock_wall_ns(), &q.ask, &err)) {
        return cmd_usage_error("query", "%s", err.msg);
    }
    q.remote = remote_new(&args->common.server.endpoint, args->common.server.timeout_ms, &err);
    if (q.remote == NULL) {
        return query_fail(&err);
    }
    int code = show(&q);
    remote_free(q.remote);
    return code;
}

static const struct flag flags[] = {
    FLAG(CHOICE, "protocol", 0, query_args, protocol, "P", "what kind of server it is",
         .choice = choose_protocol),
    QUERY_COMMON_FLAGS(query_args),
    FLAG(TEXT, "type", 0, query_args, type, "TYPE",
         "the type (default cpu): for pyroscope an id such as "
         "process_cpu:cpu:nanoseconds:cpu:nanoseconds, its sample type (cpu, inuse_space) or its "
         "name; for profefe cpu, heap, goroutine, ...; for deepflow an event (cpu, inuse_space, "
         "mutex_duration)"),
    FLAG(TEXT, "value", 0, query_args, value, "NAME",
         "the sample type that top counts in a profile of several (alloc_space); by default that "
         "of go tool pprof"),
    FLAG(BOOL, "as-recorded", 0, query_args, as_recorded, NULL,
         "top counts stacks that Go's runtime cut off as they are, without repairing them"),
    FLAG(NUMBER, "limit", 'n', query_args, limit, "N", "functions that top prints; 0: all"),
    FLAG(TEXT, "language", 0, query_args, language, "NAME",
         "DeepFlow's profile_language_type (default Golang)"),
    FLAG(TEXT, "output", 'o', query_args, output, "FILE",
         "where merge writes the profile; - is standard output"),
};

const struct command cmd_query = {
    .name = "query",
    .summary = "ask a profpull, Pyroscope, profefe or DeepFlow for profiles",
    .usage = "query services|types [--service NAME] [OPTIONS]\n"
             "query top --service NAME [--type TYPE] [-n 20] [OPTIONS]\n"
             "query merge --service NAME --type TYPE -o FILE [OPTIONS]",
    .description = "Asks a server what it has: the names of services, the types of profiles, the "
                   "functions that a service spends most in, or all profiles of a service and type "
                   "merged into one file, which go tool pprof reads.",
    .exit_codes = "Exit code: 0 done; 1 the server is described wrongly, or FILE cannot be "
                  "written; 2 usage; 3 no answer, an error, or no profile.",
    COMMAND_FLAGS(flags, query_args),
    .defaults = &(const struct query_args){.common = QUERY_COMMON_DEFAULTS(HOUR_MS),
                                           .protocol = "pyroscope",
                                           .type = "cpu",
                                           .language = "Golang",
                                           .limit = 20},
    .operands_max = SIZE_MAX,
    .run = run_query,
};
