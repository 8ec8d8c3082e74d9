/* A profile that goes out as OTLP, next to one that is good: the request can be read, every index
 * is in range, every text is UTF-8, and each sample type has all samples. */
#include <string.h>

#include "base/utf8.h"
#include "pprof/proto/otlp.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "write/protocols/otlp.h"

#define WORK_MAX ((size_t)1 << 22)

static void check_indices(const uint32_t *at, size_t n, size_t max)
{
    for (size_t i = 0; i < n; i++) {
        REQUIRE(at[i] < max);
    }
}

static void check_tables(const Otlp__Dictionary *d)
{
    REQUIRE(d->n_link_table == 1 && d->string_table[0].len == 0);
    for (size_t i = 0; i < d->n_string_table; i++) {
        REQUIRE(
            utf8_valid((struct sv){(const char *)d->string_table[i].data, d->string_table[i].len}));
    }
    for (size_t i = 0; i < d->n_mapping_table; i++) {
        const Otlp__Mapping *m = d->mapping_table[i];
        REQUIRE(m->filename_strindex < d->n_string_table);
        check_indices(m->attribute_indices, m->n_attribute_indices, d->n_attribute_table);
    }
    for (size_t i = 0; i < d->n_location_table; i++) {
        const Otlp__Location *l = d->location_table[i];
        REQUIRE(l->mapping_index < d->n_mapping_table);
        check_indices(l->attribute_indices, l->n_attribute_indices, d->n_attribute_table);
        for (size_t k = 0; k < l->n_lines; k++) {
            REQUIRE(l->lines[k]->function_index < d->n_function_table);
        }
    }
    for (size_t i = 0; i < d->n_function_table; i++) {
        const Otlp__Function *f = d->function_table[i];
        const uint32_t texts[] = {f->name_strindex, f->system_name_strindex, f->filename_strindex};
        check_indices(texts, 3, d->n_string_table);
    }
    for (size_t i = 0; i < d->n_attribute_table; i++) {
        const Otlp__KeyValueAndUnit *a = d->attribute_table[i];
        REQUIRE(a->key_strindex < d->n_string_table && a->unit_strindex < d->n_string_table);
    }
    for (size_t i = 0; i < d->n_stack_table; i++) {
        const Otlp__Stack *s = d->stack_table[i];
        check_indices(s->location_indices, s->n_location_indices, d->n_location_table);
    }
}

static void check_profile(const Otlp__Profile *p, const Otlp__Dictionary *d, size_t samples)
{
    REQUIRE(p->n_samples == samples && p->profile_id.len == 16);
    REQUIRE(p->sample_type->type_strindex < d->n_string_table);
    check_indices(p->attribute_indices, p->n_attribute_indices, d->n_attribute_table);
    for (size_t i = 0; i < p->n_samples; i++) {
        REQUIRE(p->samples[i]->stack_index < d->n_stack_table && p->samples[i]->n_values == 1);
        check_indices(p->samples[i]->attribute_indices, p->samples[i]->n_attribute_indices,
                      d->n_attribute_table);
    }
}

static bool add(struct otlp_encoder *e, struct labels *l, const void *data, size_t size)
{
    static const struct config_pairs none = {.at = NULL, .n = 0};
    static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;
    static const struct series_rules rules = {.names = SERIES_NAMES_ALL, .unlimited = true};
    struct err err = ERR_INIT;
    struct series s;
    char *copy = malloc(size + 1);
    REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    struct profile *p = profile_new(labels_ref(l), copy, size);
    REQUIRE(p != NULL && series_build(&s, l, &none, &limits, &rules));
    bool ok = otlp_encoder_add(e, &s, p, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    series_done(&s);
    profile_unref(p);
    return ok;
}

static void check_request(const struct otlp_encoder *e, size_t profiles)
{
    struct buf out;
    buf_init(&out, 4 * WORK_MAX);
    REQUIRE(otlp_encoder_write(e, &out, NULL));
    Otlp__ExportRequest *r = otlp__export_request__unpack(NULL, out.len, (const uint8_t *)out.data);
    REQUIRE(r != NULL && r->n_resource_profiles == profiles);
    check_tables(r->dictionary);
    size_t messages = 0;
    for (size_t i = 0; i < profiles; i++) {
        const Otlp__ScopeProfiles *s = r->resource_profiles[i]->scope_profiles[0];
        for (size_t k = 0; k < s->n_profiles; k++) {
            check_profile(s->profiles[k], r->dictionary, s->profiles[0]->n_samples);
        }
        messages += s->n_profiles;
    }
    REQUIRE(messages == otlp_encoder_profiles(e));
    otlp__export_request__free_unpacked(r, NULL);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char good[] = "\x0a\x02\x08\x01\x12\x03\x12\x01\x05\x32\x00\x32\x01x";
    static const struct config_pairs none = {.at = NULL, .n = 0};
    const struct otlp_options o = {.attributes = &none, .work_max = WORK_MAX};
    struct intern *table = intern_new();
    struct labels_builder *b = labels_builder_new(table);
    struct otlp_encoder *e = otlp_encoder_new(&o, NULL);
    REQUIRE(table != NULL && b != NULL && e != NULL);
    labels_builder_set(b, SV("service_name"), SV("fuzz"));
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    REQUIRE(add(e, l, good, sizeof(good) - 1));
    size_t profiles = 1 + add(e, l, data, size);
    profiles += add(e, l, good, sizeof(good) - 1);
    check_request(e, profiles);
    otlp_encoder_free(e);
    labels_unref(l);
    intern_free(table);
    return 0;
}
