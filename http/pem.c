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

/* Cuts *v at the first mark into the text before it, which is returned, and the text after it,
 * which stays in *v. False if there is no mark. */
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

/* Takes the next block from *text. False if there is none; *ret_whole says whether its end is
 * there.
 */
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

/* Decodes the first bytes of base64 with line breaks, and counts all of them. */
static bool decode_head(struct sv body, unsigned char head[6], size_t *ret_len)
{
    uint32_t bits = 0;
    size_t digits = 0;
    size_t padding = 0;
    memset(head, 0, 6);
    for (size_t i = 0; i < body.n; i++) {
        char c = body.p[i];
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
            continue;
        }
        if (c == '=') {
            padding++;
            continue;
        }
        int six = base64_value(c);
        if (six < 0 || padding > 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)six;
        digits++;
        size_t done = digits * 6 / 8;
        if (done > 0 && done <= 6 && digits % 4 != 1) {
            head[done - 1] = (unsigned char)(bits >> (digits * 6 % 8));
        }
    }
    *ret_len = digits * 6 / 8;
    return (digits + padding) % 4 == 0 && padding <= 2;
}

/* The length of the DER sequence that begins with these bytes; 0 if none does. */
static size_t der_length(const unsigned char head[6])
{
    if (head[0] != 0x30) {
        return 0;
    }
    if (head[1] < 0x80) {
        return (size_t)head[1] + 2;
    }
    size_t n = head[1] & 0x7fU;
    size_t len = 0;
    if (n < 1 || n > 4) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        len = len << 8 | head[2 + i];
    }
    return len + 2 + n;
}

static bool check_certificate(struct sv body)
{
    unsigned char head[6];
    size_t len = 0;
    return decode_head(body, head, &len) && der_length(head) == len && len > 0;
}

static bool is_certificate(struct sv name)
{
    return sv_ends_with(name, SV("CERTIFICATE"));
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
        if (is_certificate(b.name) && !check_certificate(b.body)) {
            return err_set(err, ERR_INPUT, "certificate %zu is not a whole one", n + 1);
        }
        n += is_certificate(b.name) ? 1 : 0;
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
