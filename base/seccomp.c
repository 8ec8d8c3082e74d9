#include "base/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0U
#endif

/* The newest call of Linux 6.1. What came later has an older way, which libc takes after ENOSYS. */
#define NEWEST_CALL 450U
/* glibc's pthread_create() tries it first. Its flags lie in memory, which a filter cannot read. */
#define CALL_CLONE3 435U

/* Those used most are first: the kernel keeps answers, but an old one asks the filter each time. */
static const uint16_t allowed[] = {
#if defined(__x86_64__)
    /* what newer architectures have other calls for */
    __NR_epoll_wait, __NR_poll, __NR_open, __NR_creat, __NR_stat, __NR_lstat, __NR_access,
    __NR_readlink, __NR_getdents, __NR_mkdir, __NR_rmdir, __NR_unlink, __NR_rename, __NR_link,
    __NR_chmod, __NR_chown, __NR_dup2, __NR_pipe, __NR_select, __NR_epoll_create, __NR_eventfd,
    __NR_signalfd, __NR_inotify_init, __NR_getpgrp, __NR_time, __NR_alarm, __NR_pause,
    __NR_arch_prctl,
#endif
    /* what happens all the time */
    __NR_read, __NR_write, __NR_futex, __NR_epoll_pwait, __NR_epoll_ctl, __NR_recvfrom, __NR_sendto,
    __NR_recvmsg, __NR_sendmsg, __NR_readv, __NR_writev, __NR_close, __NR_openat, __NR_fcntl,
    __NR_clock_gettime, __NR_mmap, __NR_munmap, __NR_madvise, __NR_pread64, __NR_pwrite64,
    /* descriptors and files */
    __NR_lseek, __NR_preadv, __NR_pwritev, __NR_preadv2, __NR_pwritev2, __NR_close_range,
    __NR_fsync, __NR_fdatasync, __NR_sync_file_range, __NR_truncate, __NR_ftruncate, __NR_fallocate,
    __NR_fadvise64, __NR_sendfile, __NR_splice, __NR_copy_file_range, __NR_dup, __NR_dup3,
    __NR_flock, __NR_ioctl, __NR_pipe2, __NR_openat2, __NR_newfstatat, __NR_fstat, __NR_statx,
    __NR_faccessat, __NR_faccessat2, __NR_readlinkat, __NR_getdents64, __NR_getcwd, __NR_chdir,
    __NR_fchdir, __NR_mkdirat, __NR_unlinkat, __NR_renameat, __NR_renameat2, __NR_linkat,
    __NR_fchmod, __NR_fchmodat, __NR_fchown, __NR_fchownat, __NR_umask, __NR_utimensat, __NR_statfs,
    __NR_fstatfs, __NR_memfd_create,
    /* waiting */
    __NR_epoll_create1, __NR_epoll_pwait2, __NR_ppoll, __NR_pselect6, __NR_eventfd2, __NR_signalfd4,
    __NR_timerfd_create, __NR_timerfd_settime, __NR_timerfd_gettime, __NR_inotify_init1,
    __NR_inotify_add_watch, __NR_inotify_rm_watch,
    /* sockets; see also socket_families */
    __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4, __NR_getsockname,
    __NR_getpeername, __NR_recvmmsg, __NR_sendmmsg, __NR_setsockopt, __NR_getsockopt, __NR_shutdown,
    __NR_socketpair,
    /* memory */
    __NR_mremap, __NR_mprotect, __NR_brk, __NR_mincore, __NR_msync, __NR_mlock, __NR_munlock,
    __NR_membarrier,
    /* threads and signals; see also "clone" below */
    __NR_futex_waitv, __NR_set_robust_list, __NR_get_robust_list, __NR_rseq, __NR_set_tid_address,
    __NR_gettid, __NR_getpid, __NR_getppid, __NR_getpgid, __NR_getsid, __NR_exit, __NR_exit_group,
    __NR_sched_yield, __NR_sched_getaffinity, __NR_sched_setaffinity, __NR_sched_getparam,
    __NR_sched_getscheduler, __NR_sched_get_priority_max, __NR_sched_get_priority_min,
    __NR_getpriority, __NR_setpriority, __NR_getcpu, __NR_prctl, __NR_kill, __NR_tgkill, __NR_tkill,
    __NR_restart_syscall, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn,
    __NR_rt_sigpending, __NR_rt_sigtimedwait, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
    __NR_rt_sigsuspend, __NR_sigaltstack,
    /* time */
    __NR_clock_getres, __NR_clock_nanosleep, __NR_nanosleep, __NR_gettimeofday, __NR_times,
    __NR_getitimer, __NR_setitimer, __NR_timer_create, __NR_timer_settime, __NR_timer_gettime,
    __NR_timer_getoverrun, __NR_timer_delete,
    /* what the process is and may use */
    __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid, __NR_getgroups, __NR_getresuid,
    __NR_getresgid, __NR_capget, __NR_uname, __NR_sysinfo, __NR_getrusage, __NR_getrlimit,
    __NR_setrlimit, __NR_prlimit64, __NR_getrandom};

/* What starting a program takes, beside a "clone" that starts no thread. */
static const uint16_t of_programs[] = {
#if defined(__x86_64__)
    __NR_fork,    __NR_vfork,
#endif
    __NR_execve,  __NR_execveat, __NR_wait4,  __NR_waitid,
    __NR_setpgid, __NR_setsid,   __NR_setuid, __NR_setgid};

static const uint16_t socket_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

/* ---- the program ----------------------------------------------------------------------------- */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
/* Two instructions for each number, and some around them. */
#define PROGRAM_MAX (2 * (COUNT(allowed) + COUNT(of_programs) + COUNT(socket_families)) + 32)

struct program {
    struct sock_filter at[PROGRAM_MAX];
    uint16_t n;
};

static void put(struct program *p, uint16_t code, uint32_t value)
{
    p->at[p->n++] = (struct sock_filter)BPF_STMT(code, value);
}

/* Goes on with the next instruction if the loaded number is (all bits: has) this one, else after
 * `skipped` ones. */
static void put_test(struct program *p, uint16_t test, uint32_t value, uint8_t skipped)
{
    p->at[p->n++] =
        (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), value, 0, skipped);
}

static void put_load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void put_answer(struct program *p, uint32_t answer)
{
    put(p, BPF_RET | BPF_K, answer);
}

static void put_allowed(struct program *p, const uint16_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_test(p, BPF_JEQ, numbers[i], 1);
        put_answer(p, SECCOMP_RET_ALLOW);
    }
}

static uint32_t refusal(int number)
{
    return SECCOMP_RET_ERRNO | (uint32_t)number;
}

/* The number of the call stays loaded, except where an answer follows in any case. */
static void make_program(struct program *p, bool programs)
{
    const size_t first_argument = offsetof(struct seccomp_data, args); /* its lower half */
    put_load(p, offsetof(struct seccomp_data, arch));
    put_test(p, BPF_JEQ, ARCHITECTURE, 1);
    put(p, BPF_JMP | BPF_JA, 1);
    put_answer(p, refusal(EPERM));
    put_load(p, offsetof(struct seccomp_data, nr));
    put_allowed(p, allowed, COUNT(allowed));
    if (programs) {
        put_allowed(p, of_programs, COUNT(of_programs));
        put_allowed(p, &(const uint16_t){__NR_clone}, 1);
    } else {
        put_test(p, BPF_JEQ, __NR_clone, 4);
        put_load(p, first_argument);
        put_test(p, BPF_JSET, CLONE_THREAD, 1);
        put_answer(p, SECCOMP_RET_ALLOW);
        put_answer(p, refusal(EPERM));
    }
    put_test(p, BPF_JEQ, __NR_socket, (uint8_t)(2 + 2 * COUNT(socket_families)));
    put_load(p, first_argument);
    put_allowed(p, socket_families, COUNT(socket_families));
    put_answer(p, refusal(EAFNOSUPPORT));
    put_test(p, BPF_JEQ, CALL_CLONE3, 1);
    put_answer(p, refusal(ENOSYS));
    put_test(p, BPF_JGT, NEWEST_CALL, 1);
    put_answer(p, refusal(ENOSYS));
    put_answer(p, refusal(EPERM));
}

bool seccomp_restrict(bool programs, struct err *err)
{
    if (ARCHITECTURE == 0U) {
        return err_set(err, ERR_SYSTEM, "not known for this architecture");
    }
    struct program program = {.n = 0};
    make_program(&program, programs);
    struct sock_fprog filter = {.len = program.n, .filter = program.at};
    long rc = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
    return rc == 0 || (rc > 0 ? err_set(err, ERR_SYSTEM, "a thread has another filter")
                              : err_sys(err, "refused"));
}
