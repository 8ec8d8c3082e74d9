/* The parts of a running process that handlers of the APIs and pages read: options->served of a
 * server (server/server.h), which knows nothing of them.
 *
 * The pointers are borrowed and live as long as the server, or until the release() of its options.
 * Callbacks may be called on any thread.
 */
#ifndef PROFPULL_API_SERVED_H
#define PROFPULL_API_SERVED_H

#include "agent/app.h"
#include "base/buf.h"
#include "base/err.h"
#include "scraper/scraper.h"
#include "write/write.h"

struct archive_stats;
struct conditions;
struct config;
struct dropped;
struct naming_counts;
struct receive;
struct record;
struct peering;
struct query_helpers;
struct recording_rules;
struct settings;
struct sharding_counts;
struct sources;
struct store;

struct served {
    const struct config *config;
    const char *version;
    int64_t started_ms; /* monotonic: the time at which the process began its work */
    struct scraper *scraper;
    struct dropped *dropped; /* label sets that did not become targets; NULL: none are shown */
    struct store *store;     /* NULL: profiles are not stored */
    struct query_helpers *helpers; /* threads that help queries; NULL: none */
    struct peering
        *peering; /* the peers that queries ask, and the id of this process; may be NULL */
    /* settings of Pyroscope's apps (api/settings.h); NULL: none are kept */
    struct settings *settings;
    struct record *record; /* recorded metrics; NULL: none are counted */
    /* rules of the API of recording rules (api/recording_rules.h); NULL: none are kept */
    struct recording_rules *recording_rules;
    struct receive *receiver;      /* takes pushed profiles; NULL: the server has no such routes */
    struct sources *sources;       /* the sources of targets; NULL: none are shown */
    struct conditions *conditions; /* the conditions of destinations; NULL: unknown */
    /* Returns true if the process is healthy, perhaps with a warning in err; false with the reason
     * in err. */
    bool (*healthy)(void *arg, struct err *err);
    /* Returns true if the process is ready. The reason why it is not, or a note although it is, is
     * appended to text. */
    bool (*ready)(void *arg, struct buf *text);
    /* Reads the configuration again, and blocks until that is done. Its messages are appended to
     * text, each line with its line break. NULL: this process cannot reload. */
    bool (*reload)(void *arg, struct buf *text);
    /* Returns the ledger of the endpoint in a slot, or NULL. The member is NULL if there are no
     * ledgers. */
    struct write_ledger (*ledger)(void *arg, size_t endpoint);
    /* Describes the archive of the endpoint with a name; false if it has none. NULL: there are no
     * archives. */
    bool (*archive)(void *arg, const char *endpoint, struct archive_stats *ret);
    /* Says how targets are shared among replicas; returns false if they are not. NULL: they are
     * not. */
    bool (*sharding)(void *arg, struct sharding_counts *ret);
    /* Counts the profiles that got names for their addresses. NULL: none get names. */
    void (*names)(void *arg, struct naming_counts *ret);
    void *arg;
};

#endif
