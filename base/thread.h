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

/* The nice value of threads that give way to others. A thread of normal priority gets nine times
 * the processor time of such a thread, and runs at once when it wakes up. */
#define THREAD_LOW_NICE 10
/* Lowers the priority of the calling thread, for the rest of its life, to THREAD_LOW_NICE. Threads
 * that it starts inherit this. A failure is ignored: the thread then competes with the others. */
void thread_lower(void);

#endif
