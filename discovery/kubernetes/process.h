/* Runs a command and collects what it prints, without waiting for it: pipes and timers on a loop.
 *
 * The command gets /dev/null as stdin, an empty signal mask, a process group of its own, and none
 * of our descriptors. When its time is over, or it prints too much, the whole group is killed. On
 * the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_PROCESS_H
#define PROFPULL_DISCOVERY_KUBERNETES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/str.h"

/* What stderr has beyond this is read and thrown away. */
#define PROCESS_STDERR_MAX ((size_t)16 * 1024)

enum process_end {
    PROCESS_EXITED,   /* value: the exit status */
    PROCESS_SIGNALED, /* value: the signal */
    PROCESS_TIMEOUT,
    PROCESS_TOO_MUCH, /* on stdout */
    PROCESS_LOST,     /* memory ran out, or somebody else has reaped it */
};

struct process_options {
    const char *const *argv; /* argv[0] without a slash is looked for in PATH; ends with NULL */
    const char *const *envp; /* the whole environment; ends with NULL */
    struct loop *loop;
    size_t stdout_max;
    int64_t timeout_ms;
    /* Once, not from within process_start(); the texts are valid during the call. The process may
     * be freed in it. */
    void (*on_done)(void *arg, enum process_end end, int value, struct sv out, struct sv errors);
    void *arg;
};

struct process;

/* NULL with the errno of what failed: ENOENT, EACCES, ENOMEM, EMFILE, ... */
struct process *process_start(const struct process_options *options, int *ret_errno);
/* Kills it if it still runs. Accepts NULL, returns NULL. */
struct process *process_free(struct process *p);

#endif
