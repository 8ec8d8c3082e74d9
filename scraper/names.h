/* Names for the addresses in profiles of native programs, given by the owner of the scraper: on a
 * worker, together with the delta or the conversion of a body if it has one.
 */
#ifndef PROFPULL_SCRAPER_NAMES_H
#define PROFPULL_SCRAPER_NAMES_H

#include "scraper/offload.h"
#include "scraper/scraper.h"

/* A body that only gets names. */
struct names_work {
    struct offload offload; /* first */
    struct names_of *names;
    char *data; /* the body with names, or NULL; done() may take it, and sets it to NULL then */
    size_t size;
};

/* The names for the bodies of one scrape. It lives as long as the work that uses it. */
struct names_of {
    const struct scraper_names *names;
    struct target *target; /* a reference */
    size_t entry;
    struct pprof_rewrite rewrite;
    struct profile_names result; /* of the last rewrite */
};

/* The memory that work with names reserves in addition: 500 addresses of C++ with inlined functions
 * take 300 KB of names, twice until they are compressed. */
#define NAMES_ROOM ((size_t)1024 * 1024)

/* Returns the names for a body of a scrape; NULL if it needs none, or if out of memory. */
struct names_of *names_of_body(struct engine *e, struct target *target, size_t entry,
                               struct sv body);
struct names_of *names_of_free(struct names_of *n); /* accepts NULL, returns NULL */
/* Returns the names that the last run of the work has added. */
static inline struct profile_names names_result(const struct names_of *n)
{
    return n != NULL ? n->result : (struct profile_names){.awaits = 0};
}
static inline const struct pprof_rewrite *names_rewrite(const struct names_of *n)
{
    return n != NULL ? &n->rewrite : NULL;
}

/* Starts to add names to a body. If that succeeds, the body and the names belong to the work.
 * done(arg, o) gets a struct names_work. has_place, and the reason when NULL is returned, are those
 * of offload_new(). */
struct offload *names_start(struct engine *e, struct names_of *names, char *body, size_t size,
                            bool has_place, void (*done)(void *arg, struct offload *o), void *arg,
                            enum reason *ret_reason, struct err *err);

/* Adds names to a whole body, on a worker. Returns false if nothing is to be changed. */
bool names_rewrite_body(const struct names_of *names, struct scratch *scratch, struct sv body,
                        char **ret, size_t *ret_size);

/* Returns true, with an error of the work, if the body has no names because they need more memory
 * than was reserved, and more can be. The caller frees what it has made, and the work runs again.
 * names: NULL if the body gets none. */
bool names_need_more(struct offload *o, const struct names_of *names,
                     const struct scratch *scratch);

#endif
