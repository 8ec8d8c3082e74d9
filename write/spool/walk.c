#include "write/spool/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/spool/crc32c.h"

/* The window of the search after damage. */
#define WINDOW ((size_t)64 * 1024)
/* A file of acknowledgements is read up to this size: a segment cannot have records for more of
 * them. */
#define ACKS_BYTES_MAX (UINT64_C(64) * 1024 * 1024)

/* ---- reading ----------------------------------------------------------------------------------
 */

ssize_t spool_read_full(int fd, void *p, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = spool_io_read(fd, (char *)p + done, n - done, offset + done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* ---- numbers -----------------------------------------------------------------------------------
 */

/* The array grows in powers of two. */
bool spool_numbers_add(struct spool_numbers *numbers, uint64_t number)
{
    size_t n = numbers->n;
    if (n == 0 || (n >= 64 && (n & (n - 1)) == 0)) {
        uint64_t *more = realloc(numbers->at, (n < 64 ? 64 : n * 2) * sizeof(number));
        if (more == NULL) {
            return false;
        }
        numbers->at = more;
    }
    numbers->at[numbers->n++] = number;
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

void spool_numbers_sort(struct spool_numbers *numbers)
{
    /* Without any, the array is NULL, which qsort(3) does not want. */
    if (numbers->n > 0) {
        qsort(numbers->at, numbers->n, sizeof(numbers->at[0]), compare_numbers);
    }
}

bool spool_numbers_have(const struct spool_numbers *numbers, uint64_t number)
{
    return numbers->n > 0 && bsearch(&number, numbers->at, numbers->n, sizeof(numbers->at[0]),
                                     compare_numbers) != NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns true for a file that was cut off within its header: it has never held a record. */
static bool is_stump(const uint8_t *p, size_t n)
{
    struct spool_header none = {.segment = 0};
    uint8_t whole[SPOOL_HEADER_SIZE];
    spool_header_encode(&none, whole);
    return n < SPOOL_HEADER_SIZE && memcmp(p, whole, n < 8 ? n : 8) == 0;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* Returns 1 if an intact head with room for its body is at this place, 0 if not, -1 on failure. */
static int head_at(const struct spool_walk *w, uint64_t offset, struct spool_head *ret)
{
    uint8_t bytes[SPOOL_HEAD_SIZE];
    if (w->size - offset < sizeof(bytes)) {
        return 0;
    }
    ssize_t n = spool_read_full(w->fd, bytes, sizeof(bytes), offset);
    if (n < 0) {
        return -1;
    }
    return n == (ssize_t)sizeof(bytes) && spool_head_parse(bytes, ret) &&
           spool_record_size(ret) <= w->size - offset;
}

/* Does the same for a record that has the salt of this segment and may follow the records before
 * it. */
static int record_at(const struct spool_walk *w, uint64_t offset, struct spool_head *ret)
{
    int is = head_at(w, offset, ret);
    return is > 0
               ? ret->salt == w->salt && ret->offset >= w->next_place && ret->offset <= UINT32_MAX
               : is;
}

/* A search for a head, window by window. any: the head may have any salt. */
struct search {
    const struct spool_walk *walk;
    uint8_t *window;
    bool any;
};

/* Searches one window. Returns 1 if there is a record, 0 if the search has to continue, -1 on
 * failure. *ret_at is the place of the record, or the place where to continue. */
static int search_window(const struct search *s, uint64_t from, uint64_t *ret_at)
{
    const struct spool_walk *w = s->walk;
    ssize_t n = spool_read_full(w->fd, s->window, WINDOW, from);
    if (n < 0) {
        return -1;
    }
    size_t at = 0;
    struct spool_head head;
    const uint64_t *salt = s->any ? NULL : &w->salt;
    while ((at += spool_head_search(s->window + at, (size_t)n - at, salt)) < (size_t)n) {
        *ret_at = from + at;
        int is = s->any ? head_at(w, *ret_at, &head) : record_at(w, *ret_at, &head);
        if (is != 0) {
            return is;
        }
        at++;
    }
    /* A beginning may lie across the end of the window. */
    bool last = (size_t)n < WINDOW;
    *ret_at = last ? w->size : from + (uint64_t)n - (SPOOL_BEGINNING_SIZE - 1);
    return last ? 1 : 0;
}

/* Finds the next record from `from` on, or the end of the file. False on failure. */
static bool search(const struct spool_walk *w, bool any, uint64_t from, uint64_t *ret_at)
{
    const struct search s = {.walk = w, .window = malloc(WINDOW), .any = any};
    int found = s.window != NULL ? 0 : -1;
    while (found == 0 && from < w->size) {
        found = search_window(&s, from, ret_at);
        from = *ret_at;
    }
    if (found == 0) {
        *ret_at = w->size;
    }
    free(s.window);
    return found >= 0;
}

/* Replaces a damaged header by the first intact record, which shows that the file is a segment, and
 * has the salt of the others. */
static enum spool_walk_open adopt_first_record(struct spool_walk *w)
{
    struct spool_head head;
    if (!search(w, true, 0, &w->offset)) {
        return SPOOL_WALK_FAILED;
    }
    int is = w->offset < w->size ? head_at(w, w->offset, &head) : 0;
    if (is <= 0) {
        return is < 0 ? SPOOL_WALK_FAILED : SPOOL_WALK_FOREIGN;
    }
    w->salt = head.salt;
    w->header_damaged = true;
    return SPOOL_WALK_OPEN;
}

static enum spool_walk_open judge_header(struct spool_walk *w)
{
    uint8_t start[SPOOL_ANY_HEADER_MAX];
    ssize_t n = spool_read_full(w->fd, start, sizeof(start), 0);
    if (n < 0) {
        return SPOOL_WALK_FAILED;
    }
    switch (spool_header_parse(start, (size_t)n, &w->header)) {
    case SPOOL_HEADER_OK:
        w->salt = w->header.salt;
        return SPOOL_WALK_OPEN;
    case SPOOL_HEADER_NEWER:
        return SPOOL_WALK_NEWER;
    case SPOOL_HEADER_BAD:
    default:
        if (is_stump(start, (size_t)n)) {
            return SPOOL_WALK_EMPTY;
        }
        return adopt_first_record(w);
    }
}

enum spool_walk_open spool_walk_open(struct spool_walk *w, int dir, uint64_t segment)
{
    char name[SPOOL_NAME_SIZE];
    spool_name_format(name, segment, false);
    *w = (struct spool_walk){.offset = SPOOL_HEADER_SIZE};
    w->fd = spool_io_open(dir, name, SPOOL_OPEN_READ, &w->size);
    if (w->fd < 0) {
        return SPOOL_WALK_FAILED;
    }
    enum spool_walk_open kind = judge_header(w);
    if (kind != SPOOL_WALK_OPEN) {
        int failed = errno;
        spool_walk_close(w);
        errno = failed;
    }
    return kind;
}

void spool_walk_close(struct spool_walk *w)
{
    if (w->fd >= 0) {
        close(w->fd);
    }
    w->fd = -1;
}

/* ---- walking --------------------------------------------------------------------------------- */

static enum spool_step take_record(struct spool_walk *w, struct spool_found *ret)
{
    ret->offset = w->offset;
    ret->size = spool_record_size(&ret->head);
    w->body = w->offset + SPOOL_HEAD_SIZE;
    w->next_place = ret->head.offset + ret->size;
    w->offset += ret->size;
    return SPOOL_STEP_RECORD;
}

enum spool_step spool_walk_next(struct spool_walk *w, struct spool_found *ret)
{
    if (w->offset >= w->size) {
        return SPOOL_STEP_END;
    }
    int is = record_at(w, w->offset, &ret->head);
    if (is > 0) {
        return take_record(w, ret);
    }
    /* If bytes were cut out of the record before, the next one begins within it. */
    uint64_t next = w->size;
    if (is < 0 || !search(w, false, w->body != 0 ? w->body : w->offset + 1, &next)) {
        return SPOOL_STEP_FAILED;
    }
    if (next < w->offset) {
        w->offset = next;
        is = record_at(w, next, &ret->head);
        return is > 0 ? take_record(w, ret) : SPOOL_STEP_FAILED;
    }
    *ret = (struct spool_found){.offset = w->offset, .size = next - w->offset};
    w->offset = next;
    w->body = 0;
    return SPOOL_STEP_DAMAGE;
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

static bool read_acks(int fd, uint64_t salt, size_t size, struct spool_numbers *ret,
                      size_t *ret_bad)
{
    uint8_t chunk[512 * SPOOL_ACK_SIZE];
    for (size_t at = 0; at < size; at += sizeof(chunk)) {
        size_t want = size - at < sizeof(chunk) ? size - at : sizeof(chunk);
        ssize_t n = spool_read_full(fd, chunk, want, SPOOL_ACK_HEADER_SIZE + at);
        if (n < 0) {
            return false;
        }
        for (size_t i = 0; i + SPOOL_ACK_SIZE <= (size_t)n; i += SPOOL_ACK_SIZE) {
            uint32_t offset;
            if (!spool_ack_parse(chunk + i, salt, &offset)) {
                (*ret_bad)++;
            } else if (!spool_numbers_add(ret, offset)) {
                return false;
            }
        }
    }
    return true;
}

bool spool_acks_read(int dir, uint64_t segment, uint64_t salt, struct spool_numbers *ret,
                     uint64_t *ret_size, size_t *ret_bad)
{
    char name[SPOOL_NAME_SIZE];
    uint64_t size = 0;
    *ret = (struct spool_numbers){.n = 0};
    *ret_bad = 0;
    *ret_size = 0;
    spool_name_format(name, segment, true);
    int fd = spool_io_open(dir, name, SPOOL_OPEN_READ, &size);
    if (fd < 0) {
        return errno == ENOENT;
    }
    size = size < ACKS_BYTES_MAX ? size : ACKS_BYTES_MAX;
    size_t n = size < SPOOL_ACK_HEADER_SIZE ? 0 : (size - SPOOL_ACK_HEADER_SIZE) / SPOOL_ACK_SIZE;
    bool ok = read_acks(fd, salt, n * SPOOL_ACK_SIZE, ret, ret_bad);
    int failed = errno;
    close(fd);
    if (!ok) {
        free(ret->at);
        *ret = (struct spool_numbers){.n = 0};
        errno = failed;
        return false;
    }
    spool_numbers_sort(ret);
    *ret_size = SPOOL_ACK_HEADER_SIZE + n * SPOOL_ACK_SIZE;
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

enum spool_body spool_body_read(int fd, uint64_t offset, const struct spool_head *head,
                                uint8_t **ret_labels, char **ret_data)
{
    uint8_t *labels = malloc((size_t)head->labels_size + 1);
    char *data = malloc((size_t)head->data_size + 1);
    enum spool_body result = labels != NULL && data != NULL ? SPOOL_BODY_OK : SPOOL_BODY_MEMORY;
    if (result == SPOOL_BODY_OK) {
        uint64_t at = offset + SPOOL_HEAD_SIZE;
        ssize_t a = spool_read_full(fd, labels, head->labels_size, at);
        ssize_t b = a < 0 ? -1 : spool_read_full(fd, data, head->data_size, at + head->labels_size);
        uint32_t crc = a < 0 || b < 0 ? 0 : crc32c(crc32c(0, labels, (size_t)a), data, (size_t)b);
        if (a < 0 || b < 0) {
            result = SPOOL_BODY_FAILED;
        } else if ((uint64_t)a + (uint64_t)b + SPOOL_HEAD_SIZE != spool_record_size(head) ||
                   crc != head->body_crc) {
            result = SPOOL_BODY_DAMAGED;
        }
    }
    if (result != SPOOL_BODY_OK) {
        int failed = errno;
        free(labels);
        free(data);
        errno = failed;
        return result;
    }
    *ret_labels = labels;
    *ret_data = data;
    return SPOOL_BODY_OK;
}
