/* The components of Alloy files and what they refer to; for alloy/ only.
 *
 * Every file of a configuration, and every instance of a declared component, is a module: a scope
 * with nodes. A node is evaluated when something refers to it, once, and has exports then. Lists of
 * targets and receivers are symbolic (targets.h); flatten.c makes jobs and endpoints of them.
 *
 * Everything lives in the arena of the loading. One thread.
 */
#ifndef PROFPULL_ALLOY_GRAPH_H
#define PROFPULL_ALLOY_GRAPH_H

#include "alloy/block.h"
#include "base/map.h"
#include "config/config.h"

/* Components, those of instances of modules among them. */
#define ALLOY_NODES_MAX 20000
/* How many components may refer to one another in a row, and modules be within modules. */
#define ALLOY_REFERENCES_MAX 400
#define ALLOY_MODULES_DEEP_MAX 16

struct alloy_load;
struct alloy_module;
struct alloy_node;

/* A kind of component. */
struct alloy_component {
    const char *name; /* "discovery.relabel" */
    /* Evaluates the block; returns its exports, an object, or NULL without any. */
    const struct alloy_value *(*evaluate)(struct alloy_load *l, struct alloy_node *n);
    const char *unsupported; /* why it is left out, instead of evaluate */
    bool quiet;              /* leaving it out is a note and no warning */
    bool service;            /* has no label, and stands at the top of a file only */
};

enum alloy_node_state { NODE_NEW, NODE_BUSY, NODE_DONE };

struct alloy_node {
    struct alloy_node *next; /* in its module, in the order of the file */
    struct alloy_module *module;
    const struct alloy_stmt *stmt;
    const char *id;   /* "discovery.relabel.pods" */
    const char *path; /* with the module before it: "feature/discovery.relabel.pods" */
    const char *name; /* of what is made of it: "feature/pods" */
    const struct alloy_component *component; /* NULL: a foreign one or an instance */
    const struct alloy_declare *declare;     /* of an instance */
    enum alloy_node_state state;
    const struct alloy_value *exports; /* an object; alloy_unknown after an error */
    void *data;                        /* of the component */
    struct alloy_module *inside;       /* of an instance and of foreach: the first */
    bool used;                         /* something refers to it */
};

struct alloy_declare {
    const struct alloy_declare *next;
    struct sv name; /* with the name of its import before it: "lib.pull" */
    const struct alloy_stmt *stmt;
    struct alloy_module *scope; /* where it was declared */
};

struct alloy_module {
    struct alloy_module *outer;     /* whose declares are visible; NULL at the top */
    struct alloy_module *enclosing; /* whose components are visible too: of foreach */
    const char *prefix;             /* of names: "feature/" */
    const char *directory;
    struct alloy_node *first;
    struct alloy_node **last;
    struct map *by_id; /* of struct alloy_node */
    const struct alloy_declare *declares;
    struct map *declared; /* struct alloy_declare by name; and one by the first word and a "." */
    const struct alloy_declare *made_from; /* NULL: a file or foreach */
    struct config_place made_at;
    struct alloy_module *parent;    /* that holds the instance */
    struct alloy_module *importer;  /* whose import made this one; NULL: none did */
    const char *file;               /* that was imported, absolute; NULL: not from a file */
    struct alloy_module *next;      /* of the same foreach */
    struct alloy_member *arguments; /* their values */
    size_t n_arguments;
    struct map *by_argument; /* of struct alloy_member; NULL: not of an instance */
    const char *suffix;      /* of errors in an instance: where it is; or NULL */
    struct sv variable;      /* of foreach */
    const struct alloy_value *variable_value;
    unsigned depth;
};

/* A list of nodes in the order of evaluation. */
struct alloy_nodes {
    struct alloy_node **at;
    size_t n;
    size_t size;
};

struct alloy_load;

/* The meaning of names in a file: components (components.c), and blocks that are none (modules.c).
 * Both use the graph, so alloy.c passes them in. */
struct alloy_names {
    /* Returns the row of a component's name; NULL if there is none. */
    const struct alloy_component *(*find)(struct sv name);
    /* Returns true for a family in which every component is known. Those of other families are
     * foreign. */
    bool (*known_family)(struct sv name);
    /* Returns the closest name of a component; NULL if none is close. */
    const char *(*suggest)(struct sv name);
    /* Returns true for the name of a block that configures Alloy itself. */
    bool (*is_config_block)(struct sv name);
    /* Takes declare, argument and export. */
    void (*declare)(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s);
    /* Takes import.file and its kin. */
    void (*import)(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s);
    /* Evaluates an instance of a declared component; returns its exports. */
    const struct alloy_value *(*instance)(struct alloy_load *l, struct alloy_node *n);
};

struct alloy_load {
    const struct alloy_names *names;
    struct arena *arena;
    struct tree tree;
    const char *file; /* the first source */
    struct config_errors *errors;
    struct config_errors *warnings;
    struct config_errors *notes;
    const struct config_options *options;
    bool for_text; /* see struct config_messages; so the next two */
    void (*on_import)(void *arg, const char *path);
    void *import_arg;
    struct alloy_eval ev; /* of the module that is being evaluated */
    struct alloy_module *module;
    struct alloy_module *modules[ALLOY_NODES_MAX]; /* all, to free their maps */
    size_t n_modules;
    size_t n_nodes;
    unsigned references;         /* in a row */
    struct alloy_nodes left_out; /* components for profiles that are not supported */
    struct yaml_node *root;      /* of the result */
};

/* The files of a directory that are read. */
#define ALLOY_SUFFIX ".alloy"

/* Evaluates all files together: a module of these bodies. */
void alloy_graph_run(struct alloy_load *l, const struct alloy_body *bodies, size_t n_bodies,
                     const char *directory);
void alloy_graph_done(struct alloy_load *l);

/* The exports of a node, which is evaluated if it was not; unknown after an error. */
const struct alloy_value *alloy_node_exports(struct alloy_load *l, struct alloy_node *n,
                                             struct config_place from);
/* The context of reading a block. */
struct alloy_reading alloy_reading(struct alloy_load *l, void *arg);
/* Adds a node to a list. */
void alloy_nodes_add(struct alloy_load *l, struct alloy_nodes *list, struct alloy_node *n);
/* An object with one member; unknown if memory ran out. */
const struct alloy_value *alloy_export(struct alloy_load *l, const char *name,
                                       const struct alloy_value *v);
/* Reports that memory ran out, and stops the evaluation. */
void alloy_no_memory(struct alloy_load *l);
/* A text of the arena; "" if memory ran out. */
const char *alloy_text(struct alloy_load *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* components.c: the row of a name; NULL if there is none. */
const struct alloy_component *alloy_component_find(struct sv name);
/* Returns true for a family of which every component is known. Components of other families are
 * foreign. */
bool alloy_component_known_family(struct sv name);
/* The closest name of a component; NULL if none is close. */
const char *alloy_component_suggest(struct sv name);

/* modules.c: blocks that are no components. */
bool alloy_is_config_block(struct sv name);
/* declare, argument and export. */
void alloy_collect_declare(struct alloy_load *l, struct alloy_module *m,
                           const struct alloy_stmt *s);
/* import.file and its kin. */
void alloy_collect_import(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s);
const struct alloy_value *alloy_foreach(struct alloy_load *l, struct alloy_node *n);
/* Evaluates an instance of a declared component; returns its exports. */
const struct alloy_value *alloy_instance(struct alloy_load *l, struct alloy_node *n);
/* graph.c, for modules.c */
struct alloy_module *alloy_module_new(struct alloy_load *l, struct alloy_module *parent,
                                      const char *prefix, struct config_place made_at);
/* The nodes of all bodies together, in their order. */
void alloy_module_collect(struct alloy_load *l, struct alloy_module *m,
                          const struct alloy_body *bodies, size_t n);
void alloy_module_run(struct alloy_load *l, struct alloy_module *m);
/* An argument of an instance by its name; NULL if there is none. */
const struct alloy_member *alloy_argument(const struct alloy_module *m, struct sv name);
/* Makes a module the one that is evaluated; returns the one before. */
struct alloy_module *alloy_enter(struct alloy_load *l, struct alloy_module *m);

#endif
