/* The buckets that `profpull store` is asked about. */
#include <string.h>

#include "bucket/bucket.h"
#include "bucket/sources.h"
#include "cli/store/private.h"

bool place_is_bucket(const struct store_args *args, const char *operand)
{
    return args->config != NULL || strncmp(operand, "s3://", 5) == 0 ||
           strncmp(operand, "gs://", 5) == 0;
}

int place_fail(enum bucket_result result, const struct err *err)
{
    bool ours = result == BUCKET_FILE || result == BUCKET_LIMIT || result == BUCKET_MEMORY;
    return cmd_fail(ours ? EXIT_INPUT : EXIT_PEER, err);
}

/* ---- the bucket of an endpoint --------------------------------------------------------------- */

/* Returns the settings of the archive of an endpoint; NULL after an error. */
static const struct bucket_settings *of_endpoint(const struct config *c, const char *name,
                                                 struct err *err)
{
    for (size_t i = 0; i < c->n_endpoints; i++) {
        const struct config_endpoint *e = &c->endpoints[i];
        if (strcmp(e->name, name) == 0 && e->archive.url != NULL) {
            return &e->archive.bucket;
        }
        if (strcmp(e->name, name) == 0) {
            err_set(err, ERR_INPUT, "%s: the endpoint \"%s\" has no store.archive", c->file, name);
            return NULL;
        }
    }
    err_set(err, ERR_INPUT,
            "%s: there is no endpoint \"%s\": with --config, a bucket is named by the endpoint "
            "that has it as its store.archive",
            c->file, name);
    return NULL;
}

/* ---- the bucket of a URL --------------------------------------------------------------------- */

static enum credentials_source source_of(const struct store_args *args, bool google)
{
    static const enum credentials_source all[] = {CREDENTIALS_AUTO,         CREDENTIALS_ENVIRONMENT,
                                                  CREDENTIALS_WEB_IDENTITY, CREDENTIALS_CONTAINER,
                                                  CREDENTIALS_INSTANCE,     CREDENTIALS_METADATA};
    for (size_t i = 0; args->credentials != NULL && i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(credentials_source_name(all[i]), args->credentials) == 0) {
            return all[i];
        }
    }
    return google ? CREDENTIALS_SERVICE_ACCOUNT : CREDENTIALS_ENVIRONMENT;
}

/* Returns the settings of a URL with the flags and the environment; NULL after an error. */
static const struct bucket_settings *
of_url(struct bucket_settings *s, const struct store_args *args, const char *url, struct err *err)
{
    bool google = bucket_url_is_google(sv_from(url));
    if (!bucket_url_valid(sv_from(url), google ? BUCKET_SCHEME_GS : BUCKET_SCHEME_S3)) {
        err_set(err, ERR_INPUT,
                "%s: expected s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; the name of a bucket has "
                "3 to 63 letters, digits, \".\", \"_\" and \"-\"",
                url);
        return NULL;
    }
    /* The variables of AWS say nothing about buckets of Google. */
    const char *endpoint =
        args->endpoint != NULL || google ? args->endpoint : cmd_environment("AWS_ENDPOINT_URL_S3");
    const char *region = args->region != NULL ? args->region : cmd_environment("AWS_REGION");
    *s = (struct bucket_settings){.url = url,
                                  .endpoint = endpoint,
                                  .path_style = endpoint != NULL,
                                  .credentials = source_of(args, google),
                                  .service_account_file = args->credentials_file};
    s->http.region = google ? NULL : region;
    s->http.tls.ca_file = args->ca_file;
    struct sv name = bucket_url_split(sv_from(url)).name;
    s->path_style = s->path_style || memchr(name.p, '.', name.n) != NULL;
    if (!credentials_source_fits(s->credentials, google)) {
        err_set(err, ERR_INPUT, "--credentials %s does not go with %s", args->credentials, url);
        return NULL;
    }
    if (!google && args->credentials_file != NULL) {
        err_set(err, ERR_INPUT,
                "--credentials-file is for gs://: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or use --config");
        return NULL;
    }
    return s;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool place_open(struct place *p, const struct store_args *args, const char *operand, int *ret_code)
{
    struct err err = ERR_INIT;
    const struct bucket_settings *settings;
    *p = (struct place){.config = NULL};
    if (args->config != NULL) {
        p->config = cmd_load_config(&(struct cmd_config_flags){.file = args->config});
        if (p->config == NULL) {
            *ret_code = EXIT_INPUT;
            return false;
        }
        settings = of_endpoint(p->config, operand, &err);
    } else {
        settings = of_url(&p->settings, args, operand, &err);
    }
    struct bucket *bucket =
        settings != NULL ? bucket_new(&(struct bucket_options){.settings = settings}, &err) : NULL;
    if (bucket == NULL) {
        *ret_code = cmd_fail(EXIT_INPUT, &err);
        config_unref(p->config);
        return false;
    }
    p->backend = archive_backend_of(bucket);
    return true;
}

bool place_survey(struct place *p, const struct store_args *args, const char *operand,
                  struct survey *ret, int *ret_code)
{
    struct err err = ERR_INIT;
    const struct survey_limits limits = {
        .writer = args->writer, .from_ns = args->from_ns, .until_ns = args->until_ns};
    if (!place_open(p, args, operand, ret_code)) {
        return false;
    }
    enum bucket_result result = survey_list(&p->backend, &limits, ret, &err);
    if (result != BUCKET_OK) {
        *ret_code = place_fail(result, &err);
        survey_done(ret);
        place_close(p);
        return false;
    }
    survey_find_replaced(&p->backend, ret);
    return true;
}

void place_close(struct place *p)
{
    if (p->backend.arg != NULL) {
        p->backend.free(p->backend.arg);
    }
    config_unref(p->config);
}
