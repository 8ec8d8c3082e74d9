/* A bucket that fails: what is tried again and how often, what is said, and that nothing half is
 * taken for whole. */
#include "tests/unit/bucket/bucket_rig.h"

#include <unistd.h>

/* Answers the first `times` requests (of one method and query, if given) in its own way. */
struct script {
    unsigned times;
    const char *method;   /* NULL: all */
    const char *contains; /* in the query; NULL: all */
    const char *status;
    const char *headers;
    const char *body;
    bool then_serve; /* serve it as usual before: the answer is what is lost */
    bool reset;      /* close the connection instead of an answer */
    bool silent;     /* never answer */
    unsigned hit;    /* under the lock of the fake, as is `times` */
};

static bool play(struct fake_bucket *f, struct server_conn *c, const struct fake_request *r)
{
    pthread_mutex_lock(&f->lock);
    struct script *s = f->fault_arg;
    bool mine = s->times > 0 && (s->method == NULL || strcmp(s->method, r->method) == 0) &&
                (s->contains == NULL || strstr(r->query, s->contains) != NULL);
    s->times -= mine;
    s->hit += mine;
    if (mine && s->then_serve) {
        /* To a connection that nobody reads. */
        struct server_conn nobody = {.server = c->server, .fd = -1, .head = c->head};
        fake_serve(f, &nobody, r);
    }
    pthread_mutex_unlock(&f->lock);
    if (!mine) {
        return false;
    }
    if (s->silent) {
        server_wait_close(c);
    } else if (s->reset) {
        server_reset(c);
        shutdown(c->fd, SHUT_RDWR);
    } else if (s->headers != NULL) {
        server_send(c, "HTTP/1.1 ");
        server_send(c, s->status);
        server_send(c, s->headers);
        server_send(c, s->body);
        shutdown(c->fd, SHUT_WR);
    } else if (s->body != NULL) {
        fake_answer(c, s->status, "", s->body, strlen(s->body));
    } else {
        fake_refuse(c, r, s->status, strchr(s->status, ' ') + 1);
    }
    return true;
}

static enum bucket_result put(struct rig *r)
{
    err_clear(&r->err);
    return bucket_put(r->bucket, "k", "text", 4, 0, &r->err);
}

static enum bucket_result get(struct rig *r, char out[100])
{
    struct bucket_read read;
    err_clear(&r->err);
    enum bucket_result result = bucket_get(
        r->bucket, "k", &(struct bucket_range){.len = 99, .into = out}, 0, &read, &r->err);
    if (result == BUCKET_OK) {
        out[read.len] = '\0';
    }
    return result;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct {
    const char *status; /* the rest of the line is the code, too */
    enum bucket_result result;
    unsigned tries; /* of 3 */
    const char *says;
} refusals[] = {
    {"503 SlowDown", BUCKET_SLOW_DOWN, 3, "message of SlowDown (after 3 tries)"},
    {"429 TooManyRequests", BUCKET_SLOW_DOWN, 3, "HTTP 429"},
    {"500 InternalError", BUCKET_SLOW_DOWN, 3, "message of InternalError"},
    {"504 GatewayTimeout", BUCKET_TIMEOUT, 3, "HTTP 504"},
    {"400 RequestTimeout", BUCKET_TIMEOUT, 3, "message of RequestTimeout"},
    {"400 IncompleteBody", BUCKET_NETWORK, 3, "message of IncompleteBody"},
    {"404 NoSuchKey", BUCKET_NOT_FOUND, 1, "message of NoSuchKey"},
    {"404 NoSuchBucket", BUCKET_NO_BUCKET, 1, "create it, or check url"},
    {"301 PermanentRedirect", BUCKET_NO_BUCKET, 1, "set s3.region"},
    {"302 Whatever", BUCKET_NO_BUCKET, 1, "redirects are not followed"},
    {"403 AccessDenied", BUCKET_DENIED, 1, "s3:PutObject"},
    {"403 SignatureDoesNotMatch", BUCKET_DENIED, 1, "secret_access_key is not that of"},
    {"403 InvalidAccessKeyId", BUCKET_DENIED, 1, "check s3.access_key_id"},
    {"400 ExpiredToken", BUCKET_DENIED, 1, "renew access_key_id"},
    {"403 RequestTimeTooSkewed", BUCKET_CLOCK, 1, "the clocks of this machine"},
    {"400 QuotaExceeded", BUCKET_FULL, 1, "raise its quota"},
    {"507 XMinioStorageFull", BUCKET_FULL, 1, "the disks of the server are full"},
    {"507 Whatever", BUCKET_FULL, 1, "the disks of the server are full"},
    {"412 PreconditionFailed", BUCKET_CHANGED, 1, "HTTP 412"},
    {"400 KeyTooLongError", BUCKET_REFUSED, 1, "message of KeyTooLongError"},
};

SETUP_OF(rig)

TEST_ON(struct rig *r, test_refusals)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct script s = {.times = 99, .status = refusals[i].status};
        fake_bucket_fault(r->fake, play, &s);
        CHECK_INT(put(r), refusals[i].result, refusals[i].status);
        CHECK_INT(s.hit, refusals[i].tries, refusals[i].status);
        CHECK_CONTAINS(r->err.msg, "s3://bbb/pre/k: PUT answered HTTP ", refusals[i].status);
        CHECK_CONTAINS(r->err.msg, refusals[i].says, refusals[i].status);
    }
}

/* The name of the bucket is not secret, but an error may repeat the request. */
TEST_ON(struct rig *r, test_refusal_shows_no_credentials)
{
    struct script s = {.times = 1,
                       .status = "403 Forbidden",
                       .body = "<Error><Code>SignatureDoesNotMatch</Code><Message>m</Message>"
                               "<StringToSign>hunter2</StringToSign></Error>"};
    fake_bucket_fault(r->fake, play, &s);
    CHECK_INT(put(r), BUCKET_DENIED, "");
    assert_null(strstr(r->err.msg, "hunter2"));
}

TEST_ON(struct rig *r, test_refusal_that_passes)
{
    struct script s = {.times = 2, .status = "503 SlowDown"};
    fake_bucket_fault(r->fake, play, &s);
    CHECK_INT(put(r), BUCKET_OK, r->err.msg);
    CHECK_STR(r->err.msg, "", "");
    CHECK_INT(testing_metric(r->metrics, "profpull_bucket_retries_total{bucket=\"test\"}"), 2, "");
}

/* ---- answers that are none ------------------------------------------------------------------- */

TEST(test_answers_to_a_range)
{
    static const struct {
        const char *status, *headers, *body;
        enum bucket_result result;
        const char *says;
        unsigned tries;
    } rows[] = {
        {"200 OK", "\r\nContent-Length: 1000000000\r\n\r\n", "", BUCKET_BAD_ANSWER,
         "the server ignores ranges", 1},
        {"206 P", "\r\nContent-Length: 4\r\nContent-Range: bytes 1-4/9\r\n\r\n", "text",
         BUCKET_BAD_ANSWER, "another range", 1},
        {"206 P", "\r\nContent-Length: 4\r\n\r\n", "text", BUCKET_BAD_ANSWER, "another range", 1},
        {"206 P", "\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/9\r\n\r\n", "text",
         BUCKET_BAD_ANSWER, "fewer bytes", 1},
        {"206 P", "\r\nContent-Length: 3\r\nContent-Range: bytes 0-3/4\r\n\r\n", "tex",
         BUCKET_NETWORK, "the answer was cut", 1},
        {"206 P", "\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/4\r\n\r\n", "tex",
         BUCKET_NETWORK, "127.0.0.1", 3},
        {"206 P", "\r\nContent-Length: 200\r\nContent-Range: bytes 0-199/200\r\n\r\n",
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxx",
         BUCKET_BAD_ANSWER, "more bytes than were asked for", 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        char text[100];
        struct script s = {.times = 99,
                           .status = rows[i].status,
                           .headers = rows[i].headers,
                           .body = rows[i].body};
        rig_init(&r);
        fake_bucket_fault(r.fake, play, &s);
        CHECK_INT(get(&r, text), rows[i].result, r.err.msg);
        CHECK_CONTAINS(r.err.msg, rows[i].says, rows[i].headers);
        CHECK_INT(s.hit, rows[i].tries, rows[i].headers);
    }
}

TEST(test_cut_body_is_read_again)
{
    SCOPED(rig) r;
    char text[100];
    struct script s = {.times = 2,
                       .status = "206 Partial Content",
                       .headers = "\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/4\r\n\r\n",
                       .body = "wr"};
    rig_init(&r);
    fake_bucket_add(r.fake, "pre/k", "text");
    fake_bucket_fault(r.fake, play, &s);
    CHECK_INT(get(&r, text), BUCKET_OK, r.err.msg);
    CHECK_STR(text, "text", "");
}

TEST_ON(struct rig *r, test_page_instead_of_an_answer)
{
    struct script s = {.times = 99, .status = "200 OK", .body = "<html>welcome</html>"};
    fake_bucket_fault(r->fake, play, &s);
    CHECK_INT(put(r), BUCKET_BAD_ANSWER, "");
    CHECK_CONTAINS(r->err.msg, "none of an object store", "");
}

/* ---- time ------------------------------------------------------------------------------------ */

static void short_tries(struct bucket_options *o)
{
    o->request_timeout_ms = 50;
}

TEST(test_silent_server)
{
    SCOPED(rig) r;
    struct script s = {.times = 99, .silent = true};
    rig_init_with(&r, "s3://bbb/pre", short_tries);
    fake_bucket_fault(r.fake, play, &s);
    CHECK_INT(put(&r), BUCKET_TIMEOUT, "");
    CHECK_CONTAINS(r.err.msg, "(after 3 tries)", "");
}

/* A deadline ends a try, the pause before the next one, and later calls at once. */
TEST_ON(struct rig *r, test_deadline)
{
    struct script silent = {.times = 99, .silent = true};
    struct script slow = {.times = 99, .status = "503 SlowDown", .headers = NULL};
    fake_bucket_fault(r->fake, play, &silent);
    int64_t deadline = clock_mono_ms() + 100;
    CHECK_INT(bucket_put(r->bucket, "k", "x", 1, deadline, &r->err), BUCKET_TIMEOUT, "");
    assert_true(clock_mono_ms() >= deadline);
    assert_null(strstr(r->err.msg, "tries"));
    fake_bucket_fault(r->fake, play, &slow);
    CHECK_INT(bucket_put(r->bucket, "k", "x", 1, deadline, &r->err), BUCKET_TIMEOUT, "");
    CHECK_CONTAINS(r->err.msg, "the deadline has passed before the request", "");
    CHECK_INT(slow.hit, 0, "");
}

/* The server asks for a longer pause than the deadline leaves: the refusal is the result. */
TEST(test_retry_after_beyond_the_deadline)
{
    SCOPED(rig) r;
    struct script s = {.times = 99,
                       .status = "503 SlowDown",
                       .headers = "\r\nRetry-After: 3000\r\nContent-Length: 0\r\n\r\n",
                       .body = ""};
    rig_init(&r);
    fake_bucket_fault(r.fake, play, &s);
    int64_t deadline = clock_mono_ms() + 50000;
    CHECK_INT(bucket_put(r.bucket, "k", "x", 1, deadline, &r.err), BUCKET_SLOW_DOWN, "");
    CHECK_INT(s.hit, 1, "");
}

TEST_ON(struct rig *r, test_no_server)
{
    struct bucket_settings s = r->settings;
    s.endpoint = "http://127.0.0.1:1";
    struct bucket_options o = rig_options(r);
    o.settings = &s;
    struct bucket *b = bucket_new(&o, &r->err);
    assert_non_null(b);
    CHECK_INT(bucket_put(b, "k", "x", 1, 0, &r->err), BUCKET_NETWORK, "");
    CHECK_CONTAINS(r->err.msg, "s3://bbb/pre/k: PUT http://127.0.0.1:1/bbb/pre/k: ", "");
    CHECK_CONTAINS(r->err.msg, "(after 3 tries)", "");
    bucket_free(b);
}

TEST_ON(struct rig *r, test_unreadable_key_file)
{
    struct bucket_settings s = r->settings;
    s.http.password = NULL;
    s.http.password_file = "/nonexistent/key";
    struct bucket_options o = rig_options(r);
    o.settings = &s;
    struct bucket *b = bucket_new(&o, &r->err);
    assert_non_null(b);
    CHECK_INT(bucket_put(b, "k", "x", 1, 0, &r->err), BUCKET_CREDENTIALS, "");
    CHECK_CONTAINS(r->err.msg, "/nonexistent/key", "");
    bucket_free(b);
}

/* ---- uploads --------------------------------------------------------------------------------- */

#define FILE_SIZE 2500

static int make_file(void)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    for (size_t i = 0; i < FILE_SIZE; i++) {
        assert_int_equal(fputc((int)('a' + i % 23), file), (int)('a' + i % 23));
    }
    assert_int_equal(fclose(file), 0);
    return fd;
}

static bool arrived(struct rig *r)
{
    char text[FILE_SIZE + 1];
    if (fake_bucket_text(r->fake, "pre/f", text, sizeof(text)) != FILE_SIZE) {
        return false;
    }
    for (size_t i = 0; i < FILE_SIZE; i++) {
        if (text[i] != (char)('a' + i % 23)) {
            return false;
        }
    }
    return true;
}

#define ERROR_200(code) "<Error><Code>" code "</Code><Message>m</Message></Error>"

/* A file arrives whole or not at all, whatever request fails, and no parts stay. */
TEST(test_uploads)
{
    static const struct {
        const char *name;
        struct script script;
        enum bucket_result result;
        bool stays; /* parts stay, because aborting failed */
    } rows[] = {
        {"slow to begin",
         {.times = 2, .method = "POST", .contains = "uploads", .status = "503 SlowDown"},
         BUCKET_OK,
         false},
        {"denied",
         {.times = 1, .method = "POST", .contains = "uploads", .status = "403 AccessDenied"},
         BUCKET_DENIED,
         false},
        {"begun with a page",
         {.times = 99,
          .method = "POST",
          .contains = "uploads",
          .status = "200 OK",
          .body = "<html/>"},
         BUCKET_BAD_ANSWER,
         false},
        {"slow parts",
         {.times = 2, .method = "PUT", .contains = "partNumber=2", .status = "503 SlowDown"},
         BUCKET_OK,
         false},
        {"part not taken",
         {.times = 99, .method = "PUT", .contains = "partNumber=2", .status = "503 SlowDown"},
         BUCKET_SLOW_DOWN,
         false},
        {"full",
         {.times = 1,
          .method = "PUT",
          .contains = "partNumber=3",
          .status = "507 XMinioStorageFull"},
         BUCKET_FULL,
         false},
        {"part cut",
         {.times = 1, .method = "PUT", .contains = "partNumber=2", .reset = true},
         BUCKET_OK,
         false},
        {"part without ETag",
         {.times = 1, .method = "PUT", .contains = "partNumber=2", .status = "200 OK", .body = ""},
         BUCKET_BAD_ANSWER,
         false},
        {"upload lost",
         {.times = 1, .method = "PUT", .contains = "partNumber=2", .status = "404 NoSuchUpload"},
         BUCKET_OK,
         false},
        {"upload always lost",
         {.times = 99, .method = "PUT", .contains = "partNumber=2", .status = "404 NoSuchUpload"},
         BUCKET_BAD_ANSWER,
         false},
        {"part lost",
         {.times = 1, .method = "POST", .contains = "uploadId", .status = "400 InvalidPart"},
         BUCKET_OK,
         false},
        {"end slow",
         {.times = 1,
          .method = "POST",
          .contains = "uploadId",
          .status = "200 OK",
          .body = ERROR_200("InternalError")},
         BUCKET_OK,
         false},
        {"end lost a part",
         {.times = 1,
          .method = "POST",
          .contains = "uploadId",
          .status = "200 OK",
          .body = ERROR_200("InvalidPart")},
         BUCKET_OK,
         false},
        {"end denied",
         {.times = 99,
          .method = "POST",
          .contains = "uploadId",
          .status = "200 OK",
          .body = ERROR_200("AccessDenied")},
         BUCKET_DENIED,
         false},
        {"end says nothing",
         {.times = 99, .method = "POST", .contains = "uploadId", .status = "200 OK", .body = ""},
         BUCKET_BAD_ANSWER,
         false},
        {"end is lost",
         {.times = 1, .method = "POST", .contains = "uploadId", .reset = true, .then_serve = true},
         BUCKET_OK,
         false},
        {"end never comes",
         {.times = 99, .method = "POST", .contains = "uploadId", .reset = true},
         BUCKET_NETWORK,
         false},
        {"abort fails",
         {.times = 99, .contains = "uploadId", .status = "403 AccessDenied"},
         BUCKET_DENIED,
         true},
    };
    int fd = make_file();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) r;
        struct script s = rows[i].script;
        rig_init(&r);
        fake_bucket_fault(r.fake, play, &s);
        CHECK_INT(bucket_put_file(r.bucket, "f", fd, 0, FILE_SIZE, 0, &r.err), rows[i].result,
                  rows[i].name);
        CHECK_INT(arrived(&r), rows[i].result == BUCKET_OK, rows[i].name);
        CHECK_INT(fake_bucket_open_uploads(r.fake), rows[i].stays, rows[i].name);
        CHECK_INT(r.err.msg[0] != '\0' && rows[i].result == BUCKET_OK, 0, r.err.msg);
        assert_true(s.hit > 0);
    }
    close(fd);
}

/* An older object of the same name and size is not taken for the one of this upload. */
TEST_ON(struct rig *r, test_older_object_is_no_success)
{
    struct script s = {.times = 99, .method = "POST", .contains = "uploadId", .reset = true};
    int fd = make_file();
    CHECK_INT(bucket_put_file(r->bucket, "f", fd, 0, FILE_SIZE, 0, &r->err), BUCKET_OK, r->err.msg);
    fake_bucket_fault(r->fake, play, &s);
    CHECK_INT(bucket_put_file(r->bucket, "f", fd, 0, FILE_SIZE, 0, &r->err), BUCKET_NETWORK, "");
    close(fd);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    struct rig *rig;
    unsigned number;
    enum bucket_result result;
    struct err err;
};

static void *put_many(void *arg)
{
    struct worker *w = arg;
    char key[32];
    for (unsigned i = 0; i < 25 && w->result == BUCKET_OK; i++) {
        struct bucket_read read;
        char text[64] = "";
        (void)snprintf(key, sizeof(key), "%u/%u", w->number, i);
        w->result = bucket_put(w->rig->bucket, key, key, strlen(key), 0, &w->err);
        if (w->result == BUCKET_OK) {
            w->result = bucket_get(w->rig->bucket, key,
                                   &(struct bucket_range){.len = sizeof(text) - 1, .into = text}, 0,
                                   &read, &w->err);
        }
        if (w->result == BUCKET_OK && strcmp(text, key) != 0) {
            w->result = BUCKET_BAD_ANSWER;
        }
    }
    return NULL;
}

static atomic_int in_flight;
static atomic_int most_in_flight;

static bool count_flights(struct fake_bucket *f, struct server_conn *c,
                          const struct fake_request *r)
{
    int now = atomic_fetch_add(&in_flight, 1) + 1;
    int most = atomic_load(&most_in_flight);
    while (now > most && !atomic_compare_exchange_weak(&most_in_flight, &most, now)) {
    }
    usleep(1000);
    pthread_mutex_lock(&f->lock);
    atomic_fetch_sub(&in_flight, 1);
    fake_serve(f, c, r);
    pthread_mutex_unlock(&f->lock);
    return true;
}

static void three_at_a_time(struct bucket_options *o)
{
    o->max_requests = 3;
}

TEST(test_many_threads)
{
    SCOPED(rig) r;
    struct worker workers[8];
    rig_init_with(&r, "s3://bbb/pre", three_at_a_time);
    fake_bucket_fault(r.fake, count_flights, NULL);
    for (unsigned i = 0; i < 8; i++) {
        workers[i] = (struct worker){.rig = &r, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, put_many, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].result, BUCKET_OK, workers[i].err.msg);
    }
    CHECK_INT(fake_bucket_requests(r.fake), 8 * 25 * 2, "");
    assert_true(atomic_load(&most_in_flight) <= 3);
}

static void *put_once(void *arg)
{
    struct worker *w = arg;
    w->result = bucket_put(w->rig->bucket, "k", "x", 1, 0, &w->err);
    return NULL;
}

/* Three calls wait for an answer, two for their turn. */
TEST(test_stop)
{
    SCOPED(rig) r;
    struct worker workers[5];
    struct script s = {.times = 99, .silent = true};
    rig_init_with(&r, "s3://bbb/pre", three_at_a_time);
    fake_bucket_fault(r.fake, play, &s);
    for (unsigned i = 0; i < 5; i++) {
        workers[i] = (struct worker){.rig = &r};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, put_once, &workers[i]), 0);
    }
    while (fake_bucket_requests(r.fake) < 3) {
        usleep(1000);
    }
    bucket_stop(r.bucket);
    for (unsigned i = 0; i < 5; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].result, BUCKET_STOPPED, "");
        CHECK_STR(workers[i].err.msg, "s3://bbb/pre/k: stopped", "");
    }
    CHECK_INT(put(&r), BUCKET_STOPPED, "later calls, too");
}
