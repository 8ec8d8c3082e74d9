/* The content of a recording of Java's Flight Recorder, for people and as JSON: for `profpull jfr`,
 * and for `profpull scrape` of such a type.
 *
 * A recording is read chunk by chunk, so memory is that of its largest chunk. One thread.
 */
#ifndef PROFPULL_CLI_RECORDING_H
#define PROFPULL_CLI_RECORDING_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "jfr/jfr.h"

struct recording_chunks {
    struct jfr_head *heads; /* of the chunks that were begun */
    size_t n;
    size_t cap;
};

/* A recording that was read; call recording_done() also after an error. */
struct recording {
    struct jfr_reader *reader;
    struct recording_chunks chunks;
    struct err damage; /* kind ERR_NONE: none */
};

/* Reads a file, gzip or plain; "-" is standard input. sample_rate: as in jfr_options. False with
 * err if it cannot be read at all; damage within a recording is in ret->damage, and what was good
 * before it is kept. */
bool recording_read_file(const char *path, unsigned sample_rate, struct recording *ret,
                         struct err *err);
/* The same for a recording in memory, gzip or plain. */
bool recording_read_bytes(struct sv body, unsigned sample_rate, struct recording *ret,
                          struct err *err);
void recording_done(struct recording *r);

void recording_print(const struct recording *r, struct buf *out);
void recording_print_json(const struct recording *r, const char *path, struct buf *out);
/* Only the profiles, a line each, with this text in front of them. */
void recording_print_profiles(const struct recording *r, const char *indent, struct buf *out);

#endif
