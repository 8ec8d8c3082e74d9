/* Runs a command and collects its output without waiting for it: pipes and timers on a loop.
 *
 * The command gets /dev/null as stdin, an empty signal mask, a process group of its own, and none
 * of our descriptors. When its time is over, or when it prints too much, the whole group is killed.
 * Everything runs on the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_CHILD_H
#define PROFPULL_DISCOVERY_KUBERNETES_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/str.h"

/* More of stderr is read and discarded. */
#define CHILD_STDERR_MAX ((size_t)16 * 1024)

enum child_end {
    CHILD_EXITED,   /* value: the exit status */
    CHILD_SIGNALED, /* value: the signal */
    CHILD_TIMEOUT,
    CHILD_TOO_MUCH, /* stdout exceeded its limit */
    /* the result is lost: out of memory, or another part of the program has reaped the child */
    CHILD_LOST,
};

struct child_options {
    const char *const *argv; /* argv[0] without a slash is searched in PATH; ends with NULL */
    const char *const *envp; /* the whole environment; ends with NULL */
    struct loop *loop;
    size_t stdout_max;
    int64_t timeout_ms;
    /* Called once, not from within child_start(). The texts are valid during the call, and the
     * child may be freed in it. */
    void (*on_done)(void *arg, enum child_end end, int value, struct sv out, struct sv errors);
    void *arg;
};

struct child;

/* Starts a command. On failure it returns NULL and sets *ret_errno: ENOENT, EACCES, ENOMEM, EMFILE,
 * ... */
struct child *child_start(const struct child_options *options, int *ret_errno);
/* Frees the child, and kills it if it still runs. Accepts NULL, returns NULL. */
struct child *child_free(struct child *p);

#endif
