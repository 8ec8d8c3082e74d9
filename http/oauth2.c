/* Tokens by OAuth 2.0's client credentials grant (RFC 6749, 4.4).
 *
 * One entry for each set of credentials of a client, with the token until shortly before it
 * expires. While one is being fetched, by an ordinary transfer of the same client, the requests
 * that need it wait in the entry's list; they are then given to libcurl, or fail with the reason.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/private.h"

struct http_token {
    struct http_tokens *all;
    struct http_list waiting;
    struct http_transfer *fetch;     /* NULL: none under way */
    const struct http_oauth2 *asked; /* those of a transfer that waits, for the fetch */
    bool in_body;                    /* this server wants the credentials in the body */
    bool second;                     /* the other way is being tried */

    char *text; /* "Bearer abc"; NULL: none */
    unsigned generation;
    int64_t expires_ms;      /* INT64_MAX: it did not say */
    int64_t fetched_ms;      /* when the last fetch ended, well or not; 0: never */
    enum http_result result; /* of the last fetch */
    struct err reason;

    /* Of the fetch under way. */
    struct http_settings settings;
    char *id;
    char *secret;
    char *form;
};

struct http_tokens {
    struct http_client *client;
    struct map *entries;
};

static void wipe_text(char *secret)
{
    if (secret != NULL) {
        explicit_bzero(secret, strlen(secret));
    }
    free(secret);
}

static void forget_secrets(struct http_token *k)
{
    wipe_text(k->id);
    wipe_text(k->secret);
    wipe_text(k->form);
    k->id = NULL;
    k->secret = NULL;
    k->form = NULL;
}

static void token_free(void *arg)
{
    struct http_token *k = arg;
    wipe_text(k->text);
    forget_secrets(k);
    free(k);
}

struct http_tokens *http_tokens_new(struct http_client *c)
{
    struct http_tokens *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
    all->client = c;
    all->entries = map_new();
    return all->entries != NULL ? all : http_tokens_free(all);
}

struct http_tokens *http_tokens_free(struct http_tokens *all)
{
    if (all == NULL) {
        return NULL;
    }
    map_free(all->entries, token_free);
    free(all);
    return NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void put_text(struct buf *key, const char *text)
{
    buf_puts(key, text != NULL ? text : "");
    buf_putc(key, '\n');
}

/* What makes one token another one. Settings of an old configuration may be gone, and others be in
 * their place: so by content. */
static bool put_key(const struct http_oauth2 *o, struct buf *key)
{
    put_text(key, o->token_url);
    put_text(key, o->client_id);
    put_text(key, o->client_secret);
    put_text(key, o->client_secret_file);
    for (size_t i = 0; i < o->n_scopes; i++) {
        put_text(key, o->scopes[i]);
    }
    put_text(key, "");
    for (size_t i = 0; i < o->n_params; i++) {
        put_text(key, o->params[i].name);
        put_text(key, o->params[i].value);
    }
    return buf_ok(key);
}

/* NULL if out of memory. */
static struct http_token *find_token(struct http_tokens *all, const struct http_oauth2 *o)
{
    struct buf key;
    buf_init(&key, HTTP_REQUEST_HEADER_MAX);
    struct http_token *k = NULL;
    if (put_key(o, &key)) {
        struct sv name = {key.data, key.len};
        k = map_get(all->entries, name);
        struct http_token *fresh = k != NULL ? NULL : calloc(1, sizeof(*fresh));
        if (fresh != NULL && map_put(all->entries, name, fresh, NULL)) {
            fresh->all = all;
            TAILQ_INIT(&fresh->waiting);
            k = fresh;
        } else {
            free(fresh);
        }
        explicit_bzero(key.data, key.len);
    }
    buf_done(&key);
    return k;
}

static void drop_text(struct http_token *k)
{
    wipe_text(k->text);
    k->text = NULL;
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

static void release_one(struct http_token *k, struct http_transfer *t)
{
    struct err err = ERR_INIT;
    enum http_result result = k->result;
    http_list_move(t, NULL);
    if (result == HTTP_DONE) {
        result = http_options_authorize(t, k->text, &err);
    } else {
        err_set(&err, k->reason.kind, "%s", k->reason.msg);
    }
    if (result == HTTP_DONE) {
        t->token_generation = k->generation;
        http_shard_add(t);
    } else {
        http_transfer_fail(t, result, &err);
    }
}

static void finish_fetch(struct http_token *k)
{
    k->fetched_ms = clock_mono_ms();
    forget_secrets(k);
    k->asked = NULL;
    /* What fails, or is started, ends no earlier than in the loop's next turn: nobody is added. */
    while (!TAILQ_EMPTY(&k->waiting)) {
        release_one(k, TAILQ_FIRST(&k->waiting));
    }
}

static void fail_fetch(struct http_token *k, enum http_result result)
{
    k->result = result;
    drop_text(k);
    finish_fetch(k);
}

/* "error" of the answer: a short word such as "invalid_client". */
static void refuse_answer(struct http_token *k, long status, const json_t *answer)
{
    char word[64] = "";
    const char *error = json_string_value(json_object_get(answer, "error"));
    for (size_t i = 0; error != NULL && error[i] && i + 1 < sizeof(word); i++) {
        char c = error[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ' ';
        word[i] = plain ? c : '?';
        word[i + 1] = '\0';
    }
    err_clear(&k->reason);
    err_set(&k->reason, ERR_INPUT, "oauth2: the token URL answered HTTP %ld%s%s", status,
            word[0] ? ": " : "", word);
    fail_fetch(k, HTTP_ERR_CONFIG);
}

/* Seconds, as a number or, of some servers, as a text. */
static int64_t lifetime_ms(const json_t *answer)
{
    const json_t *given = json_object_get(answer, "expires_in");
    double seconds = json_number_value(given);
    uint64_t n;
    if (json_is_string(given) && parse_u64(sv_from(json_string_value(given)), UINT32_MAX, &n)) {
        seconds = (double)n;
    }
    if (!(seconds > 0)) {
        return INT64_MAX;
    }
    if (seconds > 1e9) {
        return INT64_MAX;
    }
    int64_t ms = (int64_t)(seconds * 1000);
    /* Not at the last moment, and not so early that a short life is none. */
    return ms - (ms / 4 < HTTP_OAUTH2_EARLY_MS ? ms / 4 : HTTP_OAUTH2_EARLY_MS);
}

static void take_token(struct http_token *k, const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "access_token"));
    const char *type = json_string_value(json_object_get(answer, "token_type"));
    int64_t life = lifetime_ms(answer);
    struct buf value;
    /* "bearer" and the like: the word is not case sensitive here, but is in some servers. */
    if (type == NULL || !*type || strcasecmp(type, "bearer") == 0) {
        type = "Bearer";
    }
    buf_init(&value, HTTP_REQUEST_HEADER_MAX);
    buf_printf(&value, "%s %s", type, text);
    drop_text(k);
    if (buf_ok(&value)) {
        k->text = strdup(value.data);
    }
    if (buf_ok(&value)) {
        explicit_bzero(value.data, value.len);
    }
    buf_done(&value);
    if (k->text == NULL) {
        err_clear(&k->reason);
        err_memory(&k->reason);
        fail_fetch(k, HTTP_ERR_MEMORY);
        return;
    }
    k->generation++;
    k->expires_ms = life == INT64_MAX ? INT64_MAX : clock_mono_ms() + life;
    k->result = HTTP_DONE;
    finish_fetch(k);
}

static void start_fetch(struct http_token *k);

static void on_token(void *arg, const struct http_response *r)
{
    struct http_token *k = arg;
    k->fetch = NULL;
    if (r->result != HTTP_DONE) {
        err_clear(&k->reason);
        err_set(&k->reason, ERR_NETWORK, "oauth2: %s", r->error);
        fail_fetch(k, r->result);
        return;
    }
    /* Servers differ in where they want the credentials. */
    if ((r->status == 400 || r->status == 401) && !k->second && !TAILQ_EMPTY(&k->waiting)) {
        k->second = true;
        k->in_body = !k->in_body;
        start_fetch(k);
        return;
    }
    json_t *answer = json_loadb(r->body->data, r->body->len, 0, NULL);
    bool good = r->status == 200 && json_string_length(json_object_get(answer, "access_token")) > 0;
    if (good) {
        take_token(k, answer);
    } else {
        refuse_answer(k, r->status, answer);
    }
    json_decref(answer);
}

/* ---- the fetch ------------------------------------------------------------------------------- */

static void put_param(struct buf *form, const char *name, const char *value)
{
    if (form->len > 0) {
        buf_putc(form, '&');
    }
    url_encode_pair(sv_from(name), sv_from(value), form);
}

static void put_form(const struct http_token *k, const struct http_oauth2 *o, const char *secret,
                     struct buf *form)
{
    struct buf scopes;
    put_param(form, "grant_type", "client_credentials");
    buf_init(&scopes, HTTP_REQUEST_HEADER_MAX);
    for (size_t i = 0; i < o->n_scopes; i++) {
        buf_puts(&scopes, i > 0 ? " " : "");
        buf_puts(&scopes, o->scopes[i]);
    }
    if (o->n_scopes > 0) {
        put_param(form, "scope", scopes.data);
    }
    buf_done(&scopes);
    for (size_t i = 0; i < o->n_params; i++) {
        put_param(form, o->params[i].name, o->params[i].value);
    }
    if (k->in_body) {
        put_param(form, "client_id", o->client_id);
        put_param(form, "client_secret", secret);
    }
}

/* Percent-encoded as RFC 6749, 2.3.1 wants it within Basic. NULL if out of memory. */
static char *encode_secret(const char *text)
{
    struct buf out;
    buf_init(&out, 3 * HTTP_SECRET_FILE_MAX);
    char *copy = url_encode(sv_from(text), &out) ? strdup(out.data) : NULL;
    if (buf_ok(&out)) {
        explicit_bzero(out.data, out.len);
    }
    buf_done(&out);
    return copy;
}

static bool set_credentials(struct http_token *k, const struct http_oauth2 *o, const char *secret)
{
    k->settings = o->transport;
    k->settings.auth = HTTP_AUTH_NONE;
    if (k->in_body) {
        return true;
    }
    k->id = encode_secret(o->client_id);
    k->secret = encode_secret(secret);
    k->settings.auth = HTTP_AUTH_BASIC;
    k->settings.username = k->id;
    k->settings.password = k->secret;
    return k->id != NULL && k->secret != NULL;
}

/* NULL, with the result in *ret, if there is none. The caller wipes and frees it. */
static char *read_client_secret(struct http_token *k, const struct http_oauth2 *o,
                                enum http_result *ret)
{
    static const struct http_file_rule rule = {HTTP_SECRET_FILE_MAX, NULL};
    err_clear(&k->reason);
    *ret = HTTP_ERR_MEMORY;
    if (o->client_secret_file == NULL) {
        return strdup(o->client_secret != NULL ? o->client_secret : "");
    }
    struct http_file *file = http_files_get(k->all->client->files, o->client_secret_file, &rule,
                                            clock_mono_ms(), &k->reason);
    if (file == NULL) {
        *ret = k->reason.kind == ERR_MEMORY ? HTTP_ERR_MEMORY : HTTP_ERR_CONFIG;
        return NULL;
    }
    struct sv text = sv_trim((struct sv){file->data, file->len});
    char *copy = strndup(text.p, text.n);
    http_file_unref(file);
    return copy;
}

static bool send_fetch(struct http_token *k, const struct http_oauth2 *o, const char *secret)
{
    static const struct http_header headers[] = {
        {"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "application/json"}};
    struct buf form;
    buf_init(&form, HTTP_REQUEST_HEADER_MAX);
    put_form(k, o, secret, &form);
    /* The transfer sends from here: the text lives in the entry until it is over. */
    char *body = buf_ok(&form) ? strdup(form.data) : NULL;
    if (buf_ok(&form)) {
        explicit_bzero(form.data, form.len);
    }
    buf_done(&form);
    forget_secrets(k);
    k->form = body;
    if (body == NULL || !set_credentials(k, o, secret)) {
        return false;
    }
    struct http_part part = {.data = body, .len = strlen(body)};
    k->fetch =
        http_start(k->all->client, &(struct http_request){.method = "POST",
                                                          .url = o->token_url,
                                                          .settings = &k->settings,
                                                          .headers = headers,
                                                          .n_headers = 2,
                                                          .body = &part,
                                                          .n_body = 1,
                                                          .timeout_ms = HTTP_OAUTH2_TIMEOUT_MS,
                                                          .max_body = HTTP_OAUTH2_ANSWER_MAX,
                                                          .on_done = on_token,
                                                          .arg = k});
    return k->fetch != NULL;
}

static void start_fetch(struct http_token *k)
{
    enum http_result result;
    const struct http_oauth2 *o = TAILQ_FIRST(&k->waiting)->request.settings->oauth2;
    k->asked = o;
    char *secret = read_client_secret(k, o, &result);
    bool started = secret != NULL && send_fetch(k, o, secret);
    wipe_text(secret);
    if (started) {
        return;
    }
    if (k->reason.kind == 0) {
        err_memory(&k->reason);
    }
    fail_fetch(k, result);
}

/* ---- what a request asks --------------------------------------------------------------------- */

static bool is_fresh(const struct http_token *k, int64_t now_ms)
{
    return k->text != NULL && now_ms < k->expires_ms;
}

/* After a failure not everybody who comes may ask again; without memory nobody was asked. */
static bool has_just_failed(const struct http_token *k, int64_t now_ms)
{
    return k->result != HTTP_DONE && k->result != HTTP_ERR_MEMORY && k->fetched_ms != 0 &&
           now_ms - k->fetched_ms < HTTP_OAUTH2_REST_MS;
}

enum http_result http_tokens_get(struct http_transfer *t, const char **ret_text, struct err *err)
{
    struct http_token *k = find_token(t->client->tokens, t->request.settings->oauth2);
    int64_t now = clock_mono_ms();
    *ret_text = NULL;
    if (k == NULL) {
        err_memory(err);
        return HTTP_ERR_MEMORY;
    }
    if (k->fetch == NULL && has_just_failed(k, now)) {
        err_set(err, k->reason.kind, "%s", k->reason.msg);
        return k->result;
    }
    t->token = k;
    t->token_generation = k->generation;
    if (is_fresh(k, now)) {
        *ret_text = k->text;
    }
    return HTTP_DONE;
}

void http_tokens_wait(struct http_transfer *t)
{
    struct http_token *k = t->token;
    http_list_move(t, &k->waiting);
    if (k->fetch != NULL) {
        return;
    }
    k->second = false;
    start_fetch(k);
}

void http_tokens_cancelled(struct http_transfer *t)
{
    struct http_token *k = t->token;
    if (k == NULL || t->list != &k->waiting) {
        return;
    }
    http_list_move(t, NULL);
    if (k->fetch == NULL || k->asked != t->request.settings->oauth2) {
        return;
    }
    /* The settings of the fetch were those of this one, and may go with it. */
    http_cancel(k->fetch);
    k->fetch = NULL;
    k->asked = NULL;
    if (!TAILQ_EMPTY(&k->waiting)) {
        start_fetch(k);
    } else {
        forget_secrets(k);
    }
}

void http_tokens_refused(struct http_transfer *t)
{
    struct http_token *k = t->token;
    const struct http_oauth2 *o = t->request.settings->oauth2;
    if (k == NULL) {
        return;
    }
    if (o->client_secret_file != NULL) {
        http_files_forget(t->client->files, o->client_secret_file);
    }
    /* A server that refuses every token must not make us fetch one for each answer. */
    if (t->token_generation == k->generation &&
        clock_mono_ms() - k->fetched_ms >= HTTP_OAUTH2_REST_MS) {
        drop_text(k);
    }
}

void http_tokens_abort(struct http_tokens *all, const struct err *reason)
{
    size_t it = 0;
    struct sv key;
    void *value;
    while (map_next(all->entries, &it, &key, &value)) {
        struct http_token *k = value;
        while (!TAILQ_EMPTY(&k->waiting)) {
            struct http_transfer *t = TAILQ_FIRST(&k->waiting);
            http_list_move(t, NULL);
            http_transfer_fail(t, HTTP_ERR_ABORTED, reason);
        }
    }
}
