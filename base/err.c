#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sv.h"
#include "base/utf8.h"

#define CUT_MARK "..."

/* Copies text into the object. A text that is too long is cut between characters and marked. */
static void store(struct err *err, enum err_kind kind, const char *text, size_t len)
{
    err->kind = kind;
    if (len < sizeof(err->msg)) {
        memcpy(err->msg, text, len + 1);
        return;
    }
    size_t keep = utf8_prefix((struct sv){text, len}, sizeof(err->msg) - sizeof(CUT_MARK));
    memcpy(err->msg, text, keep);
    memcpy(err->msg + keep, CUT_MARK, sizeof(CUT_MARK));
}

/* Sets the message to "<fmt><sep><tail>". The arguments may point into the object: the message is
 * composed outside of it. */
static void __attribute__((format(printf, 3, 0)))
compose(struct err *err, enum err_kind kind, const char *fmt, va_list ap, const char *sep,
        const char *tail)
{
    /* Larger than a message, so that one that is too long is noticed. */
    char text[2 * ERR_MSG_MAX];
    text[0] = '\0';
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    size_t len = strlen(text);
    (void)snprintf(text + len, sizeof(text) - len, "%s%s", sep, tail);
    store(err, kind, text, strlen(text));
}

bool err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        compose(err, kind, fmt, ap, "", "");
        va_end(ap);
    }
    return false;
}

bool err_sys(struct err *err, const char *fmt, ...)
{
    int saved = errno;
    if (err != NULL) {
        char text[256];
        va_list ap;
        va_start(ap, fmt);
        compose(err, ERR_SYSTEM, fmt, ap, ": ", strerror_r(saved, text, sizeof(text)));
        va_end(ap);
    }
    errno = saved;
    return false;
}

bool err_wrap(struct err *err, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        compose(err, err->kind, fmt, ap, ": ", err->msg);
        va_end(ap);
    }
    return false;
}

bool err_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory");
}

bool err_append(struct err *err, const char *fmt, ...)
{
    if (err != NULL) {
        char tail[ERR_MSG_MAX];
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(tail, sizeof(tail), fmt, ap);
        va_end(ap);
        err_set(err, err->kind, "%s%s", err->msg, tail);
    }
    return false;
}

void err_clear(struct err *err)
{
    if (err != NULL) {
        err->kind = ERR_NONE;
        err->msg[0] = '\0';
    }
}
