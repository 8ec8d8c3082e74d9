/* Whose turn it is: sampling scrapes of one process run one after the other, whatever job and type
 * they belong to. A Go process, for one, refuses a second CPU profile while the first one runs.
 *
 * Processes are known by host and port and only for as long as one of their scrapes runs or waits.
 * Pure logic; one owner, no locking.
 */
#ifndef PROFPULL_SCRAPER_PROCESS_GATE_H
#define PROFPULL_SCRAPER_PROCESS_GATE_H

#include "base/map.h"
#include "scraper/scrape.h"

struct process_gate {
    struct map *processes;
};

bool process_gate_init(struct process_gate *t); /* false if out of memory */
void process_gate_done(struct process_gate *t);

enum gate_result { GATE_ENTERED, GATE_WAITS, GATE_NO_MEMORY };
/* Asks for the turn. GATE_ENTERED: sc->in_gate is set. GATE_WAITS: it stands in the line. */
enum gate_result process_gate_enter(struct process_gate *t, struct scrape *sc);
/* Gives the turn back. The scrape whose turn it is now (in_gate is set), or NULL. */
struct scrape *process_gate_leave(struct process_gate *t, struct scrape *sc);
/* Leaves the line. */
void process_gate_give_up(struct process_gate *t, struct scrape *sc);

#endif
