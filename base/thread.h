/* Starts threads the way this program wants them: with a name, and with asynchronous signals
 * blocked (those belong to the main thread; faults such as SIGSEGV are still delivered where they
 * happen). For loop.c, worker.c and other owners of a thread.
 */
#ifndef PROFPULL_BASE_THREAD_H
#define PROFPULL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* Longest thread name that Linux keeps, without its NUL; a longer one is cut. */
#define THREAD_NAME_MAX 15

/* Starts fn(arg) on a new thread that the caller must join. False with ERR_SYSTEM if the system
 * has none to give. */
bool thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg,
                  struct err *err);

#endif
