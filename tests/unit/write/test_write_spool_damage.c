/* A spool whose files were damaged between two processes: only what is damaged is lost, it is
 * counted, and nothing that is not ours is touched. */
#include "tests/unit/write/spool_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "write/spool/crc32c.h"
#include "write/spool/format.h"

#define PROFILES 6
#define SIZE 300

/* The one segment of the first process, as bytes. */
struct file {
    char path[4096];
    uint8_t *data;
    size_t size;
    uint64_t starts[PROFILES]; /* of the records */
};

static void read_file(struct file *f, const char *dir, const char *name)
{
    (void)snprintf(f->path, sizeof(f->path), "%s/main/%s", dir, name);
    FILE *in = fopen(f->path, "rbe");
    assert_non_null(in);
    f->data = calloc(1, 1 << 16);
    f->size = fread(f->data, 1, 1 << 16, in);
    fclose(in);
}

static void find_records(struct file *f)
{
    struct spool_head h;
    uint64_t at = SPOOL_HEADER_SIZE;
    for (size_t i = 0; i < PROFILES; i++) {
        assert_true(spool_head_parse(f->data + at, &h));
        assert_int_equal(h.offset, at);
        f->starts[i] = at;
        at += spool_record_size(&h);
    }
    assert_int_equal(at, f->size);
}

static void write_file(const struct file *f)
{
    FILE *out = fopen(f->path, "wbe");
    assert_non_null(out);
    assert_int_equal(fwrite(f->data, 1, f->size, out), f->size);
    fclose(out);
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static void flip(struct file *f, uint64_t at)
{
    f->data[at] ^= 0x10;
}

/* ---- the kinds of damage --------------------------------------------------------------------- */

static void none(struct file *f)
{
    (void)f;
}
static void body_of_2(struct file *f)
{
    flip(f, f->starts[2] + SPOOL_HEAD_SIZE + 40);
}
static void labels_of_2(struct file *f)
{
    flip(f, f->starts[2] + SPOOL_HEAD_SIZE + 1);
}
static void head_of_2(struct file *f)
{
    flip(f, f->starts[2] + 20);
}
static void magic_of_0(struct file *f)
{
    flip(f, f->starts[0]);
}
static void heads_of_2_and_3(struct file *f)
{
    flip(f, f->starts[2] + 20);
    flip(f, f->starts[3] + 60);
}
static void heads_of_1_and_4(struct file *f)
{
    flip(f, f->starts[1] + 20);
    flip(f, f->starts[4] + 60);
}
static void torn_body(struct file *f)
{
    f->size -= 1;
}
static void torn_head(struct file *f)
{
    f->size = f->starts[5] + 10;
}
static void torn_between(struct file *f)
{
    f->size = f->starts[5];
}
static void header(struct file *f)
{
    flip(f, 30);
}
static void magic_of_the_file(struct file *f)
{
    flip(f, 0);
}
static void header_and_2(struct file *f)
{
    flip(f, 30);
    flip(f, f->starts[2] + 20);
}
static void header_and_0(struct file *f)
{
    flip(f, 30);
    flip(f, f->starts[0] + 20);
}
static void zero_length(struct file *f)
{
    f->size = 0;
}
static void only_part_of_the_header(struct file *f)
{
    f->size = 100;
}
static void only_the_header(struct file *f)
{
    f->size = SPOOL_HEADER_SIZE;
}
static void zeros_at_the_end(struct file *f)
{
    memset(f->data + f->size, 0, 4096);
    f->size += 4096;
}
static void all_zeros(struct file *f)
{
    memset(f->data, 0, f->size);
}
static void something_else(struct file *f)
{
    memset(f->data, 'x', f->size);
}
static void newer_version(struct file *f)
{
    put32(f->data + 8, 2);
    put32(f->data + SPOOL_HEADER_SIZE - 4, crc32c(0, f->data, SPOOL_HEADER_SIZE - 4));
}
static void insert(struct file *f, uint64_t at, size_t n)
{
    memmove(f->data + at + n, f->data + at, f->size - at);
    memset(f->data + at, 'P', n);
    f->size += n;
}
static void cut(struct file *f, uint64_t at, size_t n)
{
    memmove(f->data + at, f->data + at + n, f->size - at - n);
    f->size -= n;
}
static void moved_by_one(struct file *f)
{
    insert(f, f->starts[2], 1);
}
static void more_before_2(struct file *f)
{
    insert(f, f->starts[2], 9999);
}
static void more_in_2(struct file *f)
{
    insert(f, f->starts[2] + SPOOL_HEAD_SIZE + 100, 50);
}
static void less_in_2(struct file *f)
{
    cut(f, f->starts[2] + SPOOL_HEAD_SIZE + 100, 50);
}
static void less_from_2_to_3(struct file *f)
{
    cut(f, f->starts[2] + 200, f->starts[3] + 30 - f->starts[2] - 200);
}
static void without_2(struct file *f)
{
    cut(f, f->starts[2], f->starts[3] - f->starts[2]);
}
static void less_in_4_and_more_in_5(struct file *f)
{
    cut(f, f->starts[4] + 200, 20);
    insert(f, f->starts[5] - 20 + 200, 500);
}
static void more_in_the_header(struct file *f)
{
    insert(f, 100, 3);
}
static void less_in_the_header(struct file *f)
{
    cut(f, 100, 3);
}
/* Records 1 and 2 a second time. */
static void some_twice(struct file *f)
{
    uint64_t n = f->starts[3] - f->starts[1];
    insert(f, f->starts[3], n);
    memcpy(f->data + f->starts[3], f->data + f->starts[1], n);
}
/* A head that is right except for the size, which would lead far out of the file. */
static void endless_record(struct file *f)
{
    uint8_t *p = f->data + f->starts[2];
    put32(p + 20, UINT32_MAX);
    put32(p + 60, crc32c(0, p, 60));
}
static void long_record(struct file *f)
{
    uint8_t *p = f->data + f->starts[2];
    put32(p + 20, 1 << 20);
    put32(p + 60, crc32c(0, p, 60));
}
static void another_salt(struct file *f)
{
    uint8_t *p = f->data + f->starts[2];
    p[8] ^= 1;
    put32(p + 60, crc32c(0, p, 60));
}
/* Right check sums around label bytes that are no labels. */
static void senseless_labels(struct file *f)
{
    uint8_t *p = f->data + f->starts[2];
    struct spool_head h;
    assert_true(spool_head_parse(p, &h));
    put32(p + SPOOL_HEAD_SIZE, UINT32_MAX);
    h.body_crc = crc32c(0, p + SPOOL_HEAD_SIZE, (size_t)h.labels_size + h.data_size);
    spool_head_encode(&h, p);
}

static const struct damage {
    const char *name;
    void (*apply)(struct file *f);
    unsigned lost;    /* a bit for each profile that does not come back */
    unsigned dropped; /* of these, so many are known of: replayed, and dropped as damaged */
    unsigned places;
    unsigned foreign;
    unsigned newer;
    bool stays; /* the file is as it was when all is sent */
} damages[] = {
    {"none", none, 0, 0, 0, 0, 0, false},
    {"a bit of a profile", body_of_2, 1 << 2, 1, 1, 0, 0, false},
    {"a bit of the labels", labels_of_2, 1 << 2, 1, 1, 0, 0, false},
    {"a bit of a head", head_of_2, 1 << 2, 0, 1, 0, 0, false},
    {"the first head", magic_of_0, 1 << 0, 0, 1, 0, 0, false},
    {"two heads in a row", heads_of_2_and_3, 3 << 2, 0, 1, 0, 0, false},
    {"two heads apart", heads_of_1_and_4, 1 << 1 | 1 << 4, 0, 2, 0, 0, false},
    {"torn in the last profile", torn_body, 1 << 5, 0, 1, 0, 0, false},
    {"torn in the last head", torn_head, 1 << 5, 0, 1, 0, 0, false},
    {"torn between two", torn_between, 1 << 5, 0, 0, 0, 0, false},
    {"the header", header, 0, 0, 1, 0, 0, false},
    {"the file's magic", magic_of_the_file, 0, 0, 1, 0, 0, false},
    {"the header and a head", header_and_2, 1 << 2, 0, 2, 0, 0, false},
    {"the header and the first head", header_and_0, 1 << 0, 0, 1, 0, 0, false},
    {"zero length", zero_length, 0x3f, 0, 1, 0, 0, false},
    {"torn in the header", only_part_of_the_header, 0x3f, 0, 1, 0, 0, false},
    {"nothing but a header", only_the_header, 0x3f, 0, 0, 0, 0, false},
    {"zeros after the end", zeros_at_the_end, 0, 0, 1, 0, 0, false},
    {"all zeros", all_zeros, 0x3f, 0, 0, 1, 0, true},
    {"something else", something_else, 0x3f, 0, 0, 1, 0, true},
    {"of a newer version", newer_version, 0x3f, 0, 0, 0, 1, true},
    {"a byte too many", moved_by_one, 0, 0, 1, 0, 0, false},
    {"bytes between two", more_before_2, 0, 0, 1, 0, 0, false},
    {"bytes too many in a profile", more_in_2, 1 << 2, 1, 2, 0, 0, false},
    {"bytes missing in a profile", less_in_2, 1 << 2, 1, 1, 0, 0, false},
    {"bytes missing in two", less_from_2_to_3, 3 << 2, 1, 2, 0, 0, false},
    {"a record missing", without_2, 1 << 2, 0, 0, 0, 0, false},
    {"bytes missing and too many", less_in_4_and_more_in_5, 3 << 4, 2, 3, 0, 0, false},
    {"bytes too many in the header", more_in_the_header, 0, 0, 1, 0, 0, false},
    {"bytes missing in the header", less_in_the_header, 0, 0, 1, 0, 0, false},
    {"records twice", some_twice, 0, 0, 1, 0, 0, false},
    {"a size of 2^32-1", endless_record, 1 << 2, 0, 1, 0, 0, false},
    {"a size beyond the file", long_record, 1 << 2, 0, 1, 0, 0, false},
    {"a record of another file", another_salt, 1 << 2, 0, 1, 0, 0, false},
    {"labels that are none", senseless_labels, 1 << 2, 1, 1, 0, 0, false},
};

static void fill(struct rig *r)
{
    assert_true(rig_open_all(r, NULL));
    for (unsigned i = 0; i < PROFILES; i++) {
        rig_put(r, i, SIZE);
    }
    rig_close_all(r);
}

/* The file is where it was, with the bytes that it had. */
static bool is_as_it_was(const struct file *f)
{
    struct stat st;
    uint8_t got[1 << 14];
    if (stat(f->path, &st) != 0) {
        return false;
    }
    FILE *in = fopen(f->path, "rbe");
    assert_non_null(in);
    size_t n = fread(got, 1, sizeof(got), in);
    fclose(in);
    return n == f->size && memcmp(got, f->data, n) == 0;
}

static void check_counts(struct rig *r, const struct damage *d)
{
    struct spool_counts c = spool_status(r->s).counts;
    struct write_ledger l = send_queue_status(r->e).ledger;
    unsigned lost = (unsigned)__builtin_popcount(d->lost);
    CHECK_INT(c.damaged, d->places, d->name);
    CHECK_INT(c.damaged_bytes > 0, d->places > 0 && c.damaged_bytes > 0, d->name);
    CHECK_INT(c.skipped[SPOOL_SKIP_FOREIGN], d->foreign, d->name);
    CHECK_INT(c.skipped[SPOOL_SKIP_NEWER], d->newer, d->name);
    CHECK_INT(l.replayed, PROFILES - lost + d->dropped, d->name);
    CHECK_INT(l.dropped[DROP_DAMAGED], d->dropped, d->name);
    CHECK_INT(l.queued + l.in_flight, 0, d->name);
}

TEST(every_damage)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        const struct damage *d = &damages[i];
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();
        struct rig r;
        struct file f;
        unsigned seen[PROFILES + 1] = {0};
        rig_init(&r, dir);
        fill(&r);
        read_file(&f, dir, "0000000000000001.seg");
        find_records(&f);
        d->apply(&f);
        write_file(&f);
        assert_true(rig_open_all(&r, NULL));
        if (d->places > 0) {
            testing_log_expect(r.log, "damaged places of the spool");
        }
        if (d->foreign + d->newer > 0) {
            testing_log_expect(r.log, "files in the spool are ignored");
        }
        rig_settle(&r);
        if (d->newer > 0) {
            CHECK_CONTAINS(testing_log_text(r.log), "newer=1 foreign=0", d->name);
            CHECK_CONTAINS(testing_log_text(r.log), "segment=0000000000000001.seg", d->name);
        }
        /* A new one, to a new file, is not touched by any of it. */
        rig_put(&r, PROFILES, SIZE);
        rig_pass(&r, 500);
        (void)rig_send(&r, 99, seen, PROFILES + 1);
        rig_settle(&r);
        for (unsigned n = 0; n <= PROFILES; n++) {
            CHECK_INT(seen[n], (d->lost >> n & 1) ? 0 : 1, d->name);
        }
        struct write_ledger l = send_queue_status(r.e).ledger;
        CHECK_INT(l.accepted, 1, d->name);
        check_counts(&r, d);
        rig_done(&r);
        CHECK_INT(is_as_it_was(&f), d->stays, d->name);
        free(f.data);
    }
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* Damage there may send a profile twice, never lose one. */
TEST(damaged_acknowledgements)
{
    static const struct {
        const char *name;
        int kind;
        unsigned again; /* profiles that come a second time */
        unsigned counted;
    } cases[] = {
        {"intact", 0, 0, 0},
        {"a flipped bit", 1, 1, 1},
        {"torn", 2, 1, 0},
        {"zero length", 3, 3, 0},
        {"removed", 4, 3, 0},
        {"its header", 5, 0, 0},
        {"garbage at the end", 6, 0, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED_DIRECTORY char *dir = testing_mkdtemp();
        struct rig r;
        struct file f;
        unsigned seen[PROFILES] = {0};
        rig_init(&r, dir);
        fill(&r);
        assert_true(rig_open_all(&r, NULL));
        rig_settle(&r);
        CHECK_INT(rig_send(&r, 3, seen, PROFILES), 3, "");
        rig_close_all(&r);
        read_file(&f, dir, "0000000000000001.ack");
        CHECK_INT(f.size, SPOOL_ACK_HEADER_SIZE + 3 * SPOOL_ACK_SIZE, "");
        if (cases[i].kind == 1) {
            flip(&f, SPOOL_ACK_HEADER_SIZE + SPOOL_ACK_SIZE);
        }
        f.size -= cases[i].kind == 2;
        f.size = cases[i].kind == 3 ? 0 : f.size;
        if (cases[i].kind == 5) {
            flip(&f, 3);
        }
        if (cases[i].kind == 6) {
            memset(f.data + f.size, 0x55, 17);
            f.size += 17;
        }
        write_file(&f);
        if (cases[i].kind == 4) {
            assert_int_equal(unlink(f.path), 0);
        }
        assert_true(rig_open_all(&r, NULL));
        rig_settle(&r);
        CHECK_INT(send_queue_status(r.e).ledger.replayed, 3 + cases[i].again, cases[i].name);
        CHECK_INT(spool_status(r.s).counts.lost_acks, cases[i].counted, cases[i].name);
        /* Profiles that are acknowledged now are known to the next process, damaged file or not. */
        CHECK_INT(rig_send(&r, 1, seen, PROFILES), 1, "");
        rig_close_all(&r);
        assert_true(rig_open_all(&r, NULL));
        rig_settle(&r);
        CHECK_INT(send_queue_status(r.e).ledger.replayed, 2 + cases[i].again, cases[i].name);
        (void)rig_send(&r, 99, seen, PROFILES);
        for (unsigned n = 0; n < PROFILES; n++) {
            assert_true(seen[n] >= 1);
        }
        rig_done(&r);
        free(f.data);
    }
}

/* Records that are not where they were written are acknowledged like others, before and after. */
TEST_RIG(moved_records)
{
    struct file f;
    unsigned seen[PROFILES] = {0};
    fill(r);
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    CHECK_INT(rig_send(r, 3, seen, PROFILES), 3, "");
    rig_close_all(r);
    read_file(&f, r->dir, "0000000000000001.seg");
    find_records(&f);
    insert(&f, f.starts[1], 10);
    insert(&f, f.starts[4] + 10, 1000);
    write_file(&f);
    for (unsigned left = 3; left > 0; left--) {
        assert_true(rig_open_all(r, NULL));
        testing_log_expect(r->log, "damaged places of the spool");
        rig_settle(r);
        CHECK_INT(send_queue_status(r->e).ledger.replayed, left, "");
        CHECK_INT(rig_send(r, 1, seen, PROFILES), 1, "");
        rig_close_all(r);
    }
    for (unsigned n = 0; n < PROFILES; n++) {
        CHECK_INT(seen[n], 1, "");
    }
    assert_int_equal(access(f.path, F_OK), -1);
    rig_done(r);
    free(f.data);
}

/* ---- files that are not ours ----------------------------------------------------------------- */

TEST_RIG(foreign_files)
{
    struct stat st;
    char path[4096];
    unsigned seen[PROFILES] = {0};
    fill(r);
    (void)snprintf(path, sizeof(path), "%s/main", r->dir);
    testing_write_file(path, "notes.txt", "mine");
    testing_write_file(path, "0000000000000001.seg.bak", "mine");
    testing_write_file(path, "00000000000000aa.ack", "not an acknowledgement");
    testing_write_file(r->dir, "secret", "PPSPOOL\n");
    int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("../secret", at, "0000000000000007.seg"), 0);
    assert_int_equal(mkfifoat(at, "0000000000000008.seg", 0600), 0);
    assert_int_equal(mkdirat(at, "0000000000000009.seg", 0700), 0);
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "files in the spool are ignored");
    rig_settle(r);
    CHECK_INT(spool_status(r->s).counts.skipped[SPOOL_SKIP_FOREIGN], 6, "");
    CHECK_INT(rig_send(r, 99, seen, PROFILES), PROFILES, "");
    rig_put(r, 1, SIZE);
    rig_pass(r, 500);
    CHECK_INT(spool_status(r->s).stored, 1, "");
    rig_close_all(r);
    static const char *const names[] = {"notes.txt",
                                        "0000000000000001.seg.bak",
                                        "00000000000000aa.ack",
                                        "0000000000000007.seg",
                                        "0000000000000008.seg",
                                        "0000000000000009.seg",
                                        "00000000000000ab.seg"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK_INT(fstatat(at, names[i], &st, AT_SYMLINK_NOFOLLOW), 0, names[i]);
    }
    close(at);
}

/* Killed between removing a segment and its acknowledgements. */
TEST_RIG(lone_acknowledgements)
{
    struct file f;
    fill(r);
    read_file(&f, r->dir, "0000000000000001.seg");
    (void)snprintf(f.path, sizeof(f.path), "%s/main/0000000000000005.ack", r->dir);
    spool_ack_header_encode(5, f.data);
    f.size = SPOOL_ACK_HEADER_SIZE;
    write_file(&f);
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    assert_int_equal(access(f.path, F_OK), -1);
    CHECK_INT(spool_status(r->s).counts.skipped[SPOOL_SKIP_FOREIGN], 0, "");
    rig_done(r);
    free(f.data);
}

/* A segment that cannot be read is left to the next process; the next ones are read. */
TEST_RIG(unreadable_segment)
{
    unsigned seen[PROFILES] = {0};
    fill(r);
    /* Six calls open the directory and list it; the seventh opens the segment to read it. */
    r->faults.calls = 0;
    r->faults.for_ever = true;
    r->faults.fail_at = 7;
    assert_true(rig_open_all(r, NULL));
    testing_log_expect(r->log, "spool cannot be read");
    testing_log_expect(r->log, "damaged places of the spool");
    for (int i = 0; i < 20; i++) {
        rig_pass(r, 1000);
    }
    r->faults.fail_at = 0;
    /* The log is limited to a few lines a minute. */
    rig_pass(r, 60000);
    (void)rig_send(r, 99, seen, PROFILES);
    rig_close_all(r);
    assert_true(rig_open_all(r, NULL));
    rig_settle(r);
    (void)rig_send(r, 99, seen, PROFILES);
    for (unsigned n = 0; n < PROFILES; n++) {
        CHECK_INT(seen[n], 1, "in the end each once");
    }
}
