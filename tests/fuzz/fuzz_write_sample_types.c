/* The part sample_type_config of any profile is nothing, or a JSON object that has each sample type
 * that is said to be stored. The first byte chooses the `__name__`.
 */
#include <jansson.h>

#include "pprof/summary.h"
#include "tests/fuzz/fuzz.h"
#include "write/protocols/ingest.h"
#include "write/protocols/sample_types.h"

static void check(struct sv json, const struct pprof_value_type *types, size_t n, size_t stored)
{
    json_t *root = json_loadb(json.p, json.n, JSON_ALLOW_NUL, NULL);
    REQUIRE(json_is_object(root));
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_object_getn(root, types[i].type_text.p, types[i].type_text.n);
        REQUIRE(entry == NULL || json_is_object(entry));
        found += entry != NULL;
    }
    REQUIRE(found >= stored);
    json_decref(root);
}

FUZZ_BY(choice, body)
{
    static const char *const names[] = {"process_cpu", "memory", "mutex", "block",
                                        "goroutine",   "fgprof", "wall",  ""};
    struct sv name = sv_from(names[choice % (sizeof(names) / sizeof(names[0]))]);
    struct scratch *scratch = scratch_new();
    struct pprof_summary s;
    struct buf out;
    buf_init(&out, INGEST_CONFIG_MAX);
    if (pprof_summary_read(scratch, body, (size_t)1 << 20, &s, NULL)) {
        size_t n = s.n[PROFILE_SAMPLE_TYPE];
        n = n < SUMMARY_TYPES_MAX ? n : SUMMARY_TYPES_MAX;
        size_t stored = sample_types_config(name, s.types, n, &out);
        REQUIRE(stored <= n && buf_ok(&out));
        if (out.len > 0) {
            check((struct sv){.p = out.data, .n = out.len}, s.types, n, stored);
        }
    }
    buf_done(&out);
    scratch_free(scratch);
}
