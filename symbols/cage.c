#include "symbols/cage.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- limits ---------------------------------------------------------------------------------- */

static bool limit(int what, uint64_t value, const char *name, struct err *err)
{
    const struct rlimit l = {.rlim_cur = value, .rlim_max = value};
    return setrlimit((__rlimit_resource_t)what, &l) == 0 || err_sys(err, "limit of %s", name);
}

bool cage_limit(uint64_t memory, uint64_t cpu_s, struct err *err)
{
#ifdef INSTRUMENTED
    /* Sanitizers reserve terabytes of address space. */
    memory = 0;
#endif
    return limit(RLIMIT_CORE, 0, "core files", err) &&
           (memory == 0 || limit(RLIMIT_AS, memory, "memory", err)) &&
           (cpu_s == 0 || limit(RLIMIT_CPU, cpu_s, "CPU time", err));
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* Calls of both. None opens, makes or removes a file, and none makes a socket that leads outside.
 */
static const int both_calls[] = {
    SCMP_SYS(read),          SCMP_SYS(pread64),
    SCMP_SYS(lseek),         SCMP_SYS(close),
    SCMP_SYS(fstat),         SCMP_SYS(newfstatat),
    SCMP_SYS(fcntl),         SCMP_SYS(dup),
    SCMP_SYS(poll),          SCMP_SYS(ppoll),
    SCMP_SYS(recvmsg),       SCMP_SYS(sendmsg),
    SCMP_SYS(munmap),        SCMP_SYS(mremap),
    SCMP_SYS(madvise),       SCMP_SYS(brk),
    SCMP_SYS(futex),         SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),          SCMP_SYS(getpid),
    SCMP_SYS(gettid),        SCMP_SYS(getppid),
    SCMP_SYS(exit),          SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigaction),  SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),  SCMP_SYS(restart_syscall),
    SCMP_SYS(clock_gettime), SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo),
};

/* The launcher's own, and those with which a child sets its limits. */
static const int launcher_calls[] = {
    SCMP_SYS(clone),     SCMP_SYS(fork),       SCMP_SYS(wait4), SCMP_SYS(waitid),
    SCMP_SYS(kill),      SCMP_SYS(socketpair), SCMP_SYS(prctl), SCMP_SYS(seccomp),
    SCMP_SYS(setrlimit), SCMP_SYS(prlimit64),  SCMP_SYS(uname), SCMP_SYS(dup2),
    SCMP_SYS(dup3),
};

/* A call that is not allowed fails as if the kernel did not have it. */
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

/* Memory may be mapped unless it is to be executed. */
static int allow_memory(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp no_code = {
        .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0};
    int rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, &no_code);
    return rc != 0
               ? rc
               : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, &no_code);
}

static int load(scmp_filter_ctx filter, enum cage_kind kind)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    rc = rc != 0 ? rc : seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, OTHER_CALLS);
    rc = rc != 0 ? rc : allow(filter, both_calls, COUNT(both_calls));
    rc = rc != 0 ? rc : allow_memory(filter);
    if (rc == 0 && kind == CAGE_LAUNCHER) {
        rc = allow(filter, launcher_calls, COUNT(launcher_calls));
    }
    return rc != 0 ? rc : seccomp_load(filter);
}

static bool restrict_calls(enum cage_kind kind, struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return err_sys(err, "no_new_privs");
    }
    scmp_filter_ctx filter = seccomp_init(OTHER_CALLS);
    if (filter == NULL) {
        return err_set(err, ERR_SYSTEM, "seccomp: not known for this architecture");
    }
    int rc = load(filter, kind);
    seccomp_release(filter);
    errno = -rc;
    return rc == 0 || err_sys(err, "seccomp");
}

bool cage_restrict(enum cage_kind kind, struct err *err)
{
#ifdef INSTRUMENTED
    (void)kind;
    (void)err;
    (void)restrict_calls;
    return true;
#else
    return restrict_calls(kind, err);
#endif
}
