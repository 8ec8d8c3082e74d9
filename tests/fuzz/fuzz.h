/* The parts that all fuzz targets share. A target defines LLVMFuzzerTestOneInput(), which libFuzzer
 * and tests/fuzz/replay.c call with each input.
 */
#ifndef PROFPULL_TESTS_FUZZ_H
#define PROFPULL_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, which is a finding, if the condition is false; also in a build with NDEBUG. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
