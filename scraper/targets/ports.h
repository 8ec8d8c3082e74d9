/* Which of a pod's label sets is scraped for which profile type, and on which port.
 *
 * Discovery describes a pod once for each declared port, and once for each container without ports;
 * annotations speak of the pod as a whole. After relabelling, these labels say where a type is
 * found (<type>: its key, with "_" for every character that is not a letter, a digit or "_"):
 *
 *   __profile_<type>_port_name__   the port that a container has declared under this name
 *   __profile_<type>_port__        this port, declared or not
 *   __profile_port__               the same for all types that have neither of their own
 *   __profile_port_name__          and this where __profile_port__ is missing too
 *   (none of them)                 the port of __address__
 *
 * What several label sets of one pod want alike (type, address, and all that steers the scrape) is
 * scraped once, under the labels of the one that was discovered with that port, so of the container
 * that owns it; where none was, under those of the first, which is the first container's. The
 * others go without. Afterwards only labels are left that the scraper knows: __address__,
 * __profile_<type>_port__ where a type has another port, __profile_<type>_enabled__.
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
    /* After the rules; NULL if they dropped it. A reference, which ports_choose() replaces by the
     * labels to scrape with, or by NULL if nothing is left to scrape here. */
    struct labels *labels;
    bool set_aside; /* set by ports_choose() where it left nothing */
};

/* Settles the label sets of one pod, with a builder to work with. False if memory ran out: what was
 * not settled yet is as it was. */
bool ports_choose(const struct config_job *job, struct port_candidate *at, size_t n,
                  struct labels_builder *b);

/* Whether ports_choose() looks at a label of this name as it was discovered. */
bool ports_read(struct sv name);

/* The port name that a type waits for in these relabelled labels; empty if none. */
struct sv ports_wanted_name(const struct labels *labels, const char *type);
/* The port that it is to have by number, as the label has it, number or not; empty if none. */
struct sv ports_wanted_port(const struct labels *labels, const char *type);
/* Whether a type is enabled in these labels: "true", "false" or what the job says. Any other value
 * of the label counts as true here: the scraper refuses it with a message. */
bool ports_wanted(const struct labels *labels, const struct config_type *type);

#endif
