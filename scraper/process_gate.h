/* A gate for each process lets one sampling scrape of the process run at a time, whatever its job
 * and type. A Go process, for example, refuses a second CPU profile while the first one is
 * recorded.
 *
 * Processes are identified by host and port. A process has a gate only while one of its scrapes
 * runs or waits. Pure logic; one thread, no locking.
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
/* Makes a scrape that holds the gate leave it. Returns the scrape that holds the gate next, or
 * NULL. */
struct scrape *process_gate_leave(struct process_gate *g, struct scrape *sc);
/* Removes a waiting scrape from the queue. */
void process_gate_give_up(struct process_gate *g, struct scrape *sc);

#endif
