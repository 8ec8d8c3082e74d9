/* Declarations that the sources of `profpull store` share. One thread. */
#ifndef PROFPULL_CLI_STORE_PRIVATE_H
#define PROFPULL_CLI_STORE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cmd.h"
#include "cli/store/progress.h"
#include "store/archive/backend.h"
#include "store/archive/survey.h"
#include "store/private.h"

struct store_args {
    const char *config; /* --config; then buckets are named by their endpoints */
    const char *writer;
    int64_t from_ns;
    int64_t until_ns;
    const char *credentials;
    const char *credentials_file;
    const char *region;
    const char *endpoint;
    const char *ca_file;
    bool json;
    bool quiet;
};

/* ---- places (place.c) ------------------------------------------------------------------------ */

/* A bucket that a command has opened. */
struct place {
    struct archive_backend backend;
    struct config *config; /* the owner of the settings; NULL: `settings` below */
    struct bucket_settings settings;
};

/* Returns true if an operand names a bucket: a URL, or with --config always. */
bool place_is_bucket(const struct store_args *args, const char *operand);
/* Opens the bucket of an operand. False if that failed; *ret_code is the exit code, and the reason
 * was printed. Call place_close() afterwards, unless backend.arg was taken over and set to NULL. */
bool place_open(struct place *p, const struct store_args *args, const char *operand, int *ret_code);
void place_close(struct place *p);

/* Prints the error of a bucket; returns the exit code. */
int place_fail(enum bucket_result result, const struct err *err);

/* Opens the bucket of an operand, and lists the files that the arguments select. False as
 * place_open(). Call survey_done() and place_close() afterwards. */
bool place_survey(struct place *p, const struct store_args *args, const char *operand,
                  struct survey *ret, int *ret_code);

/* ---- files (lines.c) --------------------------------------------------------------------------
 */

/* One line of a list: a file in a directory, or in a bucket. */
struct store_row {
    const char *file;   /* path or key */
    const char *writer; /* NULL: in a directory */
    struct store_name name;
    bool has_name; /* a foreign object has none */
    bool has_profiles;
    uint64_t profiles;
    uint64_t bytes;
    const char *state;
    const char *problem; /* "" if there is none */
};

/* Sums of what was listed. */
struct store_sums {
    uint64_t files;
    uint64_t profiles;
    uint64_t bytes;
    uint64_t bad;   /* damaged, missing, from a later version, or unreadable */
    uint64_t other; /* foreign or unfinished objects, and files that are in use: no failures */
    int64_t from_ms;
    int64_t until_ms;
    bool any;
};

void lines_head(const struct store_args *args, bool bucket);
void lines_print(const struct store_args *args, const struct store_row *row);
/* Adds a row to the sums; one that is no file of a store counts as `other`. */
void lines_add(struct store_sums *sums, const struct store_row *row);
/* Prints the sums. */
void lines_sums(const struct store_args *args, const struct store_sums *sums);
/* Makes the row of a file of an archive. */
struct store_row lines_of(const struct survey_file *f);

/* ---- directories (directory.c) --------------------------------------------------------------- */

struct directory_files {
    char **paths; /* in order of names */
    size_t n;
};
/* Lists the files of a store in a directory whose stretch overlaps the range of the arguments. */
bool directory_list(const char *directory, const struct store_args *args,
                    struct directory_files *ret, struct err *err);
void directory_done(struct directory_files *d);

/* ---- commands; operands are checked by cmd_store.c ------------------------------------------- */

int store_list_directory(const struct store_args *args, const char *directory, bool verify);
int store_list_bucket(const struct store_args *args, const char *operand);
int store_verify_bucket(const struct store_args *args, const char *operand);
int store_pull(const struct store_args *args, const char *operand, const char *directory);
int store_push(const struct store_args *args, const char *directory, const char *operand);

#endif
