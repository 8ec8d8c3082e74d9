/* A profile from outside: its sums are the same each time, and a function never has more than all
 * samples together. */
#include "record/counting.h"
#include "tests/fuzz/fuzz.h"

static bool run(const uint8_t *data, size_t size, struct counting_want *wants, size_t n)
{
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    REQUIRE(s != NULL);
    bool ok = counting_run(s, (struct sv){(const char *)data, size}, wants, n, 1, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    scratch_free(s);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {
        "memory:alloc_space:bytes::", "memory:alloc_space:bytes:space:bytes",
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds"};
    struct counting_want wants[6] = {{.found = false}};
    struct counting_want again[6];
    for (size_t i = 0; i < 6; i++) {
        REQUIRE(record_type_split(sv_from(types[i / 2]), &wants[i].type));
        wants[i].function = i % 2 == 0 ? SV("") : SV("main");
        again[i] = wants[i];
    }
    if (!run(data, size, wants, 6)) {
        return 0;
    }
    REQUIRE(run(data, size, again, 6));
    for (size_t i = 0; i < 6; i += 2) {
        REQUIRE(wants[i].found == wants[i + 1].found);
        REQUIRE(wants[i + 1].sum <= wants[i].sum);
        REQUIRE(wants[i].sum == again[i].sum && wants[i + 1].sum == again[i + 1].sum);
    }
    return 0;
}
