/* Any text as values of Alloy's Helm chart: the report has whole lines of text, and the values that
 * are written are YAML that reads back. */
#include <string.h>

#include "cli/helm/helm.h"
#include "config/yaml.h"
#include "tests/fuzz/fuzz.h"

static void read_back(const struct helm_result *r)
{
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct err err = ERR_INIT;
    struct buf out;
    struct arena *arena = arena_new(UINT64_C(256) * 1024 * 1024);
    REQUIRE(arena != NULL);
    buf_init(&out, (size_t)64 * 1024 * 1024);
    if (helm_write(r, "values.yaml", &out) && out.len < 100000) {
        REQUIRE(yaml_parse((struct sv){out.data, out.len}, arena, &root, &place, &err) ||
                err.kind == ERR_LIMIT);
    }
    buf_done(&out);
    arena_free(arena);
}

FUZZ(in)
{
    struct helm_result r;
    struct err err = ERR_INIT;
    if (helm_convert("values.yaml", in, &r, &err)) {
        REQUIRE(r.report.len == 0 || r.report.data[r.report.len - 1] == '\n');
        read_back(&r);
    } else {
        REQUIRE(strncmp(err.msg, "values.yaml", 11) == 0 || err.kind == ERR_MEMORY);
    }
    helm_done(&r);
}
