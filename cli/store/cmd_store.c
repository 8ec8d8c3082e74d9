/* `profpull store`: lists, checks and copies the files of a store, in a directory or in a bucket.
 */
#include <string.h>

#include "bucket/sources.h"
#include "cli/store/private.h"
#include "store/archive/names.h"

static const char *store_subject(size_t i)
{
    static const char *const subjects[] = {"list", "verify", "pull", "push"};
    return i < sizeof(subjects) / sizeof(subjects[0]) ? subjects[i] : NULL;
}

static const char *store_credentials(size_t i)
{
    static const enum credentials_source all[] = {CREDENTIALS_ENVIRONMENT,  CREDENTIALS_AUTO,
                                                  CREDENTIALS_WEB_IDENTITY, CREDENTIALS_CONTAINER,
                                                  CREDENTIALS_INSTANCE,     CREDENTIALS_METADATA};
    return i < sizeof(all) / sizeof(all[0]) ? credentials_source_name(all[i]) : NULL;
}

/* Returns true if there are options that the endpoint of --config sets. */
static bool has_settings(const struct store_args *args)
{
    return args->endpoint != NULL || args->credentials != NULL || args->credentials_file != NULL ||
           args->region != NULL || args->ca_file != NULL;
}

/* Returns what is wrong with the options; "" if nothing is. */
static const char *problem_of_options(const struct store_args *args, bool is_bucket)
{
    if (args->writer != NULL && !is_bucket) {
        return "--writer goes with a BUCKET: a directory has no writers";
    }
    if (args->writer != NULL && !archive_is_writer(sv_from(args->writer))) {
        return "--writer: expected at most 63 letters, digits, \".\", \"_\" and \"-\", not "
               "beginning with \".\"";
    }
    if (args->config != NULL && has_settings(args)) {
        return "with --config, the settings of the endpoint's store.archive are used: set them "
               "there";
    }
    return args->from_ns > args->until_ns ? "--from is later than --until" : "";
}

/* Returns what is wrong with the arguments; "" if nothing is. */
static const char *problem_of(const struct store_args *args, const char *what,
                              char *const *operands, size_t n)
{
    bool copy = strcmp(what, "pull") == 0 || strcmp(what, "push") == 0;
    if (n != (copy ? 3 : 2)) {
        return strcmp(what, "pull") == 0   ? "a BUCKET and a directory are needed"
               : strcmp(what, "push") == 0 ? "a directory and a BUCKET are needed"
                                           : "a directory or a BUCKET is needed";
    }
    const char *bucket = strcmp(what, "push") == 0 ? operands[2] : operands[1];
    bool is_bucket = place_is_bucket(args, bucket);
    if (copy && !is_bucket) {
        return "the BUCKET is not s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, nor an endpoint with "
               "--config";
    }
    if (strcmp(what, "push") == 0 && args->writer == NULL) {
        return "--writer is needed: the name under which the files are stored";
    }
    return problem_of_options(args, is_bucket);
}

static int run_store(const void *arg, char *const *operands, size_t n)
{
    const struct store_args *args = arg;
    const char *what = n > 0 ? operands[0] : "";
    size_t known = 0;
    while (store_subject(known) != NULL && strcmp(store_subject(known), what) != 0) {
        known++;
    }
    if (store_subject(known) == NULL) {
        return cmd_usage_error("store", "expected list, verify, pull or push, got \"%s\"", what);
    }
    const char *problem = problem_of(args, what, operands, n);
    if (problem[0] != '\0') {
        return cmd_usage_error("store", "%s: %s", what, problem);
    }
    if (strcmp(what, "pull") == 0) {
        return store_pull(args, operands[1], operands[2]);
    }
    if (strcmp(what, "push") == 0) {
        return store_push(args, operands[1], operands[2]);
    }
    bool verify = strcmp(what, "verify") == 0;
    if (!place_is_bucket(args, operands[1])) {
        return store_list_directory(args, operands[1], verify);
    }
    return (verify ? store_verify_bucket : store_list_bucket)(args, operands[1]);
}

static const struct flag flags[] = {
    FLAG(TEXT, "config", 'c', store_args, config, "FILE",
         "take the bucket from store.archive of an endpoint in this file: BUCKET is the name of "
         "the endpoint"),
    FLAG(TEXT, "writer", 'w', store_args, writer, "NAME",
         "only the files of this writer; push: the name under which they are stored"),
    FLAG(TIME, "from", 0, store_args, from_ns, "TIME",
         "only files that overlap a range: its beginning (2026-11-21T03:23:34Z, or seconds since "
         "1970)"),
    FLAG(TIME, "until", 0, store_args, until_ns, "TIME", "the end of this range"),
    FLAG(CHOICE, "credentials", 0, store_args, credentials, "SOURCE",
         "where the credentials come from; by default the environment (AWS_ACCESS_KEY_ID, "
         "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), or for gs:// the key of a service account",
         .choice = store_credentials),
    FLAG(TEXT, "credentials-file", 0, store_args, credentials_file, "FILE",
         "the JSON key of a service account, for gs://; by default GOOGLE_APPLICATION_CREDENTIALS"),
    FLAG(TEXT, "region", 0, store_args, region, "NAME",
         "the region of an s3:// bucket; by default AWS_REGION"),
    FLAG(TEXT, "endpoint", 0, store_args, endpoint, "URL",
         "a server other than that of AWS or Google; for s3:// by default AWS_ENDPOINT_URL_S3"),
    FLAG(TEXT, "ca-file", 0, store_args, ca_file, "FILE",
         "trust the authority whose certificate is in this file"),
    FLAG(BOOL, "json", 0, store_args, json, NULL, "print lines of JSON"),
    FLAG(BOOL, "quiet", 'q', store_args, quiet, NULL, "no progress, and less text"),
};

const struct command cmd_store = {
    .name = "store",
    .summary = "list, check and copy the files of a store or an archive",
    .usage = "store list DIR|BUCKET [--from TIME] [--until TIME] [--writer NAME] [OPTIONS]\n"
             "store verify DIR|BUCKET [--from TIME] [--until TIME] [--writer NAME] [OPTIONS]\n"
             "store pull BUCKET DIR [--from TIME] [--until TIME] [--writer NAME] [OPTIONS]\n"
             "store push DIR BUCKET --writer NAME [OPTIONS]",
    .description =
        "Works on the files of a store (store://) in a directory, and of an archive "
        "(store.archive) in a bucket. DIR is the directory of a store. BUCKET is the URL of an "
        "archive, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, or with --config the name of an "
        "endpoint.\n"
        "\n"
        "  list     one line for each file, with its stretch, profiles, bytes and writer\n"
        "  verify   reads every file and says which are damaged, or from a later version; files "
        "of a bucket are downloaded one after the other, into TMPDIR\n"
        "  pull     downloads files into a directory that opens as a store; files that it has "
        "already are skipped\n"
        "  push     uploads the files of a directory that no process uses under the name of a "
        "writer, and changes nothing that others have stored; it can be repeated",
    .exit_codes =
        "Exit code: 0 done; 1 the input is wrong, or verify, pull or push has found files that "
        "cannot be used; 2 usage; 3 the bucket has failed.",
    COMMAND_FLAGS(flags, store_args),
    .defaults = &(const struct store_args){.from_ns = INT64_MIN, .until_ns = INT64_MAX},
    .operands_max = 3,
    .subject = store_subject,
    .run = run_store,
};
