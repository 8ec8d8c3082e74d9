/* The key `gs` of an archive: the credentials for a bucket of Google Cloud Storage. */
#include "config/parts.h"

bool gs_is_url(struct sv v)
{
    return bucket_url_valid(v, BUCKET_SCHEME_GS);
}

/* The sources that go with gs://, by their number. The key of a service account is chosen by
 * naming its file. */
static const char *const source_names[] = {
    [CREDENTIALS_AUTO] = "auto",
    [CREDENTIALS_METADATA] = "metadata",
};
static const struct choices sources = CHOICES(source_names);

static bool has_account(const void *record)
{
    return ((const struct bucket_settings *)record)->service_account_file != NULL;
}

static bool has_source(const void *record)
{
    return !has_account(record);
}

static void check_gs(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct bucket_settings *b = out;
    check_one_of(r, at, clean, "gs ", "credentials_file", "credentials");
    if (b->service_account_file != NULL) {
        b->credentials = CREDENTIALS_SERVICE_ACCOUNT;
    }
}

static const struct field gs_rows[] = {
    ROW(bucket_settings, "credentials_file", service_account_file, &kind_text,
        .arg = &text_file_name, .when = has_account),
    ROW(bucket_settings, "credentials", credentials, &kind_choice, .arg = &sources,
        .when = has_source),
    ROW(bucket_settings, "endpoint", endpoint, &kind_text, .arg = &text_http_url),
};
const struct schema schema_gs = SCHEMA(gs_rows, sizeof(struct bucket_settings), .check = check_gs);
