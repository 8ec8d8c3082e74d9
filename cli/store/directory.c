/* The files of a store in a directory, without a store. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/store/private.h"
#include "store/archive/mark.h"
#include "store/check.h"
#include "store/private.h"

static int directory_is_file(const struct dirent *e)
{
    struct store_name name;
    return store_name_parse(sv_from(e->d_name), &name);
}

static int directory_order(const struct dirent **a, const struct dirent **b)
{
    struct store_name x;
    struct store_name y;
    (void)store_name_parse(sv_from((*a)->d_name), &x);
    (void)store_name_parse(sv_from((*b)->d_name), &y);
    return store_name_compare(&x, &y);
}

static bool is_wanted(const char *text, const struct store_args *args)
{
    struct store_name name;
    (void)store_name_parse(sv_from(text), &name);
    int64_t from_ns = name.start_ms * NS_PER_MS;
    int64_t until_ns = from_ns + name.length_ms * NS_PER_MS - 1;
    return from_ns <= args->until_ns && until_ns >= args->from_ns;
}

bool directory_list(const char *directory, const struct store_args *args,
                    struct directory_files *ret, struct err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, directory_is_file, directory_order);
    *ret = (struct directory_files){.paths = n > 0 ? calloc((size_t)n, sizeof(char *)) : NULL};
    bool ok = n >= 0 || err_sys(err, "%s", directory);
    for (int i = 0; i < n; i++) {
        if (ok && ret->paths != NULL && is_wanted(entries[i]->d_name, args)) {
            ok = asprintf(&ret->paths[ret->n], "%s/%s", directory, entries[i]->d_name) > 0;
            ret->n += ok;
        }
        free(entries[i]);
    }
    free((void *)entries);
    return ok && (n <= 0 || ret->paths != NULL || err_memory(err));
}

void directory_done(struct directory_files *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->paths[i]);
    }
    free((void *)d->paths);
    *d = (struct directory_files){.n = 0};
}

/* ---- list and verify ------------------------------------------------------------------------- */

/* Compares a file that was uploaded with the hash that it had then. */
static bool is_unchanged(const char *path, struct err *err)
{
    char mark[ARCHIVE_HASH_DIGITS + 1];
    char hash[ARCHIVE_HASH_DIGITS + 1];
    if (!mark_read(path, mark) || mark[0] == '\0') {
        return true;
    }
    return survey_hash(path, hash, err) &&
           (strcmp(mark, hash) == 0 ||
            err_set(err, ERR_INPUT, "damaged: it has changed since it was uploaded"));
}

static void show(const struct store_args *args, const char *path, bool verify,
                 struct store_sums *sums)
{
    struct check_report report;
    struct err err = ERR_INIT;
    const char *slash = strrchr(path, '/');
    struct store_row row = {.file = path, .has_name = true, .problem = ""};
    (void)store_name_parse(sv_from(slash + 1), &row.name);
    check_file(path, verify, &report);
    bool fine = report.fault == DB_FINE;
    row.has_profiles = fine;
    row.profiles = report.profiles;
    row.bytes = report.bytes;
    row.state = !fine                 ? db_fault_name(report.fault)
                : report.version == 0 ? "empty"
                : report.sealed       ? "fine"
                                      : "open";
    row.problem = report.why;
    if (fine && verify && report.sealed && !is_unchanged(path, &err)) {
        row.state = db_fault_name(DB_DAMAGED);
        row.problem = err.msg;
    }
    lines_add(sums, &row);
    lines_print(args, &row);
}

int store_list_directory(const struct store_args *args, const char *directory, bool verify)
{
    struct directory_files files;
    struct err err = ERR_INIT;
    struct store_sums sums = {.files = 0};
    struct progress progress;
    if (!directory_list(directory, args, &files, &err)) {
        directory_done(&files);
        return cmd_fail(EXIT_INPUT, &err);
    }
    progress_begin(&progress, "checked", args->quiet || !verify, files.n, 0);
    lines_head(args, false);
    for (size_t i = 0; i < files.n; i++) {
        progress_clear(&progress);
        show(args, files.paths[i], verify, &sums);
        progress_set(&progress, i + 1, 0);
    }
    progress_clear(&progress);
    directory_done(&files);
    lines_sums(args, &sums);
    return cmd_flush(verify && sums.bad > 0 ? EXIT_INPUT : EXIT_DONE);
}
