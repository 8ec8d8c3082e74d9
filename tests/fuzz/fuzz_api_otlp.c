/* OTLP requests: the first byte chooses JSON or protobuf. Every profile that is made is a good one,
 * its labels have different names, and each message is answered for once. */
#include <string.h>

#include "api/receive/otlp_http.h"
#include "pprof/check.h"
#include "pprof/index.h"
#include "pprof/otlp/otlp.h"
#include "tests/fuzz/fuzz.h"

static void check_profile(const struct otlp_profile *p, struct scratch *scratch)
{
    struct err err = ERR_INIT;
    struct pprof_summary summary;
    struct pprof_index index;
    scratch_reset(scratch);
    REQUIRE(pprof_check(p->pprof, &summary, &err));
    REQUIRE(pprof_index(&index, scratch, p->pprof, &summary, 1, &err));
    /* The profile is not checked again where it is received: what it says about itself is true. */
    REQUIRE(memcmp(summary.n, p->summary.n, sizeof(summary.n[0]) * (PROFILE_STRING + 1)) == 0);
    REQUIRE(summary.time_ns == p->summary.time_ns && summary.period == p->summary.period);
    REQUIRE(summary.duration_ns == p->summary.duration_ns);
    pprof_summary_name_types(p->pprof, &summary);
    for (size_t i = 0; i < summary.n[PROFILE_SAMPLE_TYPE]; i++) {
        REQUIRE(sv_eq(summary.types[i].type_text, p->summary.types[i].type_text));
    }
    REQUIRE(p->n_labels > 0 && p->n_labels <= OTLP_LABELS_MAX + 4);
    for (size_t i = 0; i < p->n_labels; i++) {
        REQUIRE(p->labels[i].name.n > 0 && p->labels[i].value.n > 0);
        for (size_t k = 0; k < i; k++) {
            REQUIRE(!sv_eq(p->labels[i].name, p->labels[k].name));
        }
    }
}

static void read_message(struct sv message)
{
    static const struct otlp_limits limits = {.profile_max = 1 << 18, .total_max = 1 << 20};
    struct err err = ERR_INIT;
    struct otlp_reader *r = otlp_reader_new(message, &limits, &err);
    struct scratch *scratch = scratch_new();
    size_t messages = 0;
    size_t group = 0;
    enum otlp_step step = OTLP_STEP_END;
    REQUIRE((r == NULL) == (err.kind != ERR_NONE));
    do {
        struct otlp_profile p;
        struct err one = ERR_INIT;
        step = r == NULL ? OTLP_STEP_END : otlp_reader_next(r, &p, &one);
        REQUIRE((step == OTLP_STEP_BAD) == (one.kind != ERR_NONE));
        if (step != OTLP_STEP_END) {
            messages += p.group != group ? p.n_messages : 0;
            group = p.group;
        }
        if (step == OTLP_STEP_PROFILE) {
            check_profile(&p, scratch);
        }
    } while (step != OTLP_STEP_END);
    REQUIRE(r == NULL || messages == otlp_reader_facts(r)->messages);
    scratch_free(scratch);
    otlp_reader_free(r);
}

FUZZ_BY(choice, body)
{
    struct err err = ERR_INIT;
    if (choice != 'j') {
        read_message(body);
        return;
    }
    struct arena *arena = arena_new((size_t)16 << 20);
    struct sv message;
    REQUIRE(arena != NULL);
    if (otlp_json_to_message(body, arena, &message, &err)) {
        read_message(message);
    } else {
        REQUIRE(err.kind != ERR_NONE);
    }
    arena_free(arena);
}
