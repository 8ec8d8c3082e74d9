#include "symbols/child.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "symbols/answer.h"
#include "symbols/cage.h"
#include "symbols/channel.h"
#include "symbols/native.h"

/* A file stays open for further questions about it, but no longer than this: it may hold hundreds
 * of megabytes. */
#define IDLE_MS 30000
/* The kernel ends a child that takes more CPU. It is for one whose agent does not: questions have
 * deadlines. An old child is replaced long before. */
#define CPU_MAX_S 7200

struct child {
    int socket;
    struct native *file; /* the last file; NULL: none */
    struct stat st;      /* its identity */
    char build_id[BUILD_ID_MAX + 1];
    uint64_t *addresses;
};

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void forget(struct child *c)
{
    c->file = native_free(c->file);
    (void)malloc_trim(0);
}

/* Makes the file of a question the open one. */
static bool open_file(struct child *c, const struct question *q, int fd,
                      enum symbols_failure *ret_failure, uint32_t *ret_opened, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        *ret_failure = SYMBOLS_UNREADABLE;
        return err_sys(err, "fstat");
    }
    if (c->file != NULL && is_same_file(&st, &c->st) && strcmp(c->build_id, q->build_id) == 0) {
        return true;
    }
    forget(c);
    c->file = native_open(fd, q->build_id, ret_failure, err);
    c->st = st;
    memcpy(c->build_id, q->build_id, sizeof(c->build_id));
    *ret_opened = 1;
    return c->file != NULL;
}

static void send_answer(const struct child *c, const struct answer_head *head, const void *payload,
                        size_t n)
{
    if (!channel_send(c->socket, head, sizeof(*head), -1, CHANNEL_FOREVER) ||
        !channel_send(c->socket, payload, n, -1, CHANNEL_FOREVER)) {
        _exit(CHILD_DONE);
    }
}

static void send_failure(const struct child *c, enum symbols_failure f, const struct err *err)
{
    size_t n = strlen(err->msg) + 1;
    const struct answer_head head = {
        .magic = ANSWER_MAGIC, .failure = f, .strings = (uint32_t)n, .opened = 1};
    send_answer(c, &head, err->msg, n);
}

static void answer(struct child *c, const struct question *q, int fd)
{
    struct err err = ERR_INIT;
    enum symbols_failure failure = SYMBOLS_OK;
    uint32_t opened = 0;
    struct answer_head head;
    struct answer_writer w;
    struct buf payload;
    if (!open_file(c, q, fd, &failure, &opened, &err)) {
        send_failure(c, failure, &err);
        return;
    }
    answer_writer_init(&w);
    native_ask(c->file, &q->mapping, c->addresses, q->addresses, &w);
    buf_init(&payload, ANSWER_MAX);
    if (answer_finish(&w, &head, &payload)) {
        head.opened = opened;
        head.partial = native_is_partial(c->file);
        send_answer(c, &head, payload.data, payload.len);
    } else {
        err_set(&err, ERR_LIMIT, "names for %u addresses take more than %u bytes",
                (unsigned)q->addresses, (unsigned)ANSWER_MAX);
        send_failure(c, SYMBOLS_TOO_LARGE, &err);
    }
    buf_done(&payload);
    answer_writer_done(&w);
}

/* Waits for a question. After some idle time the open file is closed. */
static void receive(struct child *c, struct question *q, int *ret_fd)
{
    size_t n;
    bool ok;
    do {
        int64_t until = c->file != NULL ? clock_mono_ms() + IDLE_MS : CHANNEL_FOREVER;
        ok = channel_receive(c->socket, q, sizeof(*q), ret_fd, until);
        if (!ok && errno == ETIMEDOUT) {
            forget(c);
        }
    } while (!ok && errno == ETIMEDOUT);
    n = ok && q->addresses <= QUESTION_ADDRESSES_MAX ? q->addresses : 0;
    if (n == 0 || q->magic != QUESTION_MAGIC || *ret_fd < 0 ||
        !channel_receive(c->socket, c->addresses, n * sizeof(*c->addresses), NULL,
                         CHANNEL_FOREVER)) {
        _exit(CHILD_DONE);
    }
    q->build_id[BUILD_ID_MAX] = '\0';
}

void child_main(int socket, const struct order *order)
{
    struct child c = {.socket = socket};
    struct err err = ERR_INIT;
    (void)prctl(PR_SET_NAME, "symbols");
    c.addresses = reallocarray(NULL, QUESTION_ADDRESSES_MAX, sizeof(*c.addresses));
    if (c.addresses == NULL || !cage_limit(order->memory, CPU_MAX_S, &err) ||
        (!cage_restrict(CAGE_CHILD, &err) && order->required != 0)) {
        _exit(CHILD_NO_LIMITS);
    }
    for (;;) {
        struct question q;
        int fd;
        receive(&c, &q, &fd);
        answer(&c, &q, fd);
        close(fd);
    }
}
