/* A target: an address to scrape, with its labels and the settings of each profile type.
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

/* The longest value of a label of a target in bytes; more is cut off. A destination's own limit
 * (max_value_length) is at least one character smaller, so that a value that was cut here is cut
 * there as well, and counted. */
#define TARGET_VALUE_MAX ((size_t)64 * 1024 + 4)

/* Creates a target of the job with this slot from relabelled labels: resolves address with port,
 * scheme, `__param_*`, service_name, job and instance (as Alloy's populateLabels does), and adds an
 * entry for each enabled profile type. A wrong setting in a label (settings.h) affects only its
 * type, see target_problem(); the target is refused if no other type is left. b holds the labels on
 * entry and is consumed. pinned_host: see struct target_group; an address with another host is
 * refused unless the job allows it, as are special addresses (address.h), and plain HTTP for a job
 * with credentials and https (ERR_REFUSED). pinned_host NULL: the operator's target, which may be
 * anything. Returns NULL with an error such as `no address`, `invalid scheme: "ftp"`. */
struct target *target_new(const struct config *config, size_t job, struct labels_builder *b,
                          const char *pinned_host, struct err *err);
/* Returns true if target_new() reads or keeps a label of this name. It reads only two kinds of
 * `__meta_*`: the pod's UID and the sources of service_name. */
bool target_reads(struct sv name);
struct target *target_ref(struct target *t);
struct target *target_unref(struct target *t); /* accepts NULL, returns NULL */
void targets_unref(struct target *const *targets, size_t n);
/* Returns the labels shared by all profiles of the target (without `__name__` and path). Borrowed.
 */
const struct labels *target_labels(const struct target *t);
/* Returns host:port of `__address__`, with the host in canonical form. Types may have other ports,
 * but no other host. Borrowed. */
const char *target_canonical(const struct target *t);
const struct config_job *target_job(const struct target *t);
size_t target_scrape_count(const struct target *t);
/* target_scrape_type() returns the type of the i-th scrape; target_scrape_url() writes its URL to a
 * buffer of the caller. */
const struct config_type *target_scrape_type(const struct target *t, size_t i);
bool target_scrape_url(const struct target *t, size_t i, struct buf *out);
/* Writes the URL for people to read: without the values of secret parameters (model/masking.h). */
bool target_shown_url(const struct target *t, size_t i, struct buf *out);
/* Returns true if the values of all parameters are to be masked (`global.mask_all_params`). */
bool target_masks_all(const struct target *t);
/* Returns the interval of the i-th scrape, from the target's labels or the type. */
int64_t target_interval_ms(const struct target *t, size_t i);
/* Appends the identity of the i-th scrape as text, for a key: scheme, address, path with query,
 * type. Returns false if out of memory. */
bool target_scrape_key(const struct target *t, size_t i, struct buf *out);
/* Returns true if two scrapes of different jobs with the same identity can be one: their intervals,
 * timeouts, types, treatment of the response and all settings of the request are equal, and the
 * targets are not known to be different pods. */
bool target_can_share(const struct target *a, size_t i, const struct target *b, size_t j);
/* target_problem_count() returns the number of types of this target that are not scraped because a
 * label is wrong; target_problem() returns a sentence that explains each of them. ret_type: the
 * type's key in the configuration, "unknown" if the label names no type. Both live as long as the
 * target. */
size_t target_problem_count(const struct target *t);
const char *target_problem(const struct target *t, size_t i, const char **ret_type);

#endif
