/* The settings of one bucket, as the configuration gives them, and its URLs. Plain data and pure
 * functions; any thread.
 */
#ifndef PROFPULL_BUCKET_SETTINGS_H
#define PROFPULL_BUCKET_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/http.h"

#define BUCKET_SCHEME_S3 "s3"
#define BUCKET_SCHEME_GS "gs"
#define BUCKET_REGION_DEFAULT "us-east-1"
/* The longest prefix in a URL, and the longest server with bucket and prefix, in bytes. */
#define BUCKET_PREFIX_MAX 512
#define BUCKET_BASE_MAX 4096

/* The source of a bucket's credentials. */
enum credentials_source {
    CREDENTIALS_CONFIGURED, /* keys or files of the configuration, nothing else */
    CREDENTIALS_AUTO, /* the first of the next four that this process has; for gs:// of the last two
                       */
    CREDENTIALS_ENVIRONMENT,     /* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN */
    CREDENTIALS_WEB_IDENTITY,    /* AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE (IRSA) */
    CREDENTIALS_CONTAINER,       /* AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI */
    CREDENTIALS_INSTANCE,        /* EC2's metadata service, version 2 */
    CREDENTIALS_SERVICE_ACCOUNT, /* Google: the JSON key of a service account */
    CREDENTIALS_METADATA,        /* Google: the metadata server (GKE workload identity) */
    CREDENTIALS_SOURCES,
};

struct bucket_settings {
    const char *url;      /* "s3://BUCKET/PREFIX" or "gs://BUCKET/PREFIX"; the prefix is optional */
    const char *endpoint; /* "https://host:port"; NULL: AWS's for the region, or Google's */
    bool path_style; /* the bucket's name is in the path of requests, not in their host. Always so
                        for gs:// */
    enum credentials_source credentials;
    const char *service_account_file; /* NULL: GOOGLE_APPLICATION_CREDENTIALS */
    /* TLS, proxy and headers. For s3:// also `region` (NULL: BUCKET_REGION_DEFAULT), and with
     * CREDENTIALS_CONFIGURED `username`, `password`, `session_token` or their files, as for
     * HTTP_AUTH_S3. `auth` is not read. */
    struct http_settings http;
};

/* The parts of "s3://bucket/prefix", without slashes at the end of the prefix; both are empty for
 * any other text. */
struct bucket_url {
    struct sv name;
    struct sv prefix;
};
struct bucket_url bucket_url_split(struct sv url);
/* Returns true for a valid URL with this scheme: a name of 3 to 63 bytes, and a prefix of at most
 * BUCKET_PREFIX_MAX bytes whose segments no server or proxy changes. */
bool bucket_url_valid(struct sv url, const char *scheme);
bool bucket_url_is_google(struct sv url);

/* Appends the URL of the bucket without its prefix and without a slash at its end:
 * "https://b.s3.eu-central-1.amazonaws.com", "http://minio:9000/b". */
bool bucket_put_root(const struct bucket_settings *s, struct buf *out);
/* Appends a key or prefix for a URL: as in a signature, all but slashes and the unreserved
 * characters are percent-encoded. */
bool bucket_put_key(struct sv key, struct buf *out);

#endif
