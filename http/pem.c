#include "http/pem.h"

#include <string.h>

#include "base/base64.h"

#define BEGIN SV("-----BEGIN ")
#define END SV("-----END ")
#define DASHES SV("-----")

/* One block, between its two lines. */
struct block {
    struct sv name; /* "CERTIFICATE" */
    struct sv body;
};

/* Cuts *v at the first mark: *ret_before is the text before it, and the text after it stays in *v.
 * Returns false if there is no mark. */
static bool cut_at(struct sv *v, struct sv mark, struct sv *ret_before)
{
    const char *at = v->n < mark.n ? NULL : memmem(v->p, v->n, mark.p, mark.n);
    if (at == NULL) {
        return false;
    }
    size_t n = (size_t)(at - v->p);
    *ret_before = (struct sv){v->p, n};
    *v = sv_skip(*v, n + mark.n);
    return true;
}

/* Takes the next block from *text. Returns false if there is none. *ret_whole: true if the block
 * has an end. */
static bool next_block(struct sv *text, struct block *ret, bool *ret_whole)
{
    struct sv before;
    if (!cut_at(text, BEGIN, &before)) {
        return false;
    }
    *ret_whole = cut_at(text, DASHES, &ret->name) && cut_at(text, END, &ret->body) &&
                 sv_starts_with(*text, ret->name) &&
                 sv_starts_with(sv_skip(*text, ret->name.n), DASHES);
    return true;
}

/* Returns the length of the DER sequence that begins with these bytes, or 0 if they begin none. */
static size_t der_length(const char *data, size_t n)
{
    const unsigned char *head = (const unsigned char *)data;
    size_t digits = n > 1 && head[1] >= 0x80 ? head[1] & 0x7fU : 0;
    if (n < 2 + digits || head[0] != 0x30 || digits > 4 || head[1] == 0x80) {
        return 0;
    }
    size_t len = digits == 0 ? head[1] : 0;
    for (size_t i = 0; i < digits; i++) {
        len = len << 8 | head[2 + i];
    }
    return len + 2 + digits;
}

static bool check_certificate(struct sv body, size_t number, struct err *err)
{
    struct buf der;
    buf_init(&der, body.n);
    bool ok = base64_decode(body, &der) && der.len > 0 && der_length(der.data, der.len) == der.len;
    bool memory = !buf_ok(&der);
    buf_done(&der);
    if (memory) {
        return err_memory(err);
    }
    return ok || err_set(err, ERR_INPUT, "certificate %zu is incomplete or damaged", number);
}

bool pem_check_certificates(struct sv text, struct err *err)
{
    struct block b = {0};
    bool whole = true;
    size_t n = 0;
    while (next_block(&text, &b, &whole)) {
        if (!whole) {
            return err_set(err, ERR_INPUT, "PEM block %zu is cut off", n + 1);
        }
        if (!sv_ends_with(b.name, SV("CERTIFICATE"))) {
            continue;
        }
        if (!check_certificate(b.body, ++n, err)) {
            return false;
        }
    }
    return n > 0 || err_set(err, ERR_INPUT, "expected certificates in PEM, found none");
}

bool pem_check_key(struct sv text, struct err *err)
{
    struct block b = {0};
    bool whole = true;
    while (next_block(&text, &b, &whole)) {
        if (!whole) {
            return err_set(err, ERR_INPUT, "a PEM block is cut off");
        }
        if (sv_ends_with(b.name, SV("PRIVATE KEY"))) {
            return true;
        }
    }
    return err_set(err, ERR_INPUT, "expected a private key in PEM, found none");
}
