/* Parses the output of an exec credential plugin: credentials on stdout, error messages on stderr.
 * Pure.
 *
 * Reference: client.authentication.k8s.io/v1 and v1beta1, ExecCredential.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_CREDENTIALS_H
#define PROFPULL_DISCOVERY_KUBERNETES_CREDENTIALS_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* The longest token, in bytes; HTTP headers cannot be much longer. */
#define EXEC_TOKEN_MAX ((size_t)64 * 1024)
/* The longest quote of a plugin's stderr, in bytes. */
#define EXEC_QUOTE_MAX 240

struct exec_credential {
    char *token;    /* NULL if none */
    char *cert_pem; /* NULL if none; the key is NULL, too, then */
    char *key_pem;
    int64_t expires_ns; /* wall clock; INT64_MAX: valid until it is refused */
};

/* Reads stdout; api_version is the requested one. The strings are owned by *ret. The error quotes
 * nothing of the text. */
bool exec_credential_parse(struct sv text, const char *api_version, struct exec_credential *ret,
                           struct err *err);
/* Wipes the strings and frees them. */
void exec_credential_done(struct exec_credential *c);

/* Parses a time such as "2026-11-21T03:23:34.5+01:00" to nanoseconds since 1970. */
bool exec_parse_time(struct sv text, int64_t *ret_ns);

/* Writes the end of stderr as one line for an error, without control characters. Words that look
 * like a secret, and each of `secrets` (ends with NULL), are replaced by "<hidden>". */
void exec_quote(struct sv text, const char *const *secrets, char out[EXEC_QUOTE_MAX + 1]);

#endif
