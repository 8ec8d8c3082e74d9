/* An explicit error: a kind that code may branch on and a sentence for a human.
 *
 * The caller owns the object (usually on its stack, made with ERR_INIT) and passes it as the last
 * parameter. A function that fails sets it once and returns false, NULL or a negative number; one
 * that succeeds leaves it alone. On the way up err_wrap() puts context in front:
 * "outer: inner: reason". NULL is accepted everywhere and means that nobody wants the text.
 * No thread rules: an object belongs to whoever holds it. No allocation, so no failure of its own.
 */
#ifndef PROFPULL_BASE_ERR_H
#define PROFPULL_BASE_ERR_H

#include <stdbool.h>

/* Longest message with its NUL; a longer one is cut and ends in "...". */
#define ERR_MSG_MAX 1024

enum err_kind {
    ERR_NONE = 0,
    ERR_INPUT,   /* what we were given is wrong: configuration, a rule, a profile */
    ERR_LIMIT,   /* a stated limit was reached */
    ERR_SYSTEM,  /* a system call failed */
    ERR_NETWORK, /* the other side could not be reached or broke off */
    ERR_REFUSED, /* the other side answered and said no */
    ERR_MEMORY,  /* an allocation failed */
};

struct err {
    enum err_kind kind;
    char msg[ERR_MSG_MAX];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE                                                                           \
    }

/* Sets the error; returns false so that callers can write `return err_set(...)`. */
bool err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set() with kind ERR_SYSTEM and ": <text of errno>" after the message. */
bool err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The error of a failed allocation: kind ERR_MEMORY, "out of memory". Returns false. */
bool err_memory(struct err *err);

/* Puts "<fmt>: " in front of the message that is there; the kind stays. Returns false. */
bool err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds text to the end of the message that is there; the kind stays. Returns false. */
bool err_append(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes the object empty again. */
void err_clear(struct err *err);

#endif
