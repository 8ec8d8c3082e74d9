/* The head of a request to the admin server: the end is found in the same place however the bytes
 * come, and all that was read lies within the head. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void must_be_within(struct sv v, const char *head, size_t n)
{
    must(v.p >= head && v.p + v.n <= head + n);
}

/* Byte by byte. */
static size_t length_in_pieces(struct sv data)
{
    size_t length = 0;
    for (size_t n = 1; n <= data.n && length == 0; n++) {
        length = request_head_length((struct sv){data.p, n}, n - 1);
    }
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *head = malloc(size + 1);
    struct request r;
    must(head != NULL);
    if (size > 0) {
        memcpy(head, data, size);
    }
    size_t length = request_head_length((struct sv){head, size}, 0);
    must(length <= size);
    must(length == length_in_pieces((struct sv){head, size}));
    if (request_parse(head, length == 0 ? size : length, &r)) {
        must(r.path.n > 0 && r.n_params <= REQUEST_PARAMS_MAX);
        must_be_within(r.path, head, size);
        for (size_t i = 0; i < r.n_params; i++) {
            must_be_within(r.params[i].name, head, size);
            must_be_within(r.params[i].value, head, size);
        }
        must(request_param(&r, "job").p == NULL || r.n_params > 0);
    }
    free(head);
    return 0;
}
