#include "http/oauth2.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/map.h"
#include "http/url.h"

/* The limit in bytes of a token's key, of the form that requests the token, and of the header that
 * carries it. */
#define TEXT_MAX ((size_t)128 * 1024)
/* The limits of one request for a token: its time, and the bytes of the answer that are read. */
#define FETCH_TIMEOUT_MS 10000
#define ANSWER_MAX ((size_t)64 * 1024)
/* A token is renewed this long before it expires, but not before three quarters of its life. */
#define RENEW_EARLY_MS 10000
/* The pause after a failure, and the least age of a token that is replaced because a server refused
 * it. */
#define PAUSE_MS 5000

TAILQ_HEAD(use_list, http_token_use);

struct http_token {
    struct http_tokens *all;
    struct use_list waiting;
    struct http_transfer *fetch;       /* NULL: none in flight */
    const struct http_oauth2 *fetched; /* the settings of the fetch: those of a waiting transfer */
    bool in_body;                      /* this server wants the credentials in the body */
    bool second_try;                   /* with the credentials in the other place */

    char *authorization; /* "Bearer abc"; NULL: none */
    unsigned generation;
    int64_t expires_ms;      /* INT64_MAX: the server did not say */
    int64_t ended_ms;        /* when the last fetch ended, successful or not; 0: never */
    enum http_result result; /* result of the last fetch */
    struct err reason;

    /* State of the token request in flight. */
    struct http_settings settings;
    char *id;
    char *secret;
    char *form;
};

struct http_tokens {
    struct http_client *client;
    struct http_files *files;
    http_resume *resume;
    struct map *entries; /* credentials -> struct http_token */
};

static void free_fetch_secrets(struct http_token *k)
{
    secret_free(k->id);
    secret_free(k->secret);
    secret_free(k->form);
    k->id = NULL;
    k->secret = NULL;
    k->form = NULL;
}

static void set_authorization(struct http_token *k, char *authorization)
{
    secret_free(k->authorization);
    k->authorization = authorization;
}

static void token_free(void *arg)
{
    struct http_token *k = arg;
    set_authorization(k, NULL);
    free_fetch_secrets(k);
    free(k);
}

struct http_tokens *http_tokens_new(struct http_client *c, struct http_files *files,
                                    http_resume *resume)
{
    struct http_tokens *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
    *all = (struct http_tokens){c, files, resume, map_new()};
    return all->entries != NULL ? all : http_tokens_free(all);
}

struct http_tokens *http_tokens_free(struct http_tokens *all)
{
    if (all != NULL) {
        map_free(all->entries, token_free);
        free(all);
    }
    return NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void put_text(struct buf *key, const char *text)
{
    buf_puts(key, text != NULL ? text : "");
    buf_putc(key, '\n');
}

/* Writes the key of settings. The key is their content and not their address, because the settings
 * of an old configuration may have been freed, and others may have the same address. */
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

static struct http_token *add_token(struct http_tokens *all, struct sv key)
{
    struct http_token *k = calloc(1, sizeof(*k));
    if (k == NULL || !map_put(all->entries, key, k, NULL)) {
        free(k);
        return NULL;
    }
    k->all = all;
    TAILQ_INIT(&k->waiting);
    return k;
}

/* Returns NULL if out of memory. */
static struct http_token *find_token(struct http_tokens *all, const struct http_oauth2 *o)
{
    struct buf text;
    struct http_token *k = NULL;
    buf_init(&text, TEXT_MAX);
    if (put_key(o, &text)) {
        struct sv key = {text.data, text.len};
        k = map_get(all->entries, key);
        k = k != NULL ? k : add_token(all, key);
    }
    buf_wipe(&text);
    return k;
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

static void stop_waiting(struct http_token_use *use)
{
    TAILQ_REMOVE(&use->token->waiting, use, link);
    use->waiting = false;
}

/* Resumed transfers end no earlier than in the loop's next turn, so that none is added meanwhile.
 */
static void resume_all(struct http_token *k, enum http_result result, const char *reason)
{
    while (!TAILQ_EMPTY(&k->waiting)) {
        struct http_token_use *use = TAILQ_FIRST(&k->waiting);
        stop_waiting(use);
        use->generation = k->generation;
        k->all->resume(use->transfer, result, k->authorization, reason);
    }
}

/* Ends a fetch. Takes over authorization, which is NULL unless result is HTTP_DONE. */
static void end_fetch(struct http_token *k, enum http_result result, char *authorization)
{
    set_authorization(k, authorization);
    free_fetch_secrets(k);
    k->fetched = NULL;
    k->ended_ms = clock_mono_ms();
    k->result = result;
    resume_all(k, result, k->reason.msg);
}

/* Ends a fetch whose answer is an error. The member "error" of the answer is a short word such as
 * "invalid_client". */
static void reject_answer(struct http_token *k, long status, const json_t *answer)
{
    char word[64] = "";
    const char *error = json_string_value(json_object_get(answer, "error"));
    for (size_t i = 0; error != NULL && error[i] != '\0' && i + 1 < sizeof(word); i++) {
        bool plain = ascii_is_alpha(error[i]) || error[i] == '_' || error[i] == ' ';
        word[i] = plain ? error[i] : '?';
        word[i + 1] = '\0';
    }
    err_set(&k->reason, ERR_INPUT, "oauth2: the token URL answered HTTP %ld%s%s", status,
            word[0] != '\0' ? ": " : "", word);
    end_fetch(k, HTTP_ERR_CONFIG, NULL);
}

/* Returns the time until the token is to be renewed. Some servers send the seconds as a string. */
static int64_t lifetime_ms(const json_t *answer)
{
    const json_t *given = json_object_get(answer, "expires_in");
    double seconds = json_number_value(given);
    uint64_t n;
    if (json_is_string(given) && parse_u64(sv_from(json_string_value(given)), UINT32_MAX, &n)) {
        seconds = (double)n;
    }
    if (!(seconds > 0) || seconds > 1e9) {
        return INT64_MAX;
    }
    int64_t ms = (int64_t)(seconds * 1000);
    return ms - (ms / 4 < RENEW_EARLY_MS ? ms / 4 : RENEW_EARLY_MS);
}

static void accept_answer(struct http_token *k, const json_t *answer)
{
    const char *type = json_string_value(json_object_get(answer, "token_type"));
    int64_t life = lifetime_ms(answer);
    struct buf text;
    /* By the specification the case of this word does not matter, but some servers compare it
     * exactly. */
    if (type == NULL || *type == '\0' || strcasecmp(type, "bearer") == 0) {
        type = "Bearer";
    }
    buf_init(&text, TEXT_MAX);
    buf_printf(&text, "%s %s", type, json_string_value(json_object_get(answer, "access_token")));
    char *authorization = buf_take(&text, NULL);
    if (authorization == NULL) {
        err_memory(&k->reason);
        end_fetch(k, HTTP_ERR_MEMORY, NULL);
        return;
    }
    k->generation++;
    k->expires_ms = life == INT64_MAX ? INT64_MAX : clock_mono_ms() + life;
    end_fetch(k, HTTP_DONE, authorization);
}

static void start_fetch(struct http_token *k);

static void oauth2_on_answer(void *arg, const struct http_response *r)
{
    struct http_token *k = arg;
    k->fetch = NULL;
    if (r->result != HTTP_DONE) {
        err_set(&k->reason, ERR_NETWORK, "oauth2: %s", r->error);
        end_fetch(k, r->result, NULL);
        return;
    }
    /* Servers differ in where they expect the credentials, so the other place is tried. */
    if ((r->status == 400 || r->status == 401) && !k->second_try && !TAILQ_EMPTY(&k->waiting)) {
        k->second_try = true;
        k->in_body = !k->in_body;
        start_fetch(k);
        return;
    }
    json_t *answer = json_loadb(r->body->data, r->body->len, 0, NULL);
    if (r->status == 200 && json_string_length(json_object_get(answer, "access_token")) > 0) {
        accept_answer(k, answer);
    } else {
        reject_answer(k, r->status, answer);
    }
    json_decref(answer);
}

/* ---- the fetch ------------------------------------------------------------------------------- */

static void put_param(struct buf *form, const char *name, const char *value)
{
    buf_putc(form, '&');
    url_encode_pair(sv_from(name), sv_from(value), form);
}

/* Returns NULL if out of memory. */
static char *make_form(const struct http_token *k, const struct http_oauth2 *o, const char *secret)
{
    struct buf form;
    buf_init(&form, TEXT_MAX);
    buf_puts(&form, "grant_type=client_credentials");
    for (size_t i = 0; i < o->n_scopes; i++) {
        buf_puts(&form, i == 0 ? "&scope=" : "%20");
        url_encode(sv_from(o->scopes[i]), &form);
    }
    for (size_t i = 0; i < o->n_params; i++) {
        put_param(&form, o->params[i].name, o->params[i].value);
    }
    if (k->in_body) {
        put_param(&form, "client_id", o->client_id);
        put_param(&form, "client_secret", secret);
    }
    return buf_take(&form, NULL);
}

/* Percent-encodes a text, as RFC 6749, section 2.3.1 requires within Basic. Returns NULL if out of
 * memory. */
static char *encode_secret(const char *text)
{
    struct buf out;
    buf_init(&out, (size_t)3 * HTTP_SECRET_FILE_MAX);
    url_encode(sv_from(text), &out);
    return buf_take(&out, NULL);
}

/* Builds the request for a token. The entry owns the bytes that it sends until it has ended. */
static bool prepare_fetch(struct http_token *k, const struct http_oauth2 *o, const char *secret)
{
    free_fetch_secrets(k);
    k->form = make_form(k, o, secret);
    k->settings = o->transport;
    k->settings.auth = HTTP_AUTH_NONE;
    if (k->form == NULL || k->in_body) {
        return k->form != NULL;
    }
    k->id = encode_secret(o->client_id);
    k->secret = encode_secret(secret);
    k->settings.auth = HTTP_AUTH_BASIC;
    k->settings.username = k->id;
    k->settings.password = k->secret;
    return k->id != NULL && k->secret != NULL;
}

static bool send_fetch(struct http_token *k, const struct http_oauth2 *o, const char *secret)
{
    static const struct http_header headers[] = {
        {"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "application/json"}};
    if (!prepare_fetch(k, o, secret)) {
        return false;
    }
    struct http_part part = {.data = k->form, .len = strlen(k->form)};
    k->fetch = http_start(k->all->client, &(struct http_request){.method = "POST",
                                                                 .url = o->token_url,
                                                                 .settings = &k->settings,
                                                                 .headers = headers,
                                                                 .n_headers = 2,
                                                                 .body = &part,
                                                                 .n_body = 1,
                                                                 .timeout_ms = FETCH_TIMEOUT_MS,
                                                                 .max_body = ANSWER_MAX,
                                                                 .on_done = oauth2_on_answer,
                                                                 .arg = k});
    return k->fetch != NULL;
}

static void start_fetch(struct http_token *k)
{
    const struct http_oauth2 *o = TAILQ_FIRST(&k->waiting)->oauth2;
    k->fetched = o;
    char *from_file;
    const char *secret = o->client_secret != NULL ? o->client_secret : "";
    bool started =
        http_files_secret(k->all->files, o->client_secret_file, &from_file, &k->reason) &&
        (send_fetch(k, o, from_file != NULL ? from_file : secret) || err_memory(&k->reason));
    secret_free(from_file);
    if (!started) {
        end_fetch(k, http_result_of(&k->reason), NULL);
    }
}

/* ---- what transfers ask for ------------------------------------------------------------------ */

/* Returns true during the pause after a failure. There is no pause if memory ran out, because
 * nothing was sent then. */
static bool is_pausing(const struct http_token *k, int64_t now_ms)
{
    return k->result != HTTP_DONE && k->result != HTTP_ERR_MEMORY && k->ended_ms != 0 &&
           now_ms - k->ended_ms < PAUSE_MS;
}

enum http_result http_tokens_get(struct http_tokens *all, struct http_token_use *use,
                                 const char **ret_authorization, struct err *err)
{
    struct http_token *k = find_token(all, use->oauth2);
    int64_t now = clock_mono_ms();
    if (k == NULL) {
        err_memory(err);
        return HTTP_ERR_MEMORY;
    }
    if (k->fetch == NULL && is_pausing(k, now)) {
        err_set(err, k->reason.kind, "%s", k->reason.msg);
        return k->result;
    }
    use->token = k;
    use->generation = k->generation;
    *ret_authorization = now < k->expires_ms ? k->authorization : NULL;
    return HTTP_DONE;
}

void http_tokens_wait(struct http_token_use *use)
{
    struct http_token *k = use->token;
    TAILQ_INSERT_TAIL(&k->waiting, use, link);
    use->waiting = true;
    if (k->fetch == NULL) {
        k->second_try = false;
        start_fetch(k);
    }
}

/* Returns true if a waiting transfer keeps these settings alive. */
static bool has_settings(const struct http_token *k, const struct http_oauth2 *o)
{
    const struct http_token_use *use = TAILQ_FIRST(&k->waiting);
    while (use != NULL && use->oauth2 != o) {
        use = TAILQ_NEXT(use, link);
    }
    return use != NULL;
}

void http_tokens_cancel(struct http_token_use *use)
{
    if (!use->waiting) {
        return;
    }
    struct http_token *k = use->token;
    stop_waiting(use);
    if (k->fetch == NULL || k->fetched != use->oauth2 || has_settings(k, use->oauth2)) {
        return;
    }
    /* The fetch uses the settings of this transfer, which may be freed with it. */
    http_cancel(k->fetch);
    k->fetch = NULL;
    k->fetched = NULL;
    if (!TAILQ_EMPTY(&k->waiting)) {
        start_fetch(k);
    } else {
        free_fetch_secrets(k);
    }
}

void http_tokens_refused(struct http_token_use *use)
{
    struct http_token *k = use->token;
    if (k == NULL) {
        return;
    }
    http_files_forget(k->all->files, use->oauth2->client_secret_file);
    /* A server that refuses every token must not cause a fetch for each of its answers. */
    if (use->generation == k->generation && clock_mono_ms() - k->ended_ms >= PAUSE_MS) {
        set_authorization(k, NULL);
    }
}

void http_tokens_abort(struct http_tokens *all, const char *reason)
{
    size_t it = 0;
    struct sv key;
    void *value;
    while (map_next(all->entries, &it, &key, &value)) {
        resume_all(value, HTTP_ERR_ABORTED, reason);
    }
}
