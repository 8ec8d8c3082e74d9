/* Any URL: the value of the parameter "token" is never shown, nor left in a page that repeats it.
 */
#include <string.h>

#include "model/masking.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[] = "&token=~S3CRET~";
    const struct sv text = {.p = (const char *)data, .n = size};
    struct buf url;
    struct buf out;
    if (size > 4096 || memmem(data, size, "~S3CRET~", 8) != NULL) {
        return 0;
    }
    buf_init(&url, 16384);
    buf_init(&out, 1 << 20);
    buf_putc(&url, '?');
    buf_append(&url, text.p, text.n);
    buf_puts(&url, secret);
    const struct sv whole = {.p = url.data, .n = url.len};
    REQUIRE(mask_url(whole, size % 2 == 0, &out));
    REQUIRE(memmem(out.data, out.len, "~S3CRET~", 8) == NULL);
    REQUIRE(memmem(out.data, out.len, "token=<secret>", 14) != NULL);
    char page[64] = "what is ~S3CRET~ doing here?";
    mask_echo(whole, size % 2 == 0, page, strlen(page));
    REQUIRE(strstr(page, "S3CRET") == NULL);
    buf_clear(&out);
    mask_label(text, false);
    buf_done(&url);
    buf_done(&out);
    return 0;
}
