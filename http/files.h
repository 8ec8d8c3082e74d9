/* Files with credentials and certificates, which are re-read when they change on disk; and contents
 * that have a name like a file but come from elsewhere (contents.h). */
#ifndef PROFPULL_HTTP_FILES_H
#define PROFPULL_HTTP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/str.h"

/* The size limit of a file with a password or a token. */
#define HTTP_SECRET_FILE_MAX (64 * 1024)
/* The least time between two checks of a file for changes. */
#define HTTP_FILE_CHECK_MS 1000

/* The content of a file at one time: immutable, counted, zeroed when freed. */
struct http_file {
    unsigned refs;
    size_t len;
    char data[]; /* and a NUL */
};

/* The conditions under which a new content replaces the old one. */
struct http_file_rule {
    size_t max;
    bool (*check)(struct sv text, struct err *err); /* may be NULL */
};

struct http_files;
struct http_contents;
/* Makes the cache of files. failures counts files whose new content was rejected; it may be NULL,
 * as may contents. Returns NULL if out of memory. */
struct http_files *http_files_new(struct log *log, struct metric_cell *failures,
                                  struct http_contents *contents);
struct http_files *http_files_free(struct http_files *f);
/* Returns a reference to the content, which is at most HTTP_FILE_CHECK_MS old. If the file has
 * become unreadable, empty or invalid by the rule, the old content stays in use, which is counted
 * and logged. If there is no old content, returns NULL with an error, which names the file and
 * never shows its content. */
struct http_file *http_files_get(struct http_files *f, const char *path,
                                 const struct http_file_rule *rule, int64_t now_ms,
                                 struct err *err);
/* Copies the content of a file without white space at its ends. The caller frees *ret with
 * secret_free(). *ret is NULL if path is NULL. */
bool http_files_secret(struct http_files *f, const char *path, char **ret, struct err *err);
/* Makes the next http_files_get() read the file again, because a server has refused its content.
 * path may be NULL. */
void http_files_forget(struct http_files *f, const char *path);
struct http_file *http_file_unref(struct http_file *file); /* accepts NULL, returns NULL */

#endif
