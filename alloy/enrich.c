/* Converts pyroscope.enrich to the key `receive.enrich`. */
#include "alloy/profiles.h"

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])

static const struct alloy_attr enrich_attrs[] = {
    {.name = "targets", .type = ATTR_VALUE, .required = true},
    {.name = "target_match_label",
     .type = ATTR_STRING,
     .key = "target_match_label",
     .required = true,
     .not_null = true},
    {.name = "profiles_match_label", .type = ATTR_STRING, .key = "profiles_match_label"},
    {.name = "labels_to_copy", .type = ATTR_STRINGS, .key = "labels_to_copy"},
    {.name = "forward_to", .type = ATTR_VALUE, .required = true},
};
static const struct alloy_schema enrich = {ROWS(enrich_attrs)};

const struct alloy_value *alloy_pyroscope_enrich(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    const struct alloy_stmt *stmt;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct alloy_enrich *e = arena_alloc(l->arena, sizeof(*e));
    struct yaml_node *settings = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (e == NULL || settings == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    e->settings = settings;
    n->data = e;
    alloy_read_block(&r, &enrich, n->stmt, n->path, settings, &given);
    const struct alloy_value *targets = alloy_given(&given, "targets", &stmt);
    if (targets != NULL && targets->kind != VALUE_UNKNOWN) {
        (void)alloy_read_targets(l, stmt->value->place,
                                 alloy_path(l->arena, n->path, SV("targets")), targets,
                                 &e->targets);
    }
    const struct alloy_value *forward = alloy_given(&given, "forward_to", &stmt);
    if (forward != NULL && forward->kind != VALUE_UNKNOWN) {
        (void)alloy_read_receivers(l, stmt->value->place,
                                   alloy_path(l->arena, n->path, SV("forward_to")), forward,
                                   &e->receivers);
    }
    return alloy_receiver_of(l, n);
}
