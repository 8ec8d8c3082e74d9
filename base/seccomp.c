#include "base/seccomp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

/* The system calls of profpull and of the libraries that it uses, after it has started. Each was
 * seen in a trace of the end-to-end tests, or is the call that the same function makes on another
 * architecture or in another libc. libseccomp leaves out calls that an architecture does not have.
 * Calls that are allowed with some arguments only are in own_rules. */
static const int own_calls[] = {
    /* descriptors and files */
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64),
    SCMP_SYS(pwrite64), SCMP_SYS(preadv), SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(close),
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(fcntl), SCMP_SYS(pipe2), SCMP_SYS(flock),
    SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(stat),
    SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs),
    SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd),
    SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
    SCMP_SYS(utimensat), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2),
    SCMP_SYS(fchmod), SCMP_SYS(fchown),
    /* waiting */
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(inotify_init1),
    SCMP_SYS(inotify_add_watch), SCMP_SYS(inotify_rm_watch),
    /* sockets */
    SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept4), SCMP_SYS(recvfrom),
    SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(setsockopt), SCMP_SYS(getsockopt),
    SCMP_SYS(shutdown),
    /* memory, threads and signals */
    SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex),
    SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    /* time */
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time),
    /* the process and the system */
    SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(uname),
    SCMP_SYS(sysinfo), SCMP_SYS(getrandom)};

/* Further system calls that other programs may make. A credential plugin of a kubeconfig inherits
 * the filter and may be written in any language, some of which compile at run time. */
static const int program_calls[] = {
    /* starting programs */
    SCMP_SYS(clone), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(execve), SCMP_SYS(execveat),
    SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(close_range), SCMP_SYS(dup), SCMP_SYS(dup2),
    SCMP_SYS(dup3), SCMP_SYS(setpgid), SCMP_SYS(getpgid), SCMP_SYS(getpgrp), SCMP_SYS(setsid),
    SCMP_SYS(getsid), SCMP_SYS(getppid), SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(getresuid),
    SCMP_SYS(getresgid), SCMP_SYS(getgroups), SCMP_SYS(capget), SCMP_SYS(arch_prctl),
    SCMP_SYS(set_tid_address), SCMP_SYS(get_robust_list), SCMP_SYS(prctl), SCMP_SYS(prlimit64),
    SCMP_SYS(getrlimit), SCMP_SYS(setrlimit), SCMP_SYS(getrusage),
    /* memory */
    SCMP_SYS(mmap), SCMP_SYS(mprotect), SCMP_SYS(mincore), SCMP_SYS(msync), SCMP_SYS(mlock),
    SCMP_SYS(munlock), SCMP_SYS(membarrier), SCMP_SYS(memfd_create), SCMP_SYS(futex_waitv),
    /* files */
    SCMP_SYS(ioctl), SCMP_SYS(creat), SCMP_SYS(openat2), SCMP_SYS(pipe), SCMP_SYS(preadv2),
    SCMP_SYS(pwritev2), SCMP_SYS(fadvise64), SCMP_SYS(sync_file_range), SCMP_SYS(truncate),
    SCMP_SYS(sendfile), SCMP_SYS(splice), SCMP_SYS(copy_file_range), SCMP_SYS(getdents),
    SCMP_SYS(chdir), SCMP_SYS(fchdir), SCMP_SYS(chmod), SCMP_SYS(fchmodat), SCMP_SYS(chown),
    SCMP_SYS(fchownat), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(umask), SCMP_SYS(utimensat),
    /* sockets and waiting */
    SCMP_SYS(socketpair), SCMP_SYS(accept), SCMP_SYS(recvmmsg), SCMP_SYS(select),
    SCMP_SYS(pselect6), SCMP_SYS(epoll_create), SCMP_SYS(eventfd), SCMP_SYS(signalfd),
    SCMP_SYS(signalfd4), SCMP_SYS(inotify_init), SCMP_SYS(timerfd_gettime),
    /* signals, scheduling and timers */
    SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(tkill), SCMP_SYS(rt_sigpending),
    SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(rt_sigsuspend), SCMP_SYS(sigaltstack), SCMP_SYS(getcpu), SCMP_SYS(sched_setaffinity),
    SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min), SCMP_SYS(getpriority), SCMP_SYS(setpriority), SCMP_SYS(times),
    SCMP_SYS(alarm), SCMP_SYS(pause), SCMP_SYS(getitimer), SCMP_SYS(setitimer),
    SCMP_SYS(timer_create), SCMP_SYS(timer_settime), SCMP_SYS(timer_gettime),
    SCMP_SYS(timer_getoverrun), SCMP_SYS(timer_delete)};

/* ---- arguments ------------------------------------------------------------------------------- */

/* The upper half of a register that holds an int has no meaning. */
#define INT_MASK UINT64_C(0xffffffff)
/* The bits of a socket's type that are not flags. */
#define TYPE_MASK UINT64_C(0xf)
#define CONDITIONS_MAX 3

/* A call that is allowed if all conditions of the row hold. If a call has several rows, one of them
 * suffices. */
struct rule {
    int call;
    unsigned n;
    struct scmp_arg_cmp conditions[CONDITIONS_MAX];
};

/* Conditions on the argument with this number. */
#define BITS(number, mask, value)                                                                  \
    {                                                                                              \
        .arg = (number), .op = SCMP_CMP_MASKED_EQ, .datum_a = (mask), .datum_b = (value)           \
    }
#define IS(number, value) BITS(number, INT_MASK, value)
#define SOCKET(family, type, protocol)                                                             \
    {                                                                                              \
        SCMP_SYS(socket), 3,                                                                       \
        {                                                                                          \
            IS(0, family), BITS(1, TYPE_MASK, type), IS(2, protocol)                               \
        }                                                                                          \
    }

static const struct rule own_rules[] = {
    {SCMP_SYS(clone), 1, {BITS(0, CLONE_THREAD, CLONE_THREAD)}},
    {SCMP_SYS(socketpair), 1, {IS(0, AF_UNIX)}},
    /* Memory is either writable or executable. Executable memory must be mapped from a file, for
     * the modules that getaddrinfo() and OpenSSL load on first use. */
    {SCMP_SYS(mmap), 1, {BITS(2, PROT_EXEC, 0)}},
    {SCMP_SYS(mmap), 2, {BITS(2, PROT_EXEC | PROT_WRITE, PROT_EXEC), BITS(3, MAP_ANONYMOUS, 0)}},
    {SCMP_SYS(mprotect), 1, {BITS(2, PROT_EXEC, 0)}},
    /* Sets names of threads and of their stacks. */
    {SCMP_SYS(prctl), 1, {IS(0, PR_SET_NAME)}},
    {SCMP_SYS(prctl), 1, {IS(0, PR_GET_NAME)}},
    {SCMP_SYS(prctl), 1, {IS(0, PR_SET_VMA)}},
    /* Reads and sets limits of this process only. */
    {SCMP_SYS(prlimit64), 1, {IS(0, 0)}},
    /* Lowers the priority of the calling thread. */
    {SCMP_SYS(getpriority), 2, {IS(0, PRIO_PROCESS), IS(1, 0)}},
    {SCMP_SYS(setpriority), 3, {IS(0, PRIO_PROCESS), IS(1, 0), IS(2, THREAD_LOW_NICE)}},
    {SCMP_SYS(ioctl), 1, {IS(1, FIONREAD)}},
    {SCMP_SYS(ioctl), 1, {IS(1, FIONBIO)}},
    {SCMP_SYS(ioctl), 1, {IS(1, SIOCOUTQ)}}, /* bytes that a peer has not acknowledged */
    {SCMP_SYS(ioctl), 1, {IS(1, TCGETS)}},
    {SCMP_SYS(ioctl), 1, {IS(1, TIOCGWINSZ)}},
    {SCMP_SYS(ioctl), 1, {IS(1, SIOCGIFINDEX)}}, /* getaddrinfo(), of "fe80::1%eth0" */
};

/* Sockets of TCP, and of UDP for name servers. */
static const struct rule ip_sockets[] = {
    SOCKET(AF_INET, SOCK_STREAM, 0),  SOCKET(AF_INET, SOCK_STREAM, IPPROTO_TCP),
    SOCKET(AF_INET, SOCK_DGRAM, 0),   SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
    SOCKET(AF_INET6, SOCK_STREAM, 0), SOCKET(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
    SOCKET(AF_INET6, SOCK_DGRAM, 0),  SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
};

/* Unix sockets lead to nscd and systemd-resolved. */
static const struct rule own_sockets[] = {SOCKET(AF_UNIX, SOCK_STREAM, 0)};
static const struct rule program_sockets[] = {
    {SCMP_SYS(socket), 1, {IS(0, AF_UNIX)}},
    {SCMP_SYS(socket), 1, {IS(0, AF_NETLINK)}},
};

/* ---- the filter ------------------------------------------------------------------------------ */

/* A call that is not allowed fails as if the kernel did not have it: libc then makes an older call
 * if there is one. glibc's pthread_create() does so for clone3, whose flags lie in memory that no
 * filter reads. */
#define OTHER_CALLS SCMP_ACT_ERRNO(ENOSYS)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* These functions return 0 or a negative errno, as libseccomp does. */

static int allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    }
    return rc;
}

static int allow_if(scmp_filter_ctx filter, const struct rule *rules, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n,
                                    rules[i].conditions);
    }
    return rc;
}

/* Allows sending signals to the own process, as abort() and raise() do. */
static int allow_own_signals(scmp_filter_ctx filter)
{
    const struct rule rule = {SCMP_SYS(tgkill), 1, {IS(0, (uint64_t)getpid())}};
    return allow_if(filter, &rule, 1);
}

static int allow_own(scmp_filter_ctx filter)
{
    int rc = allow_if(filter, own_rules, COUNT(own_rules));
    rc = rc != 0 ? rc : allow_if(filter, own_sockets, COUNT(own_sockets));
    return rc != 0 ? rc : allow_own_signals(filter);
}

static int allow_programs(scmp_filter_ctx filter)
{
    int rc = allow(filter, program_calls, COUNT(program_calls));
    return rc != 0 ? rc : allow_if(filter, program_sockets, COUNT(program_sockets));
}

static int set_attributes(scmp_filter_ctx filter)
{
    static const struct {
        enum scmp_filter_attr attribute;
        uint32_t value;
    } rows[] = {
        {SCMP_FLTATR_API_SYSRAWRC, 1}, /* return the kernel's errors as they are */
        {SCMP_FLTATR_CTL_TSYNC, 1},    /* restrict all threads */
        {SCMP_FLTATR_CTL_OPTIMIZE, 2}, /* a tree: faster where the kernel caches no answers */
        {SCMP_FLTATR_ACT_BADARCH, OTHER_CALLS},
    };
    int rc = 0;
    for (size_t i = 0; i < COUNT(rows) && rc == 0; i++) {
        rc = seccomp_attr_set(filter, rows[i].attribute, rows[i].value);
    }
    return rc;
}

static int restrict_calls(scmp_filter_ctx filter, bool programs)
{
    int rc = set_attributes(filter);
    rc = rc != 0 ? rc : allow(filter, own_calls, COUNT(own_calls));
    rc = rc != 0 ? rc : allow_if(filter, ip_sockets, COUNT(ip_sockets));
    rc = rc != 0 ? rc : programs ? allow_programs(filter) : allow_own(filter);
    return rc != 0 ? rc : seccomp_load(filter);
}

bool seccomp_restrict(bool programs, struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(OTHER_CALLS);
    if (filter == NULL) {
        return err_set(err, ERR_SYSTEM, "not known for this architecture");
    }
    int rc = restrict_calls(filter, programs);
    seccomp_release(filter);
    errno = -rc;
    return rc == 0 || err_sys(err, "refused");
}
