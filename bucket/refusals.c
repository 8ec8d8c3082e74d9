/* Refusals of object stores: the texts of their errors, and what to do about each code. */
#include <stdio.h>
#include <string.h>

#include "bucket/answers.h"
#include "bucket/xml.h"

static void copy_text(struct sv text, char *out, size_t size)
{
    struct buf plain;
    buf_init(&plain, (size_t)16 * 1024);
    bool ok = xml_show(sv_trim(text), &plain);
    struct sv v = ok ? (struct sv){plain.data, plain.len} : sv_trim(text);
    size_t n = v.n < size ? v.n : size - 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = (unsigned char)v.p[i] < ' ' ? ' ' : v.p[i];
    }
    out[n] = '\0';
    buf_done(&plain);
}

bool bucket_read_refusal(struct sv body, struct bucket_refusal *ret)
{
    struct xml x;
    struct xml_element e;
    *ret = (struct bucket_refusal){.code = ""};
    xml_init(&x, body);
    while (xml_next(&x, &e)) {
        /* AWS's token service puts its <Error> into an <ErrorResponse>. */
        if (!sv_eq_str(e.parent, "Error") || e.depth > 3) {
            continue;
        }
        if (sv_eq_str(e.name, "Code")) {
            copy_text(e.text, ret->code, sizeof(ret->code));
        } else if (sv_eq_str(e.name, "Message")) {
            copy_text(e.text, ret->message, sizeof(ret->message));
        } else if (sv_eq_str(e.name, "Region") ||
                   (sv_eq_str(e.name, "Endpoint") && ret->place[0] == '\0')) {
            copy_text(e.text, ret->place, sizeof(ret->place));
        }
    }
    if (ret->code[0] == '\0') {
        *ret = (struct bucket_refusal){.code = ""};
    }
    return ret->code[0] != '\0';
}

#define ADVICE_REGION                                                                              \
    "the bucket is in another region: set s3.region to the one that the server names (or "         \
    "s3.endpoint to a server of that region)"
#define ADVICE_KEY                                                                                 \
    "the server does not know this access key: check s3.access_key_id and s3.endpoint"
#define ADVICE_TOKEN                                                                               \
    "the session token has expired or belongs to another key: renew access_key_id, "               \
    "secret_access_key and session_token together"
#define ADVICE_BUCKET                                                                              \
    "there is no such bucket on this server: create it, or check url, s3.endpoint and "            \
    "s3.path_style"
#define ADVICE_RIGHTS                                                                              \
    "this access key may not do that: it needs the permissions s3:ListBucket, s3:GetObject, "      \
    "s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListBucketMultipartUploads "    \
    "for the bucket and the prefix of url, or those of them that its use needs"

static const struct {
    const char *code;
    struct bucket_meaning meaning;
} codes[] = {
    {"NoSuchKey", {BUCKET_NOT_FOUND, NULL}},
    {"NoSuchUpload", {BUCKET_NOT_FOUND, NULL}},
    {"NoSuchBucket", {BUCKET_NO_BUCKET, ADVICE_BUCKET}},
    {"AuthorizationHeaderMalformed", {BUCKET_NO_BUCKET, ADVICE_REGION}},
    {"PermanentRedirect", {BUCKET_NO_BUCKET, ADVICE_REGION}},
    {"TemporaryRedirect", {BUCKET_NO_BUCKET, ADVICE_REGION}},
    {"SignatureDoesNotMatch",
     {BUCKET_DENIED,
      "s3.secret_access_key is not that of s3.access_key_id, or a proxy changes the request"}},
    {"InvalidAccessKeyId", {BUCKET_DENIED, ADVICE_KEY}},
    {"XAdminUserNotFound", {BUCKET_DENIED, ADVICE_KEY}}, /* of Versity, with 404 */
    {"AccessDenied", {BUCKET_DENIED, ADVICE_RIGHTS}},
    {"ExpiredToken", {BUCKET_DENIED, ADVICE_TOKEN}},
    {"InvalidToken", {BUCKET_DENIED, ADVICE_TOKEN}},
    {"TokenRefreshRequired", {BUCKET_DENIED, ADVICE_TOKEN}},
    {"RequestTimeTooSkewed",
     {BUCKET_CLOCK,
      "the clocks of this machine and of the server differ by more than 15 minutes: set this one"}},
    {"PreconditionFailed", {BUCKET_CHANGED, NULL}},
    {"QuotaExceeded", {BUCKET_FULL, "the bucket is full: raise its quota, or remove old objects"}},
    {"XMinioStorageFull", {BUCKET_FULL, "the disks of the server are full"}},
    {"XMinioAdminBucketQuotaExceeded",
     {BUCKET_FULL, "the bucket is full: raise its quota, or remove old objects"}},
    {"SlowDown", {BUCKET_SLOW_DOWN, NULL}},
    {"ServiceUnavailable", {BUCKET_SLOW_DOWN, NULL}},
    {"InternalError", {BUCKET_SLOW_DOWN, NULL}},
    {"OperationAborted", {BUCKET_SLOW_DOWN, NULL}},
    {"RequestTimeout", {BUCKET_TIMEOUT, NULL}},
    /* On the way to the server something was lost. */
    {"IncompleteBody", {BUCKET_NETWORK, NULL}},
    {"XAmzContentSHA256Mismatch", {BUCKET_NETWORK, NULL}},
    {"BadDigest", {BUCKET_NETWORK, NULL}},
};

static const struct {
    long status;
    struct bucket_meaning meaning;
} statuses[] = {
    {401, {BUCKET_DENIED, "check the credentials of the bucket"}},
    {403, {BUCKET_DENIED, "check the credentials of the bucket and their permissions"}},
    {404, {BUCKET_NOT_FOUND, NULL}},
    {408, {BUCKET_TIMEOUT, NULL}},
    {412, {BUCKET_CHANGED, NULL}},
    {429, {BUCKET_SLOW_DOWN, NULL}},
    {500, {BUCKET_SLOW_DOWN, NULL}},
    {502, {BUCKET_SLOW_DOWN, NULL}},
    {503, {BUCKET_SLOW_DOWN, NULL}},
    {504, {BUCKET_TIMEOUT, NULL}},
    {507, {BUCKET_FULL, "the disks of the server are full"}},
};

/* The advice above names keys of AWS; Google's servers know bearer tokens. */
static struct bucket_meaning for_google(struct bucket_meaning m)
{
    if (m.result == BUCKET_DENIED) {
        m.advice = "the service account needs the role roles/storage.objectUser for the bucket, or "
                   "its token has expired";
    } else if (m.result == BUCKET_NO_BUCKET) {
        m.advice = "there is no such bucket: create it, or check url and endpoint";
    }
    return m;
}

struct bucket_meaning bucket_meaning_of(const char *code, long status, bool google)
{
    struct bucket_meaning m = {.result = BUCKET_REFUSED, .advice = NULL};
    bool known = false;
    for (size_t i = 0; !known && i < sizeof(codes) / sizeof(codes[0]); i++) {
        known = strcmp(codes[i].code, code) == 0;
        m = known ? codes[i].meaning : m;
    }
    for (size_t i = 0; !known && i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        known = statuses[i].status == status;
        m = known ? statuses[i].meaning : m;
    }
    if (!known && status >= 300 && status < 400) {
        m = (struct bucket_meaning){BUCKET_NO_BUCKET,
                                    "redirects are not followed: check s3.endpoint (https instead "
                                    "of http?) and s3.region"};
    }
    return google ? for_google(m) : m;
}

bool bucket_code_is_about_keys(const char *code)
{
    static const char *const list[] = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                       "InvalidAccessKeyId"};
    return sv_in(sv_from(code), list, sizeof(list) / sizeof(list[0]));
}
