/* ELF files: four addresses of each segment, and what is found is a sound answer. A crash may be
 * one of libdw, which the child in which this runs is for; it is worth a look all the same. */
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/native.h"
#include "tests/fuzz/fuzz.h"

static void ask(struct native *n)
{
    static const uint64_t addresses[] = {0, 0x1000, 0x1040, 0x1100, 0x401000, 0x401100};
    const struct symbol_mapping none = {.limit = 0};
    const size_t count = sizeof(addresses) / sizeof(addresses[0]);
    struct answer_writer w;
    struct answer_head head;
    struct buf payload;
    size_t length;
    struct symbol_frames frames;
    answer_writer_init(&w);
    buf_init(&payload, ANSWER_MAX);
    native_ask(n, &none, addresses, count, &w);
    if (answer_finish(&w, &head, &payload)) {
        REQUIRE(answer_payload_size(&head, count, NULL) == payload.len);
        char *bytes = buf_take(&payload, &length);
        REQUIRE(bytes != NULL && answer_decode(&head, bytes, &frames, NULL));
        symbol_frames_free(&frames);
    }
    buf_done(&payload);
    answer_writer_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum symbols_failure failure;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct native *n = native_open(fd, "", &failure, NULL);
    if (n != NULL) {
        ask(n);
        native_free(n);
    }
    close(fd);
    return 0;
}
