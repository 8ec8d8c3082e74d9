/* The answers of sources of credentials. Input: a digit for the source, one for the step, and the
 * body. */
#include <string.h>

#include "bucket/sources.h"
#include "tests/fuzz/fuzz.h"

static const char *no_env(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return NULL;
}

static int64_t some_time(void *arg)
{
    (void)arg;
    return INT64_C(1795231414000000000);
}

/* A text that was taken can be a header: it has neither spaces nor control characters. */
static void check_text(const struct buf *b)
{
    REQUIRE(strlen(b->data) == b->len);
    for (size_t i = 0; i < b->len; i++) {
        REQUIRE(b->data[i] > ' ' && b->data[i] <= '~');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct credentials_method *const methods[] = {
        &source_web_identity, &source_container, &source_instance, &source_service_account,
        &source_metadata};
    const struct credentials_world world = {.env = no_env, .wall_ns = some_time};
    const struct bucket_settings settings = {.url = "s3://bbb"};
    struct credentials_fetch f;
    struct err err = ERR_INIT;
    if (size < 2) {
        return 0;
    }
    const struct credentials_method *m = methods[data[0] % (sizeof(methods) / sizeof(methods[0]))];
    unsigned step = data[1] % m->steps;
    char *copy = malloc(size > 2 ? size - 2 : 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data + 2, size - 2);
    struct sv body = {copy, size - 2};
    credentials_fetch_init(&f, &settings, &world);
    f.method = "GET";
    bool ok = m->answer(&f, step, body, &err);
    REQUIRE(ok || err.msg[0] != '\0');
    REQUIRE(!ok || step + 1 < m->steps || f.bearer.len > 0 || (f.key_id.len > 0 && f.key.len > 0));
    check_text(&f.key_id);
    check_text(&f.key);
    check_text(&f.session);
    check_text(&f.bearer);
    check_text(&f.secret);
    check_text(&f.role);
    credentials_refusal(&f, 403, body, &err);
    credentials_fetch_done(&f);
    free(copy);
    return 0;
}
