/* Reads what peers may send: questions, answers, and slices. */
#include <sqlite3.h>
#include <string.h>

#include "store/catalogue.h"
#include "store/peering/message.h"
#include "tests/fuzz/fuzz.h"

static void read_question(struct sv bytes)
{
    struct peering_question q;
    struct peering_question again;
    struct buf out;
    if (!peering_read_question(bytes, &q, NULL)) {
        return;
    }
    /* A question that was read is written in the same way. */
    buf_init(&out, PEERING_QUESTION_MAX);
    if (peering_put_question(&q, &out)) {
        REQUIRE(peering_read_question((struct sv){out.data, out.len}, &again, NULL));
        REQUIRE(q.files == again.files && sv_eq(q.selector, again.selector) &&
                q.from_ns == again.from_ns && (q.files || sv_eq(q.file, again.file)));
    }
    buf_done(&out);
}

/* Reads the bytes of a slice as a scan does, up to its series. */
static void read_slice(struct sv slice)
{
    struct db db;
    struct catalogue c;
    void *bytes = slice.n > 0 ? sqlite3_malloc64(slice.n) : NULL;
    if (bytes == NULL) {
        return;
    }
    memcpy(bytes, slice.p, slice.n);
    if (!db_open_slice(&db, "slice", bytes, slice.n, NULL)) {
        return;
    }
    if (catalogue_init(&c, NULL, NULL)) {
        (void)catalogue_read(&c, &db, NULL);
        catalogue_done(&c);
    }
    db_close(&db);
}

static void read_answer(struct sv bytes)
{
    struct arena *arena = arena_new((size_t)16 * 1024 * 1024);
    struct peering_answer a;
    struct err err = ERR_INIT;
    if (arena == NULL) {
        return;
    }
    if (peering_read_answer(bytes, arena, &a, &err)) {
        for (size_t i = 0; i < a.n_files; i++) {
            struct store_name name;
            REQUIRE(store_name_parse(sv_from(a.files[i].text), &name));
            REQUIRE(a.files[i].archived_ms < 0 || a.files[i].hash.n > 0);
        }
        REQUIRE(a.slice.n <= bytes.n);
        read_slice(a.slice);
    } else {
        REQUIRE(err.kind != ERR_NONE);
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv bytes = {(const char *)data, size};
    read_question(bytes);
    read_answer(bytes);
    read_slice(bytes);
    return 0;
}
