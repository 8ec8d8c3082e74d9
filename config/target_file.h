/* Lists of targets written by others: the files of file_sd_configs (YAML or JSON) and the answers
 * of http_sd_configs (JSON).
 *
 *     - targets: ["10.0.0.1:6060", "10.0.0.2:6060"]
 *       labels: {service_name: shop}
 *
 * The reader is as strict as that of the configuration: unknown keys, duplicate keys and values of
 * the wrong kind are errors, and a list with an error is refused as a whole. Environment variables
 * are not expanded. The limits of text and nodes are those of a configuration (config.h).
 */
#ifndef PROFPULL_CONFIG_TARGET_FILE_H
#define PROFPULL_CONFIG_TARGET_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* The most memory that one parsed list may take. */
#define TARGET_FILE_ARENA_MAX ((size_t)64 * 1024 * 1024)

struct target_file {
    const struct config_static *groups; /* in the arena */
    size_t n;
};

/* Reads the text of a list. The error is the first one, with line, column and path
 * (`3:5: [1].targets: expected ...`), and the number of further ones. */
bool target_file_parse(struct sv text, struct arena *arena, struct target_file *ret,
                       struct err *err);
/* Reads a regular file of at most CONFIG_FILE_MAX bytes into out, which is cleared first. Other
 * kinds of files, such as pipes, are refused, so that the reader never waits for a writer. */
bool target_file_read(const char *path, struct buf *out, struct err *err);

#endif
