/* Adds names to the addresses in profiles (symbols/), and asks for those that are missing.
 *
 * A profile gets the names that are known when it passes. Its other addresses are looked up in the
 * background: first at the scraped program itself, then in debug information by build id
 * (directories, then debuginfod). Until a lookup answers, they are named by their place in the
 * file. Each address is looked up once. A failure costs the names alone.
 *
 * naming_rewrite() and naming_body() run on any thread that may compute, such as a worker.
 * Questions to programs and servers run on a loop of their own, and files are opened and read on a
 * thread of their own, so that neither a server nor a disk delays a profile.
 */
#ifndef PROFPULL_AGENT_NAMING_NAMING_H
#define PROFPULL_AGENT_NAMING_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/profile.h"
#include "pprof/scratch.h"
#include "scraper/targets/target.h"

struct http_contents;
struct naming;
struct symbols_helper;

struct naming_options {
    const struct config *config; /* of the start; its section `symbols` never changes */
    struct loop *loop;           /* questions run here */
    struct log *log;
    struct metrics *metrics;
    struct http_contents *contents;
    struct symbols_helper *helper; /* NULL: debug information is not read */
};

/* Makes the object; the options outlive it. Returns NULL with an error. */
struct naming *naming_new(const struct naming_options *options, struct err *err);
/* Ends all questions. Call it while the loop does not run. Accepts NULL, returns NULL. */
struct naming *naming_free(struct naming *n);

/* The origin of a profile. */
struct naming_source {
    struct target *target; /* the scraped program; NULL: none that has a symbol service */
    size_t entry;          /* its scrape */
    /* Without a target: profile_names.awaits of its profile, and the job; 0: none. Names that the
     * program has given are found by it. */
    uint64_t process;
    uint32_t job;
    const struct symbols_sources *sources; /* belong to the target's configuration, or to `owner` */
    const struct config *owner;            /* NULL with a target */
};

/* Returns true if profiles of this scrape may need names. It checks the beginning of the body;
 * series whose profiles had all names are checked less often. The thread of the scraper. */
bool naming_wants(struct naming *n, const struct target *target, size_t entry, struct sv body);

/* Appends a plain profile with names to out, and asks for those that are missing. *ret says
 * how many it has, and is zero if no name was missing. Metrics are left to naming_note(), since the
 * work may be repeated. Returns false if nothing is to be changed: all names are there, or the
 * profile cannot be read. */
bool naming_rewrite(struct naming *n, const struct naming_source *source, struct scratch *scratch,
                    struct sv plain, struct buf *out, struct profile_names *ret);
/* Adds names to a body, gzip or plain. Returns false if nothing is to be changed; otherwise *ret is
 * gzip, from malloc(). */
bool naming_body(struct naming *n, const struct naming_source *source, struct scratch *scratch,
                 struct sv body, char **ret, size_t *ret_size, struct profile_names *ret_names);
/* Counts a profile in the metrics, once it is clear which names it has. Any thread. */
void naming_note(struct naming *n, const struct profile_names *names);
/* Returns true if naming_stored() may find names: the section `symbols` of the configuration has
 * sources of debug information. Any thread. */
bool naming_names_stored(const struct naming *n, const struct config *config);
/* Appends a stored plain profile with the names that debug information gives, by the sources of
 * the section `symbols`. Waits until until_ms (monotonic) for names that are asked for, so only
 * threads of queries may call it. Returns false if nothing is to be changed. */
bool naming_stored(struct naming *n, const struct config *config, struct sv plain, int64_t until_ms,
                   struct buf *out);
/* Counts since the start, for people. */
struct naming_counts {
    uint64_t named; /* profiles with addresses that lacked names: all of these got one */
    uint64_t partly;
    uint64_t unnamed;
    uint64_t asks;     /* questions that wait or are under way */
    uint64_t failures; /* of the process that reads debug information */
};
/* Any thread. */
void naming_count(const struct naming *n, struct naming_counts *ret);
/* Returns true if a question waits or is under way. Any thread. */
bool naming_is_asking(const struct naming *n);

#endif
