/* Reads what a bucket may hold in place of an archive: indexes, heartbeats, and names of objects.
 */
#include <string.h>

#include "pprof/gzip.h"
#include "pprof/scratch.h"
#include "store/archive/catalogue.h"
#include "store/archive/heartbeat.h"
#include "store/archive/index.h"
#include "store/archive/names.h"
#include "store/blob.h"
#include "tests/fuzz/fuzz.h"

static void read_index(struct sv bytes)
{
    struct arena *arena = arena_new((size_t)64 * 1024 * 1024);
    struct archive_index index;
    struct err err = ERR_INIT;
    if (arena == NULL) {
        return;
    }
    if (archive_index_read(bytes, arena, &index, &err) == ARCHIVE_INDEX_FINE) {
        for (size_t i = 0; i < index.n_rows; i++) {
            const struct archive_row *row = &index.rows[i];
            struct set set;
            const struct label *labels;
            size_t n;
            (void)blob_read_set(row->set, arena, &set);
            (void)blob_read_labels(row->labels, arena, &labels, &n);
        }
        for (size_t i = 0; i < index.day.n_replaces; i++) {
            struct archive_name name;
            (void)archive_data_parse(index.day.replaces[i], &name);
        }
    } else if (err.kind == ERR_NONE) {
        abort();
    }
    arena_free(arena);
}

/* An index whose compression and checksum are right: otherwise no fields would be read. */
static void read_fields(struct sv fields, const char *line)
{
    struct scratch *scratch = scratch_new();
    struct sv packed;
    if (scratch != NULL && gzip_deflate(scratch, fields, &packed)) {
        uint64_t sum = blob_hash(packed, NULL, 0);
        struct buf all;
        buf_init(&all, (size_t)16 * 1024 * 1024);
        buf_puts(&all, line);
        buf_append(&all, packed.p, packed.n);
        buf_append(&all, &sum, sizeof(sum));
        if (buf_ok(&all)) {
            read_index((struct sv){all.data, all.len});
        }
        buf_done(&all);
    }
    scratch_free(scratch);
}

static void read_names(struct sv text)
{
    struct archive_name name;
    char key[ARCHIVE_KEY_SIZE];
    if (archive_index_parse(text, &name)) {
        archive_index_key("w", &name, key);
        REQUIRE(sv_eq_str(text, key + strlen("w/" ARCHIVE_INDEX)));
    }
    if (archive_data_parse(text, &name)) {
        archive_data_key("w", &name, key);
    }
}

/* Each entry lies within the text. */
static void read_catalogue(struct sv text)
{
    struct sv rest;
    struct catalogue_entry e;
    if (!catalogue_open(text, &rest)) {
        return;
    }
    while (catalogue_next(&rest, &e)) {
        REQUIRE(e.key.n + e.etag.n + e.bytes.n <= text.n);
    }
}

FUZZ(text)
{
    uint64_t version;
    struct sv id;
    read_index(text);
    read_fields(text, "profpull archive index 1\n");
    read_fields(text, "profpull archive index 2\n");
    read_names(text);
    read_catalogue(text);
    (void)heartbeat_parse(text, &version, &id);
}
