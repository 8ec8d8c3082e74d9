/* The components of profiles: what is scraped, and where it is sent; for alloy/ only. */
#ifndef PROFPULL_ALLOY_PROFILES_H
#define PROFPULL_ALLOY_PROFILES_H

#include "alloy/targets.h"

struct alloy_receivers {
    struct alloy_node **at; /* of pyroscope.write, pyroscope.relabel and pyroscope.enrich */
    size_t n;
};

/* The data of a node of pyroscope.scrape. */
struct alloy_scrape {
    struct yaml_node *settings; /* the keys of a job, without its sources and destinations */
    struct alloy_atoms targets;
    struct alloy_receivers receivers;
    struct config_place place; /* of forward_to */
    bool complete;             /* no error in targets and forward_to */
};

/* The data of a node of pyroscope.relabel. */
struct alloy_profile_relabel {
    const struct yaml_node *rules; /* a list; NULL without any */
    struct alloy_receivers receivers;
};

/* The data of a node of pyroscope.receive_http. */
struct alloy_receive {
    struct yaml_node *settings; /* the keys of `receive`, without the destinations */
    struct alloy_receivers receivers;
    struct config_place place; /* of forward_to */
    bool complete;             /* no error in it */
};

/* The data of a node of pyroscope.enrich. */
struct alloy_enrich {
    struct yaml_node *settings; /* the keys of `receive.enrich`, without its targets */
    struct alloy_atoms targets;
    struct alloy_receivers receivers;
};

/* The data of a node of pyroscope.write. */
struct alloy_write {
    const struct yaml_node *endpoints;       /* a list; NULL without any */
    const struct yaml_node *external_labels; /* NULL without any */
    size_t first;                            /* of its endpoints among all, if it is used */
    bool used;
};

const struct alloy_value *alloy_pyroscope_scrape(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_receive(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_relabel(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_enrich(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_write(struct alloy_load *l, struct alloy_node *n);

/* Exports the receiver of a component. */
const struct alloy_value *alloy_receiver_of(struct alloy_load *l, struct alloy_node *n);

/* Reads the value of `forward_to`. False after an error. */
bool alloy_read_receivers(struct alloy_load *l, struct config_place place, const char *path,
                          const struct alloy_value *v, struct alloy_receivers *ret_receivers);

/* Makes jobs and endpoints of all components, in l->root (flatten.c). */
void alloy_flatten(struct alloy_load *l, const struct alloy_module *root);
/* After errors: a root with the parts of all components, incomplete (parts.c). NULL without memory.
 */
struct yaml_node *alloy_parts(struct alloy_load *l);

#endif
