/* Data of the pyroscope components, which say what is scraped and where it is sent; for alloy/
 * only. */
#ifndef PROFPULL_ALLOY_PROFILES_H
#define PROFPULL_ALLOY_PROFILES_H

#include "alloy/targets.h"

struct alloy_receivers {
    struct alloy_node **at; /* nodes of pyroscope.write, pyroscope.relabel and pyroscope.enrich */
    size_t n;
};

/* The data of a node of pyroscope.scrape. */
struct alloy_scrape {
    struct yaml_node *settings; /* the keys of a job, without its sources and destinations */
    struct alloy_atoms targets;
    struct alloy_receivers receivers;
    struct config_place place; /* of forward_to */
    bool complete;             /* targets and forward_to have no error */
};

/* The data of a node of pyroscope.relabel. */
struct alloy_profile_relabel {
    const struct yaml_node *rules; /* a list; NULL if there are none */
    struct alloy_receivers receivers;
};

/* The data of a node of pyroscope.receive_http. */
struct alloy_receive {
    struct yaml_node *settings; /* the keys of `receive`, without the destinations */
    struct alloy_receivers receivers;
    struct config_place place; /* of forward_to */
    bool complete;             /* forward_to has no error */
};

/* The data of a node of pyroscope.enrich. */
struct alloy_enrich {
    struct yaml_node *settings; /* the keys of `receive.enrich`, without its targets */
    struct alloy_atoms targets;
    struct alloy_receivers receivers;
};

/* The data of a node of pyroscope.write. */
struct alloy_write {
    const struct yaml_node *endpoints;       /* a list; NULL if there are none */
    const struct yaml_node *external_labels; /* NULL if there are none */
    /* index of its first endpoint among all endpoints, if it is used */
    size_t first;
    bool used;
};

const struct alloy_value *alloy_pyroscope_scrape(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_receive(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_relabel(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_enrich(struct alloy_load *l, struct alloy_node *n);
const struct alloy_value *alloy_pyroscope_write(struct alloy_load *l, struct alloy_node *n);

/* Returns exports with the receiver of a component. */
const struct alloy_value *alloy_receiver_of(struct alloy_load *l, struct alloy_node *n);

/* Reads the value of `forward_to`. False after an error. */
bool alloy_read_receivers(struct alloy_load *l, struct config_place place, const char *path,
                          const struct alloy_value *v, struct alloy_receivers *ret_receivers);

/* Makes jobs and endpoints of all components, in l->root (flatten.c). */
void alloy_flatten(struct alloy_load *l, const struct alloy_module *root);
/* Makes the root that is returned after errors: the parts of all components, marked as incomplete
 * (parts.c). NULL if memory ran out. */
struct yaml_node *alloy_parts(struct alloy_load *l);

#endif
