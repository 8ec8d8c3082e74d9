/* Shows the content of a recording of Java's Flight Recorder, for people and as JSON. `profpull
 * jfr` uses it, and so does `profpull scrape` for types that are recordings.
 *
 * A recording is read chunk by chunk, so the memory depends on its largest chunk. One thread.
 */
#ifndef PROFPULL_CLI_RECORDING_H
#define PROFPULL_CLI_RECORDING_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "jfr/jfr.h"

struct recording_chunks {
    struct jfr_head *heads; /* one for each chunk that was begun */
    size_t n;
    size_t cap;
};

/* A recording that was read. recording_done() must be called also after an error. */
struct recording {
    struct jfr_reader *reader;
    struct recording_chunks chunks;
    struct err damage; /* its kind is ERR_NONE if there is no damage */
};

/* Reads a file, gzip or plain; "-" is standard input. sample_rate: as in jfr_options. False with
 * err if the file cannot be read at all. Damage within a recording is described in ret->damage; the
 * content before it is kept. */
bool recording_read_file(const char *path, unsigned sample_rate, struct recording *ret,
                         struct err *err);
/* Reads a recording in memory, gzip or plain, in the same way. */
bool recording_read_bytes(struct sv body, unsigned sample_rate, struct recording *ret,
                          struct err *err);
void recording_done(struct recording *r);

void recording_print(const struct recording *r, struct buf *out);
void recording_print_json(const struct recording *r, const char *path, struct buf *out);
/* Appends only the profiles, one a line, each after this indent. */
void recording_print_profiles(const struct recording *r, const char *indent, struct buf *out);

#endif
