/* The text of `profpull status` for any answer: no control character reaches the terminal. */
#include <jansson.h>
#include <string.h>

#include "cli/status/show.h"
#include "tests/fuzz/fuzz.h"

FUZZ(in)
{
    const struct show_style style = {.width = 40};
    json_t *root = json_loadb(in.p, in.n, 0, NULL);
    if (root == NULL) {
        return;
    }
    struct buf out;
    buf_init(&out, (size_t)64 * 1024 * 1024);
    (void)status_is_well(root);
    if (status_show(root, &style, &out)) {
        for (size_t i = 0; i < out.len; i++) {
            REQUIRE(out.data[i] == '\n' || (unsigned char)out.data[i] >= ' ');
        }
    }
    buf_done(&out);
    json_decref(root);
}
