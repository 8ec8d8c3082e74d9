/* Answers of the child that reads debug information: a head and a payload. Frames that are accepted
 * have strings within the answer and ends in order. */
#include <string.h>

#include "symbols/answer.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct symbol_frames *frames)
{
    size_t all = 0;
    for (size_t i = 0; i < frames->n; i++) {
        size_t n;
        const struct symbol_frame *f = symbol_frames_of(frames, i, &n);
        for (size_t j = 0; j < n; j++) {
            REQUIRE(f[j].function[0] != '\0' && f[j].system_name[0] != '\0' && f[j].line >= 0 &&
                    strlen(f[j].file) <= ANSWER_MAX);
        }
        all += n;
    }
    REQUIRE(all == frames->n_frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer_head head;
    struct symbol_frames frames;
    if (size < sizeof(head)) {
        return 0;
    }
    memcpy(&head, data, sizeof(head));
    data += sizeof(head);
    size -= sizeof(head);
    uint64_t wanted = answer_payload_size(&head, head.addresses, NULL);
    if (wanted == 0 || wanted > size || head.failure != SYMBOLS_OK) {
        return 0;
    }
    char *payload = malloc(wanted);
    if (payload == NULL) {
        return 0;
    }
    memcpy(payload, data, wanted);
    if (answer_decode(&head, payload, &frames, NULL)) {
        check(&frames);
        symbol_frames_free(&frames);
    }
    return 0;
}
