/* Profiles that get names: whatever the input, a profile that was whole stays whole, has no
 * location without a name left, and needs nothing more when it is read again. */
#include "pprof/check.h"
#include "symbols/profile.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX ((size_t)16 * 1024 * 1024)

/* A view of a literal, as an initialiser. */
#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static bool is_whole(struct sv plain)
{
    struct pprof_summary summary;
    return pprof_check(plain, &summary, NULL);
}

/* Gives every second location lines. */
static void set_lines(struct symbol_profile *p)
{
    static const struct symbol_function f = {
        .name = TEXT("name"), .system_name = TEXT("_name"), .file = TEXT("file"), .start_line = 1};
    static const struct symbol_line lines[] = {{&f, 3}, {&f, 4}};
    for (size_t i = 0; i < p->n_locations; i += 2) {
        p->locations[i].lines = lines;
        p->locations[i].n_lines = 1 + (uint32_t)(i / 2 % 2);
        p->locations[i].known = symbol_lines_known(lines, p->locations[i].n_lines);
    }
}

static void check_again(struct sv named)
{
    struct symbol_profile p;
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    REQUIRE(symbol_profile_read(&p, s, named, &err));
    REQUIRE(!symbol_profile_changes(&p));
    scratch_free(s);
}

FUZZ(plain)
{
    struct symbol_profile p;
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    struct buf out;
    bool whole = is_whole(plain);
    buf_init(&out, OUT_MAX);
    (void)symbol_profile_glance(plain);
    bool read = symbol_profile_read(&p, s, plain, &err);
    REQUIRE(read == (err.kind == ERR_NONE));
    if (read && plain.n <= 64 * 1024) {
        set_lines(&p);
        REQUIRE(symbol_profile_write(&p, &out, &err));
        REQUIRE(!whole || is_whole((struct sv){out.data, out.len}));
        if (whole) {
            check_again((struct sv){out.data, out.len});
        }
    }
    buf_done(&out);
    scratch_free(s);
}
