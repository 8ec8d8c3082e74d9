#include "tests/unit/lib/testing.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"

#define SOON_MS 300
#define LONG_MS 60000

TEST(test_a_disk_answers)
{
    static const char *const paths[] = {"/", "/proc/self", "/there/is/nothing", ""};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char root[64];
        assert_true(disk_answers(paths[i], LONG_MS));
        assert_true(disk_answers_child(paths[i], LONG_MS));
        assert_false(disk_hanging_root(paths[i], root, sizeof(root), LONG_MS));
    }
}

/* A file system in user space that nobody serves. */
static bool mount_hanging(const char *path, int *ret_fd)
{
    char options[128];
    *ret_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", *ret_fd);
    return *ret_fd >= 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("hanging", path, "fuse", 0, options) == 0;
}

TEST(test_a_disk_hangs)
{
    char *directory = testing_mkdtemp();
    char path[512];
    char root[512];
    int fd;
    if (!mount_hanging(directory, &fd)) {
        if (fd >= 0) {
            close(fd);
        }
        testing_directory_leave(&directory);
        skip();
    }
    (void)snprintf(path, sizeof(path), "%s/a/b", directory);
    assert_false(disk_answers_child(path, SOON_MS));
    assert_false(disk_answers(path, SOON_MS));
    assert_true(disk_hanging_root(path, root, sizeof(root), SOON_MS));
    assert_string_equal(root, directory);
    assert_false(disk_hanging_root(path, root, 8, SOON_MS));
    assert_int_equal(umount2(directory, MNT_FORCE | MNT_DETACH), 0);
    close(fd);
    assert_true(disk_answers(path, LONG_MS));
    testing_directory_leave(&directory);
}
