#include "base/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers of the system calls, which are the same on every architecture. */
#define CALL_CREATE_RULESET 444
#define CALL_ADD_RULE 445
#define CALL_RESTRICT_SELF 446
#define CREATE_RULESET_VERSION 1U

/* <linux/landlock.h> of a newer kernel: rights to files, by the version that knows them. */
#define FILE_EXECUTE (UINT64_C(1) << 0)
#define FILE_WRITE (UINT64_C(1) << 1)
#define FILE_READ (UINT64_C(1) << 2)
#define DIRECTORY_READ (UINT64_C(1) << 3)
#define REMOVE_DIRECTORY (UINT64_C(1) << 4)
#define REMOVE_FILE (UINT64_C(1) << 5)
#define MAKE_DIRECTORY (UINT64_C(1) << 7)
#define MAKE_REGULAR (UINT64_C(1) << 8)
#define RIGHTS_OF_1 ((UINT64_C(1) << 13) - 1)
#define REFER_OF_2 (UINT64_C(1) << 13)
#define TRUNCATE_OF_3 (UINT64_C(1) << 14)
#define DEVICE_IOCTL_OF_5 (UINT64_C(1) << 15)
/* Rights for the network (version 4), and for other processes (version 6). */
#define BIND_TCP_OF_4 (UINT64_C(1) << 0)
#define SCOPES_OF_6 (UINT64_C(3)) /* abstract sockets and signals */

/* The rights that a rule may give to a file that is no directory. */
#define RIGHTS_OF_FILES (FILE_EXECUTE | FILE_WRITE | FILE_READ | TRUNCATE_OF_3 | DEVICE_IOCTL_OF_5)
#define RIGHTS_TO_READ (FILE_READ | DIRECTORY_READ)
#define RIGHTS_TO_WRITE                                                                            \
    (FILE_WRITE | REMOVE_DIRECTORY | REMOVE_FILE | MAKE_DIRECTORY | MAKE_REGULAR | TRUNCATE_OF_3)

/* The arguments of the calls in the kernel's layout. Members that an older kernel does not know are
 * zero. */
struct ruleset_attr {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};
struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));
struct port_rule {
    uint64_t rights;
    uint64_t port;
};
enum rule_type { RULE_PATH = 1, RULE_PORT = 2 };

int landlock_version(void)
{
    long version = syscall(CALL_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

/* Returns all rights that this version of the kernel can take away. */
static struct ruleset_attr all_rights(int version)
{
    struct ruleset_attr attr = {.files = RIGHTS_OF_1};
    attr.files |= version >= 2 ? REFER_OF_2 : 0;
    attr.files |= version >= 3 ? TRUNCATE_OF_3 : 0;
    attr.files |= version >= 5 ? DEVICE_IOCTL_OF_5 : 0;
    attr.network = version >= 4 ? BIND_TCP_OF_4 : 0;
    attr.scopes = version >= 6 ? SCOPES_OF_6 : 0;
    return attr;
}

static bool add_path(int ruleset, uint64_t handled, const struct landlock_path *p, struct err *err)
{
    int fd = open(p->path, O_PATH | O_CLOEXEC);
    struct stat st = {.st_mode = S_IFDIR};
    if (fd < 0 || (!p->hangs && fstat(fd, &st) != 0)) {
        bool passed = fd < 0; /* the path is missing, or this user may not see it */
        if (!passed) {
            close(fd);
        }
        return passed || err_sys(err, "%s", p->path);
    }
    struct path_rule rule = {
        .rights = handled & (RIGHTS_TO_READ | (p->writable ? RIGHTS_TO_WRITE : 0)), .fd = fd};
    if (!S_ISDIR(st.st_mode)) {
        rule.rights &= RIGHTS_OF_FILES;
    }
    bool ok = syscall(CALL_ADD_RULE, ruleset, RULE_PATH, &rule, 0) == 0;
    int failed = errno;
    close(fd);
    errno = failed;
    return ok || err_sys(err, "%s", p->path);
}

static bool add_rules(int ruleset, const struct ruleset_attr *attr,
                      const struct landlock_rules *rules, struct err *err)
{
    for (size_t i = 0; i < rules->n_paths; i++) {
        if (!add_path(ruleset, attr->files, &rules->paths[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; attr->network != 0 && i < rules->n_ports; i++) {
        struct port_rule rule = {.rights = BIND_TCP_OF_4, .port = rules->ports[i]};
        if (syscall(CALL_ADD_RULE, ruleset, RULE_PORT, &rule, 0) != 0) {
            return err_sys(err, "port %u", (unsigned)rules->ports[i]);
        }
    }
    return true;
}

bool landlock_restrict(const struct landlock_rules *rules, struct err *err)
{
    int version = landlock_version();
    struct ruleset_attr attr = all_rights(version);
    if (version == 0) {
        return err_sys(err, "not available");
    }
    int ruleset = (int)syscall(CALL_CREATE_RULESET, &attr, sizeof(attr), 0);
    if (ruleset < 0) {
        return err_sys(err, "cannot make rules");
    }
    bool ok = add_rules(ruleset, &attr, rules, err) &&
              (syscall(CALL_RESTRICT_SELF, ruleset, 0) == 0 || err_sys(err, "refused"));
    close(ruleset);
    return ok;
}
