/* A segment and its acknowledgements from anywhere. The first byte says how the rest becomes a
 * file: as it is; or as records whose checksums are made right, so that sizes, labels and places
 * are tested; with a byte of damage, or with bytes cut out. In all cases a walk covers every byte
 * of the file, records rise, and nothing is read outside of the file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "write/spool/crc32c.h"
#include "write/spool/walk.h"

#define FILE_MAX ((size_t)1 << 18)
#define SALT UINT64_C(0x5a175a175a175a17)

struct memory {
    uint8_t *data;
    size_t size;
};

/* In place of the disk; the linker puts these in the place of the functions of the same name. */
static struct memory *disk;
__typeof__(spool_io_open) __wrap_spool_io_open;
__typeof__(spool_io_read) __wrap_spool_io_read;

int __wrap_spool_io_open(int dir, const char *name, enum spool_open how, uint64_t *size)
{
    (void)dir;
    (void)name;
    (void)how;
    *size = disk->size;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Short reads, as a file system may give them. */
ssize_t __wrap_spool_io_read(int fd, void *p, size_t n, uint64_t offset)
{
    struct memory *m = disk;
    (void)fd;
    if (offset >= m->size) {
        return 0;
    }
    size_t left = m->size - (size_t)offset;
    n = n < left ? n : left;
    n = n > 5000 ? 5000 : n;
    memcpy(p, m->data + offset, n);
    return (ssize_t)n;
}

/* Each record: two bytes of label size, two of data size, flags, then the bytes. */
static void put_record(struct memory *m, const uint8_t **p, size_t *n)
{
    const uint8_t *in = *p;
    size_t labels = (size_t)in[0] | (size_t)(in[1] & 7) << 8;
    size_t body = (size_t)in[2] | (size_t)(in[3] & 31) << 8;
    *p += 5;
    *n -= 5;
    labels = labels < *n ? labels : *n;
    body = body < *n - labels ? body : *n - labels;
    if (m->size + SPOOL_HEAD_SIZE + labels + body > FILE_MAX) {
        return;
    }
    struct spool_head h = {.flags = in[4],
                           .format = in[3] >> 7,
                           .salt = SALT,
                           .offset = m->size,
                           .labels_size = (uint32_t)labels,
                           .data_size = (uint32_t)body,
                           .from_ns = in[0],
                           .body_crc = crc32c(0, *p, labels + body)};
    /* Some claim more than they have. */
    if ((in[4] & 0xc0) == 0xc0) {
        h.data_size += (uint32_t)in[2] << (in[4] & 31);
    }
    spool_head_encode(&h, m->data + m->size);
    memcpy(m->data + m->size + SPOOL_HEAD_SIZE, *p, labels + body);
    m->size += SPOOL_HEAD_SIZE + labels + body;
    *p += labels + body;
    *n -= labels + body;
}

static void make_file(struct memory *m, const uint8_t *data, size_t size)
{
    uint8_t mode = data[0];
    const uint8_t *p = data + 4;
    size_t n = size - 4;
    if (mode % 3 == 0) {
        m->size = n < FILE_MAX ? n : FILE_MAX;
        memcpy(m->data, p, m->size);
        return;
    }
    struct spool_header h = {.segment = 1, .salt = SALT, .endpoint = "main"};
    spool_header_encode(&h, m->data);
    m->size = SPOOL_HEADER_SIZE;
    while (n > 5) {
        put_record(m, &p, &n);
    }
    size_t at = ((size_t)data[1] | (size_t)data[2] << 8) % m->size;
    if (mode % 3 == 2 && (mode & 0x80) == 0) {
        m->data[at] ^= (uint8_t)(data[3] | 1);
    } else if (mode % 3 == 2 && at + data[3] < m->size) {
        /* Bytes are cut out. */
        memmove(m->data + at, m->data + at + data[3], m->size - at - data[3]);
        m->size -= data[3];
    }
}

static void read_body(const struct spool_found *found, struct labels_builder *b)
{
    uint8_t *labels = NULL;
    char *data = NULL;
    bool memory;
    enum spool_body result = spool_body_read(3, found->offset, &found->head, &labels, &data);
    REQUIRE(result == SPOOL_BODY_OK || result == SPOOL_BODY_DAMAGED);
    if (result != SPOOL_BODY_OK) {
        return;
    }
    struct labels *l = spool_labels_parse(labels, found->head.labels_size, b, &memory);
    if (l != NULL) {
        /* A label set that was read is written the same way, in the order of the names. */
        struct buf out;
        buf_init(&out, SPOOL_LABELS_MAX);
        REQUIRE(spool_labels_encode(l, &out));
        REQUIRE(out.len <= found->head.labels_size);
        buf_done(&out);
    }
    labels_unref(l);
    free(labels);
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5) {
        return 0;
    }
    struct memory m = {.data = calloc(1, FILE_MAX)};
    disk = &m;
    struct intern *in = intern_new();
    struct labels_builder *b = labels_builder_new(in);
    struct spool_walk w;
    REQUIRE(m.data && in && b);
    make_file(&m, data, size);
    if (spool_walk_open(&w, 3, 1) == SPOOL_WALK_OPEN) {
        struct spool_found found;
        uint64_t covered = w.offset;
        uint64_t body = UINT64_MAX; /* of the record before, from where the next one may begin */
        uint64_t place = 0;
        enum spool_step step;
        while ((step = spool_walk_next(&w, &found)) != SPOOL_STEP_END) {
            REQUIRE(step != SPOOL_STEP_FAILED);
            REQUIRE(found.offset == covered || (found.offset < covered && found.offset >= body));
            REQUIRE(found.size > 0);
            REQUIRE(step == SPOOL_STEP_RECORD || found.offset == covered);
            REQUIRE(step != SPOOL_STEP_RECORD || found.head.offset >= place);
            covered = found.offset + found.size;
            REQUIRE(covered <= m.size);
            body = step == SPOOL_STEP_RECORD ? found.offset + SPOOL_HEAD_SIZE : UINT64_MAX;
            place = step == SPOOL_STEP_RECORD ? found.head.offset + found.size : place;
            if (step == SPOOL_STEP_RECORD) {
                read_body(&found, b);
            }
        }
        REQUIRE(covered == m.size || m.size < SPOOL_HEADER_SIZE);
        spool_walk_close(&w);
    }
    struct spool_numbers acks;
    size_t bad;
    uint64_t end;
    REQUIRE(spool_acks_read(3, 1, SALT, &acks, &end, &bad));
    REQUIRE((end - SPOOL_ACK_HEADER_SIZE) / SPOOL_ACK_SIZE == acks.n + bad);
    for (size_t i = 0; i < acks.n; i++) {
        REQUIRE(spool_numbers_have(&acks, acks.at[i]));
    }
    free(acks.at);
    labels_builder_free(b);
    intern_free(in);
    free(m.data);
    return 0;
}
