/* Files and pipes that are read whole. */
#include "tests/unit/lib/testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"

struct dir {
    char *path;
    char file[4096];
    struct buf out;
    struct err err;
};

static void open_dir(struct dir *d, const char *name)
{
    d->path = testing_mkdtemp();
    d->err = (struct err)ERR_INIT;
    snprintf(d->file, sizeof(d->file), "%s/%s", d->path, name);
    buf_init(&d->out, 1000);
}

static void close_dir(struct dir *d)
{
    buf_done(&d->out);
    testing_directory_leave(&d->path);
}

TEST(files)
{
    struct dir d;
    open_dir(&d, "a");
    testing_write_file(d.path, "a", "text");
    assert_true(file_read(d.file, 4, &d.out, &d.err));
    CHECK_STR(d.out.data, "text", "");
    buf_clear(&d.out);
    assert_false(file_read(d.file, 3, &d.out, &d.err));
    CHECK_STR(d.err.msg, "larger than 3 bytes", "");
    assert_false(file_read(d.path, 4, &d.out, &d.err));
    CHECK_STR(d.err.msg, "is a directory", "");
    close_dir(&d);
}

/* Nobody writes: the error comes, and not never. */
TEST(a_pipe_without_a_writer)
{
    struct dir d;
    open_dir(&d, "pipe");
    assert_int_equal(mkfifo(d.file, 0600), 0);
    assert_false(file_read_within(d.file, 1, 100, &d.out, &d.err));
    CHECK_STR(d.err.msg, "is a pipe that nobody has written to for 1 ms", "");
    close_dir(&d);
}

static void *write_slowly(void *path)
{
    int fd = open(path, O_WRONLY);
    static const char text[] = "in two parts";
    bool ok = fd >= 0 && write(fd, text, 6) == 6;
    usleep(20000);
    ok = ok && write(fd, text + 6, sizeof(text) - 7) == (ssize_t)sizeof(text) - 7;
    close(fd);
    return ok ? path : NULL;
}

/* A pipe as with `check --config <(...)`: the writer comes later, and pauses. */
TEST(a_pipe_with_a_slow_writer)
{
    struct dir d;
    pthread_t thread;
    void *wrote;
    open_dir(&d, "pipe");
    assert_int_equal(mkfifo(d.file, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, d.file), 0);
    assert_true(file_read(d.file, 100, &d.out, &d.err));
    pthread_join(thread, &wrote);
    assert_non_null(wrote);
    CHECK_STR(d.out.data, "in two parts", "");
    close_dir(&d);
}
