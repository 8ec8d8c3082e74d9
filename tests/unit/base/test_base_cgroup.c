/* Limits of control groups, read from directories that look like /proc and /sys. */
#include "tests/unit/lib/testing.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cgroup.h"

#define MIB (UINT64_C(1) << 20)

#define MEMINFO                                                                                    \
    {                                                                                              \
        "/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n"                            \
    }
#define MOUNT_V2 "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1(root)                                                                             \
    "33 25 0:29 " root " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                     \
    "34 25 0:30 " root " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"

struct file {
    const char *path;
    const char *text;
};

/* Writes a file with the directories above it. */
static void put(const char *root, const struct file *f)
{
    char path[512];
    snprintf(path, sizeof(path), "%s%s", root, f->path);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    testing_write_file(root, f->path + 1, f->text);
}

struct row {
    const char *name;
    struct file files[10];
    uint64_t memory;
    unsigned cpus; /* 0: as many as the process may run on */
};

static const struct row rows[] = {
    {"nothing can be read", {{NULL, NULL}}, UINT64_MAX, 0},
    {"a machine without groups", {MEMINFO}, 16384 * MIB, 0},
    {"version 2, a container with a namespace of its own",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/memory.max", "268435456\n"},
      {"/sys/fs/cgroup/memory.high", "max\n"},
      {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}},
     256 * MIB,
     1},
    {"version 2, the smallest of those above",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/kubepods/burstable/pod1/abc\n"},
      {"/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n" MOUNT_V2},
      {"/sys/fs/cgroup/kubepods/burstable/pod1/abc/memory.max", "536870912\n"},
      {"/sys/fs/cgroup/kubepods/burstable/pod1/memory.max", "134217728\n"},
      {"/sys/fs/cgroup/kubepods/burstable/memory.max", "max\n"},
      {"/sys/fs/cgroup/kubepods/cpu.max", "max 100000\n"}},
     128 * MIB,
     0},
    {"version 2, throttled above memory.high",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "536870912\n"},
      {"/sys/fs/cgroup/a/memory.high", "469762048\n"}},
     448 * MIB,
     0},
    {"version 1, a container that sees the groups of the machine",
     {MEMINFO,
      {"/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/x\n"},
      {"/proc/self/mountinfo", MOUNT_V1("/docker/abc")},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
     64 * MIB,
     0},
    {"version 1, nested, and unlimited in its words",
     {MEMINFO,
      {"/proc/self/cgroup", "5:memory:/a/b\n4:cpuacct,cpu:/a\n"},
      {"/proc/self/mountinfo", MOUNT_V1("/")},
      {"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}},
     1024 * MIB,
     1},
    {"both side by side, memory in version 1",
     {MEMINFO,
      {"/proc/self/cgroup", "8:memory:/m\n0::/\n"},
      {"/proc/self/mountinfo",
       "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" MOUNT_V1("/")},
      {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "33554432\n"}},
     32 * MIB,
     0},
    {"a path outside of what is mounted",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/../../other\n"},
      {"/proc/self/mountinfo", MOUNT_V2},
      {"/sys/fs/cgroup/memory.max", "44040192\n"}},
     42 * MIB,
     0},
    {"rubbish",
     {{"/proc/meminfo", "MemTotal: x\n"},
      {"/proc/self/cgroup", "\n0\n0:\n:::\n0::/a\n"},
      {"/proc/self/mountinfo", "\n - \n1 2 3 - cgroup2\n1 2 3 4 5 - cgroup2 x\n" MOUNT_V2},
      {"/sys/fs/cgroup/a/memory.max", "much\n"},
      {"/sys/fs/cgroup/a/memory.high", ""},
      {"/sys/fs/cgroup/a/cpu.max", "1 0\n"},
      {"/sys/fs/cgroup/cpu.max", "1\n"}},
     UINT64_MAX,
     0},
};

TEST(limits)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED_DIRECTORY char *root = testing_mkdtemp();
        for (const struct file *f = rows[i].files; f->path != NULL; f++) {
            put(root, f);
        }
        CHECK_INT(cgroup_memory(root), rows[i].memory, rows[i].name);
        unsigned cpus = rows[i].cpus != 0 ? rows[i].cpus : (unsigned)CPU_COUNT(&set);
        CHECK_INT(cgroup_cpus(root), cpus, rows[i].name);
    }
}

/* A quota of one and a half CPUs is worth two workers, if there are two CPUs. */
TEST(quota_is_rounded_up)
{
    static const struct file files[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo", MOUNT_V2},
        {"/sys/fs/cgroup/cpu.max", "150000 100000\n"},
    };
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    SCOPED_DIRECTORY char *root = testing_mkdtemp();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        put(root, &files[i]);
    }
    CHECK_INT(cgroup_cpus(root), CPU_COUNT(&set) < 2 ? 1 : 2, "");
}

/* Whatever this machine is. */
TEST(this_machine)
{
    assert_true(cgroup_memory("") > MIB);
    assert_true(cgroup_cpus("") >= 1);
}
