#include "api/services.h"

#include "api/answers.h"
#include "api/connect.h"
#include "api/proto/services.pb-c.h"
#include "api/route_errors.h"
#include "api/served.h"
#include "api/settings.h"
#include "base/clock.h"

/* Limit of a request: a setting is a text with the preferences of one app. */
#define SERVICES_BODY_MAX ((size_t)1024 * 1024)
#define REASON_MAX ((size_t)64 * 1024)

/* ---- settings -------------------------------------------------------------------------------- */

static bool settings_of(struct connect_call *call, struct settings **ret, struct err *err)
{
    *ret = call->exchange->options->served->settings;
    return *ret != NULL || err_set(err, ERR_REFUSED, "no settings are stored here");
}

static bool get_settings(struct connect_call *call, const void *request, struct err *err)
{
    struct settings *settings = NULL;
    (void)request;
    if (!settings_of(call, &settings, err)) {
        return false;
    }
    Api__GetSettingsResponse *answer = settings_get(settings, call->arena, err);
    if (answer != NULL) {
        call->reply = &answer->base;
    }
    return answer != NULL;
}

static bool set_setting(struct connect_call *call, const void *request, struct err *err)
{
    const Api__SetSettingsRequest *r = request;
    struct settings *settings = NULL;
    bool older = false;
    Api__SetSettingsResponse *answer =
        answer_new(call->arena, &api__set_settings_response__descriptor, err);
    if (answer == NULL || !settings_of(call, &settings, err)) {
        return false;
    }
    if (r->setting == NULL || r->setting->name[0] == '\0') {
        return err_set(err, ERR_INPUT, "the name of a setting is required");
    }
    answer->setting = r->setting;
    if (answer->setting->modifiedat <= 0) {
        answer->setting->modifiedat = clock_wall_ns() / NS_PER_MS;
    }
    if (!settings_set(settings, answer->setting, &older, call->arena, err)) {
        return false;
    }
    if (older) {
        return connect_fail(call, CONNECT_ALREADY_EXISTS, err,
                            "setting %s has been changed since then", r->setting->name);
    }
    call->reply = &answer->base;
    return true;
}

static bool answer_empty(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    call->reply = answer_new(call->arena, &api__empty__descriptor, err);
    return call->reply != NULL;
}

static bool delete_setting(struct connect_call *call, const void *request, struct err *err)
{
    const Api__DeleteSettingsRequest *r = request;
    struct settings *settings = NULL;
    if (!settings_of(call, &settings, err)) {
        return false;
    }
    if (r->name[0] == '\0') {
        return err_set(err, ERR_INPUT, "the name of a setting is required");
    }
    return settings_delete(settings, r->name, call->arena, err) && answer_empty(call, request, err);
}

/* ---- what this server is --------------------------------------------------------------------- */

static bool version(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    Api__VersionResponse *answer = answer_new(call->arena, &api__version_response__descriptor, err);
    if (answer == NULL) {
        return false;
    }
    answer->querierapi = 1;
    call->reply = &answer->base;
    return true;
}

static bool feature_flags(struct connect_call *call, const void *request, struct err *err)
{
    static const struct {
        const char *name;
        bool enabled;
        const char *description;
    } flags[] = {
        {"pyroscopeRuler", true, "Recording rules: metrics made of profiles."},
        {"pyroscopeRulerFunctions", true, "Recording rules for single functions."},
        {"utf8LabelNames", false, "Label names of any characters without the client asking."},
        {"v2StorageLayer", true, "Queries read one store."},
    };
    size_t n = sizeof(flags) / sizeof(flags[0]);
    (void)request;
    Api__GetFeatureFlagsResponse *answer =
        answer_new(call->arena, &api__get_feature_flags_response__descriptor, err);
    if (answer == NULL || (answer->feature_flags = answer_list(call->arena, n, err)) == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        Api__FeatureFlag *flag = answer_new(call->arena, &api__feature_flag__descriptor, err);
        if (flag == NULL || !answer_string(call->arena, sv_from(flags[i].name), &flag->name, err) ||
            !answer_string(call->arena, sv_from(flags[i].description), &flag->description, err)) {
            return false;
        }
        flag->enabled = flags[i].enabled;
        answer->feature_flags[answer->n_feature_flags++] = flag;
    }
    call->reply = &answer->base;
    return true;
}

/* ---- what is not there ----------------------------------------------------------------------- */

static bool no_github(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    return connect_fail(call, CONNECT_UNIMPLEMENTED, err, "GitHub integration is not configured");
}

static bool no_token(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    return connect_fail(call, CONNECT_UNAUTHENTICATED, err, "invalid token");
}

static bool no_upload(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    return connect_fail(call, CONNECT_UNIMPLEMENTED, err, "profiles cannot be uploaded here");
}

static bool no_profile(struct connect_call *call, const void *request, struct err *err)
{
    (void)request;
    return connect_fail(call, CONNECT_NOT_FOUND, err, "there is no uploaded profile");
}

/* ---- the services ---------------------------------------------------------------------------- */

#define EMPTY &api__empty__descriptor, NULL

static void serve(struct exchange *x)
{
    static const struct connect_method methods[] = {
        {"/settings.v1.SettingsService/Get", EMPTY, get_settings},
        {"/settings.v1.SettingsService/Set", &api__set_settings_request__descriptor, NULL,
         set_setting},
        {"/settings.v1.SettingsService/Delete", &api__delete_settings_request__descriptor, NULL,
         delete_setting},
        {"/capabilities.v1.FeatureFlagsService/GetFeatureFlags", EMPTY, feature_flags},
        {"/version.v1.Version/Version", EMPTY, version},
        {"/vcs.v1.VCSService/GithubApp", EMPTY, no_github},
        {"/vcs.v1.VCSService/GetFile", EMPTY, no_token},
        {"/vcs.v1.VCSService/GetCommit", EMPTY, no_token},
        {"/adhocprofiles.v1.AdHocProfileService/List", EMPTY, answer_empty},
        {"/adhocprofiles.v1.AdHocProfileService/Upload", EMPTY, no_upload},
        {"/adhocprofiles.v1.AdHocProfileService/Get", EMPTY, no_profile},
        {"/adhocprofiles.v1.AdHocProfileService/Diff", EMPTY, no_upload},
    };
    connect_serve(x, methods, sizeof(methods) / sizeof(methods[0]), SERVICES_BODY_MAX);
}

static void serve_buildinfo(struct exchange *x)
{
    static const char *const empty[] = {"revision", "branch", "buildUser", "buildDate",
                                        "goVersion"};
    x->content_type = "application/json";
    buf_puts(&x->reply, "{\"status\":\"success\",\"data\":{");
    json_member("version", sv_from(x->options->served->version), &x->reply);
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        json_member(empty[i], SV(""), &x->reply);
    }
    buf_puts(&x->reply, "}}");
}

/* The response is a single word, as load balancers expect. */
static void reply_ready(struct connection *c, const struct request *r,
                        const struct server_options *options)
{
    struct buf reason;
    (void)r;
    buf_init(&reason, REASON_MAX);
    bool ready =
        options->served->ready == NULL || options->served->ready(options->served->arg, &reason);
    connection_reply(c, ready ? STATUS_OK : STATUS_UNAVAILABLE, "text/plain",
                     ready ? SV("ready") : (struct sv){reason.data, reason.len});
    buf_done(&reason);
}

#define SERVICE(prefix)                                                                            \
    {                                                                                              \
        prefix, .is_prefix = true, .set = ROUTE_QUERY, .methods = ROUTE_ANY,                       \
                .errors = connect_route_error, .work = serve                                       \
    }

const struct route services_routes[] = {
    SERVICE("/settings.v1.SettingsService/"),
    SERVICE("/capabilities.v1.FeatureFlagsService/"),
    SERVICE("/version.v1.Version/"),
    SERVICE("/vcs.v1.VCSService/"),
    SERVICE("/adhocprofiles.v1.AdHocProfileService/"),
    {"/api/v1/status/buildinfo", .set = ROUTE_QUERY, .work = serve_buildinfo},
    {"/ready", .set = ROUTE_QUERY, .handle = reply_ready},
    {.path = NULL},
};
