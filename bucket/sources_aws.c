/* Temporary access keys of AWS: web identity (IRSA), containers (EKS Pod Identity, ECS), EC2's
 * instance metadata. The protocols are those of AWS's SDKs, with the environment variables by which
 * these can be directed elsewhere. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "bucket/sources.h"
#include "bucket/xml.h"
#include "http/url.h"

#define ECS_SERVER "http://169.254.170.2"
#define EC2_SERVER "http://169.254.169.254"
#define EC2_SERVER_V6 "http://[fd00:ec2::254]"
#define EC2_ROLES "/latest/meta-data/iam/security-credentials/"
/* The lifetime of the token of the instance metadata service: one fetch takes less. */
#define EC2_TOKEN_SECONDS "300"

static bool set_expiry(struct credentials_fetch *f, struct sv text)
{
    return clock_take_rfc3339(&text, 9, &f->expires_ns) && text.n == 0;
}

/* Takes {"AccessKeyId": .., "SecretAccessKey": .., "Token": .., "Expiration": ..}. */
static bool take_json(struct credentials_fetch *f, struct sv body, struct err *err)
{
    json_t *json = json_loadb(body.p, body.n, 0, NULL);
    const char *expires = json_string_value(json_object_get(json, "Expiration"));
    const char *code = json_string_value(json_object_get(json, "Code"));
    bool ok = source_take(&f->key_id, json_string_value(json_object_get(json, "AccessKeyId"))) &&
              source_take(&f->key, json_string_value(json_object_get(json, "SecretAccessKey"))) &&
              source_take(&f->session, json_string_value(json_object_get(json, "Token"))) &&
              expires != NULL && set_expiry(f, sv_from(expires)) &&
              (code == NULL || strcmp(code, "Success") == 0);
    json_decref(json);
    return ok || err_set(err, ERR_INPUT,
                         "expected JSON with AccessKeyId, SecretAccessKey, Token and Expiration "
                         "from %s, got another answer",
                         f->url.data);
}

/* ---- web identity ---------------------------------------------------------------------------- */

static bool has_web_identity(const struct credentials_fetch *f)
{
    return source_env(f, "AWS_ROLE_ARN") != NULL &&
           source_env(f, "AWS_WEB_IDENTITY_TOKEN_FILE") != NULL;
}

/* Appends the URL of the token service in the region of this process, else in the bucket's. */
static void put_sts(struct credentials_fetch *f)
{
    const char *given = source_env(f, "AWS_ENDPOINT_URL_STS");
    const char *region = source_env(f, "AWS_REGION");
    region = region != NULL ? region : source_env(f, "AWS_DEFAULT_REGION");
    region = region != NULL ? region : f->settings->http.region;
    region = region != NULL ? region : BUCKET_REGION_DEFAULT;
    buf_clear(&f->url);
    if (given != NULL) {
        size_t n = strlen(given);
        buf_printf(&f->url, "%s%s", given, given[n - 1] == '/' ? "" : "/");
    } else {
        bool china = strncmp(region, "cn-", 3) == 0;
        buf_printf(&f->url, "https://sts.%s.amazonaws.com%s/", region, china ? ".cn" : "");
    }
}

static void put_field(struct credentials_fetch *f, const char *name, const char *value)
{
    buf_puts(&f->body, f->body.len > 0 ? "&" : "");
    url_encode_pair(sv_from(name), sv_from(value), &f->body);
}

static bool ask_sts(struct credentials_fetch *f, unsigned step, struct err *err)
{
    const char *role;
    const char *file;
    const char *session = source_env(f, "AWS_ROLE_SESSION_NAME");
    (void)step;
    if (!source_need(f, "AWS_ROLE_ARN", &role, err) ||
        !source_need(f, "AWS_WEB_IDENTITY_TOKEN_FILE", &file, err) ||
        !source_read_file(file, &f->secret, err)) {
        return false;
    }
    put_sts(f);
    buf_clear(&f->body);
    put_field(f, "Action", "AssumeRoleWithWebIdentity");
    put_field(f, "Version", "2011-06-15");
    put_field(f, "RoleArn", role);
    put_field(f, "RoleSessionName", session != NULL ? session : "profpull");
    put_field(f, "WebIdentityToken", f->secret.data);
    f->method = "POST";
    source_header(f, "Content-Type", "application/x-www-form-urlencoded");
    return (buf_ok(&f->body) && buf_ok(&f->url)) || err_memory(err);
}

static bool take_element(const struct xml_element *e, struct buf *text, struct buf *out)
{
    buf_clear(text);
    return xml_unescape(sv_trim(e->text), text) && source_take(out, text->data);
}

static bool take_sts(struct credentials_fetch *f, unsigned step, struct sv body, struct err *err)
{
    struct xml x;
    struct xml_element e;
    struct buf text;
    unsigned found = 0;
    (void)step;
    buf_init(&text, SOURCE_TEXT_MAX);
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
        if (!sv_eq_str(e.parent, "Credentials")) {
            continue;
        }
        found += sv_eq_str(e.name, "AccessKeyId") && take_element(&e, &text, &f->key_id);
        found += sv_eq_str(e.name, "SecretAccessKey") && take_element(&e, &text, &f->key);
        found += sv_eq_str(e.name, "SessionToken") && take_element(&e, &text, &f->session);
        found += sv_eq_str(e.name, "Expiration") && set_expiry(f, sv_trim(e.text));
    }
    buf_wipe(&text);
    return (xml_ok(&x) && found == 4) ||
           err_set(err, ERR_INPUT,
                   "expected XML with AccessKeyId, SecretAccessKey, SessionToken and Expiration "
                   "from %s, got another answer",
                   f->url.data);
}

const struct credentials_method source_web_identity = {
    .source = CREDENTIALS_WEB_IDENTITY,
    .steps = 1,
    .exists = has_web_identity,
    .request = ask_sts,
    .answer = take_sts,
    .advice = "allow the way to the token service, or set AWS_ENDPOINT_URL_STS"};

/* ---- containers ------------------------------------------------------------------------------ */

static bool has_container(const struct credentials_fetch *f)
{
    return source_env(f, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != NULL ||
           source_env(f, "AWS_CONTAINER_CREDENTIALS_FULL_URI") != NULL;
}

/* Returns true for a URL to which the token may be sent: over TLS, or to an agent of this machine
 * or node. */
static bool is_trusted(const char *text, struct err *err)
{
    static const char *const agents[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    struct url url;
    if (!url_parse(text, &url, err)) {
        return err_wrap(err, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    }
    bool ok = url.https || source_is_loopback(url.host) ||
              sv_in(sv_from(url.host), agents, sizeof(agents) / sizeof(agents[0]));
    if (!ok) {
        err_set(err, ERR_INPUT,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https, or http to 169.254.170.2, "
                "169.254.170.23, fd00:ec2::23 or a loopback address, got the host %s",
                url.host);
    }
    url_done(&url);
    return ok;
}

static bool put_container_url(struct credentials_fetch *f, struct err *err)
{
    const char *path = source_env(f, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full;
    buf_clear(&f->url);
    if (path != NULL) {
        return path[0] == '/' ? buf_printf(&f->url, "%s%s", ECS_SERVER, path) || err_memory(err)
                              : err_set(err, ERR_INPUT,
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: expected a path");
    }
    return source_need(f, "AWS_CONTAINER_CREDENTIALS_FULL_URI", &full, err) &&
           is_trusted(full, err) && (buf_puts(&f->url, full) || err_memory(err));
}

static bool ask_container(struct credentials_fetch *f, unsigned step, struct err *err)
{
    const char *file = source_env(f, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = source_env(f, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    (void)step;
    if (!put_container_url(f, err)) {
        return false;
    }
    f->method = "GET";
    f->on_link = strncmp(f->url.data, "http:", strlen("http:")) == 0;
    if (file != NULL && !source_read_file(file, &f->secret, err)) {
        return false;
    }
    if (file == NULL && token != NULL) {
        buf_clear(&f->secret);
        buf_puts(&f->secret, token);
    }
    if (file != NULL || token != NULL) {
        source_header(f, "Authorization", f->secret.data);
    }
    return true;
}

static bool take_container(struct credentials_fetch *f, unsigned step, struct sv body,
                           struct err *err)
{
    (void)step;
    return take_json(f, body, err);
}

const struct credentials_method source_container = {
    .source = CREDENTIALS_CONTAINER,
    .steps = 1,
    .exists = has_container,
    .request = ask_container,
    .answer = take_container,
    .advice = "the agent of EKS Pod Identity or ECS must run on this node"};

/* ---- instances ------------------------------------------------------------------------------- */

static bool has_instance(const struct credentials_fetch *f)
{
    const char *disabled = source_env(f, "AWS_EC2_METADATA_DISABLED");
    return disabled == NULL || strcasecmp(disabled, "true") != 0;
}

static void put_instance_url(struct credentials_fetch *f, const char *path, const char *role)
{
    const char *server = source_env(f, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = source_env(f, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (server == NULL) {
        bool v6 = mode != NULL && strcasecmp(mode, "ipv6") == 0;
        server = v6 ? EC2_SERVER_V6 : EC2_SERVER;
    }
    size_t n = strlen(server);
    n -= n > 0 && server[n - 1] == '/';
    buf_clear(&f->url);
    buf_printf(&f->url, "%.*s%s%s", (int)n, server, path, role);
}

/* Token, name of the role, key of the role. Version 1 of the service, which needs no token, is
 * never used. */
static bool ask_instance(struct credentials_fetch *f, unsigned step, struct err *err)
{
    f->on_link = true;
    f->plain = true;
    f->method = step == 0 ? "PUT" : "GET";
    if (step == 0) {
        put_instance_url(f, "/latest/api/token", "");
        source_header(f, "X-aws-ec2-metadata-token-ttl-seconds", EC2_TOKEN_SECONDS);
    } else {
        put_instance_url(f, EC2_ROLES, step == 2 ? f->role.data : "");
        source_header(f, "X-aws-ec2-metadata-token", f->secret.data);
    }
    return buf_ok(&f->url) || err_memory(err);
}

static bool is_role(const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (!ascii_is_word(*c) && strchr("+=,.@-", *c) == NULL) {
            return false;
        }
    }
    return *name != '\0';
}

static bool take_line(struct buf *out, struct sv body)
{
    struct sv line;
    struct sv rest;
    char text[2048];
    body = sv_trim(body);
    line = sv_cut(body, '\n', &line, &rest) ? sv_trim(line) : body;
    (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(line));
    bool ok = line.n < sizeof(text) && source_take(out, text);
    explicit_bzero(text, sizeof(text));
    return ok;
}

static bool take_instance(struct credentials_fetch *f, unsigned step, struct sv body,
                          struct err *err)
{
    if (step == 0) {
        return take_line(&f->secret, body) ||
               err_set(err, ERR_INPUT, "expected a token from %s, got another answer", f->url.data);
    }
    if (step == 1) {
        return (take_line(&f->role, body) && is_role(f->role.data)) ||
               err_set(err, ERR_INPUT, "%s names no role: give the instance an instance profile",
                       f->url.data);
    }
    return take_json(f, body, err);
}

const struct credentials_method source_instance = {
    .source = CREDENTIALS_INSTANCE,
    .steps = 3,
    .exists = has_instance,
    .request = ask_instance,
    .answer = take_instance,
    .advice = "this is no instance of EC2, or a pod is too far away: set the hop limit of its "
              "metadata options to 2, or use a role for the service account"};
