/* Files that are copies of other files: their profiles would count twice.
 *
 * A put never stores a profile in two files of the same time (put.c). So if the first profiles of
 * one file are all the profiles of another one, that other file is a copy, made now or at an
 * earlier time. */
#include <stdio.h>

#include "store/private.h"

struct row {
    int64_t time_ns;
    int64_t hash;
    struct sv set; /* the blob of the labels; valid until the next row */
};

/* Reads the next profile. Returns 1, 0 at the end, or -1 on failure. */
static int next_row(struct reader_conn *c, sqlite3_stmt *st, struct row *ret, struct err *err)
{
    int row = db_step(&c->db, st, err);
    if (row == 1) {
        *ret =
            (struct row){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1), db_blob(st, 2)};
    }
    return row;
}

static bool is_equal(const struct row *a, const struct row *b)
{
    return a->time_ns == b->time_ns && a->hash == b->hash && sv_eq(a->set, b->set);
}

/* Returns true if the profiles of `one` are the first profiles of `of`. */
static bool is_beginning(struct reader_conn *of, struct reader_conn *one, struct err *of_err,
                         struct err *one_err)
{
    sqlite3_stmt *x = db_statement(&one->db, SQL_ALL_PROFILES, one_err);
    sqlite3_stmt *y = db_statement(&of->db, SQL_ALL_PROFILES, of_err);
    struct row a;
    struct row b;
    int more = 1;
    bool equal = x != NULL && y != NULL;
    while (equal && (more = next_row(one, x, &a, one_err)) == 1) {
        equal = next_row(of, y, &b, of_err) == 1 && is_equal(&a, &b);
    }
    sqlite3_reset(x);
    sqlite3_reset(y);
    return equal && more == 0;
}

static bool is_copy(struct store *s, struct store_file *of, struct store_file *one)
{
    struct err of_err = ERR_INIT;
    struct err one_err = ERR_INIT;
    bool skip;
    bool copy = false;
    struct reader_conn *x = store_reader_take(s, of, &skip, &of_err);
    struct reader_conn *y = x != NULL ? store_reader_take(s, one, &skip, &one_err) : NULL;
    if (y != NULL) {
        copy = is_beginning(x, y, &of_err, &one_err);
        store_reader_give(s, y, &one_err);
    }
    if (x != NULL) {
        store_reader_give(s, x, &of_err);
    }
    return copy;
}

static bool may_be_copy(const struct store_file *of, const struct store_file *one)
{
    return one->fault == DB_FINE && of->fault == DB_FINE && one->profiles > 0 &&
           one->profiles <= of->profiles && one->oldest_ns >= of->oldest_ns &&
           one->newest_ns <= of->newest_ns;
}

static void compare(struct store *s, struct store_file *of, struct store_file *one)
{
    if (may_be_copy(of, one) && is_copy(s, of, one)) {
        char why[STORE_NAME_SIZE + 64];
        (void)snprintf(why, sizeof(why), "all of its profiles are in %s", of->text);
        store_file_fault(s, one, DB_COPY, why);
    }
}

void store_find_copies(struct store *s)
{
    /* Files are in order of their starts. If two files have the same profiles, the later one counts
     * as the copy. */
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        for (size_t j = i + 1;
             j < s->n_files && store_file_from_ns(s->files[j]) <= store_file_until_ns(f); j++) {
            compare(s, f, s->files[j]);
            compare(s, s->files[j], f);
        }
    }
}
