/* An error object: a kind for the program and a message for people.
 *
 * The caller owns the object, usually on its stack and initialised with ERR_INIT, and passes it as
 * the last parameter. A function that fails sets it once and returns false, NULL or a negative
 * number; one that succeeds does not touch it. On the way up err_wrap() adds context:
 * "outer: inner: reason". Every function accepts NULL from callers that do not need the message.
 * These functions allocate nothing and cannot fail. An object belongs to one thread.
 */
#ifndef PROFPULL_BASE_ERR_H
#define PROFPULL_BASE_ERR_H

#include <stdbool.h>

/* The size of the longest message with its NUL; a longer one is cut and ends in "...". */
#define ERR_MSG_MAX 1024

enum err_kind {
    ERR_NONE = 0,
    ERR_INPUT,   /* invalid input: configuration, a rule, a profile */
    ERR_LIMIT,   /* a documented limit was reached */
    ERR_SYSTEM,  /* a system call failed */
    ERR_NETWORK, /* the peer could not be reached, or the connection broke */
    ERR_REFUSED, /* the peer answered with a refusal */
    ERR_MEMORY,  /* an allocation failed */
    ERR_TIMEOUT, /* a deadline has passed, or nobody waits for the result any more */
};

struct err {
    enum err_kind kind;
    char msg[ERR_MSG_MAX];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE                                                                           \
    }

/* Sets the error. Returns false, so that callers can write `return err_set(...)`. */
bool err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets an error of kind ERR_SYSTEM and appends ": <text of errno>". Returns false. */
bool err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the error of a failed allocation: kind ERR_MEMORY, "out of memory". Returns false. */
bool err_memory(struct err *err);

/* Puts "<fmt>: " in front of the message; the kind stays. Returns false. */
bool err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends text to the message; the kind stays. Returns false. */
bool err_append(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Resets the object to "no error". */
void err_clear(struct err *err);

#endif
