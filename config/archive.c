/* The key `store.archive` of an endpoint: a bucket for the sealed files of a store. */
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "config/parts.h"

#define WRITER_MAX 63

static bool check_bucket_url(struct sv v)
{
    return s3_is_url(v) || gs_is_url(v);
}

static const struct text_kind text_bucket_url = {
    .expected = "a URL such as \"s3://BUCKET/PREFIX\" or \"gs://BUCKET/PREFIX\" (" BUCKET_NAMES ")",
    .ok = check_bucket_url,
    .url = true};

/* The name is a part of the keys of objects. */
static bool check_writer(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_alnum(v.p[i]) && (v.p[i] == '\0' || strchr("._-", v.p[i]) == NULL)) {
            return false;
        }
    }
    return v.n > 0 && v.p[0] != '.';
}

static const struct text_kind text_writer = {
    .expected = "at most 63 letters, digits, \".\", \"_\" and \"-\", not beginning with \".\"",
    .ok = check_writer,
    .min = 1,
    .max = WRITER_MAX};

static const struct range range_kept = {0, (uint64_t)(100 * 366 * MS_PER_DAY)};
static const struct range range_merged = {0, (uint64_t)MS_PER_DAY};
static const struct range range_cache = {1 << 20, UINT64_C(1) << 50};

static const struct field cache_rows[] = {
    ROW(config_archive, "directory", cache_directory, &kind_text, .arg = &text_file_name),
    ROW(config_archive, "max_bytes", cache_max_bytes, &kind_size, .arg = &range_cache,
        .initial.size = UINT64_C(128) << 20),
};
static const struct schema schema_cache = SCHEMA(cache_rows, 0);

static bool is_google(const void *record)
{
    const struct config_archive *a = record;
    return a->url != NULL && bucket_url_is_google(sv_from(a->url));
}

static bool is_amazon(const void *record)
{
    return !is_google(record);
}

/* Reports a missing key of the URL's own object store, and keys of the other one. */
static void check_archive(struct reader *r, const struct place *at, bool clean, void *out)
{
    bool google = is_google(out);
    struct place other = place_of_key(at, google ? "s3" : "gs");
    if (((const struct config_archive *)out)->url != NULL && other.node != at->node) {
        reader_error(r, &other, "has no effect without a URL that begins with %s",
                     google ? "s3://" : "gs://");
    }
    if (clean && google && yaml_get(at->node, "gs") == NULL) {
        reader_error(r, at,
                     "missing required key \"gs\": a bucket of Google needs credentials_file, "
                     "the JSON key of a service account, or credentials: auto or metadata");
    } else if (clean && !google && yaml_get(at->node, "s3") == NULL) {
        reader_error(r, at,
                     "missing required key \"s3\": a bucket needs a region or an endpoint, "
                     "and credentials");
    }
}

static const struct field archive_rows[] = {
    ROW(config_archive, "url", url, &kind_text, .arg = &text_bucket_url, .required = true),
    ROW(config_archive, "name", name, &kind_text, .arg = &text_writer),
    ROW(config_archive, "max_age", max_age_ms, &kind_duration, .arg = &range_kept,
        .initial.ms = 90 * MS_PER_DAY),
    ROW(config_archive, "merge", merge_ms, &kind_duration, .arg = &range_merged,
        .initial.ms = MS_PER_HOUR),
    PART("cache", &kind_mapping, .arg = &schema_cache),
    ROW(config_archive, "s3", bucket, &kind_mapping, .arg = &schema_s3, .when = is_amazon),
    ROW(config_archive, "gs", bucket, &kind_mapping, .arg = &schema_gs, .when = is_google),
};
const struct schema schema_archive =
    SCHEMA(archive_rows, sizeof(struct config_archive), .check = check_archive);
