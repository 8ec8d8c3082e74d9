/* A target: an address to scrape with its labels and, for each profile type, its settings.
 *
 * Immutable and reference-counted; any thread.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_TARGET_H
#define PROFPULL_SCRAPER_TARGETS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

struct target;

/* Makes a target of relabelled labels: address with port, scheme, `__param_*`, service_name, job
 * and instance (scrape-time labels as Alloy's populateLabels), one entry for each enabled profile
 * type. A wrong setting in a label (settings.h) costs its type alone, see target_problem(); the
 * target is refused if nothing else is left. b is a builder to work with; its content on entry are
 * the labels, and is consumed. pinned_host: see struct target_group; an address with another host
 * is refused unless the job allows it. NULL with an error that says what is wrong: `no address`,
 * `invalid scheme: "ftp"`. */
struct target *target_new(const struct config *config, size_t job, struct labels_builder *b,
                          const char *pinned_host, struct err *err);
/* Whether target_new() looks at a label of this name or passes it on; of what discovery tells
 * (`__meta_*`) it needs only what a service_name is made of. */
bool target_reads(struct sv name);
struct target *target_ref(struct target *t);
struct target *target_unref(struct target *t); /* accepts NULL, returns NULL */
void targets_unref(struct target *const *targets, size_t n);
/* Labels shared by all profiles of the target (without `__name__` and path). Borrowed. */
const struct labels *target_labels(const struct target *t);
/* What `__address__` says, with the host in its one canonical form: host:port. Types may have other
 * ports, but no other host. Borrowed. */
const char *target_canonical(const struct target *t);
size_t target_scrape_count(const struct target *t);
/* Type and URL of its i-th scrape; the URL in a buffer of the caller. */
const struct config_type *target_scrape_type(const struct target *t, size_t i);
bool target_scrape_url(const struct target *t, size_t i, struct buf *out);
/* Every how many milliseconds its i-th scrape is due, by the target's labels or the type. */
int64_t target_interval_ms(const struct target *t, size_t i);
/* Types that are not scraped of this target because a label of its own is wrong: how many, and for
 * each the sentence that says what is wrong. ret_type: the type's key in the configuration,
 * "unknown" if the label names no type. Both live as long as the target. */
size_t target_problem_count(const struct target *t);
const char *target_problem(const struct target *t, size_t i, const char **ret_type);

#endif
