/* `profpull store push`: uploads the files of a directory into an archive. */
#include "store/archive/push.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/store/private.h"

struct push {
    const struct store_args *args;
    struct progress progress;
    bool begun;
};

static void push_on_progress(void *arg, uint64_t files, uint64_t bytes)
{
    struct push *p = arg;
    if (!p->begun) {
        p->begun = true;
        progress_begin(&p->progress, "uploaded", p->args->quiet, files, bytes);
        return;
    }
    progress_set(&p->progress, p->progress.files - files,
                 p->progress.bytes > bytes ? p->progress.bytes - bytes : 0);
}

static void print_pushed(const struct store_args *args, const struct archive_pushed *r)
{
    char bytes[PROGRESS_SIZE];
    struct buf line;
    if (args->json) {
        buf_init(&line, 8192);
        buf_printf(&line,
                   "{\"files\":%llu,\"uploaded\":%llu,\"profiles\":%llu,\"bytes\":%llu,"
                   "\"left\":%llu",
                   (unsigned long long)r->files, (unsigned long long)r->uploaded,
                   (unsigned long long)r->profiles, (unsigned long long)r->bytes,
                   (unsigned long long)r->left);
        if (r->left > 0) {
            json_member("problem", sv_from(r->why), &line);
        }
        buf_puts(&line, "}\n");
        (void)cmd_print(buf_ok(&line), &line, stdout);
        return;
    }
    progress_format_size(r->bytes, bytes);
    if (!args->quiet) {
        printf("%llu files uploaded; the bucket has %llu files of %s under this name, with %llu "
               "profiles (%s)\n",
               (unsigned long long)r->uploaded, (unsigned long long)r->files, "the directory",
               (unsigned long long)r->profiles, bytes);
    }
    if (r->left > 0) {
        fprintf(stderr, "profpull: %llu files were left out, the first one is %s\n",
                (unsigned long long)r->left, r->why);
    }
}

int store_push(const struct store_args *args, const char *directory, const char *operand)
{
    struct place place;
    struct err err = ERR_INIT;
    struct push push = {.args = args};
    struct archive_pushed result;
    int code = EXIT_DONE;
    if (!place_open(&place, args, operand, &code)) {
        return code;
    }
    struct archive_push options = {.directory = directory,
                                   .writer = args->writer,
                                   .backend = place.backend,
                                   .on_progress = push_on_progress,
                                   .arg = &push};
    place.backend.arg = NULL; /* archive_push() frees it */
    bool ok = archive_push(&options, &result, &err);
    progress_clear(&push.progress);
    if (!ok) {
        /* A wrong name or directory is ours; all else is the bucket's. */
        code = cmd_fail(err.kind == ERR_INPUT ? EXIT_INPUT : EXIT_PEER, &err);
    } else {
        print_pushed(args, &result);
        code = cmd_flush(result.left > 0 ? EXIT_INPUT : EXIT_DONE);
    }
    place_close(&place);
    return code;
}
