/* OAuth 2.0 tokens by the client credentials grant (RFC 6749, 4.4), fetched by the same client.
 *
 * A client keeps one token for each set of credentials until shortly before it expires. While a
 * token is being fetched, the transfers that need it wait. Each of them is resumed with the token,
 * or with the reason why there is none. All calls are made on the loop's thread.
 */
#ifndef PROFPULL_HTTP_OAUTH2_H
#define PROFPULL_HTTP_OAUTH2_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/err.h"
#include "http/files.h"
#include "http/http.h"

struct http_tokens;
struct http_token;

/* The use of a token by a transfer. In a zeroed struct, the transfer needs none. */
struct http_token_use {
    TAILQ_ENTRY(http_token_use) link;
    struct http_token *token;
    const struct http_oauth2 *oauth2;
    unsigned generation; /* the generation of the token that was sent */
    bool waiting;
    void *transfer;
};

/* Called when a transfer no longer waits, with HTTP_DONE and the value of the Authorization header,
 * or with another result and its reason. */
typedef void http_resume(void *transfer, enum http_result result, const char *authorization,
                         const char *reason);

/* Returns NULL if out of memory. */
struct http_tokens *http_tokens_new(struct http_client *c, struct http_files *files,
                                    http_resume *resume);
struct http_tokens *http_tokens_free(struct http_tokens *all); /* nothing may wait */
/* Sets *ret_authorization to the value of the header, or to NULL if the transfer has to wait. For
 * any result but HTTP_DONE, err has the reason. */
enum http_result http_tokens_get(struct http_tokens *all, struct http_token_use *use,
                                 const char **ret_authorization, struct err *err);
/* Makes the transfer wait for its token, and starts a fetch if none is in flight. */
void http_tokens_wait(struct http_token_use *use);
/* Ends the use of a token by a transfer, which may be waiting and is about to be freed. */
void http_tokens_cancel(struct http_token_use *use);
/* Notes that a server answered 401 to the token that was sent. */
void http_tokens_refused(struct http_token_use *use);
/* Resumes every transfer that waits with HTTP_ERR_ABORTED. */
void http_tokens_abort(struct http_tokens *all, const char *reason);

#endif
