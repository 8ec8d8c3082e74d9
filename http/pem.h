/* Checks that certificates and keys in PEM are complete, and were not read while the file was being
 * written.
 *
 * Only the form is checked, so that a broken file does not replace the content in use. The TLS
 * library checks the rest. The functions are pure; any thread may call them.
 */
#ifndef PROFPULL_HTTP_PEM_H
#define PROFPULL_HTTP_PEM_H

#include "base/err.h"
#include "base/str.h"

/* Returns true if there is a certificate, and each certificate is the base64 of exactly one DER
 * sequence. Other blocks, and text around them, are accepted. */
bool pem_check_certificates(struct sv text, struct err *err);
/* Returns true if there is a complete block whose name ends in "PRIVATE KEY". */
bool pem_check_key(struct sv text, struct err *err);

#endif
