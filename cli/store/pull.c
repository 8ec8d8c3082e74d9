/* `profpull store pull`: copies files of an archive into a directory that opens as a store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/store/private.h"
#include "store/private.h"

#define PATH_SIZE 4096
/* The name of a file that is being downloaded; a store does not read it. */
#define PART_NAME "pulled.part"

struct pull {
    const struct store_args *args;
    const struct archive_backend *backend;
    const char *directory;
    int directory_fd; /* holds the lock that a store takes as well */
    struct progress progress;
    uint64_t files_done;
    uint64_t bytes_done;
    uint64_t pulled;
    uint64_t present; /* files that the directory has already */
    uint64_t bytes;   /* of the pulled files */
    uint64_t bad;
};

/* ---- the directory --------------------------------------------------------------------------- */

static bool take_directory(struct pull *p, struct err *err)
{
    if (!make_directories(p->directory, 0777, err)) {
        return false;
    }
    p->directory_fd = open(p->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->directory_fd < 0) {
        return err_sys(err, "cannot open %s", p->directory);
    }
    /* Where directories cannot be locked, as on NFS, nothing protects it. */
    return flock(p->directory_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK ||
           err_set(err, ERR_INPUT, "another process writes to the directory %s: pull into another",
                   p->directory);
}

enum place_found { PLACE_FREE, PLACE_PRESENT, PLACE_NONE };

/* Finds the first name of a stretch that is free, unless the directory has the file already. */
static enum place_found find_place(const struct pull *p, const struct survey_file *f,
                                   char path[PATH_SIZE])
{
    struct store_name name = f->name.stretch;
    char text[STORE_NAME_SIZE];
    char hash[ARCHIVE_HASH_DIGITS + 1];
    struct stat st;
    for (name.generation = 1; name.generation <= STORE_FILES_OF_A_STRETCH_MAX; name.generation++) {
        store_name_format(&name, text);
        (void)snprintf(path, PATH_SIZE, "%s/%s", p->directory, text);
        if (lstat(path, &st) != 0) {
            return PLACE_FREE;
        }
        if ((uint64_t)st.st_size == f->name.bytes && survey_hash(path, hash, NULL) &&
            strcmp(hash, f->name.hash) == 0) {
            return PLACE_PRESENT;
        }
    }
    return PLACE_NONE;
}

/* ---- one file -------------------------------------------------------------------------------- */

static void pull_on_bytes(void *arg, uint64_t n)
{
    struct pull *p = arg;
    p->bytes_done += n;
    progress_set(&p->progress, p->files_done, p->bytes_done);
}

/* Gives the downloaded file its name, once all of it is on the disk. */
static bool publish(const struct pull *p, int fd, const char *part, const char *path,
                    struct err *err)
{
    if (fsync(fd) != 0 || rename(part, path) != 0 || fsync(p->directory_fd) != 0) {
        return err_sys(err, "cannot write %s", path);
    }
    return true;
}

static enum survey_state download(struct pull *p, const struct survey_file *f, const char *path,
                                  struct err *err)
{
    char part[PATH_SIZE];
    (void)snprintf(part, sizeof(part), "%s/" PART_NAME, p->directory);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        (void)err_sys(err, "cannot write %s", part);
        return SURVEY_FAILED;
    }
    enum survey_state state = survey_download(p->backend, f, fd, pull_on_bytes, p, err);
    if (state == SURVEY_FINE && !publish(p, fd, part, path, err)) {
        state = SURVEY_FAILED;
    }
    close(fd);
    if (state != SURVEY_FINE) {
        (void)unlink(part);
    }
    return state;
}

/* Reports one file. state: "pulled", "present", or why it was left out. */
static void report(struct pull *p, const struct survey_file *f, const char *state, const char *path,
                   const char *problem)
{
    struct store_row row = lines_of(f);
    progress_clear(&p->progress);
    row.state = state;
    row.problem = problem != NULL ? problem : row.problem;
    if (!p->args->quiet || strcmp(state, "pulled") != 0) {
        row.file = path != NULL ? path : row.file;
        lines_print(p->args, &row);
    }
}

/* Pulls one file. Returns false if further ones would fail in the same way. */
static bool pull_one(struct pull *p, const struct survey_file *f, struct err *err)
{
    char path[PATH_SIZE] = "";
    enum place_found found = find_place(p, f, path);
    enum survey_state state = SURVEY_FINE;
    if (found == PLACE_NONE) {
        return err_set(err, ERR_LIMIT, "%s: too many files of one stretch", p->directory);
    }
    if (found == PLACE_FREE) {
        state = download(p, f, path, err);
    } else {
        p->bytes_done += f->name.bytes;
    }
    p->files_done++;
    if (state == SURVEY_FAILED) {
        return false;
    }
    p->bad += state != SURVEY_FINE;
    p->present += found == PLACE_PRESENT;
    p->pulled += found == PLACE_FREE && state == SURVEY_FINE;
    p->bytes += found == PLACE_FREE && state == SURVEY_FINE ? f->name.bytes : 0;
    report(p, f,
           state != SURVEY_FINE     ? survey_state_name(state)
           : found == PLACE_PRESENT ? "present"
                                    : "pulled",
           path, state != SURVEY_FINE ? err->msg : NULL);
    err_clear(err);
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void print_sums(const struct pull *p)
{
    char bytes[PROGRESS_SIZE];
    progress_format_size(p->bytes, bytes);
    if (p->args->json) {
        printf("{\"pulled\":%llu,\"present\":%llu,\"bytes\":%llu,\"bad\":%llu}\n",
               (unsigned long long)p->pulled, (unsigned long long)p->present,
               (unsigned long long)p->bytes, (unsigned long long)p->bad);
    } else if (!p->args->quiet) {
        printf("%llu files pulled (%s), %llu present already, %llu left out\n",
               (unsigned long long)p->pulled, bytes, (unsigned long long)p->present,
               (unsigned long long)p->bad);
    }
}

static int pull_all(struct pull *p, const struct survey *survey)
{
    uint64_t files = 0;
    uint64_t bytes = 0;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < survey->n; i++) {
        bool fine = survey->at[i].state == SURVEY_FINE;
        files += fine;
        bytes += fine ? survey->at[i].name.bytes : 0;
    }
    progress_begin(&p->progress, "downloaded", p->args->quiet, files, bytes);
    bool ok = true;
    for (size_t i = 0; ok && i < survey->n; i++) {
        const struct survey_file *f = &survey->at[i];
        if (f->state == SURVEY_FINE) {
            ok = pull_one(p, f, &err);
        } else if (f->state != SURVEY_FOREIGN && f->state != SURVEY_UNFINISHED &&
                   f->state != SURVEY_REPLACED) {
            p->bad++;
            report(p, f, survey_state_name(f->state), NULL, NULL);
        }
    }
    progress_clear(&p->progress);
    print_sums(p);
    if (!ok) {
        err_append(&err, "; repeat the command to go on");
        return cmd_fail(EXIT_PEER, &err);
    }
    return cmd_flush(p->bad > 0 ? EXIT_INPUT : EXIT_DONE);
}

int store_pull(const struct store_args *args, const char *operand, const char *directory)
{
    struct place place;
    struct survey survey;
    struct err err = ERR_INIT;
    int code = EXIT_DONE;
    if (!place_survey(&place, args, operand, &survey, &code)) {
        return code;
    }
    struct pull p = {
        .args = args, .backend = &place.backend, .directory = directory, .directory_fd = -1};
    code = take_directory(&p, &err) ? pull_all(&p, &survey) : cmd_fail(EXIT_INPUT, &err);
    if (p.directory_fd >= 0) {
        close(p.directory_fd);
    }
    survey_done(&survey);
    place_close(&place);
    return code;
}
