/* The parts that all fuzz targets share. */
#ifndef PROFPULL_TESTS_FUZZ_H
#define PROFPULL_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sv.h"

/* libFuzzer and tests/fuzz/replay.c call this function with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Begins the function that a target runs with each input:
 *
 *     FUZZ(text)
 *     {
 *         REQUIRE(utf8_valid(text) || text.n > 0);
 *     }
 *
 * "in" is the name of its parameter, a struct sv. */
#define FUZZ(in)                                                                                   \
    static void fuzz(struct sv in);                                                                \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        fuzz((struct sv){(const char *)data, size});                                               \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz(struct sv in)

/* The same for a target whose first byte chooses between ways of reading the rest, "in". An empty
 * input is skipped. */
#define FUZZ_BY(choice, in)                                                                        \
    static void fuzz(uint8_t choice, struct sv in);                                                \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        if (size > 0) {                                                                            \
            fuzz(data[0], (struct sv){(const char *)data + 1, size - 1});                          \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz(uint8_t choice, struct sv in)

/* Ends the process, which is a finding, if the condition is false; also in a build with NDEBUG. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
