/* One sampling scrape of a process at a time, whatever job and type it belongs to: a Go process,
 * for one, refuses a second CPU profile while the first one runs.
 *
 * Processes are identified by host and port, and known only while one of their scrapes runs or
 * waits. Pure logic; one thread, no locking.
 */
#ifndef PROFPULL_SCRAPER_PROCESS_GATE_H
#define PROFPULL_SCRAPER_PROCESS_GATE_H

#include "base/map.h"
#include "scraper/scrape.h"

struct process_gate {
    struct map *processes; /* "host:port" -> struct process */
};

bool process_gate_init(struct process_gate *g); /* false if out of memory */
void process_gate_done(struct process_gate *g);

enum gate_result { GATE_ENTERED, GATE_WAITS, GATE_NO_MEMORY };
/* GATE_ENTERED: sets sc->in_gate. GATE_WAITS: another scrape of the process runs, sc is queued. */
enum gate_result process_gate_enter(struct process_gate *g, struct scrape *sc);
/* Leaves the gate. The scrape that enters next (in_gate is set), or NULL. */
struct scrape *process_gate_leave(struct process_gate *g, struct scrape *sc);
/* Removes a waiting scrape from the queue. */
void process_gate_give_up(struct process_gate *g, struct scrape *sc);

#endif
