/* Choice of ports: decides which label set of a pod is scraped for which profile type, and on which
 * port.
 *
 * Discovery emits a label set for each declared port of a pod, and one for each container without
 * ports; annotations apply to the whole pod. After relabelling, these labels define the port of a
 * type (<type>: its key, with "_" for every character that is not a letter, a digit or "_"):
 *
 *   __profile_<type>_port__        this port, declared or not
 *   __profile_<type>_port_name__   the port that a container declares under this name
 *   __profile_port__               the port of all types that have neither of these
 *   __profile_port_name__          the name, if there is no __profile_port__ either
 *   (none of them)                 the port of __address__
 *
 * __profile_<type>_container__ leaves only the label sets of this container to a type.
 *
 * If several label sets of a pod ask for the same scrape (type, address, and every label that
 * affects the scrape), it runs once: under the labels of the one discovered with that port, hence
 * of the container that owns it; otherwise under those of the first, hence of the first container.
 * The other label sets do not get this scrape. The result uses only labels that the scraper knows:
 * __address__, __profile_<type>_port__ where a type has another port, __profile_<type>_enabled__.
 *
 * Pure functions, any thread.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_PORTS_H
#define PROFPULL_SCRAPER_TARGETS_PORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"
#include "config/config.h"

struct port_candidate {
    const struct labels *discovered;
    /* The labels after the rules; NULL if the rules dropped the label set. A reference, which
     * ports_choose() replaces by the labels to scrape with, or by NULL if no type is left to scrape
     * here. */
    struct labels *labels;
    bool set_aside; /* set by ports_choose() if no type is left */
};

/* Assigns the types of a job among the label sets of one pod, using b as a work area. Returns false
 * if out of memory; the remaining label sets are unchanged then. */
bool ports_choose(const struct config_job *job, struct port_candidate *at, size_t n,
                  struct labels_builder *b);

/* Returns true if ports_choose() reads a discovered label of this name. */
bool ports_read(struct sv name);

/* Returns the port name that these relabelled labels ask for; empty if they ask for none. */
struct sv ports_wanted_name(const struct labels *labels, const char *type);
/* Returns the port number that they ask for, as written, valid or not; empty if they ask for none.
 */
struct sv ports_wanted_port(const struct labels *labels, const char *type);
/* Returns the container that they ask for; empty for any container. */
struct sv ports_wanted_container(const struct labels *labels, const char *type);
/* Returns true if these labels, or else the job, enable a type. A value other than "true" and
 * "false" counts as true: target_new() refuses it with a message. */
bool ports_wanted(const struct labels *labels, const struct config_type *type);

#endif
