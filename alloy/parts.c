/* Makes a tree of the components of a file that has errors, without their connections. The tables
 * of config/ find their own mistakes in this tree, so that one run shows the mistakes of both. */
#include "alloy/endpoint.h"
#include "alloy/profiles.h"

/* The keys under which the tables find the data of each kind of component. */
static const struct {
    const char *component;
    const char *key; /* key of a job */
    /* the key of a list in the component's data; NULL: all of the data is one element */
    const char *from;
} places[] = {
    {"discovery.kubernetes", "kubernetes_sd_configs", NULL},
    {"discovery.file", "file_sd_configs", NULL},
    {"discovery.http", "http_sd_configs", NULL},
    {"discovery.relabel", "relabel_configs", "rule"},
};

/* Adds a job that has only this key. */
static void add_job(struct alloy_load *l, struct yaml_node *jobs, const struct alloy_node *n,
                    const char *key, const struct yaml_node *list)
{
    struct yaml_node *job = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (job != NULL && list != NULL) {
        job->incomplete = true;
        tree_put(&l->tree, job, key, list);
        tree_append(&l->tree, jobs, job);
    }
}

static void add_data(struct alloy_load *l, struct yaml_node *jobs, const struct alloy_node *n)
{
    const struct yaml_node *data = n->data;
    for (size_t i = 0; data != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        if (!sv_eq_str(n->stmt->name, places[i].component)) {
            continue;
        }
        struct yaml_node *list = tree_list(&l->tree, n->stmt->place, n->path);
        tree_append(&l->tree, list, data);
        add_job(l, jobs, n, places[i].key,
                places[i].from != NULL ? yaml_get(data, places[i].from) : list);
    }
}

static void add_scrape(struct alloy_load *l, struct yaml_node *jobs, const struct alloy_node *n)
{
    const struct alloy_scrape *s = n->data;
    struct yaml_node *job = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (s == NULL || job == NULL) {
        return;
    }
    job->incomplete = true;
    for (size_t i = 0; i < s->settings->n_items; i++) {
        struct sv key = s->settings->items[i].key->text;
        /* The types are checked against the interval, so they are left out if the settings, perhaps
         * the interval, are incomplete. */
        if (!s->settings->incomplete || !sv_eq_str(key, "profiles")) {
            tree_put_new(&l->tree, job, key, s->settings->items[i].value);
        }
    }
    tree_append(&l->tree, jobs, job);
}

static void add_write(struct alloy_load *l, struct yaml_node *endpoints, const struct alloy_node *n)
{
    const struct alloy_write *w = n->data;
    for (size_t i = 0; w != NULL && w->endpoints != NULL && i < w->endpoints->n_items; i++) {
        struct yaml_node *e = alloy_endpoint(l, n, w->endpoints, i);
        if (e != NULL) {
            e->incomplete = true;
        }
        tree_append(&l->tree, endpoints, e);
    }
}

static void add_node(struct alloy_load *l, struct yaml_node *jobs, struct yaml_node *endpoints,
                     const struct alloy_node *n)
{
    struct sv name = n->stmt->name;
    if (n->component == NULL || n->state != NODE_DONE) {
        return;
    }
    if (sv_eq_str(name, "pyroscope.scrape")) {
        add_scrape(l, jobs, n);
    } else if (sv_eq_str(name, "pyroscope.write")) {
        add_write(l, endpoints, n);
    } else if (sv_eq_str(name, "pyroscope.relabel") && n->data != NULL) {
        const struct alloy_profile_relabel *p = n->data;
        add_job(l, jobs, n, "profile_relabel_configs", p->rules);
    } else if (!sv_eq_str(name, "pyroscope.receive_http") && !sv_eq_str(name, "pyroscope.enrich")) {
        add_data(l, jobs, n);
    }
}

struct yaml_node *alloy_parts(struct alloy_load *l)
{
    struct config_place start = {1, 1, NULL};
    struct yaml_node *root = tree_mapping(&l->tree, start, NULL);
    struct yaml_node *jobs = tree_list(&l->tree, start, NULL);
    struct yaml_node *endpoints = tree_list(&l->tree, start, NULL);
    for (size_t i = 0; i < l->n_modules; i++) {
        for (const struct alloy_node *n = l->modules[i]->first; n != NULL; n = n->next) {
            add_node(l, jobs, endpoints, n);
        }
    }
    tree_put(&l->tree, root, "receive", yaml_get(l->root, "receive"));
    tree_put(&l->tree, root, "log", yaml_get(l->root, "log"));
    tree_put(&l->tree, root, "scrape_configs", jobs);
    tree_put(&l->tree, root, "write", endpoints);
    if (root != NULL) {
        root->incomplete = true;
    }
    return root;
}
