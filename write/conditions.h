/* The condition of each destination, for the API and for people: whether it accepts profiles and,
 * if not, the last failure and its remedy.
 *
 * Written by the writer's loop, read by any thread, under a short lock. It outlives the writer. */
#ifndef PROFPULL_WRITE_CONDITIONS_H
#define PROFPULL_WRITE_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#define CONDITION_WHY_MAX 512

struct write_condition {
    bool works;         /* the destination works for at least one of its tenants */
    int64_t since_ns;   /* wall clock: since when the destination does not work; 0 if it works */
    int64_t oldest_ms;  /* scraped_ms of the oldest profile that waits; INT64_MAX if none does */
    const char *advice; /* about the last failure; "" if there is none; static storage */
    /* The last failure, if no attempt has succeeded since then; else "". */
    char why[CONDITION_WHY_MAX];
};

struct conditions;

struct conditions *conditions_new(void);                  /* NULL if out of memory */
struct conditions *conditions_free(struct conditions *c); /* accepts NULL, returns NULL */
/* Sets the condition of an endpoint. Does nothing if c is NULL. */
void conditions_set(struct conditions *c, const char *endpoint, const struct write_condition *now);
/* Copies the condition of an endpoint. Returns false if it is not known yet. */
bool conditions_get(struct conditions *c, const char *endpoint, struct write_condition *ret);

#endif
