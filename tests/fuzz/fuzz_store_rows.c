/* Reads what a disk may hold in place of a store: blobs of its rows, names of its files, ids; and
 * the parts of a profile, whose sums are those of a blob that is read back. */
#include <string.h>

#include "store/blob.h"
#include "store/parts.h"
#include "store/private.h"
#include "tests/fuzz/fuzz.h"

/* A blob with a checksum that is right: else nothing would get further. */
static struct sv seal(char *blob, const uint8_t *data, size_t size)
{
    uint64_t check = blob_hash((struct sv){(const char *)data, size}, NULL, 0);
    for (size_t i = 0; i < 8; i++) {
        blob[i] = (char)(check >> (8 * i));
    }
    memcpy(blob + 8, data, size);
    return (struct sv){blob, size + 8};
}

static void read_blobs(struct sv blob)
{
    struct arena *arena = arena_new((size_t)16 * 1024 * 1024);
    struct set set;
    const struct label *labels;
    int64_t sums[SUMMARY_TYPES_MAX];
    static int64_t ids[STORE_PARTS_MAX];
    size_t n;
    if (arena == NULL) {
        return;
    }
    if (blob_read_set(blob, arena, &set)) {
        struct buf again;
        struct set copy;
        buf_init(&again, STORE_BLOB_MAX);
        if (!blob_put_set(&set, &again) ||
            !blob_read_set((struct sv){again.data, again.len}, arena, &copy) ||
            copy.n_labels != set.n_labels || copy.n_types != set.n_types) {
            abort();
        }
        buf_done(&again);
    }
    (void)blob_read_labels(blob, arena, &labels, &n);
    if (blob_read_sums(blob, NULL, 0, sums, &n) && n > SUMMARY_TYPES_MAX) {
        abort();
    }
    if (blob_read_ids(blob, ids, &n) && n > STORE_PARTS_MAX) {
        abort();
    }
    arena_free(arena);
}

static void read_parts(struct sv plain)
{
    static const struct label own[] = {{{"a", 1}, {"b", 1}}, {{"pod", 3}, {"x", 1}}};
    struct scratch *s = scratch_new();
    struct parts parts;
    if (s != NULL && parts_read(s, plain, own, 2, true, &parts, NULL)) {
        for (size_t i = 0; i < parts.n_samples; i++) {
            if (parts.of_sample[i] != PART_NONE && parts.of_sample[i] >= parts.n) {
                abort();
            }
        }
    }
    scratch_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = {(const char *)data, size};
    struct store_name name;
    int64_t time_ms;
    int64_t row;
    uint64_t hash;
    char *blob = malloc(size + 8);
    if (blob == NULL) {
        return 0;
    }
    read_blobs(text);
    read_blobs(seal(blob, data, size));
    free(blob);
    read_parts(text);
    (void)store_name_parse(text, &name);
    (void)store_id_parse(text, &time_ms, &hash, &row);
    return 0;
}
