/* The answer of the child that reads debug information, as bytes: an answer_writer makes them in
 * the child, answer_decode() checks and reads them in the agent. Private to symbols/.
 *
 * The child has parsed bytes of strangers, so the agent trusts no number and no string of an
 * answer. Numbers have the byte order of the machine: both ends are the same program.
 */
#ifndef PROFPULL_SYMBOLS_ANSWER_H
#define PROFPULL_SYMBOLS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "symbols/failure.h"
#include "symbols/frames.h"

/* The largest answer in bytes, without its head: some 300,000 frames with long names. */
#define ANSWER_MAX ((uint32_t)64 * 1024 * 1024)
/* The longest name in bytes. A longer one is cut: demangling can make megabytes of a short name. */
#define ANSWER_NAME_MAX 65536
#define ANSWER_MAGIC UINT32_C(0x6e616d31) /* "nam1" */

struct answer_head {
    uint32_t magic;
    uint32_t failure;   /* enum symbols_failure; not SYMBOLS_OK: the strings are one message */
    uint32_t addresses; /* as in the question */
    uint32_t frames;
    uint32_t strings; /* bytes, with the NUL after each string */
    uint32_t opened;  /* 1 if the file was opened for this question; 0 if it was still open */
    uint32_t partial; /* 1 if the file has debug information that could not be read */
};

/* A frame in an answer: three offsets of strings, two lines. */
struct answer_frame {
    uint32_t function;
    uint32_t system_name;
    uint32_t file;
    uint32_t unused;
    int64_t line;
    int64_t start_line;
};

/* ---- in the child ---------------------------------------------------------------------------- */

struct answer_writer {
    struct buf ends;
    struct buf frames;
    struct buf strings;
    struct map *offsets; /* of strings, by their bytes */
    uint32_t n_frames;
    uint32_t n_addresses;
    bool failed; /* out of memory, or larger than ANSWER_MAX */
};

/* Prepares an empty answer; answer_writer_done() frees it. */
void answer_writer_init(struct answer_writer *w);
void answer_writer_done(struct answer_writer *w);

/* Appends a frame to the current address. The strings are copied. */
void answer_add_frame(struct answer_writer *w, const struct symbol_frame *f);
/* Ends the current address, which may have no frames. */
void answer_end_address(struct answer_writer *w);

/* Returns the bytes of the payload that follows the head, in `out`. Returns false if out of memory
 * or if the answer would be larger than ANSWER_MAX. */
bool answer_finish(struct answer_writer *w, struct answer_head *ret_head, struct buf *out);

/* ---- in the agent ---------------------------------------------------------------------------- */

/* Returns the bytes that follow a head, or 0 with an error if the head is not the one of an answer
 * to a question about `n` addresses. */
uint64_t answer_payload_size(const struct answer_head *head, size_t n, struct err *err);

/* Takes over the payload, allocated with malloc(): on success it belongs to *ret, otherwise it is
 * freed. Strings that are no UTF-8 or have control characters get "?" for each such byte. Returns
 * false with ERR_INPUT and the place for an answer that is not well-formed. The head must be one
 * with SYMBOLS_OK that answer_payload_size() has accepted. */
bool answer_decode(const struct answer_head *head, char *payload, struct symbol_frames *ret,
                   struct err *err);

#endif
