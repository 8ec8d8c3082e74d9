#include "http/pem.h"

#include <string.h>

#define BEGIN SV("-----BEGIN ")
#define END SV("-----END ")
#define DASHES SV("-----")

/* One block: what stands between its two lines. */
struct block {
    struct sv name; /* "CERTIFICATE" */
    struct sv body;
};

/* Where the needle begins in v, or NULL. */
static const char *find(struct sv v, struct sv needle)
{
    return v.n < needle.n ? NULL : memmem(v.p, v.n, needle.p, needle.n);
}

static struct sv behind(struct sv v, const char *p)
{
    return (struct sv){p, v.n - (size_t)(p - v.p)};
}

/* Takes the next block from *text. False if there is none; *ret_whole says whether it has its end.
 */
static bool next_block(struct sv *text, struct block *ret, bool *ret_whole)
{
    const char *begin = find(*text, BEGIN);
    if (begin == NULL) {
        return false;
    }
    *ret_whole = false;
    *text = behind(*text, begin + BEGIN.n);
    const char *dashes = find(*text, DASHES);
    if (dashes == NULL) {
        return true;
    }
    ret->name = (struct sv){text->p, (size_t)(dashes - text->p)};
    *text = behind(*text, dashes + DASHES.n);
    const char *end = find(*text, END);
    if (end == NULL) {
        return true;
    }
    ret->body = (struct sv){text->p, (size_t)(end - text->p)};
    *text = behind(*text, end + END.n);
    *ret_whole = sv_starts_with(*text, ret->name) &&
                 sv_starts_with(behind(*text, text->p + ret->name.n), DASHES);
    return true;
}

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The first bytes and the number of all bytes that base64 with line breaks stands for. */
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
        int six = sextet(c);
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

/* How long the DER sequence is that begins like this; 0 if none does. */
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
