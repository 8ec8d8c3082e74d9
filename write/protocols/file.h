/* A file endpoint: profiles as files that a person finds and `go tool pprof` opens.
 *
 *     DIR/default_api/memory/20261121T032334.123Z_10.1.2.3-6060.pb.gz    (file_names.h)
 *     DIR/index.jsonl             one line for each file: its name, times, size and all labels
 *
 * A file is written under a temporary name (".tmp-...") in its directory and renamed when complete,
 * so readers never see half a profile. Nothing is synced: the files survive the end of the process
 * at any moment, not a loss of power. A gzip profile is kept byte for byte, a plain one is
 * compressed.
 *
 * Files beyond the retention of the endpoint are removed, the oldest first, and their lines with
 * them (file_retention.h): when the bytes are too many, and every few minutes for their age.
 *
 * file_deliver() blocks on the disk, which may hang, and belongs on a thread of the destination's
 * own; any number may run at once.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_FILE_H
#define PROFPULL_WRITE_PROTOCOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "model/profile.h"
#include "write/protocol.h"

#define FILE_INDEX "index.jsonl"
/* The most profiles of one instance, type and millisecond that get a name ("-2", "-3", ...). */
#define FILE_SAME_NAME_MAX 100

/* Makes the directory of the endpoint's URL (url_to_directory()) and its parents. The endpoint's
 * retention limits its files. NULL and err on failure. */
struct sink *file_open(const struct config_endpoint *endpoint, struct err *err);

/* Writes one profile and its line in the index. The series is built by the rules of this protocol.
 * The answer is ANSWER_SENT, or ANSWER_RETRY with what failed: a full disk and missing rights are
 * expected to be repaired. */
void file_deliver(struct sink *sink, const struct series *s, const struct profile *p,
                  struct answer *ret_answer);

extern const struct readback readback_file;

#endif
