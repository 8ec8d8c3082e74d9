/* The graph of the components in Alloy files and of the references between them; for alloy/ only.
 *
 * Every file of a configuration, and every instance of a declared component, is a module: a scope
 * with nodes. A node is evaluated once, when something first refers to it, and has exports from
 * then on. Lists of targets and receivers are symbolic (targets.h); flatten.c makes jobs and
 * endpoints of them.
 *
 * Everything lives in the arena of the loading. One thread.
 */
#ifndef PROFPULL_ALLOY_GRAPH_H
#define PROFPULL_ALLOY_GRAPH_H

#include "alloy/block.h"
#include "base/map.h"
#include "config/config.h"

/* The most components, those in instances of modules included. */
#define ALLOY_NODES_MAX 20000
/* The longest chain of components that refer to one another, and the deepest nesting of modules. */
#define ALLOY_REFERENCES_MAX 400
#define ALLOY_MODULES_DEEP_MAX 16

struct alloy_load;
struct alloy_module;
struct alloy_node;

/* A kind of component. */
struct alloy_component {
    const char *name; /* "discovery.relabel" */
    /* Evaluates the block; returns its exports as an object, or NULL if it has none. */
    const struct alloy_value *(*evaluate)(struct alloy_load *l, struct alloy_node *n);
    const char *unsupported; /* the reason why the component is left out; `evaluate` is NULL then */
    bool quiet;              /* leaving it out is reported as a note rather than a warning */
    bool service;            /* a service: it has no label, and may only be at the top of a file */
};

enum alloy_node_state { NODE_NEW, NODE_BUSY, NODE_DONE };

struct alloy_node {
    struct alloy_node *next; /* the next node of its module, in the order of the file */
    struct alloy_module *module;
    const struct alloy_stmt *stmt;
    const char *id;   /* "discovery.relabel.pods" */
    const char *path; /* the id with its module in front: "feature/discovery.relabel.pods" */
    const char *name; /* the name for the job or endpoint that is made of it: "feature/pods" */
    const struct alloy_component *component; /* NULL for a foreign component or an instance */
    const struct alloy_declare *declare;     /* the declaration of an instance */
    enum alloy_node_state state;
    const struct alloy_value *exports; /* an object; alloy_unknown after an error */
    void *data;                        /* data of the component's own type */
    struct alloy_module *inside;       /* for an instance or a foreach: its first module */
    bool used;                         /* something refers to it */
};

struct alloy_declare {
    const struct alloy_declare *next;
    struct sv name; /* the name, with that of its import in front: "lib.pull" */
    const struct alloy_stmt *stmt;
    struct alloy_module *scope; /* where it was declared */
};

struct alloy_module {
    /* the module whose declares are visible here, too; NULL at the top */
    struct alloy_module *outer;
    /* for foreach: the module whose components are visible here, too */
    struct alloy_module *enclosing;
    const char *prefix; /* in front of names: "feature/" */
    const char *directory;
    struct alloy_node *first;
    struct alloy_node **last;
    struct map *by_id; /* struct alloy_node by its id */
    const struct alloy_declare *declares;
    /* struct alloy_declare by name; also by the first word of the name and a "." */
    struct map *declared;
    /* the declaration of an instance; NULL for a file or foreach */
    const struct alloy_declare *made_from;
    struct config_place made_at;
    struct alloy_module *parent; /* the module that contains the instance */
    /* the module whose import made this one; NULL if no import did */
    struct alloy_module *importer;
    /* absolute name of the imported file; NULL if not from a file */
    const char *file;
    struct alloy_module *next;      /* the next module of the same foreach */
    struct alloy_member *arguments; /* the arguments with their values */
    size_t n_arguments;
    /* struct alloy_member by name; NULL if the module is not an instance */
    struct map *by_argument;
    const char *suffix; /* appended to errors: the place of the instance; or NULL */
    struct sv variable; /* the variable of a foreach */
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

/* Functions for the names in a file: those of components (components.c), and of blocks that are not
 * components (modules.c). Both files use the graph, so alloy.c passes the functions in. */
struct alloy_names {
    /* Returns the row of a component's name; NULL if there is none. */
    const struct alloy_component *(*find)(struct sv name);
    /* Returns true for a family of which every component is known. Components of other families are
     * foreign. */
    bool (*known_family)(struct sv name);
    /* Returns the closest name of a component; NULL if none is close. */
    const char *(*suggest)(struct sv name);
    /* Returns true for the name of a block that configures Alloy itself. */
    bool (*is_config_block)(struct sv name);
    /* Reads a block declare, argument or export. */
    void (*declare)(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s);
    /* Reads import.file and the other imports. */
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
    bool for_text; /* see struct config_messages, also for the next two members */
    void (*on_import)(void *arg, const char *path);
    void *import_arg;
    struct alloy_eval ev; /* set up for the module that is being evaluated */
    struct alloy_module *module;
    struct alloy_module *modules[ALLOY_NODES_MAX]; /* all modules, to free their maps */
    size_t n_modules;
    size_t n_nodes;
    unsigned references;         /* length of the current chain of references */
    struct alloy_nodes left_out; /* unsupported components for profiles */
    struct yaml_node *root;      /* the root of the result */
};

/* The most files that are read of a directory. */
#define ALLOY_SUFFIX ".alloy"

/* Evaluates all files together, as one module with these bodies. */
void alloy_graph_run(struct alloy_load *l, const struct alloy_body *bodies, size_t n_bodies,
                     const char *directory);
void alloy_graph_done(struct alloy_load *l);

/* Returns the exports of a node, which is evaluated first if necessary; &alloy_unknown after an
 * error. */
const struct alloy_value *alloy_node_exports(struct alloy_load *l, struct alloy_node *n,
                                             struct config_place from);
/* Returns the state for reading a block. */
struct alloy_reading alloy_reading(struct alloy_load *l, void *arg);
/* Adds a node to a list. */
void alloy_nodes_add(struct alloy_load *l, struct alloy_nodes *list, struct alloy_node *n);
/* Returns an object with one member; &alloy_unknown if memory ran out. */
const struct alloy_value *alloy_export(struct alloy_load *l, const char *name,
                                       const struct alloy_value *v);
/* Reports that memory ran out, and stops the evaluation. */
void alloy_no_memory(struct alloy_load *l);
/* Formats a text in the arena; "" if memory ran out. */
const char *alloy_text(struct alloy_load *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* In components.c: returns the row of a component's name; NULL if there is none. */
const struct alloy_component *alloy_component_find(struct sv name);
/* Returns true for a family of which every component is known. Components of other families are
 * foreign. */
bool alloy_component_known_family(struct sv name);
/* Returns the name of the component that is closest to an unknown name; NULL if none is close. */
const char *alloy_component_suggest(struct sv name);

/* In modules.c: returns true for the name of a block that configures Alloy itself. */
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
/* Adds the nodes of all bodies to a module, in their order. */
void alloy_module_collect(struct alloy_load *l, struct alloy_module *m,
                          const struct alloy_body *bodies, size_t n);
void alloy_module_run(struct alloy_load *l, struct alloy_module *m);
/* Finds an argument of an instance by its name; NULL if there is none. */
const struct alloy_member *alloy_argument(const struct alloy_module *m, struct sv name);
/* Makes m the module that is being evaluated; returns the previous one. */
struct alloy_module *alloy_enter(struct alloy_load *l, struct alloy_module *m);

#endif
