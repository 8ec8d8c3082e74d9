/* A first look at certificates and keys in PEM: whole, or cut off while they were being written?
 *
 * Only the form is checked, so that a file that is no good can be told from one that is before it
 * takes the place of the one in use. What it says is for the TLS library.
 */
#ifndef PROFPULL_HTTP_PEM_H
#define PROFPULL_HTTP_PEM_H

#include "base/err.h"
#include "base/str.h"

/* At least one certificate, and each of them is base64 of one whole DER sequence. Other blocks and
 * text around them are let pass. */
bool pem_check_certificates(struct sv text, struct err *err);
/* At least one block whose name ends in "PRIVATE KEY", with its end. */
bool pem_check_key(struct sv text, struct err *err);

#endif
