/* Any URL: the value of the parameter "token" is never shown, nor left in a page that repeats it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/masking.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

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
    require(mask_url(whole, size % 2 == 0, &out));
    require(memmem(out.data, out.len, "~S3CRET~", 8) == NULL);
    require(memmem(out.data, out.len, "token=<secret>", 14) != NULL);
    char page[64] = "what is ~S3CRET~ doing here?";
    mask_echo(whole, size % 2 == 0, page, strlen(page));
    require(strstr(page, "S3CRET") == NULL);
    buf_clear(&out);
    mask_label(text, false);
    buf_done(&url);
    buf_done(&out);
    return 0;
}
