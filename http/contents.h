/* Credentials and certificates that come from elsewhere than a file, under names that settings use
 * as those of files: HTTP_CONTENT_PREFIX and what follows it. Whoever reads them puts them here,
 * and the clients take them from here as they take files that have changed.
 *
 * Any thread: one short lock. Texts are zeroed when they are freed.
 */
#ifndef PROFPULL_HTTP_CONTENTS_H
#define PROFPULL_HTTP_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define HTTP_CONTENT_PREFIX "kubernetes:"
/* The longest content, in bytes: what an object of Kubernetes may hold. */
#define HTTP_CONTENT_MAX ((size_t)1 << 20)

struct http_contents;
struct http_file;

struct http_contents *http_contents_new(void); /* NULL if out of memory */
struct http_contents *http_contents_free(struct http_contents *c);

/* Is this the name of a content, and not of a file? path may be NULL. */
bool http_content_named(const char *path);
/* Adds a name, whose content is not known yet. */
bool http_contents_add(struct http_contents *c, const char *name, struct err *err);
/* Replaces the content of a name that was added. False if it is too long or memory has run out: the
 * old one stays. */
bool http_contents_put(struct http_contents *c, const char *name, struct sv text, struct err *err);
/* Says why there is no content. One that is there stays in use. */
void http_contents_fail(struct http_contents *c, const char *name, const struct err *why);
/* Returns true if a server has refused the content since the last call. The second function notes a
 * refusal. */
bool http_contents_refused(struct http_contents *c, const char *name);
void http_contents_refuse(struct http_contents *c, const char *name);

/* Changes with the content and with the reason why there is none; 0 for a name that was not added.
 * c may be NULL here and below: nobody reads contents then. */
uint64_t http_contents_version(struct http_contents *c, const char *name);
/* A copy of the content, with one reference; NULL with an error that names it. */
struct http_file *http_contents_copy(struct http_contents *c, const char *name,
                                     uint64_t *ret_version, struct err *err);

#endif
