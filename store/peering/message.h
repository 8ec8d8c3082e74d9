/* The questions that a process asks its peers, and their answers, as bytes.
 *
 * A message begins with a line that has its version. Further lines have a word and values,
 * separated by spaces; the answer to a scan ends with the bytes of a slice. All bytes come from
 * another process, and a reader trusts none of them. Pure functions; any thread.
 *
 *     profpull peer question 1            profpull peer answer 1
 *     asker ID                            instance ID
 *     kind files|series|...               writer NAME              (if it archives)
 *     from NS                             file NAME HASH           (HASH "-": not archived yet)
 *     until NS                            archived NAME HASH MS    (for so long; not on its disk)
 *     file NAME                           gone                     (the file is not on its disk)
 *     profile ROW MS HASH                 more SET                 (further sets follow)
 *     after SET                           unlisted MS              (it does not know its objects
 * yet) bytes N MAX                         slice BYTES              (the last line, then the bytes)
 *     selector {...}                      end                      (the last line without a slice)
 *     end
 */
#ifndef PROFPULL_STORE_PEERING_MESSAGE_H
#define PROFPULL_STORE_PEERING_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "model/selector.h"
#include "store/peering/slice.h"

/* Length of the id of a process, in hexadecimal digits, and its size with the NUL. */
#define PEERING_ID_DIGITS 32
#define PEERING_ID_SIZE (PEERING_ID_DIGITS + 1)
/* Limit of a question. A selector has at most SELECTOR_BYTES_MAX bytes, which quoting may double.
 */
#define PEERING_QUESTION_MAX ((size_t)256 * 1024)
/* Limit of a list of files: 20,000 files, which is two years of hours. */
#define PEERING_FILES_MAX 20000
#define PEERING_LIST_MAX ((size_t)4 * 1024 * 1024)

struct peering_question {
    struct sv asker; /* the id of the process that asks */
    bool files;      /* the files are asked for; otherwise a slice of one file */
    enum slice_kind kind;
    int64_t from_ns;
    int64_t until_ns;
    struct sv file; /* the name of the file */
    int64_t profile;
    int64_t profile_ms; /* the time and hash in the id of the profile */
    uint64_t profile_hash;
    int64_t after_set;
    uint64_t bytes;
    uint64_t bytes_max;
    struct sv selector; /* "": all series */
};

bool peering_put_question(const struct peering_question *q, struct buf *out);
/* Appends a selector as one line of text, without its line break. */
bool peering_put_selector(const struct selector *s, struct buf *out);
/* Reads a question; its texts refer to the bytes. False with ERR_INPUT. */
bool peering_read_question(struct sv bytes, struct peering_question *ret, struct err *err);

/* A file of a peer: on its disk, or only in the archive. */
struct peering_file {
    struct store_name name;
    char text[STORE_NAME_SIZE];
    struct sv hash; /* of the whole file; "": it is not archived yet */
    /* If it is not on the disk of the peer: the time since its upload or, after a restart of the
     * peer, since that. -1: it is on the disk. */
    int64_t archived_ms;
};

struct peering_answer {
    struct sv instance;
    struct sv writer; /* "": the peer archives nothing */
    const struct peering_file *files;
    size_t n_files;
    int64_t unlisted_ms; /* the time for which the peer has not known its objects; -1: it does */
    bool gone;
    int64_t more; /* the last set of the slice; 0: no further sets follow */
    struct sv slice;
};

/* Append the lines of an answer, which ends with peering_put_end() or with a slice. */
bool peering_put_answer(const char *instance, const char *writer, struct buf *out);
bool peering_put_file(const char *text, const char *hash, int64_t archived_ms, struct buf *out);
bool peering_put_unlisted(int64_t ms, struct buf *out);
bool peering_put_gone(struct buf *out);
bool peering_put_end(struct buf *out);
bool peering_put_slice(struct sv bytes, int64_t more, struct buf *out);
/* Reads an answer into memory of the arena; its texts refer to the bytes. False with ERR_INPUT,
 * which says what came instead, or ERR_MEMORY. */
bool peering_read_answer(struct sv bytes, struct arena *arena, struct peering_answer *ret,
                         struct err *err);

#endif
