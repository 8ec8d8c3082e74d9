/* A gate for each process: one sampling scrape of it at a time, whatever job and type the scrape
 * belongs to. A Go process, for one, refuses a second CPU profile while the first one runs.
 *
 * Processes are identified by host and port, and known only while one of their scrapes runs or
 * waits. Pure logic; one thread, no locking.
 */
#ifndef PROFPULL_SCRAPER_PROCESS_GATE_H
#define PROFPULL_SCRAPER_PROCESS_GATE_H

#include "base/map.h"
#include "scraper/scrape.h"

/* The caller records in the state of a scrape that it holds the gate (scraper/scrape.h). */
struct process_gate {
    struct map *processes; /* "host:port" -> struct process */
};

bool process_gate_init(struct process_gate *g); /* false if out of memory */
void process_gate_done(struct process_gate *g);

enum gate_result { GATE_ENTERED, GATE_WAITS, GATE_NO_MEMORY };
/* GATE_ENTERED: the scrape holds the gate. GATE_WAITS: another scrape of the process holds it, and
 * this one has been queued. */
enum gate_result process_gate_enter(struct process_gate *g, struct scrape *sc);
/* A scrape that holds the gate leaves it. Returns the scrape that holds it now, or NULL. */
struct scrape *process_gate_leave(struct process_gate *g, struct scrape *sc);
/* Removes a waiting scrape from the queue. */
void process_gate_give_up(struct process_gate *g, struct scrape *sc);

#endif
