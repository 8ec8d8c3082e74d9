/* A process in a sandbox: what is allowed and what is not. Each case is a child that enters a
 * sandbox, tries, and ends with the number of the line that found something wrong. */
#include "tests/unit/lib/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/landlock.h"
#include "base/sandbox.h"
#include "base/thread.h"

SCOPED_POINTER(sandbox, sandbox_free)

/* In the child, where cmocka's asserts would go on with the parent's tests. */
#define EXPECT(ok)                                                                                 \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #ok, strerror(errno));                  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define FAILS(call, number) ((call) < 0 && errno == (number))

struct places {
    char *readable;
    char *writable;
    char *hidden;
    uint16_t port;
};

static struct places make_places(void)
{
    struct places p = {testing_mkdtemp(), testing_mkdtemp(), testing_mkdtemp(), 0};
    testing_write_file(p.readable, "file", "1");
    testing_write_file(p.writable, "file", "1");
    testing_write_file(p.hidden, "file", "1");
    return p;
}

static void remove_places(struct places *p)
{
    char *all[] = {p->readable, p->writable, p->hidden};
    for (size_t i = 0; i < 3; i++) {
        testing_rmdir(all[i]);
        free(all[i]);
    }
}

static void in_child(void (*fn)(const struct places *p))
{
    struct places p = make_places();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fn(&p);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    remove_places(&p);
    assert_int_equal(status, 0);
}

static const char *in(const char *directory, const char *name)
{
    static char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

/* A free port: nobody else gets it while the socket is open, which is not listening. */
static uint16_t free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
    EXPECT(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    return ntohs(a.sin_port);
}

static int bind_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    EXPECT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
    int rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
    int failed = errno;
    close(fd);
    errno = failed;
    return rc;
}

static struct sandbox_report enter(const struct sandbox *s)
{
    struct sandbox_report report;
    EXPECT(sandbox_enter(s, &report, NULL));
    for (enum sandbox_part i = 0; i < SANDBOX_PARTS; i++) {
        EXPECT(report.on[i] == (report.why[i].msg[0] == '\0'));
    }
    /* The filter refuses this prctl() too; TestSandbox reads the flag from outside. */
    EXPECT(!report.on[SANDBOX_NO_NEW_PRIVS] || report.on[SANDBOX_SECCOMP] ||
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    return report;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void *thread_on_start(void *arg)
{
    *(int *)arg = 1;
    return NULL;
}

/* has_localhost: the system resolves this name outside of a sandbox; one without /etc/hosts may
 * not.
 */
static void try_what_is_needed(bool has_localhost)
{
    int ran = 0;
    int pair[2];
    pthread_t thread;
    struct addrinfo *found = NULL;
    EXPECT(pthread_create(&thread, NULL, thread_on_start, &ran) == 0);
    EXPECT(pthread_setname_np(pthread_self(), "renamed") == 0);
    EXPECT(pthread_join(thread, NULL) == 0 && ran == 1);
    thread_lower();
    EXPECT(getpriority(PRIO_PROCESS, 0) >= THREAD_LOW_NICE);
    EXPECT(getaddrinfo("127.0.0.1", "80", NULL, &found) == 0);
    freeaddrinfo(found);
    /* More than one address is sorted, by connecting sockets of UDP. */
    EXPECT(!has_localhost || getaddrinfo("localhost", NULL, NULL, &found) == 0);
    freeaddrinfo(has_localhost ? found : NULL);
    EXPECT(close(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) == 0);
    EXPECT(close(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)) == 0);
    EXPECT(close(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == 0);
    EXPECT(close(socket(AF_INET6, SOCK_STREAM, 0)) == 0 || errno == EAFNOSUPPORT);
    EXPECT(close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) == 0);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    EXPECT(ioctl(pair[0], SIOCOUTQ, &ran) == 0 && ran == 0);
    void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED && mprotect(page, 1, PROT_READ) == 0);
}

/* A module, as glibc loads some for getaddrinfo(), is mapped as executable but not as writable. */
static void try_modules(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    EXPECT(mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    EXPECT(
        FAILS(-(mmap(NULL, 1, PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED), ENOSYS));
    close(fd);
}

/* Calls with all their arguments, each of which the filter refuses. */
struct refused_call {
    const char *name;
    long number;
    long a[6];
};
#define REFUSED(name, ...)                                                                         \
    {                                                                                              \
#name, __NR_##name,                                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct refused_call refused_calls[] = {
    /* other processes and programs */
    REFUSED(ptrace, PTRACE_TRACEME),
    REFUSED(execve, 0),
    REFUSED(execveat, 0),
    REFUSED(clone, SIGCHLD),
    REFUSED(clone3, 0),
    REFUSED(unshare, 0),
    REFUSED(setns, -1),
    REFUSED(process_vm_readv, 0),
    REFUSED(process_vm_writev, 0),
    REFUSED(pidfd_open, 1),
    REFUSED(pidfd_getfd, -1),
    REFUSED(pidfd_send_signal, -1),
    REFUSED(kcmp, 1),
    REFUSED(kill, 0, 0),
    REFUSED(tkill, 1, 0),
    REFUSED(tgkill, 1, 1, 0),
    REFUSED(rt_sigqueueinfo, 1),
    REFUSED(rt_tgsigqueueinfo, 1, 1),
    REFUSED(prlimit64, 1),
    REFUSED(sched_setaffinity, 0),
    REFUSED(sched_setscheduler, 0),
    REFUSED(setpriority, 0),
    REFUSED(wait4, -1),
    REFUSED(setsid, 0),
    REFUSED(setpgid, 0),
    REFUSED(process_madvise, -1),
    REFUSED(move_pages, 0),
    REFUSED(migrate_pages, 0),
    /* memory */
    REFUSED(mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1),
    REFUSED(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1),
    REFUSED(mprotect, 0, 4096, PROT_EXEC),
    REFUSED(mprotect, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC),
    REFUSED(pkey_mprotect, 0, 4096, PROT_EXEC, -1),
    REFUSED(memfd_create, 0),
    REFUSED(memfd_secret, 0),
    REFUSED(userfaultfd, 0),
    REFUSED(remap_file_pages, 0),
    REFUSED(mlockall, 0),
    REFUSED(shmget, 0),
    REFUSED(shmat, 0),
    REFUSED(mbind, 0),
    /* the process itself */
    REFUSED(prctl, PR_SET_DUMPABLE, 1),
    REFUSED(prctl, PR_SET_PTRACER, -1),
    REFUSED(prctl, PR_SET_MM),
    REFUSED(prctl, PR_CAPBSET_DROP),
    REFUSED(prctl, PR_SET_SECUREBITS),
    REFUSED(prctl, PR_SET_SECCOMP),
    REFUSED(seccomp, 0),
    REFUSED(setuid, 0),
    REFUSED(setgid, 0),
    REFUSED(setresuid, 0),
    REFUSED(setgroups, 0),
    REFUSED(capset, 0),
    REFUSED(personality, 0),
    REFUSED(setrlimit, 0),
    REFUSED(landlock_create_ruleset, 0),
    /* sockets */
    REFUSED(socket, AF_INET, SOCK_RAW, IPPROTO_ICMP),
    REFUSED(socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
    REFUSED(socket, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6),
    REFUSED(socket, AF_INET, SOCK_STREAM, 132), /* SCTP */
    REFUSED(socket, AF_INET, SOCK_SEQPACKET, 0),
    REFUSED(socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), /* route */
    REFUSED(socket, AF_NETLINK, SOCK_DGRAM, 9),              /* audit */
    REFUSED(socket, AF_UNIX, SOCK_DGRAM, 0),
    REFUSED(socket, AF_UNIX, SOCK_SEQPACKET, 0),
    REFUSED(socket, AF_PACKET, SOCK_RAW, 0),
    REFUSED(socket, AF_VSOCK, SOCK_STREAM, 0),
    REFUSED(socket, AF_ALG, SOCK_SEQPACKET, 0),
    REFUSED(socketpair, AF_INET, SOCK_STREAM),
    REFUSED(ioctl, 0, TIOCSTI),
    REFUSED(ioctl, 0, SIOCSIFFLAGS),
    /* files and the system */
    REFUSED(mount, 0),
    REFUSED(umount2, 0),
    REFUSED(move_mount, 0),
    REFUSED(fsopen, 0),
    REFUSED(open_tree, -1),
    REFUSED(pivot_root, 0),
    REFUSED(chroot, 0),
    REFUSED(chdir, 0),
    REFUSED(open_by_handle_at, -1),
    REFUSED(name_to_handle_at, -1),
    REFUSED(mknodat, -1),
    REFUSED(symlinkat, 0),
    REFUSED(linkat, 0),
    REFUSED(fchownat, 0),
    REFUSED(fchmodat, 0),
    REFUSED(setxattr, 0),
    REFUSED(fanotify_init, 0),
    REFUSED(sendfile, 0),
    REFUSED(splice, 0),
    REFUSED(vmsplice, 0),
    REFUSED(copy_file_range, 0),
    REFUSED(swapon, 0),
    REFUSED(acct, 0),
    REFUSED(quotactl, 0),
    REFUSED(bpf, 0),
    REFUSED(perf_event_open, 0),
    REFUSED(keyctl, 0),
    REFUSED(add_key, 0),
    REFUSED(request_key, 0),
    REFUSED(io_uring_setup, 0),
    REFUSED(io_setup, 0),
    REFUSED(init_module, 0),
    REFUSED(finit_module, 0),
    REFUSED(delete_module, 0),
    REFUSED(kexec_load, 0),
    REFUSED(reboot, 0),
    REFUSED(sethostname, 0),
    REFUSED(clock_settime, 0),
    REFUSED(adjtimex, 0),
    REFUSED(syslog, 0),
    REFUSED(vhangup, 0),
    REFUSED(timer_create, 0),
    REFUSED(setitimer, 0),
    REFUSED(signalfd4, 0),
};

/* The calls above fail, and so do those that nobody knows yet. */
static void try_what_is_refused(void)
{
    for (size_t i = 0; i < sizeof(refused_calls) / sizeof(refused_calls[0]); i++) {
        const struct refused_call *c = &refused_calls[i];
        long rc = syscall(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
        if (rc != -1 || errno != ENOSYS) {
            fprintf(stderr, "%s (row %zu) returns %ld: %s\n", c->name, i, rc, strerror(errno));
            _exit(1);
        }
    }
    EXPECT(FAILS(fork(), ENOSYS));
    EXPECT(FAILS(syscall(1000), ENOSYS));
}

static void child_of_calls(const struct places *p)
{
    SCOPED(sandbox) *s = sandbox_new();
    sandbox_read(s, "/etc");
    sandbox_read(s, "/usr");
    sandbox_read(s, "/proc");
    sandbox_read_file(s, "/proc/self/exe");
    struct addrinfo *found = NULL;
    bool has_localhost = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    freeaddrinfo(has_localhost ? found : NULL);
    struct sandbox_report report = enter(s);
    (void)p;
    if (report.on[SANDBOX_SECCOMP]) {
        try_modules();
        try_what_is_refused();
    }
    try_what_is_needed(has_localhost);
}

TEST(other_system_calls_fail)
{
    in_child(child_of_calls);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void child_of_programs(const struct places *p)
{
    SCOPED(sandbox) *s = sandbox_new();
    sandbox_start_programs(s);
    struct sandbox_report report = enter(s);
    EXPECT(!report.on[SANDBOX_LANDLOCK]);
    int fd = open(in(p->hidden, "file"), O_RDONLY);
    EXPECT(fd >= 0);
    close(fd);
    EXPECT(system("exit 3") == 3 << 8); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
    /* A plugin may compile at run time, protect its memory, and ask for network interfaces. */
    EXPECT(mmap(NULL, 1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED);
    EXPECT(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    EXPECT(close(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)) == 0);
    if (report.on[SANDBOX_SECCOMP]) {
        EXPECT(FAILS(ptrace(PTRACE_TRACEME, 0, NULL, NULL), ENOSYS));
        EXPECT(FAILS(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), ENOSYS));
        EXPECT(FAILS(syscall(__NR_unshare, 0), ENOSYS));
    }
}

TEST(programs_can_be_started_if_that_is_listed)
{
    in_child(child_of_programs);
}

/* ---- files and ports ------------------------------------------------------------------------- */

static void try_files(const struct places *p)
{
    int fd = open(in(p->readable, "file"), O_RDONLY);
    EXPECT(fd >= 0);
    close(fd);
    EXPECT(FAILS(open(in(p->readable, "file"), O_WRONLY), EACCES));
    EXPECT(FAILS(open(in(p->readable, "new"), O_WRONLY | O_CREAT, 0600), EACCES));
    EXPECT(FAILS(unlink(in(p->readable, "file")), EACCES));
    EXPECT(FAILS(open(in(p->hidden, "file"), O_RDONLY), EACCES));
    EXPECT(FAILS(open("/", O_RDONLY | O_DIRECTORY), EACCES));
    EXPECT(FAILS(mkdir(in(p->hidden, "new"), 0700), EACCES));
    fd = open(in(p->writable, "file"), O_RDWR | O_TRUNC);
    EXPECT(fd >= 0 && write(fd, "2", 1) == 1 && ftruncate(fd, 0) == 0);
    close(fd);
    EXPECT(mkdir(in(p->writable, "new"), 0700) == 0);
    EXPECT(rmdir(in(p->writable, "new")) == 0);
    char from[4096];
    (void)snprintf(from, sizeof(from), "%s", in(p->writable, "file"));
    EXPECT(rename(from, in(p->writable, "renamed")) == 0);
    EXPECT(unlink(in(p->writable, "renamed")) == 0);
}

static void child_of_files(const struct places *p)
{
    SCOPED(sandbox) *s = sandbox_new();
    uint16_t ours = free_port();
    uint16_t other = free_port();
    sandbox_read(s, p->readable);
    sandbox_write(s, p->writable);
    sandbox_listen(s, ours);
    struct sandbox_report report = enter(s);
    if (report.on[SANDBOX_LANDLOCK]) {
        try_files(p);
    }
    if (report.on[SANDBOX_LANDLOCK] && report.landlock_version >= 4) {
        EXPECT(bind_to(ours) == 0);
        EXPECT(FAILS(bind_to(other), EACCES));
        EXPECT(FAILS(bind_to(0), EACCES));
    }
}

TEST(other_files_and_ports_are_refused)
{
    in_child(child_of_files);
}

/* A file may be replaced by another one with its name, and reached by a link. */
static void child_of_links(const struct places *p)
{
    SCOPED(sandbox) *s = sandbox_new();
    EXPECT(symlink(in(p->hidden, "file"), "link") == 0);
    sandbox_read_file(s, "link");
    sandbox_read_file(s, in(p->readable, "file"));
    struct sandbox_report report = enter(s);
    int fd = open("link", O_RDONLY);
    EXPECT(fd >= 0);
    close(fd);
    EXPECT(!report.on[SANDBOX_LANDLOCK] || FAILS(open(in(p->hidden, "../."), O_RDONLY), EACCES));
}

static void child_in_writable(const struct places *p)
{
    EXPECT(chdir(p->writable) == 0);
    child_of_links(p);
}

TEST(links_are_followed)
{
    in_child(child_in_writable);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static struct sandbox *one(void (*add)(struct sandbox *s, const char *path), const char *path)
{
    struct sandbox *s = sandbox_new();
    assert_non_null(s);
    if (path != NULL) {
        add(s, path);
    }
    return s;
}

TEST(what_a_sandbox_covers)
{
    struct places p = make_places();
    char file[4096];
    char missing[4096];
    (void)snprintf(file, sizeof(file), "%s", in(p.readable, "file"));
    (void)snprintf(missing, sizeof(missing), "%s", in(p.readable, "not/there"));
    const struct {
        const char *name;
        void (*add)(struct sandbox *s, const char *path);
        const char *path;
        void (*wanted_add)(struct sandbox *s, const char *path);
        const char *wanted;
        bool covers;
    } rows[] = {
        {"the same", sandbox_read, p.readable, sandbox_read, p.readable, true},
        {"a file in it", sandbox_read, p.readable, sandbox_read_file, file, true},
        {"what is not there yet", sandbox_read, p.readable, sandbox_read, missing, true},
        {"a file stands for its directory", sandbox_read_file, file, sandbox_read, p.readable,
         true},
        {"reading where writing is allowed", sandbox_write, p.readable, sandbox_read, file, true},
        {"writing where reading is", sandbox_read, p.readable, sandbox_write, p.readable, false},
        {"elsewhere", sandbox_read, p.readable, sandbox_read, p.hidden, false},
        {"above", sandbox_read, p.readable, sandbox_read, "/", false},
        {"nothing is below what is not listed", sandbox_read, NULL, sandbox_read, p.hidden, false},
        {"the root is never listed for what is not there", sandbox_read, NULL, sandbox_read,
         "/not-there/at/all", true},
        {"all", sandbox_read, "/", sandbox_read, p.hidden, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sandbox *s = one(rows[i].add, rows[i].path);
        SCOPED(sandbox) *wanted = one(rows[i].wanted_add, rows[i].wanted);
        struct err err = ERR_INIT;
        CHECK_INT(sandbox_covers(s, wanted, &err), rows[i].covers, rows[i].name);
        CHECK_INT(err.msg[0] != '\0', !rows[i].covers, rows[i].name);
        sandbox_free(s);
    }
    remove_places(&p);
}

TEST(ports_and_programs_are_compared)
{
    struct err err = ERR_INIT;
    struct sandbox *s = sandbox_new();
    SCOPED(sandbox) *wanted = sandbox_new();
    sandbox_listen(s, 4041);
    sandbox_listen(s, 4041);
    sandbox_listen(wanted, 4041);
    assert_true(sandbox_covers(s, wanted, &err));
    sandbox_listen(wanted, 4042);
    assert_false(sandbox_covers(s, wanted, &err));
    CHECK_STR(err.msg, "listening on port 4042", "");
    sandbox_start_programs(wanted);
    assert_false(sandbox_covers(s, wanted, &err));
    CHECK_STR(err.msg, "starting programs", "");
    sandbox_start_programs(s);
    assert_true(sandbox_covers(s, wanted, &err));
    sandbox_free(s);
}
