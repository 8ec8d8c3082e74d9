/* Credentials and certificates that do not come from files. Settings name them like files, with
 * names that begin with HTTP_CONTENT_PREFIX. Their reader puts them here, and clients take them
 * from here, as they take files that have changed.
 *
 * Any thread may call these functions; they hold one lock for a short time. Texts are zeroed when
 * they are freed.
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

/* Returns true if this is the name of a content and not of a file. path may be NULL. */
bool http_content_named(const char *path);
/* Adds a name, whose content is not known yet. */
bool http_contents_add(struct http_contents *c, const char *name, struct err *err);
/* Replaces the content of a name that was added. Returns false, and the old content stays, if the
 * text is too long or memory has run out. */
bool http_contents_put(struct http_contents *c, const char *name, struct sv text, struct err *err);
/* Notes why there is no content. An older content stays in use. */
void http_contents_fail(struct http_contents *c, const char *name, const struct err *why);
/* http_contents_refused() returns true if a server has refused the content since the last call.
 * http_contents_refuse() notes a refusal. */
bool http_contents_refused(struct http_contents *c, const char *name);
void http_contents_refuse(struct http_contents *c, const char *name);

/* Returns a version, which changes with the content and with the reason why there is none; 0 for a
 * name that was not added. c may be NULL here and below if contents are not used. */
uint64_t http_contents_version(struct http_contents *c, const char *name);
/* Returns a copy of the content, with one reference. Returns NULL with an error that names the
 * content. */
struct http_file *http_contents_copy(struct http_contents *c, const char *name,
                                     uint64_t *ret_version, struct err *err);

#endif
