/* The values of Alloy's chart and their counterparts in ours; for cli/helm/ only. */
#ifndef PROFPULL_CLI_HELM_TABLE_H
#define PROFPULL_CLI_HELM_TABLE_H

#include "cli/helm/helm.h"
#include "config/yaml.h"

struct helm;

struct helm_row {
    const char *path; /* in Alloy's chart: "controller.nodeSelector" */
    const char *to;   /* in ours; NULL: the value is ignored, or `take` decides */
    /* Takes a value that has to be changed. NULL: it is copied. */
    void (*take)(struct helm *h, const struct helm_row *row, const struct yaml_node *n);
    const char *why; /* why it is ignored, or what to know about it; NULL: nothing */
};

/* Returns the row of a path, or NULL. */
const struct helm_row *helm_row(const char *path);
/* Returns the i-th row; NULL past the last one. */
const struct helm_row *helm_row_at(size_t i);

/* For the functions of rows. */
json_t *helm_json(const struct yaml_node *n);
/* Sets a value at a path such as "image.registry"; takes over the value. */
void helm_set(struct helm *h, const char *path, json_t *value);
json_t *helm_get(struct helm *h, const char *path);
/* The parts of the values that decide about the workload, at the end. */
struct helm_workload {
    const char *type; /* "daemonset", ...; points into the file; NULL: not given */
    bool clustering;
    const struct yaml_node *replicas;
};
struct helm_workload *helm_workload(struct helm *h);
void helm_set_config(struct helm *h, const struct yaml_node *n);
/* Appends a line to the report. */
void helm_say(struct helm *h, const struct yaml_node *n, const char *verb, const char *path,
              const char *text);

#endif
