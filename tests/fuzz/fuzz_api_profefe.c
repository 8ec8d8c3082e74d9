/* Parameters of profefe's API: a line with a time or an id, and labels. Labels that can be read are
 * sorted, and read the same when they are written down again. */
#include <string.h>

#include "api/profefe_params.h"
#include "base/clock.h"
#include "http/url.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX ((size_t)1024 * 1024)

static void write_again(const struct label *labels, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i > 0 ? "," : "");
        url_encode_pair(labels[i].name, labels[i].value, out);
    }
}

static void check_labels(struct sv text)
{
    struct err err = ERR_INIT;
    struct label *labels;
    struct label *again;
    size_t n;
    size_t n_again;
    struct buf written;
    struct arena *arena = arena_new(TEXT_MAX);
    buf_init(&written, TEXT_MAX);
    REQUIRE(arena != NULL);
    if (profefe_labels(text, arena, &labels, &n, &err)) {
        write_again(labels, n, &written);
        REQUIRE(buf_ok(&written));
        REQUIRE(
            profefe_labels((struct sv){written.data, written.len}, arena, &again, &n_again, &err));
        REQUIRE(n == n_again);
        for (size_t i = 0; i < n; i++) {
            REQUIRE(sv_eq(labels[i].name, again[i].name) && sv_eq(labels[i].value, again[i].value));
            REQUIRE(i == 0 || sv_cmp(labels[i - 1].name, labels[i].name) <= 0);
        }
    } else {
        REQUIRE(err.kind == ERR_INPUT);
    }
    buf_done(&written);
    arena_free(arena);
}

/* An id is written again as it was read; of its last digit one bit counts. */
static void check_id(struct sv text)
{
    uint32_t second;
    uint64_t hash;
    char again[PROFEFE_ID_LENGTH + 1];
    if (profefe_id_parse(text, &second, &hash)) {
        REQUIRE(text.n == PROFEFE_ID_LENGTH);
        profefe_id_format(second * NS_PER_S, hash, again);
        REQUIRE(memcmp(again, text.p, PROFEFE_ID_LENGTH - 1) == 0);
    }
}

FUZZ(text)
{
    struct sv time = text;
    struct err err = ERR_INIT;
    int64_t ns = 0;
    (void)sv_cut(text, '\n', &time, &text);
    REQUIRE(profefe_time(time, &ns, &err) == (err.kind == ERR_NONE));
    REQUIRE(ns >= 0);
    check_id(time);
    if (text.n <= 8192) {
        check_labels(text);
    }
}
