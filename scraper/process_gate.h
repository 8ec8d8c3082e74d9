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

struct turns {
    struct map *processes;
};

bool turns_init(struct turns *t); /* false if out of memory */
void turns_done(struct turns *t);

enum turn { TURN_NOW, TURN_LATER, TURN_NO_MEMORY };
/* Asks for the turn. TURN_NOW: sc->has_turn is set. TURN_LATER: it stands in the line. */
enum turn turns_take(struct turns *t, struct scrape *sc);
/* Gives the turn back. The scrape whose turn it is now (has_turn is set), or NULL. */
struct scrape *turns_release(struct turns *t, struct scrape *sc);
/* Leaves the line. */
void turns_leave(struct turns *t, struct scrape *sc);

#endif
