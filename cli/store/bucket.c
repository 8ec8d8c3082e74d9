/* `profpull store list` and `verify` of a bucket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/store/private.h"

#define PATH_SIZE 4096

int store_list_bucket(const struct store_args *args, const char *operand)
{
    struct place place;
    struct survey survey;
    struct store_sums sums = {.files = 0};
    int code = EXIT_DONE;
    if (!place_survey(&place, args, operand, &survey, &code)) {
        return code;
    }
    lines_head(args, true);
    for (size_t i = 0; i < survey.n; i++) {
        struct store_row row = lines_of(&survey.at[i]);
        lines_add(&sums, &row);
        lines_print(args, &row);
    }
    lines_sums(args, &sums);
    survey_done(&survey);
    place_close(&place);
    return cmd_flush(EXIT_DONE);
}

/* ---- verify ---------------------------------------------------------------------------------- */

struct verify {
    const struct store_args *args;
    const struct archive_backend *backend;
    struct progress progress;
    struct store_sums sums;
    uint64_t files_done;
    uint64_t bytes_done;
    bool failed; /* the bucket has failed */
};

static void verify_on_bytes(void *arg, uint64_t n)
{
    struct verify *v = arg;
    v->bytes_done += n;
    progress_set(&v->progress, v->files_done, v->bytes_done);
}

/* Makes an empty file that only this user can read. Returns its descriptor, or -1 with err. */
static int temporary(char path[PATH_SIZE], struct err *err)
{
    const char *directory = cmd_environment("TMPDIR");
    (void)snprintf(path, PATH_SIZE, "%s/profpull-verify-XXXXXX",
                   directory != NULL ? directory : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        (void)err_sys(err, "cannot make a file in %s", directory != NULL ? directory : "/tmp");
    }
    return fd;
}

static enum survey_state check_one(struct verify *v, const struct survey_file *f, struct err *err)
{
    char path[PATH_SIZE];
    int fd = temporary(path, err);
    if (fd < 0) {
        return SURVEY_FAILED;
    }
    enum survey_state state = survey_download(v->backend, f, fd, verify_on_bytes, v, err);
    if (state == SURVEY_FINE) {
        state = survey_check(v->backend, f, path, err);
    }
    close(fd);
    (void)unlink(path);
    return state;
}

static void verify_one(struct verify *v, struct survey_file *f)
{
    struct err err = ERR_INIT;
    struct store_row row = lines_of(f);
    if (f->state == SURVEY_FINE) {
        enum survey_state state = check_one(v, f, &err);
        v->failed = v->failed || state == SURVEY_FAILED;
        row.state = survey_state_name(state);
        row.problem = err.msg;
    }
    v->files_done++;
    progress_clear(&v->progress);
    lines_add(&v->sums, &row);
    lines_print(v->args, &row);
}

static int verify_all(struct verify *v, struct survey *survey)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < survey->n; i++) {
        bytes += survey->at[i].state == SURVEY_FINE ? survey->at[i].data_bytes : 0;
    }
    progress_begin(&v->progress, "checked", v->args->quiet, survey->n, bytes);
    lines_head(v->args, true);
    for (size_t i = 0; i < survey->n; i++) {
        verify_one(v, &survey->at[i]);
    }
    progress_clear(&v->progress);
    lines_sums(v->args, &v->sums);
    return cmd_flush(v->failed ? EXIT_PEER : v->sums.bad > 0 ? EXIT_INPUT : EXIT_DONE);
}

int store_verify_bucket(const struct store_args *args, const char *operand)
{
    struct place place;
    struct survey survey;
    int code = EXIT_DONE;
    if (!place_survey(&place, args, operand, &survey, &code)) {
        return code;
    }
    struct verify v = {.args = args, .backend = &place.backend};
    code = verify_all(&v, &survey);
    survey_done(&survey);
    place_close(&place);
    return code;
}
