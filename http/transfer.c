#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "http/private.h"
#include "http/wire.h"

/* The most bytes that are reserved because of a Content-Length alone. */
#define RESERVE_MAX ((size_t)256 * 1024)

/* Ends the transfer from within a callback. Returns false. */
static bool stop(struct http_transfer *t, enum http_result result)
{
    if (!t->stopped) {
        t->stopped = true;
        t->result = result;
    }
    return false;
}

void http_transfer_reset_response(struct http_transfer *t)
{
    buf_clear(&t->body);
    http_transfer_starve(t, false);
    t->granted = 0;
    t->status = 0;
    free(t->location);
    t->location = NULL;
    t->header_bytes = 0;
    t->header_lines = 0;
    t->content_length = UINT64_MAX;
    t->discarded = 0;
    t->retry_after_ms = -1;
    t->content_type[0] = '\0';
    t->head_done = false;
    t->is_http1 = false;
    t->closes = false;
    t->chunked = false;
    t->begins_early = false;
    t->early = false;
    t->following = false;
    t->curl_error[0] = '\0';
}

/* ---- responses that no request asked for ----------------------------------------------------- */

/* Marks the request to be sent again on a new connection, because a kept connection has brought
 * bytes that may not belong to it. Returns false. */
static bool doubt(struct http_transfer *t)
{
    t->in_doubt = true;
    return stop(t, HTTP_ERR_CUT);
}

/* Handles a final response that began before the request was sent. On a kept connection it may
 * belong to no request. On a new one it can be a refusal of a body that the server does not want,
 * but not an acceptance. Returns false to stop. */
static bool take_early(struct http_transfer *t)
{
    t->early = true;
    t->early_ns = clock_mono_ns();
    stray_count(&t->client->strays, STRAY_EARLY);
    if (!t->is_http1) {
        http_deadline_arm(t);
        return true;
    }
    if (t->reused && !t->repeated) {
        return doubt(t);
    }
    if (t->status >= 300 && t->body_size > 0) {
        return true;
    }
    t->limit = HTTP_LIMIT_EARLY;
    return stop(t, HTTP_ERR_PROTOCOL);
}

bool http_transfer_may_doubt(const struct http_transfer *t)
{
    return t->reused && !t->repeated && t->sent_ns != 0 &&
           clock_mono_ns() - t->sent_ns < HTTP_REPEAT_MAX_MS * NS_PER_MS;
}

/* Returns true if the response may come from a server that gave up an idle connection while the
 * request was on its way: 408 because no request came, or 400 because none could be read. A server
 * that has read the request answers later, or keeps the connection. */
static bool is_farewell(const struct http_transfer *t)
{
    bool closes = t->closes || (t->content_length == UINT64_MAX && !t->chunked);
    return (t->status == 400 || t->status == 408) && t->is_http1 && closes &&
           http_transfer_may_doubt(t);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Takes "close" and "keep-alive" from a Connection header, a list such as "keep-alive, Upgrade". */
static void take_connection(struct http_transfer *t, struct sv value)
{
    struct sv option;
    while (value.n > 0) {
        if (!sv_cut(value, ',', &option, &value)) {
            option = value;
            value.n = 0;
        }
        t->closes = t->closes || sv_eq_nocase(sv_trim(option), "close");
    }
}

/* Returns false if out of memory. */
static bool take_header(struct http_transfer *t, struct sv name, struct sv value)
{
    if (sv_eq_nocase(name, "location")) {
        free(t->location);
        t->location = strndup(value.p, value.n);
        return t->location != NULL;
    }
    if (sv_eq_nocase(name, "retry-after")) {
        t->retry_after_ms = http_retry_after(value, clock_wall_ns());
    }
    if (sv_eq_nocase(name, "content-type")) {
        /* libcurl knows the Content-Type only of responses that it has read itself. */
        snprintf(t->content_type, sizeof(t->content_type), "%.*s", SV_ARG(value));
    }
    if (sv_eq_nocase(name, "connection")) {
        take_connection(t, value);
    }
    t->chunked = t->chunked || sv_eq_nocase(name, "transfer-encoding");
    if (sv_eq_nocase(name, "content-length") && !parse_u64(value, INT64_MAX, &t->content_length)) {
        t->content_length = UINT64_MAX;
    }
    return true;
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Returns false if this is a redirect that will not be followed. */
static bool check_redirect(struct http_transfer *t)
{
    const struct http_settings *s = t->request.settings;
    bool same = false;
    if (!is_redirect(t->status) || !s->follow_redirects || t->method != HTTP_GET ||
        t->location == NULL) {
        return true;
    }
    char *target = url_resolve(t->url.text, t->location, &same);
    t->following = target != NULL && same && t->redirects < HTTP_REDIRECTS_MAX;
    free(target);
    return t->following;
}

/* Returns true if the Content-Length is over the limit. The beginning of an error page is useful
 * nevertheless. */
static bool is_announced_too_large(const struct http_transfer *t)
{
    return t->request.on_data == NULL && t->method != HTTP_HEAD && t->status < 400 &&
           t->content_length != UINT64_MAX && t->content_length > t->request.max_body;
}

/* Counts the storage of a body, so that all of them together have a ceiling. */
static void count_body(struct http_transfer *t)
{
    struct http_client *c = t->client;
    if (t->body.cap == t->body_counted) {
        return;
    }
    metric_gauge_add(c->body_bytes_gauge, (int64_t)t->body.cap - (int64_t)t->body_counted);
    c->body_bytes = c->body_bytes - t->body_counted + t->body.cap;
    t->body_counted = t->body.cap;
}

/* Returns true if on_room() decides how much memory the body may take. */
static bool asks_for_room(const struct http_transfer *t)
{
    return t->request.on_room != NULL && t->request.on_data == NULL && t->status < 300;
}

void http_transfer_starve(struct http_transfer *t, bool starved)
{
    if (t->starved == starved) {
        return;
    }
    t->starved = starved;
    t->client->n_starved += starved ? 1 : -(size_t)1;
    int64_t now_ns = clock_mono_ns();
    if (starved) {
        t->starved_ns = now_ns;
    }
}

/* Asks on_room() for a body of len bytes. Returns false if it does not allow them now, or never
 * will. */
static bool ask_for_room(struct http_transfer *t, size_t len)
{
    if (!asks_for_room(t) || len <= t->granted) {
        return true;
    }
    if (t->starved) {
        return false; /* on_room() was asked already */
    }
    size_t granted = t->request.on_room(t->request.arg, len, t->content_length);
    if (granted == HTTP_ROOM_NEVER) {
        return stop(t, HTTP_ERR_NO_ROOM);
    }
    t->granted = granted;
    http_transfer_starve(t, granted < len);
    if (!t->starved) {
        buf_reserve(&t->body, granted);
        count_body(t);
    }
    return !t->starved;
}

/* Returns true if n more bytes fit below the ceiling. Storage doubles when it grows, which is
 * included. */
static bool has_room(const struct http_transfer *t, size_t n)
{
    const struct http_client *c = t->client;
    size_t need = t->body.len + n + 1;
    if (c->bodies_max_bytes == 0 || need <= t->body.cap || asks_for_room(t)) {
        return true;
    }
    size_t cap = need < 2 * t->body.cap ? 2 * t->body.cap : need;
    cap = cap > t->request.max_body + 1 ? t->request.max_body + 1 : cap;
    size_t others = c->body_bytes - t->body_counted;
    size_t max = c->bodies_max_bytes;
    if (cap > max / HTTP_BODIES_LARGE_PART) {
        max -= max / HTTP_BODIES_SMALL_RESERVE;
    }
    return others <= max && cap <= max - others;
}

static void reserve_body(struct http_transfer *t)
{
    size_t n = 0;
    if (t->request.on_data != NULL || t->status >= 300 || asks_for_room(t)) {
        return;
    }
    if (t->content_length != UINT64_MAX) {
        n = t->content_length < RESERVE_MAX ? (size_t)t->content_length : RESERVE_MAX;
    }
    if (n > 0 && has_room(t, n)) { /* otherwise on_body() reports it */
        buf_reserve(&t->body, n);
    }
    count_body(t);
}

/* Handles the end of the head of the final response. Returns false to stop. */
static bool finish_head(struct http_transfer *t)
{
    t->head_done = true;
    if (is_farewell(t)) {
        stray_count(&t->client->strays, STRAY_DOUBTFUL);
        return doubt(t);
    }
    if (!check_redirect(t)) {
        return stop(t, HTTP_ERR_REDIRECT);
    }
    if (t->following) {
        return true;
    }
    if (t->request.on_head != NULL &&
        !t->request.on_head(t->request.arg, t->status, t->content_type)) {
        return stop(t, HTTP_ERR_ABORTED);
    }
    if (is_announced_too_large(t)) {
        return stop(t, HTTP_ERR_TOO_LARGE);
    }
    size_t least =
        t->content_length == UINT64_MAX || t->content_length == 0 ? 1 : (size_t)t->content_length;
    if (t->method != HTTP_HEAD && !ask_for_room(t, least) && t->stopped) {
        return false;
    }
    reserve_body(t);
    return true;
}

/* Returns the status of a line such as "HTTP/1.1 413 Payload Too Large", or 0 if it is not of that
 * form. */
static long status_of(struct sv line)
{
    struct sv version, rest, code;
    uint64_t status;
    if (!sv_cut(line, ' ', &version, &rest)) {
        return 0;
    }
    code = (struct sv){rest.p, rest.n < 3 ? rest.n : 3};
    return parse_u64(code, 999, &status) ? (long)status : 0;
}

static void take_status(struct http_transfer *t, struct sv line)
{
    t->status = status_of(line);
    t->content_length = UINT64_MAX;
    t->retry_after_ms = -1;
    t->content_type[0] = '\0';
    t->is_http1 = sv_starts_with(line, SV("HTTP/1"));
    t->closes = sv_starts_with(line, SV("HTTP/1.0"));
    t->chunked = false;
}

/* Takes a line of the head without its line end. Returns false if out of memory. */
static bool take_field(struct http_transfer *t, struct sv line)
{
    struct sv name, value;
    if (sv_starts_with(line, SV("HTTP/"))) {
        take_status(t, line);
        return true;
    }
    return !sv_cut(line, ':', &name, &value) || take_header(t, name, sv_trim(value));
}

/* Passes a field or a trailer to on_field(). If a server answers before it has read the body, and
 * ends the stream, libcurl loses the head and passes on only the trailers. */
static void show_field(struct http_transfer *t, struct sv line)
{
    struct sv name, value;
    if (t->request.on_field != NULL && sv_cut(line, ':', &name, &value)) {
        t->request.on_field(t->request.arg, name, sv_trim(value));
    }
}

/* Called after each line of a head. Returns false to stop. */
static bool check_status(struct http_transfer *t)
{
    if (t->status == 101 && http_transfer_may_doubt(t)) {
        stray_count(&t->client->strays, STRAY_DOUBTFUL);
        return doubt(t);
    }
    if (t->status == 101) {
        t->limit = HTTP_LIMIT_SWITCH; /* libcurl would wait for more */
        return stop(t, HTTP_ERR_PROTOCOL);
    }
    bool is_early = t->begins_early && !t->early && t->status >= 200;
    return !is_early || take_early(t);
}

static bool is_over_limit(const struct http_transfer *t)
{
    return t->header_bytes > HTTP_HEADER_BYTES_MAX || t->header_lines > HTTP_HEADER_LINES_MAX;
}

static struct sv cut_line_end(struct sv line)
{
    while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r')) {
        line.n--;
    }
    return line;
}

bool http_transfer_take_line(struct http_transfer *t, struct sv line, size_t size)
{
    t->progress_ns = clock_mono_ns();
    t->received += size;
    t->header_bytes += size;
    t->header_lines++;
    if (is_over_limit(t)) {
        return stop(t, HTTP_ERR_PROTOCOL);
    }
    show_field(t, line);
    if (t->head_done) { /* a trailer */
        return true;
    }
    if (line.n > 0) {
        return take_field(t, line) ? check_status(t) : stop(t, HTTP_ERR_MEMORY);
    }
    /* The end of a head; another one follows an interim response. */
    return t->status < 200 || finish_head(t);
}

/* Returns true if libcurl has not written all of the upload to the connection. */
static bool is_uploading(const struct http_transfer *t)
{
    curl_off_t sent = 0;
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    return (uint64_t)sent < t->body_size;
}

/* Returns true if a response begins before its request was sent. It is called with the first line
 * of the response, as libcurl passes it. With HTTP/2, the bytes of other requests may be
 * unacknowledged as well. */
static bool begins_early(const struct http_transfer *t, struct sv line)
{
    bool is_http1 = sv_starts_with(line, SV("HTTP/1"));
    return is_uploading(t) ||
           (is_http1 && t->fd != CURL_SOCKET_BAD && wire_is_unacknowledged(t->fd));
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct http_transfer *t = arg;
    size_t len = size * n;
    struct sv line = cut_line_end((struct sv){data, len});
    if (t->header_lines == 0 || sv_starts_with(line, SV("HTTP/"))) {
        t->begins_early = begins_early(t, line);
    }
    return !t->cancelled && http_transfer_take_line(t, line, len) ? len : 0;
}

/* ---- body ------------------------------------------------------------------------------------ */

static bool discard(struct http_transfer *t, size_t len)
{
    t->discarded += len;
    return t->discarded <= HTTP_REDIRECT_BODY_MAX || stop(t, HTTP_ERR_TOO_LARGE);
}

bool http_transfer_is_in_pieces(const struct http_transfer *t, uint64_t pieces)
{
    return pieces > HTTP_PIECES_SLACK + t->received / HTTP_PIECE_BYTES;
}

/* Returns the length of the body with these bytes, as far as they are kept. */
static size_t length_with(const struct http_transfer *t, struct sv bytes)
{
    size_t room = t->request.max_body - t->body.len;
    return t->body.len + (bytes.n < room ? bytes.n : room);
}

bool http_transfer_take_body(struct http_transfer *t, struct sv bytes)
{
    t->progress_ns = clock_mono_ns();
    t->received += bytes.n;
    if (http_transfer_is_in_pieces(t, ++t->pieces)) {
        t->limit = HTTP_LIMIT_PIECES;
        return stop(t, HTTP_ERR_PROTOCOL);
    }
    if (t->following) {
        return discard(t, bytes.n);
    }
    if (t->request.on_data != NULL) {
        return t->request.on_data(t->request.arg, bytes.p, bytes.n) || stop(t, HTTP_ERR_ABORTED);
    }
    size_t take = length_with(t, bytes) - t->body.len;
    /* Bytes that have been read from the socket are kept, even if the rest must wait. */
    if (!ask_for_room(t, t->body.len + take) && t->stopped) {
        return false;
    }
    if (!has_room(t, take)) {
        return stop(t, HTTP_ERR_NO_ROOM);
    }
    bool ok = buf_append(&t->body, bytes.p, take);
    count_body(t);
    if (!ok) {
        return stop(t, HTTP_ERR_MEMORY);
    }
    return take == bytes.n || stop(t, HTTP_ERR_TOO_LARGE);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct http_transfer *t = arg;
    struct sv bytes = {data, size * n};
    /* libcurl keeps the bytes of a transfer that waits, and passes them again later. */
    bool kept = !t->cancelled && t->request.on_data == NULL && !t->following;
    if (kept && !ask_for_room(t, length_with(t, bytes)) && !t->stopped) {
        return CURL_WRITEFUNC_PAUSE;
    }
    return !t->cancelled && !t->stopped && http_transfer_take_body(t, bytes) ? bytes.n : 0;
}

/* Takes a line of a late response. Returns false if it is no line of an HTTP/1 head, or if out of
 * memory. */
static bool take_late_line(struct http_transfer *t, struct sv line)
{
    t->header_bytes += line.n;
    t->header_lines++;
    if (is_over_limit(t) || (t->status == 0 && !sv_starts_with(line, SV("HTTP/1.")))) {
        return false;
    }
    t->head_done = line.n == 0 && t->status >= 200;
    return line.n == 0 || take_field(t, line);
}

void http_transfer_take_late(struct http_transfer *t, struct sv bytes)
{
    struct sv line;
    http_transfer_reset_response(t);
    t->early = true;
    while (!t->head_done && sv_cut(bytes, '\n', &line, &bytes)) {
        if (!take_late_line(t, cut_line_end(line))) {
            return;
        }
    }
    t->in_doubt = t->head_done && t->reused && !t->repeated;
    /* Without a length the body may be chunked; the status is enough. */
    if (!t->head_done || t->in_doubt || t->content_length == UINT64_MAX) {
        return;
    }
    bytes.n = bytes.n < t->content_length ? bytes.n : (size_t)t->content_length;
    if (t->request.on_data != NULL) {
        (void)t->request.on_data(t->request.arg, bytes.p, bytes.n);
    } else {
        buf_append(&t->body, bytes.p,
                   bytes.n < t->request.max_body ? bytes.n : t->request.max_body);
    }
}

/* ---- upload ---------------------------------------------------------------------------------- */

void http_transfer_skip(struct http_transfer *t, size_t n)
{
    while (t->part < t->n_parts && n >= t->parts[t->part].len - t->part_offset) {
        n -= t->parts[t->part].len - t->part_offset;
        t->part++;
        t->part_offset = 0;
    }
    t->part_offset += n;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
    struct http_transfer *t = arg;
    size_t room = size * n, len = 0;
    if (t->cancelled) {
        return CURL_READFUNC_ABORT;
    }
    t->progress_ns = clock_mono_ns();
    while (len < room && t->part < t->n_parts) {
        const struct http_part *part = &t->parts[t->part];
        size_t left = part->len - t->part_offset;
        size_t take = left < room - len ? left : room - len;
        if (take > 0) {
            memcpy(out + len, (const char *)part->data + t->part_offset, take);
        }
        len += take;
        http_transfer_skip(t, take);
    }
    return len;
}

static void rewind_to(struct http_transfer *t, size_t offset)
{
    t->part = 0;
    t->part_offset = 0;
    http_transfer_skip(t, offset);
}

/* Called when libcurl goes back to the start, to repeat a request on a fresh connection. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct http_transfer *t = arg;
    if (t->cancelled || origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->body_size) {
        return CURL_SEEKFUNC_FAIL;
    }
    rewind_to(t, (size_t)offset);
    return CURL_SEEKFUNC_OK;
}

/* ---- connection ------------------------------------------------------------------------------ */

/* Opens a socket for libcurl, which would report a failure to open one as a host that does not
 * answer. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_transfer *t = arg;
    (void)purpose;
    t->none_kept = t->only_kept;
    if (t->none_kept) {
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    t->no_descriptor = fd < 0 && (errno == EMFILE || errno == ENFILE);
    t->opened = true;
    if (fd >= 0) {
        http_shard_opened(t, fd);
    }
    return fd;
}

bool http_transfer_ready(struct http_transfer *t, const char *peer)
{
    t->refused_address =
        t->request.refuses_address == NULL ? NULL : t->request.refuses_address(peer);
    if (t->refused_address != NULL) {
        return stop(t, HTTP_ERR_ADDRESS);
    }
    int64_t now_ns = clock_mono_ns();
    if (t->sent_ns != 0 && now_ns - t->sent_ns >= HTTP_REPEAT_MAX_MS * NS_PER_MS) {
        return stop(t, HTTP_ERR_CUT);
    }
    t->sent_ns = now_ns;
    t->progress_ns = now_ns;
    http_transfer_reset_response(t);
    rewind_to(t, 0);
    return true;
}

/* Returns the TLS object of the transfer's connection, or NULL if it has none or not OpenSSL's. */
static SSL *tls_of(const struct http_transfer *t)
{
    struct curl_tlssessioninfo *info = NULL;
    bool known = curl_easy_getinfo(t->easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK &&
                 info != NULL && info->backend == CURLSSLBACKEND_OPENSSL;
    return known ? info->internals : NULL;
}

static bool speaks_http2(const struct http_transfer *t, const SSL *tls)
{
    const unsigned char *protocol = NULL;
    unsigned n = 0;
    if (tls == NULL) {
        return t->request.http2_only;
    }
    SSL_get0_alpn_selected(tls, &protocol, &n);
    return n == 2 && memcmp(protocol, "h2", 2) == 0;
}

/* Checks that no bytes arrived before the request. With TLS, a new connection brings bytes of its
 * own (session tickets), and the end of a kept one looks like any other bytes, so it is not
 * counted. Returns false if the request must not be sent on this connection. */
static bool is_quiet(struct http_transfer *t)
{
    int fd = http_shard_socket(t, t->own_port);
    SSL *tls = t->url.https ? tls_of(t) : NULL;
    t->is_http2 = speaks_http2(t, tls);
    if (fd < 0 || t->is_http2 || (t->url.https && !t->reused)) {
        return true;
    }
    bool is_inside = tls != NULL && SSL_pending(tls) > 0;
    if (!is_inside && wire_peek(fd) != WIRE_BYTES) {
        return true;
    }
    if (!t->url.https || is_inside) {
        stray_count(&t->client->strays, t->reused ? STRAY_IDLE : STRAY_FIRST);
    }
    if (t->reused) {
        return doubt(t);
    }
    t->limit = HTTP_LIMIT_STRAY;
    return stop(t, HTTP_ERR_PROTOCOL);
}

static int on_ready(void *arg, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    (void)own_ip;
    (void)peer_port;
    struct http_transfer *t = arg;
    if (t->cancelled || !http_transfer_ready(t, peer_ip)) {
        return CURL_PREREQFUNC_ABORT;
    }
    t->own_port = own_port;
    t->reused = !t->opened;
    return is_quiet(t) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

void http_transfer_set_callbacks(struct http_transfer *t)
{
    /* Setting a function and its argument allocates nothing and cannot fail. */
#define CALLBACK(name, function, arg)                                                              \
    curl_easy_setopt(t->easy, CURLOPT_##name##FUNCTION, (function));                               \
    curl_easy_setopt(t->easy, CURLOPT_##name##DATA, (arg))
    CALLBACK(HEADER, on_header, t);
    CALLBACK(WRITE, on_body, t);
    CALLBACK(READ, on_read, t);
    CALLBACK(SEEK, on_seek, t);
    CALLBACK(PREREQ, on_ready, t);
    CALLBACK(OPENSOCKET, on_open_socket, t);
    /* The connection keeps this callback, and lives longer than the transfer. */
    CALLBACK(CLOSESOCKET, http_shard_close_socket, t->shard);
#undef CALLBACK
}
