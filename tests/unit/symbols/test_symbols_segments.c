/* Addresses of a process to those of the file, for the layouts of linkers. */
#include "symbols/segments.h"

#include "tests/unit/lib/testing.h"

#define START UINT64_C(0x555555554000)

static uint64_t find(const struct segments *s, const struct symbol_mapping *m, uint64_t address)
{
    uint64_t found;
    return segments_find(s, m, address, &found) ? found : UINT64_MAX;
}

/* GNU ld: an offset in the file is the address less a constant. mold and lld: it is not. */
TEST(an_offset_in_the_file_gives_the_address)
{
    static const struct segments gnu = {
        .at = {{PT_LOAD, PF_R, 0, 0, 0, 0x9c0, 0x9c0, 0x1000},
               {PT_LOAD, PF_R | PF_X, 0x1000, 0x1000, 0x1000, 0x37d, 0x37d, 0x1000}},
        .n = 2};
    static const struct segments mold = {
        .at = {{PT_LOAD, PF_R, 0, 0, 0, 0xa38, 0xa38, 0x1000},
               {PT_LOAD, PF_R | PF_X, 0xa40, 0x1a40, 0x1a40, 0x384, 0x384, 0x1000}},
        .n = 2};
    const struct symbol_mapping second = {START + 0x1000, START + 0x2000, 0x1000};
    const struct symbol_mapping same_page = {START + 0x1000, START + 0x2000, 0};
    CHECK_INT(find(&gnu, &second, START + 0x1020), 0x1020, "GNU ld");
    CHECK_INT(find(&mold, &same_page, START + 0x1a50), 0x1a50, "mold");
    CHECK_INT(find(&gnu, &second, START + 0x137d), -1, "after the segment");
    CHECK_INT(find(&gnu, &second, START + 0x2000), -1, "after the mapping");
    CHECK_INT(find(&gnu, &second, START), -1, "before the mapping");
    CHECK_INT(find(&gnu, &(struct symbol_mapping){.limit = 0}, 0x1020), 0x1020, "no mapping");
}

/* objcopy --only-keep-debug leaves addresses, sizes and alignments alone. */
TEST(segments_without_a_place_in_the_file_are_found_by_the_mapping)
{
    static const struct segments lost = {
        .at = {{PT_LOAD, PF_R, 0, 0, 0, 0x39c, 0xa38, 0x1000},
               {PT_LOAD, PF_R | PF_X, 0, 0x401a40, 0x401a40, 0, 0x384, 0x1000}},
        .n = 2};
    const struct symbol_mapping m = {START, START + 0x1000, 0};
    const struct symbol_mapping no_limit = {START, UINT64_MAX, 0};
    CHECK_INT(find(&lost, &m, START + 0xa50), 0x401a50, "");
    CHECK_INT(find(&lost, &no_limit, START + 0xa50), 0x401a50, "a limit that is unknown");
}

TEST(of_two_segments_without_a_place_the_one_that_fits_is_taken)
{
    static const struct segments lost = {
        .at = {{PT_LOAD, PF_R | PF_X, 0, 0x1000, 0x1000, 0, 0x1000, 0x1000},
               {PT_LOAD, PF_R | PF_X, 0, 0x10000, 0x10000, 0, 0x5000, 0x1000}},
        .n = 2};
    const struct symbol_mapping small = {START, START + 0x1000, 0x1000};
    const struct symbol_mapping large = {START, START + 0x5000, 0x2000};
    const struct symbol_mapping neither = {START, START + 0x9000, 0x2000};
    CHECK_INT(find(&lost, &small, START + 0x10), 0x1010, "");
    CHECK_INT(find(&lost, &large, START + 0x10), 0x10010, "");
    CHECK_INT(find(&lost, &neither, START + 0x10), -1, "");
}
