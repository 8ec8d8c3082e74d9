/* Converts an old profile by hand, for tests: legacy-tool IN OUT. OUT is gzip. Exit status 1 when
 * the profile is bad, with the reason on stderr. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "model/reason.h"
#include "pprof/legacy/legacy.h"
#include "tests/tools/read_file.h"

#define SEED 42

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
