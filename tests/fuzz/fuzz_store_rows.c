/* Reads what a disk may hold in place of a store: blobs of its rows, records of its data file,
 * names of its files, ids; and the parts of a profile, whose sums are those of a blob that is read
 * back. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/blob.h"
#include "store/data.h"
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
    REQUIRE(!blob_read_sums(blob, NULL, 0, sums, &n) || n <= SUMMARY_TYPES_MAX);
    REQUIRE(!blob_read_ids(blob, ids, &n) || n <= STORE_PARTS_MAX);
    arena_free(arena);
}

/* Reads facts, and writes those that are good again. */
static void read_facts(struct sv bytes)
{
    struct data_facts facts;
    struct data_part part;
    struct buf again;
    if (!data_read_facts(bytes, &facts)) {
        return;
    }
    struct sv rest = facts.parts;
    buf_init(&again, DATA_FACTS_MAX);
    bool whole = data_put_facts(&facts, &again);
    for (size_t i = 0; i < facts.n_parts && whole; i++) {
        whole = data_next_part(&facts, &rest, &part) &&
                data_put_part(part.labels, part.sums, facts.n_columns, &again);
    }
    struct sv used = {bytes.p, bytes.n - rest.n};
    struct data_facts copy;
    if (whole &&
        (again.len != used.n || !data_read_facts((struct sv){again.data, again.len}, &copy) ||
         copy.profile != facts.profile || copy.n_parts != facts.n_parts)) {
        abort();
    }
    buf_done(&again);
}

/* Walks over a data file that has the bytes after its header, and, if they are facts, a record of
 * them. */
static void walk(struct sv bytes)
{
    char head[DATA_HEAD_BYTES];
    struct data_walk w;
    struct data_facts facts;
    struct sv body;
    int64_t place;
    int64_t n = 0;
    int fd = memfd_create("data", MFD_CLOEXEC);
    data_put_head(bytes, 0, 7, (int64_t)bytes.n, head);
    REQUIRE(fd >= 0 && write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n &&
            write(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
            write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n);
    int64_t end = 2 * (int64_t)bytes.n + DATA_HEAD_BYTES;
    data_walk_init(&w, fd, 7, 0, end);
    while (data_walk_next(&w, &facts, &body, &place, NULL) == 1) {
        REQUIRE(place + (int64_t)body.n <= end && ++n <= end);
    }
    data_walk_done(&w);
    close(fd);
}

static void read_parts(struct sv plain)
{
    static const struct label own[] = {{{"a", 1}, {"b", 1}}, {{"pod", 3}, {"x", 1}}};
    struct scratch *s = scratch_new();
    struct parts parts;
    if (s != NULL && parts_read(s, plain, own, 2, true, &parts, NULL)) {
        for (size_t i = 0; i < parts.n_samples; i++) {
            REQUIRE(parts.of_sample[i] == PART_NONE || parts.of_sample[i] < parts.n);
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
    read_facts(text);
    walk(text);
    (void)store_name_parse(text, &name);
    (void)store_id_parse(text, &time_ms, &hash, &row);
    return 0;
}
