/* The XML that object stores and the token service of AWS send. Input: one body. */
#include <string.h>

#include "bucket/answers.h"
#include "bucket/xml.h"
#include "tests/fuzz/fuzz.h"

static bool on_entry(void *arg, const struct bucket_listed *e)
{
    size_t *n = arg;
    REQUIRE(e->key.p[e->key.n] == '\0');
    (*n)++;
    return true;
}

static void fuzz_lists(struct sv body)
{
    struct bucket_page page;
    size_t n = 0;
    bool ok = bucket_read_list(body, on_entry, &n, &page, NULL);
    REQUIRE(!ok || n == page.entries);
    REQUIRE(ok || n == 0);
    REQUIRE(page.next == NULL || page.next[0] != '\0');
    bucket_page_done(&page);
    n = 0;
    ok = bucket_read_uploads(body, on_entry, &n, &page, NULL);
    REQUIRE(ok ? n == page.entries : n == 0);
    bucket_page_done(&page);
}

static void fuzz_errors(struct sv body)
{
    struct bucket_refusal r;
    struct buf id;
    bool is_error = bucket_read_refusal(body, &r);
    REQUIRE(is_error == (r.code[0] != '\0'));
    REQUIRE(memchr(r.code, '\0', sizeof(r.code)) != NULL);
    REQUIRE(memchr(r.message, '\0', sizeof(r.message)) != NULL);
    REQUIRE(memchr(r.place, '\0', sizeof(r.place)) != NULL);
    (void)bucket_meaning_of(r.code, 0, false);
    buf_init(&id, 256);
    REQUIRE(!bucket_read_upload_id(body, &id, NULL) || id.len > 0);
    buf_done(&id);
    (void)bucket_is_complete(body);
}

/* A text that was escaped is the same when it has been read. */
static void fuzz_text(struct sv text)
{
    struct buf escaped;
    struct buf back;
    buf_init(&escaped, 6 * text.n);
    buf_init(&back, text.n);
    REQUIRE(xml_escape(text, &escaped));
    REQUIRE(xml_unescape((struct sv){escaped.data, escaped.len}, &back));
    REQUIRE(sv_eq((struct sv){back.data, back.len}, text));
    buf_done(&escaped);
    buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of this size, so that reading beyond its end is found. */
    char *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    struct sv body = {copy, size};
    fuzz_lists(body);
    fuzz_errors(body);
    fuzz_text(body);
    free(copy);
    return 0;
}
