/* The sandbox of a running process (base/sandbox.h): which files and ports a configuration needs.
 * Main thread, before all others.
 */
#ifndef PROFPULL_AGENT_CONFINEMENT_H
#define PROFPULL_AGENT_CONFINEMENT_H

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/sandbox.h"
#include "config/config.h"

enum confinement_mode {
    CONFINEMENT_ON, /* as many parts as the kernel supports */
    CONFINEMENT_OFF,
    CONFINEMENT_REQUIRED, /* an error unless the kernel supports all parts */
    CONFINEMENT_MODES,
};

/* Returns "on", "off" or "required"; NULL past the last one. */
const char *confinement_mode_name(size_t i);
/* Returns the mode with one of these names. */
enum confinement_mode confinement_mode_named(const char *name);

/* A directory whose disk did not answer at the start. */
struct hung_directory {
    char *path; /* as it is configured */
    /* The directory to which the sandbox allows access instead; NULL: none, so that a restart is
     * needed. */
    char *root;
};

struct confinement {
    enum confinement_mode mode;
    struct hung_directory hung[2 * CONFIG_ENDPOINTS_MAX + 1];
    size_t n_hung;
    struct sandbox *sandbox; /* NULL: off */
    struct sandbox_report report;
};

/* Confines the process for good, unless the mode is off. Before that, makes the directories that
 * the configuration writes to, since nothing above them may be written to later. Call
 * confinement_done() also after an error. */
bool confinement_enter(struct confinement *c, enum confinement_mode mode,
                       const struct config *config, struct err *err);
void confinement_done(struct confinement *c);

/* Logs which parts of the sandbox are in force, and why others are not; registers profpull_sandbox.
 */
void confinement_report(const struct confinement *c, struct log *log, struct metrics *metrics);

/* Returns true if another configuration can work in this sandbox. The error names the access that
 * the configuration would need, and says that a restart grants it. */
bool confinement_allows(const struct confinement *c, const struct config *next, struct err *err);

#endif
