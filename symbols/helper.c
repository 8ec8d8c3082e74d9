#include "symbols/helper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/answer.h"
#include "symbols/channel.h"
#include "symbols/launcher.h"
#include "symbols/protocol.h"

/* How long the launcher may take to start or end a child. */
#define ORDER_MS 10000

struct symbols_helper {
    pid_t launcher;
    int orders; /* socket to the launcher */
    pthread_mutex_t lock;
    pthread_cond_t free;
    /* Guarded by the lock. */
    bool busy; /* a question is under way; whoever set it may use what stands below */
    struct symbols_helper_options options;
    bool limits_changed;
    struct symbols_counters counters;
    /* Used by the question under way. */
    int child; /* socket to the child; -1: none */
};

/* ---- start and stop -------------------------------------------------------------------------- */

static bool fork_launcher(struct symbols_helper *h, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return err_sys(err, "a socket for the process that reads debug information");
    }
    h->launcher = fork();
    if (h->launcher == 0) {
        close(ends[0]);
        launcher_main(ends[1]);
    }
    int error = errno;
    close(ends[1]);
    if (h->launcher < 0) {
        close(ends[0]);
        errno = error;
        return err_sys(err, "starting the process that reads debug information");
    }
    h->orders = ends[0];
    return true;
}

struct symbols_helper *symbols_helper_start(const struct symbols_helper_options *options,
                                            struct err *err)
{
    struct symbols_helper *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        err_memory(err);
        return NULL;
    }
    h->options = *options;
    h->child = -1;
    if (!fork_launcher(h, err)) {
        free(h);
        return NULL;
    }
    clock_cond_init(&h->free);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

struct symbols_helper *symbols_helper_stop(struct symbols_helper *h)
{
    if (h == NULL) {
        return NULL;
    }
    if (h->child >= 0) {
        close(h->child);
    }
    close(h->orders);
    /* The launcher ends at once when its socket closes. The sandbox of the agent has no call to
     * wait for it; a launcher that is left ends up with the system's first process. */
    while (waitpid(h->launcher, NULL, 0) < 0 && errno == EINTR) {
        ;
    }
    pthread_cond_destroy(&h->free);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return NULL;
}

void symbols_helper_limit(struct symbols_helper *h, const struct symbols_helper_options *options)
{
    pthread_mutex_lock(&h->lock);
    h->limits_changed = h->limits_changed || h->options.max_memory != options->max_memory ||
                        h->options.sandbox != options->sandbox;
    h->options = *options;
    pthread_mutex_unlock(&h->lock);
}

void symbols_helper_memory(struct symbols_helper *h, uint64_t max_memory)
{
    pthread_mutex_lock(&h->lock);
    h->limits_changed = h->limits_changed || h->options.max_memory != max_memory;
    h->options.max_memory = max_memory;
    pthread_mutex_unlock(&h->lock);
}

void symbols_helper_counters(struct symbols_helper *h, struct symbols_counters *ret)
{
    pthread_mutex_lock(&h->lock);
    *ret = h->counters;
    pthread_mutex_unlock(&h->lock);
}

/* ---- the child ------------------------------------------------------------------------------- */

/* A question under way. */
struct asking {
    struct symbols_helper *helper;
    const struct symbols_question *question;
    struct symbols_helper_options options; /* as they were when it began */
    int64_t deadline_ms;
    enum symbols_failure failure;
    bool opened;
    bool partial;
    bool started;
};

static bool fail(struct asking *a, enum symbols_failure f)
{
    a->failure = f;
    return false;
}

/* Gives an order to the launcher. Returns false if it has failed or the launcher is gone. */
static bool give_order(struct asking *a, enum order_kind kind, int *ret_socket,
                       struct order_done *ret, struct err *err)
{
    struct symbols_helper *h = a->helper;
    const struct order order = {
        .kind = kind, .required = a->options.sandbox, .memory = a->options.max_memory};
    int64_t deadline = clock_mono_ms() + ORDER_MS;
    if (!channel_send(h->orders, &order, sizeof(order), -1, deadline) ||
        !channel_receive(h->orders, ret, sizeof(*ret), ret_socket, deadline)) {
        /* An answer that comes later would be taken for that to the next order. */
        (void)shutdown(h->orders, SHUT_RDWR);
        return err_set(err, ERR_SYSTEM,
                       "the process that starts readers of debug information has ended: "
                       "restart profpull to get names again");
    }
    return true;
}

static bool start_child(struct asking *a, struct err *err)
{
    struct order_done done = {.error = 0};
    int socket = -1;
    if (!give_order(a, ORDER_START, &socket, &done, err)) {
        return fail(a, SYMBOLS_START);
    }
    if (socket < 0) {
        errno = done.error;
        err_sys(err, "starting a process that reads debug information");
        return fail(a, SYMBOLS_START);
    }
    a->helper->child = socket;
    a->started = true;
    return true;
}

/* Ends the child and says why it could not answer. errno is that of the call that failed. */
static bool end_child(struct asking *a, struct err *err)
{
    struct symbols_helper *h = a->helper;
    struct order_done done = {.error = 0};
    bool late = errno == ETIMEDOUT;
    close(h->child);
    h->child = -1;
    bool known = give_order(a, ORDER_END, NULL, &done, NULL) && done.ended != 0;
    int status = done.wait_status;
    if (late) {
        err_set(err, ERR_TIMEOUT, "no names within %u ms", a->options.timeout_ms);
        return fail(a, SYMBOLS_TIMEOUT);
    }
    if (known && WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_MEMORY) {
        err_set(err, ERR_LIMIT, "reading the file takes more than %llu bytes of memory",
                (unsigned long long)a->options.max_memory);
        return fail(a, SYMBOLS_MEMORY);
    }
    if (known && WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_LIMITS) {
        err_set(err, ERR_SYSTEM, "the system does not limit the process that reads the file");
        return fail(a, SYMBOLS_START);
    }
    err_set(err, ERR_SYSTEM, "the process that reads the file has ended: %s %d",
            known && WIFSIGNALED(status) ? "signal" : "status",
            known && WIFSIGNALED(status) ? WTERMSIG(status) : status);
    return fail(a, SYMBOLS_CRASH);
}

/* ---- a question ------------------------------------------------------------------------------ */

static bool check_question(struct asking *a, struct err *err)
{
    const struct symbols_question *q = a->question;
    struct stat st;
    if (q->count == 0 || q->count > SYMBOLS_ADDRESSES_MAX) {
        err_set(err, ERR_LIMIT, "expected 1 to %d addresses, got %zu", SYMBOLS_ADDRESSES_MAX,
                q->count);
        return fail(a, SYMBOLS_TOO_LARGE);
    }
    if (q->build_id != NULL && strlen(q->build_id) > BUILD_ID_MAX) {
        err_set(err, ERR_INPUT, "expected a build id of at most %d digits, got %zu", BUILD_ID_MAX,
                strlen(q->build_id));
        return fail(a, SYMBOLS_BUILD_ID);
    }
    if (fstat(q->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err_set(err, ERR_INPUT, "expected a regular file");
        return fail(a, SYMBOLS_UNREADABLE);
    }
    if (a->options.max_file != 0 && (uint64_t)st.st_size > a->options.max_file) {
        err_set(err, ERR_LIMIT, "the file has %llu bytes, more than %llu",
                (unsigned long long)st.st_size, (unsigned long long)a->options.max_file);
        return fail(a, SYMBOLS_TOO_LARGE);
    }
    return true;
}

static bool send_question(struct asking *a)
{
    const struct symbols_question *q = a->question;
    struct question message;
    memset(&message, 0, sizeof(message));
    message.magic = QUESTION_MAGIC;
    message.addresses = (uint32_t)q->count;
    message.mapping = q->mapping;
    if (q->build_id != NULL) {
        memcpy(message.build_id, q->build_id, strlen(q->build_id));
    }
    return channel_send(a->helper->child, &message, sizeof(message), q->fd, a->deadline_ms) &&
           channel_send(a->helper->child, q->addresses, q->count * sizeof(*q->addresses), -1,
                        a->deadline_ms);
}

/* Takes the failure that the child has answered with; the message is that of the child. */
static bool take_failure(struct asking *a, const struct answer_head *head, char *message,
                         struct err *err)
{
    message[head->strings - 1] = '\0';
    err_set(err, ERR_INPUT, "%s", message);
    free(message);
    return fail(a, (enum symbols_failure)head->failure);
}

static bool no_sense(struct asking *a, struct err *err)
{
    err_wrap(err, "the answer of the process that reads debug information");
    close(a->helper->child);
    a->helper->child = -1;
    return fail(a, SYMBOLS_ANSWER);
}

static bool receive_answer(struct asking *a, struct symbol_frames *ret, struct err *err)
{
    int child = a->helper->child;
    struct answer_head head;
    if (!channel_receive(child, &head, sizeof(head), NULL, a->deadline_ms)) {
        return end_child(a, err);
    }
    uint64_t size = answer_payload_size(&head, a->question->count, err);
    if (size == 0) {
        return no_sense(a, err);
    }
    char *payload = malloc(size);
    if (payload == NULL) {
        err_memory(err);
        return no_sense(a, err);
    }
    if (!channel_receive(child, payload, size, NULL, a->deadline_ms)) {
        free(payload);
        return end_child(a, err);
    }
    a->opened = head.opened != 0;
    a->partial = head.partial != 0;
    if (head.failure != SYMBOLS_OK) {
        return take_failure(a, &head, payload, err);
    }
    return answer_decode(&head, payload, ret, err) || no_sense(a, err);
}

/* Asks the child, which no other thread uses meanwhile. */
static bool ask(struct asking *a, struct symbol_frames *ret, struct err *err)
{
    if (a->helper->child < 0 && !start_child(a, err)) {
        return false;
    }
    return send_question(a) ? receive_answer(a, ret, err) : end_child(a, err);
}

/* Waits until no other question is under way. Returns false at the deadline. */
static bool begin(struct asking *a, struct err *err)
{
    struct symbols_helper *h = a->helper;
    int64_t until = a->deadline_ms;
    struct timespec t = clock_timespec(until);
    int rc = 0;
    while (h->busy && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&h->free, &h->lock, &t);
    }
    if (h->busy) {
        err_set(err, ERR_TIMEOUT, "other files took %u ms", a->options.timeout_ms);
        return fail(a, SYMBOLS_TIMEOUT);
    }
    h->busy = true;
    if (h->limits_changed && h->child >= 0) {
        close(h->child);
        h->child = -1;
    }
    h->limits_changed = false;
    a->options = h->options;
    return true;
}

static void end(struct asking *a)
{
    struct symbols_helper *h = a->helper;
    h->counters.opened += a->opened;
    h->counters.partial += a->opened && a->partial;
    h->counters.children += a->started;
    h->busy = false;
    pthread_cond_signal(&h->free);
}

bool symbols_helper_ask(struct symbols_helper *h, const struct symbols_question *q,
                        struct symbol_frames *ret, enum symbols_failure *ret_failure,
                        struct err *err)
{
    bool ok = false;
    struct asking a = {.helper = h, .question = q};
    pthread_mutex_lock(&h->lock);
    a.options = h->options;
    a.deadline_ms = clock_mono_ms() + a.options.timeout_ms;
    if (check_question(&a, err) && begin(&a, err)) {
        pthread_mutex_unlock(&h->lock);
        ok = ask(&a, ret, err);
        pthread_mutex_lock(&h->lock);
        end(&a);
    }
    h->counters.asked++;
    if (!ok) {
        h->counters.failures[a.failure]++;
    }
    pthread_mutex_unlock(&h->lock);
    if (ret_failure != NULL) {
        *ret_failure = a.failure;
    }
    return ok;
}
