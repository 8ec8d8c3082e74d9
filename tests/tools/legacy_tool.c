/* Converts an old profile by hand, for tests: legacy-tool IN OUT. OUT is gzip. Exit status 1 when
 * the profile is bad, with the reason on stderr. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "model/reason.h"
#include "pprof/legacy/legacy.h"

#define FILE_MAX ((size_t)256 * 1024 * 1024)
#define SEED 42

static bool read_file(const char *path, struct buf *out)
{
    char chunk[65536];
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        perror(path);
        return false;
    }
    buf_init(out, FILE_MAX);
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        buf_append(out, chunk, n);
    }
    (void)fclose(f);
    return buf_ok(out);
}

static bool write_file(const char *path, const struct legacy_output *out)
{
    FILE *f = fopen(path, "wbe");
    bool ok = f != NULL && fwrite(out->data, out->size, 1, f) == 1;
    ok = f != NULL && fclose(f) == 0 && ok;
    if (!ok) {
        perror(path);
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct buf body;
    struct err err = ERR_INIT;
    struct legacy_output out;
    if (argc != 3) {
        (void)fprintf(stderr, "usage: legacy-tool IN OUT\n");
        return 2;
    }
    if (!read_file(argv[1], &body)) {
        return 1;
    }
    struct legacy_input in = {
        .body = {body.data, body.len}, .seed = SEED, .scratch = scratch_new()};
    enum legacy_result r = legacy_convert(&in, &out, &err);
    scratch_free(in.scratch);
    if (r != LEGACY_MADE) {
        (void)fprintf(stderr, "%s: %s\n", reason_name(reason_of_legacy(r)), err.msg);
    }
    bool ok = r == LEGACY_MADE && write_file(argv[2], &out);
    free(out.data);
    buf_done(&body);
    return ok ? 0 : 1;
}
