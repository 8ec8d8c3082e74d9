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

struct conditions;
struct config;
struct dropped;
struct receive;
struct settings;
struct sharding_counts;
struct sources;
struct store;

struct served {
    const struct config *config;
    const char *version;
    int64_t started_ms; /* monotonic: when the process began its work */
    struct scraper *scraper;
    struct dropped *dropped;       /* label sets that are not targets; NULL: none to show */
    struct store *store;           /* NULL if profiles are not kept */
    struct settings *settings;     /* of Pyroscope's apps (api/settings.h); NULL for none */
    struct receive *receiver;      /* of pushed profiles; NULL if the server has no such routes */
    struct sources *sources;       /* of targets; NULL: none to show */
    struct conditions *conditions; /* of destinations; NULL: not known */
    /* Returns false with the reason in err, or true, perhaps with a warning there. */
    bool (*healthy)(void *arg, struct err *err);
    /* The same; the reason, or a note although the process is ready, is appended to text. */
    bool (*ready)(void *arg, struct buf *text);
    /* Reads the configuration again and blocks until that is done; messages are appended to text,
     * lines with line breaks. NULL: this process cannot reload. */
    bool (*reload)(void *arg, struct buf *text);
    /* Returns the ledger of the endpoint in a slot; NULL: there is none to show. */
    struct write_ledger (*ledger)(void *arg, size_t endpoint);
    /* Says how the targets are shared; returns false if they are not. NULL: they are not. */
    bool (*sharding)(void *arg, struct sharding_counts *ret);
    void *arg;
};

#endif
