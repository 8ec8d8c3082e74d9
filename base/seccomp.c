#include "base/seccomp.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* What an architecture does not have, libseccomp leaves out. */
static const int allowed[] = {
    /* what newer architectures have other calls for */
    SCMP_SYS(epoll_wait), SCMP_SYS(poll), SCMP_SYS(open), SCMP_SYS(creat), SCMP_SYS(stat),
    SCMP_SYS(lstat), SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(getdents), SCMP_SYS(mkdir),
    SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(rename), SCMP_SYS(link), SCMP_SYS(chmod),
    SCMP_SYS(chown), SCMP_SYS(dup2), SCMP_SYS(pipe), SCMP_SYS(select), SCMP_SYS(epoll_create),
    SCMP_SYS(eventfd), SCMP_SYS(signalfd), SCMP_SYS(inotify_init), SCMP_SYS(getpgrp),
    SCMP_SYS(time), SCMP_SYS(alarm), SCMP_SYS(pause), SCMP_SYS(arch_prctl),
    /* what happens all the time */
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(futex), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl),
    SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(readv),
    SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(openat), SCMP_SYS(fcntl), SCMP_SYS(clock_gettime),
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(madvise), SCMP_SYS(pread64), SCMP_SYS(pwrite64),
    /* descriptors and files */
    SCMP_SYS(lseek), SCMP_SYS(preadv), SCMP_SYS(pwritev), SCMP_SYS(preadv2), SCMP_SYS(pwritev2),
    SCMP_SYS(close_range), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(sync_file_range),
    SCMP_SYS(truncate), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(fadvise64),
    SCMP_SYS(sendfile), SCMP_SYS(splice), SCMP_SYS(copy_file_range), SCMP_SYS(dup), SCMP_SYS(dup3),
    SCMP_SYS(flock), SCMP_SYS(ioctl), SCMP_SYS(pipe2), SCMP_SYS(openat2), SCMP_SYS(newfstatat),
    SCMP_SYS(fstat), SCMP_SYS(statx), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(chdir), SCMP_SYS(fchdir),
    SCMP_SYS(mkdirat), SCMP_SYS(unlinkat), SCMP_SYS(renameat), SCMP_SYS(renameat2),
    SCMP_SYS(linkat), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(fchown), SCMP_SYS(fchownat),
    SCMP_SYS(umask), SCMP_SYS(utimensat), SCMP_SYS(statfs), SCMP_SYS(fstatfs),
    SCMP_SYS(memfd_create),
    /* waiting */
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_pwait2), SCMP_SYS(ppoll), SCMP_SYS(pselect6),
    SCMP_SYS(eventfd2), SCMP_SYS(signalfd4), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime), SCMP_SYS(inotify_init1), SCMP_SYS(inotify_add_watch),
    SCMP_SYS(inotify_rm_watch),
    /* sockets; see also socket_families */
    SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(recvmmsg), SCMP_SYS(sendmmsg),
    SCMP_SYS(setsockopt), SCMP_SYS(getsockopt), SCMP_SYS(shutdown), SCMP_SYS(socketpair),
    /* memory */
    SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(brk), SCMP_SYS(mincore), SCMP_SYS(msync),
    SCMP_SYS(mlock), SCMP_SYS(munlock), SCMP_SYS(membarrier),
    /* threads and signals; see also "clone" below */
    SCMP_SYS(futex_waitv), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(getppid),
    SCMP_SYS(getpgid), SCMP_SYS(getsid), SCMP_SYS(exit), SCMP_SYS(exit_group),
    SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
    SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min), SCMP_SYS(getpriority), SCMP_SYS(setpriority),
    SCMP_SYS(getcpu), SCMP_SYS(prctl), SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(tkill),
    SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(rt_sigsuspend),
    SCMP_SYS(sigaltstack),
    /* time */
    SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
    SCMP_SYS(times), SCMP_SYS(getitimer), SCMP_SYS(setitimer), SCMP_SYS(timer_create),
    SCMP_SYS(timer_settime), SCMP_SYS(timer_gettime), SCMP_SYS(timer_getoverrun),
    SCMP_SYS(timer_delete),
    /* what the process is and may use */
    SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getgroups),
    SCMP_SYS(getresuid), SCMP_SYS(getresgid), SCMP_SYS(capget), SCMP_SYS(uname), SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(setrlimit), SCMP_SYS(prlimit64),
    SCMP_SYS(getrandom)};

/* What starting a program takes; "clone" for more than threads. */
static const int of_programs[] = {SCMP_SYS(clone),  SCMP_SYS(fork),     SCMP_SYS(vfork),
                                  SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(wait4),
                                  SCMP_SYS(waitid), SCMP_SYS(setpgid),  SCMP_SYS(setsid),
                                  SCMP_SYS(setuid), SCMP_SYS(setgid)};

static const unsigned socket_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

/* As if the kernel did not have them: libc then takes an older call where there is one. So does
 * glibc's pthread_create() for clone3, whose flags lie in memory that no filter reads. */
#define OTHER_CALLS SCMP_ACT_ERRNO(ENOSYS)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
/* Of an argument that is an int: the upper half of its register means nothing. */
#define INT_MASK UINT64_C(0xffffffff)

static int allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    }
    return rc;
}

static int allow_sockets(scmp_filter_ctx filter)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT(socket_families) && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, INT_MASK, socket_families[i]));
    }
    return rc;
}

static int allow_threads(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
}

static int set_attributes(scmp_filter_ctx filter)
{
    static const struct {
        enum scmp_filter_attr attribute;
        uint32_t value;
    } rows[] = {
        {SCMP_FLTATR_API_SYSRAWRC, 1}, /* the kernel's errors as they are */
        {SCMP_FLTATR_CTL_TSYNC, 1},    /* all threads */
        {SCMP_FLTATR_CTL_OPTIMIZE, 2}, /* a tree, for kernels that keep no answers */
        {SCMP_FLTATR_ACT_BADARCH, OTHER_CALLS},
    };
    int rc = 0;
    for (size_t i = 0; i < COUNT(rows) && rc == 0; i++) {
        rc = seccomp_attr_set(filter, rows[i].attribute, rows[i].value);
    }
    return rc;
}

/* 0, or an error's number with a minus sign, as all functions of the library. */
static int restrict_calls(scmp_filter_ctx filter, bool programs)
{
    int rc = set_attributes(filter);
    rc = rc != 0 ? rc : allow(filter, allowed, COUNT(allowed));
    rc = rc != 0 ? rc : allow_sockets(filter);
    rc = rc != 0    ? rc
         : programs ? allow(filter, of_programs, COUNT(of_programs))
                    : allow_threads(filter);
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
