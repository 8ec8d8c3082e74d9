/* Starts threads with a name and with asynchronous signals blocked: these belong to the main
 * thread. Faults such as SIGSEGV are still delivered to the thread that causes them.
 */
#ifndef PROFPULL_BASE_THREAD_H
#define PROFPULL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* The length of the longest thread name in Linux; a longer one is cut. */
#define THREAD_NAME_MAX 15

/* Runs fn(arg) on a new thread, which the caller must join. Returns false with ERR_SYSTEM if the
 * system refuses, or with ERR_MEMORY if out of memory. */
bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg,
                  struct err *err);

#endif
