/* The output of an exec plugin; the first byte chooses stdout or stderr. */
#include <string.h>

#include "base/utf8.h"
#include "discovery/kubernetes/credentials.h"
#include "http/pem.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_output(struct sv text)
{
    struct exec_credential c = {0};
    struct err err = ERR_INIT;
    bool ok = exec_credential_parse(text, "client.authentication.k8s.io/v1", &c, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    if (ok) {
        REQUIRE(c.token != NULL || c.cert_pem != NULL);
        REQUIRE((c.cert_pem == NULL) == (c.key_pem == NULL));
        REQUIRE(c.token == NULL || strpbrk(c.token, "\r\n ") == NULL);
    }
    exec_credential_done(&c);
}

static void fuzz_quote(struct sv text)
{
    static const char *const secrets[] = {"hunter2", NULL};
    char out[EXEC_QUOTE_MAX + 1];
    exec_quote(text, secrets, out);
    REQUIRE(strlen(out) <= EXEC_QUOTE_MAX);
    REQUIRE(strstr(out, "hunter2") == NULL);
    REQUIRE(utf8_valid(sv_from(out)));
    for (const char *p = out; *p != '\0'; p++) {
        REQUIRE((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
}

FUZZ_BY(choice, text)
{
    struct err err = ERR_INIT;
    int64_t ns = 0;
    switch (choice % 5) {
    case 0:
        fuzz_output(text);
        break;
    case 1:
        fuzz_quote(text);
        break;
    case 2:
        REQUIRE(!exec_parse_time(text, &ns) || ns > INT64_MIN);
        break;
    case 3:
        REQUIRE(pem_check_certificates(text, &err) == (err.kind == ERR_NONE));
        break;
    default:
        REQUIRE(pem_check_key(text, &err) == (err.kind == ERR_NONE));
        break;
    }
}
