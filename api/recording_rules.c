#include "api/recording_rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/answers.h"
#include "api/connect.h"
#include "api/kept_file.h"
#include "api/proto/recording.pb-c.h"
#include "api/protojson.h"
#include "api/route_errors.h"
#include "api/served.h"
#include "base/ascii.h"
#include "base/clock.h"
#include "base/thread.h"
#include "model/selector.h"
#include "record/record.h"

/* Limit of a request: one rule. */
#define BODY_MAX ((size_t)1024 * 1024)
#define ARENA_FACTOR 16

struct recording_rules {
    pthread_mutex_t lock;
    struct buf json; /* an Api__ListRecordingRulesResponse; the file has the same content */
    struct kept_file file;
    struct record *record;
    struct log *log;
    pthread_t loader;
    bool has_loader;
    bool loaded; /* the file was read, or there is none */
};

/* ---- messages -------------------------------------------------------------------------------- */

static Api__ListRecordingRulesResponse *parse(const struct recording_rules *r, struct arena *arena,
                                              struct err *err)
{
    struct sv json = r->json.len > 0 ? (struct sv){r->json.data, r->json.len} : SV("{}");
    return (Api__ListRecordingRulesResponse *)protojson_read(
        json, &api__list_recording_rules_response__descriptor, arena, err);
}

static const char *function_of(const Api__StackFilter *f)
{
    return f != NULL && f->function_name != NULL ? f->function_name->function_name : "";
}

/* Makes views of a rule, in the arena. */
static bool rule_of(const Api__RecordingRule *from, struct arena *arena, struct record_rule *ret,
                    struct err *err)
{
    struct label *external = arena_array(arena, from->n_external_labels + 1, sizeof(*external));
    if (external == NULL) {
        return err_set(err, ERR_LIMIT, "a rule is too large");
    }
    for (size_t i = 0; i < from->n_external_labels; i++) {
        const Api__RuleLabel *l = from->external_labels[i];
        external[i] = (struct label){sv_from(l->name), sv_from(l->value)};
    }
    *ret = (struct record_rule){
        .metric_name = from->metric_name,
        .matchers = (const char *const *)from->matchers,
        .n_matchers = from->n_matchers,
        .group_by = (const char *const *)from->group_by,
        .n_group_by = from->n_group_by,
        .external = external,
        .n_external = from->n_external_labels,
        .function = function_of(from->stacktrace_filter),
    };
    size_t n = strlen(from->id);
    memcpy(ret->id, from->id, n < RECORD_ID_MAX ? n : RECORD_ID_MAX);
    return true;
}

/* Returns the profile type that the matchers require; "" if there is none. */
static bool profile_type(const struct record_rule *r, struct arena *arena, char **ret,
                         struct err *err)
{
    struct err ignored = ERR_INIT;
    struct selector *s = selector_new(err);
    bool ok = s != NULL;
    for (size_t i = 0; ok && i < r->n_matchers; i++) {
        (void)selector_add_parsed(s, sv_from(r->matchers[i]), &ignored);
    }
    const struct sv *type = ok ? selector_equal(s, RECORD_TYPE_LABEL) : NULL;
    ok = ok && answer_string(arena, type != NULL ? *type : SV(""), ret, err);
    selector_free(s);
    return ok;
}

static bool strings_of(struct arena *arena, const struct config_strings *from, char ***ret,
                       size_t *ret_n, struct err *err)
{
    *ret = answer_list(arena, from->n, err);
    if (*ret == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->n; i++) {
        if (!answer_string(arena, sv_from(from->at[i]), &(*ret)[i], err)) {
            return false;
        }
    }
    *ret_n = from->n;
    return true;
}

static bool filter_of(struct arena *arena, const char *function, Api__StackFilter **ret,
                      struct err *err)
{
    if (function == NULL || function[0] == '\0') {
        return true;
    }
    *ret = answer_new(arena, &api__stack_filter__descriptor, err);
    Api__FunctionFilter *f = answer_new(arena, &api__function_filter__descriptor, err);
    if (*ret == NULL || f == NULL) {
        return false;
    }
    (*ret)->function_name = f;
    return answer_string(arena, sv_from(function), &f->function_name, err);
}

static bool external_of(struct arena *arena, const struct record_rule *from, Api__RecordingRule *to,
                        struct err *err)
{
    to->external_labels = answer_list(arena, from->n_external, err);
    if (to->external_labels == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->n_external; i++) {
        Api__RuleLabel *l = answer_new(arena, &api__rule_label__descriptor, err);
        if (l == NULL || !answer_string(arena, from->external[i].name, &l->name, err) ||
            !answer_string(arena, from->external[i].value, &l->value, err)) {
            return false;
        }
        to->external_labels[to->n_external_labels++] = l;
    }
    return true;
}

/* Makes the message of a rule of the configuration. NULL with err. */
static Api__RecordingRule *provisioned(struct arena *arena, const struct config_record_rule *from,
                                       struct err *err)
{
    Api__RecordingRule *to = answer_new(arena, &api__recording_rule__descriptor, err);
    if (to == NULL || !answer_string(arena, sv_from(from->rule.id), &to->id, err) ||
        !answer_string(arena, sv_from(from->metric_name), &to->metric_name, err) ||
        !strings_of(arena, &from->matchers, &to->matchers, &to->n_matchers, err) ||
        !strings_of(arena, &from->group_by, &to->group_by, &to->n_group_by, err) ||
        !external_of(arena, &from->rule, to, err) ||
        !filter_of(arena, from->function, &to->stacktrace_filter, err) ||
        !profile_type(&from->rule, arena, &to->profile_type, err)) {
        return NULL;
    }
    to->provisioned = true;
    to->generation = 1;
    return to;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns the index of the rule with an id; all->n_rules if there is none. */
static size_t place_of(const Api__ListRecordingRulesResponse *all, const char *id)
{
    size_t i = 0;
    while (i < all->n_rules && strcmp(all->rules[i]->id, id) != 0) {
        i++;
    }
    return i;
}

/* Lets the rules of a list count. */
static bool apply(const struct recording_rules *r, const Api__ListRecordingRulesResponse *all,
                  struct arena *arena, struct err *err)
{
    struct record_rule *rules = arena_array(arena, all->n_rules + 1, sizeof(*rules));
    if (rules == NULL) {
        return err_set(err, ERR_LIMIT, "too many rules");
    }
    for (size_t i = 0; i < all->n_rules; i++) {
        if (!rule_of(all->rules[i], arena, &rules[i], err)) {
            return false;
        }
    }
    return record_set_rules(r->record, rules, all->n_rules, err);
}

/* Puts a list in the place of the former one: first it counts, then it is on disk. If it cannot be
 * written, the former one counts again. */
static bool keep(struct recording_rules *r, const Api__ListRecordingRulesResponse *all,
                 struct arena *arena, struct err *err)
{
    struct buf json;
    struct err ignored = ERR_INIT;
    buf_init(&json, RECORDING_RULES_BYTES_MAX);
    if (!protojson_write(&all->base, &json)) {
        buf_done(&json);
        return err_set(err, ERR_LIMIT, "rules of more than %zu bytes", RECORDING_RULES_BYTES_MAX);
    }
    if (!apply(r, all, arena, err)) {
        buf_done(&json);
        return false;
    }
    if (!kept_file_write(&r->file, &json, err)) {
        const Api__ListRecordingRulesResponse *former = parse(r, arena, &ignored);
        buf_done(&json);
        (void)(former != NULL && apply(r, former, arena, &ignored));
        return false;
    }
    buf_done(&r->json);
    r->json = json;
    return true;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static void load(struct recording_rules *r)
{
    struct err err = ERR_INIT;
    struct arena *arena = arena_new(ARENA_FACTOR * RECORDING_RULES_BYTES_MAX);
    Api__ListRecordingRulesResponse *all = NULL;
    if (arena == NULL || !kept_file_read(&r->file, &r->json, &err) ||
        (all = parse(r, arena, &err)) == NULL) {
        log_warn(r->log, "recording rules are not read, and the next change replaces them",
                 LOG_STR("file", r->file.path), LOG_ERR(&err));
        buf_clear(&r->json);
    } else if (!apply(r, all, arena, &err)) {
        log_warn(r->log, "recording rules do not count", LOG_STR("file", r->file.path),
                 LOG_ERR(&err));
    }
    arena_free(arena);
}

/* Locks the rules; the first caller reads the file. */
static void lock_rules(struct recording_rules *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->loaded) {
        load(r);
        r->loaded = true;
    }
}

static void *recording_rules_load(void *arg)
{
    struct recording_rules *r = arg;
    lock_rules(r);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

struct recording_rules *recording_rules_new(const char *directory, struct record *record,
                                            struct log *log, struct err *err)
{
    struct recording_rules *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    (void)pthread_mutex_init(&r->lock, NULL);
    buf_init(&r->json, RECORDING_RULES_BYTES_MAX);
    r->record = record;
    r->log = log;
    r->loaded = directory == NULL;
    if (!kept_file_init(&r->file, directory, RECORDING_RULES_FILE)) {
        err_memory(err);
        return recording_rules_free(r);
    }
    if (directory != NULL) {
        r->has_loader = thread_start(&r->loader, "record-rules", recording_rules_load, r, err);
    }
    return directory == NULL || r->has_loader ? r : recording_rules_free(r);
}

struct recording_rules *recording_rules_free(struct recording_rules *r)
{
    if (r == NULL) {
        return NULL;
    }
    if (r->has_loader) {
        pthread_join(r->loader, NULL);
    }
    (void)pthread_mutex_destroy(&r->lock);
    buf_done(&r->json);
    kept_file_done(&r->file);
    free(r);
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool rules_for(struct connect_call *call, struct recording_rules **ret, struct err *err)
{
    *ret = call->exchange->options->served->recording_rules;
    return *ret != NULL || err_set(err, ERR_REFUSED, "no recording rules are kept here");
}

/* Returns the section `record` of the configuration; an empty one if there is no configuration. */
static const struct config_record *config_of(const struct connect_call *call)
{
    static const struct config_record none;
    const struct config *config = call->exchange->options->served->config;
    return config != NULL ? &config->record : &none;
}

/* Finds a rule of the configuration; NULL if there is none with this id. */
static const struct config_record_rule *find_given(const struct connect_call *call, const char *id)
{
    const struct config_record *c = config_of(call);
    for (size_t i = 0; i < c->n_rules; i++) {
        if (strcmp(c->rules[i].rule.id, id) == 0) {
            return &c->rules[i];
        }
    }
    return NULL;
}

static bool check_id(const char *id, struct err *err)
{
    return id[0] != '\0' || err_set(err, ERR_INPUT, "id is required");
}

static bool no_rule(struct connect_call *call, const char *id, struct err *err)
{
    return connect_fail(call, CONNECT_NOT_FOUND, err, "no rule with id='%.100s' found", id);
}

/* Refuses to change a rule of the configuration. */
static bool check_changes(struct connect_call *call, const char *id, struct err *err)
{
    return find_given(call, id) == NULL ||
           connect_fail(call, CONNECT_FAILED_PRECONDITION, err,
                        "the rule %.100s is provisioned: change it in the configuration", id);
}

static bool answer_rule(struct connect_call *call, Api__RecordingRule *rule, struct err *err)
{
    Api__RecordingRuleResponse *answer =
        answer_new(call->arena, &api__recording_rule_response__descriptor, err);
    if (answer == NULL || rule == NULL) {
        return false;
    }
    answer->rule = rule;
    call->reply = &answer->base;
    return true;
}

static bool get_rule(struct connect_call *call, const void *request, struct err *err)
{
    const Api__RecordingRuleId *q = request;
    struct recording_rules *r = NULL;
    if (!rules_for(call, &r, err) || !check_id(q->id, err)) {
        return false;
    }
    const struct config_record_rule *given = find_given(call, q->id);
    if (given != NULL) {
        return answer_rule(call, provisioned(call->arena, given, err), err);
    }
    lock_rules(r);
    Api__ListRecordingRulesResponse *all = parse(r, call->arena, err);
    pthread_mutex_unlock(&r->lock);
    if (all == NULL) {
        return false;
    }
    size_t i = place_of(all, q->id);
    return i < all->n_rules ? answer_rule(call, all->rules[i], err) : no_rule(call, q->id, err);
}

static bool list_rules(struct connect_call *call, const void *request, struct err *err)
{
    struct recording_rules *r = NULL;
    const struct config_record *c = config_of(call);
    (void)request;
    if (!rules_for(call, &r, err)) {
        return false;
    }
    lock_rules(r);
    Api__ListRecordingRulesResponse *own = parse(r, call->arena, err);
    pthread_mutex_unlock(&r->lock);
    Api__ListRecordingRulesResponse *all =
        answer_new(call->arena, &api__list_recording_rules_response__descriptor, err);
    if (own == NULL || all == NULL ||
        (all->rules = answer_list(call->arena, c->n_rules + own->n_rules, err)) == NULL) {
        return false;
    }
    for (size_t i = 0; i < c->n_rules; i++) {
        all->rules[all->n_rules] = provisioned(call->arena, &c->rules[i], err);
        if (all->rules[all->n_rules++] == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < own->n_rules; i++) {
        all->rules[all->n_rules++] = own->rules[i];
    }
    call->reply = &all->base;
    return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool make_id(struct arena *arena, char **ret, struct err *err)
{
    char id[RECORD_ID_LENGTH];
    struct rng rng;
    rng_seed_random(&rng);
    for (size_t i = 0; i < RECORD_ID_LENGTH; i++) {
        id[i] = (char)('a' + rng_next(&rng) % 26);
    }
    return answer_string(arena, (struct sv){id, sizeof(id)}, ret, err);
}

static bool check_new_id(const char *id, struct err *err)
{
    size_t n = strlen(id);
    bool letters = n <= RECORD_ID_MAX;
    for (size_t i = 0; letters && i < n; i++) {
        letters = ascii_is_alpha(id[i]);
    }
    return letters || err_set(err, ERR_INPUT,
                              "invalid request: id: expected at most %d letters, got \"%.100s\"",
                              RECORD_ID_MAX, id);
}

/* Makes the rule that a request asks for. NULL with err. */
static Api__RecordingRule *wanted(struct connect_call *call,
                                  const Api__UpsertRecordingRuleRequest *q, struct err *err)
{
    Api__RecordingRule *rule = answer_new(call->arena, &api__recording_rule__descriptor, err);
    struct record_rule checked;
    if (rule == NULL || !check_new_id(q->id, err)) {
        return NULL;
    }
    rule->id = q->id;
    rule->metric_name = q->metric_name;
    rule->matchers = q->matchers;
    rule->n_matchers = q->n_matchers;
    rule->group_by = q->group_by;
    rule->n_group_by = q->n_group_by;
    rule->external_labels = q->external_labels;
    rule->n_external_labels = q->n_external_labels;
    if ((q->id[0] == '\0' && !make_id(call->arena, &rule->id, err)) ||
        !filter_of(call->arena, function_of(q->stacktrace_filter), &rule->stacktrace_filter, err) ||
        !rule_of(rule, call->arena, &checked, err)) {
        return NULL;
    }
    if (q->generation < 0) {
        err_set(err, ERR_INPUT, "invalid request: generation must be positive");
        return NULL;
    }
    if (!record_rule_check(&checked, err)) {
        err_wrap(err, "invalid request");
        return NULL;
    }
    return profile_type(&checked, call->arena, &rule->profile_type, err) ? rule : NULL;
}

/* Replaces the rule with this id, or appends the rule; under the lock. */
static bool put_rule(struct connect_call *call, struct recording_rules *r, Api__RecordingRule *rule,
                     int64_t observed, struct err *err)
{
    Api__ListRecordingRulesResponse *all = parse(r, call->arena, err);
    if (all == NULL) {
        return false;
    }
    size_t i = place_of(all, rule->id);
    rule->generation = 1;
    if (i < all->n_rules) {
        if (all->rules[i]->generation != observed) {
            return connect_fail(call, CONNECT_FAILED_PRECONDITION, err,
                                "conflicting update, please try again: generation %lld was "
                                "observed, and the rule has %lld",
                                (long long)observed, (long long)all->rules[i]->generation);
        }
        rule->generation = observed + 1;
        all->rules[i] = rule;
        return keep(r, all, call->arena, err);
    }
    Api__RecordingRule **list = answer_list(call->arena, all->n_rules + 1, err);
    if (list == NULL) {
        return false;
    }
    for (size_t k = 0; k < all->n_rules; k++) {
        list[k] = all->rules[k];
    }
    list[all->n_rules++] = rule;
    all->rules = list;
    return keep(r, all, call->arena, err);
}

static bool upsert_rule(struct connect_call *call, const void *request, struct err *err)
{
    const Api__UpsertRecordingRuleRequest *q = request;
    struct recording_rules *r = NULL;
    if (!rules_for(call, &r, err) || !check_changes(call, q->id, err)) {
        return false;
    }
    Api__RecordingRule *rule = wanted(call, q, err);
    if (rule == NULL) {
        return false;
    }
    lock_rules(r);
    bool ok = put_rule(call, r, rule, q->generation, err);
    pthread_mutex_unlock(&r->lock);
    return ok && answer_rule(call, rule, err);
}

static bool remove_rule(struct connect_call *call, struct recording_rules *r, const char *id,
                        struct err *err)
{
    Api__ListRecordingRulesResponse *all = parse(r, call->arena, err);
    if (all == NULL) {
        return false;
    }
    size_t place = place_of(all, id);
    if (place == all->n_rules) {
        return no_rule(call, id, err);
    }
    all->n_rules--;
    for (size_t i = place; i < all->n_rules; i++) {
        all->rules[i] = all->rules[i + 1];
    }
    return keep(r, all, call->arena, err);
}

static bool delete_rule(struct connect_call *call, const void *request, struct err *err)
{
    const Api__RecordingRuleId *q = request;
    struct recording_rules *r = NULL;
    if (!rules_for(call, &r, err) || !check_id(q->id, err) || !check_changes(call, q->id, err)) {
        return false;
    }
    lock_rules(r);
    bool ok = remove_rule(call, r, q->id, err);
    pthread_mutex_unlock(&r->lock);
    call->reply =
        ok ? answer_new(call->arena, &api__recording_rule_response__descriptor, err) : NULL;
    return call->reply != NULL;
}

/* ---- the service ----------------------------------------------------------------------------- */

#define PREFIX "/settings.v1.RecordingRulesService/"

static void serve(struct exchange *x)
{
    static const struct connect_method methods[] = {
        {PREFIX "GetRecordingRule", &api__recording_rule_id__descriptor, NULL, get_rule},
        {PREFIX "ListRecordingRules", &api__recording_rule_id__descriptor, NULL, list_rules},
        {PREFIX "UpsertRecordingRule", &api__upsert_recording_rule_request__descriptor, NULL,
         upsert_rule},
        {PREFIX "DeleteRecordingRule", &api__recording_rule_id__descriptor, NULL, delete_rule},
    };
    connect_serve(x, methods, sizeof(methods) / sizeof(methods[0]), BODY_MAX);
}

const struct route recording_routes[] = {
    {PREFIX, .is_prefix = true, .set = ROUTE_QUERY, .methods = ROUTE_ANY,
     .errors = connect_route_error, .work = serve},
    {.path = NULL},
};
