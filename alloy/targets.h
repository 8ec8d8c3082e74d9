/* Symbolic lists of targets, which say where targets come from and which rules they pass.
 *
 * A list of targets is a sequence of atoms. An atom is an origin (a discovery, or one literal
 * target) and the chain of the discovery.relabel components that it has passed. In values, an atom
 * is a splice in an array. Atoms and chains are shared and never change; equal ones are the same
 * object, except literal targets.
 */
#ifndef PROFPULL_ALLOY_TARGETS_H
#define PROFPULL_ALLOY_TARGETS_H

#include "alloy/graph.h"

#define ALLOY_LITERALS_MAX 20000

struct alloy_chain_link {
    const struct alloy_chain_link *before; /* the link before; NULL for the first */
    const struct alloy_node *relabel;
    const struct yaml_node *rules; /* the rules of this component, a list */
};

struct alloy_origin {
    const struct alloy_node *node; /* the discovery; NULL: a literal target */
    const char *key;               /* "kubernetes_sd_configs" */
    const struct yaml_node *source;
    bool left_out; /* the discovery is not supported */
    /* For a literal target: the place and the labels. */
    struct config_place place;
    const char *path;
    const struct alloy_value *labels; /* an object of strings */
};

struct alloy_atom {
    const struct alloy_origin *origin;
    const struct alloy_chain_link *chain; /* NULL: no rules */
};

struct alloy_atoms {
    const struct alloy_atom **at;
    size_t n;
    size_t size;
};

/* Reads the value of an attribute `targets` into a list of its atoms, each once. False after an
 * error; *ret_atoms has the atoms that could be read. */
bool alloy_read_targets(struct alloy_load *l, struct config_place place, const char *path,
                        const struct alloy_value *v, struct alloy_atoms *ret_atoms);
/* Returns an array of these atoms. */
const struct alloy_value *alloy_targets_value(struct alloy_load *l,
                                              const struct alloy_atoms *atoms);
/* Returns the table of a `rule` block, which discovery.relabel and pyroscope.relabel share. */
const struct alloy_schema *alloy_rule_schema(void);

/* The `evaluate` functions of the components. */
const struct alloy_value *alloy_discovery_kubernetes(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_discovery_file(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_discovery_http(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_discovery_relabel(struct alloy_load *l, struct alloy_node *n);
/* Evaluates a discovery that is not supported. Its targets have an origin that is marked as left
 * out. */
const struct alloy_value *alloy_discovery_left_out(struct alloy_load *l, struct alloy_node *n);

/* http_client.c: the arguments of HTTP clients. */
extern const struct alloy_schema alloy_http_client;

#endif
