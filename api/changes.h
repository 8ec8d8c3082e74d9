/* `GET /api/v1/changes`: what changed in a service from one version to the next; docs/changes.md.
 *
 * Without the parameter `service`, the response lists the services whose version changed.
 */
#ifndef PROFPULL_API_CHANGES_H
#define PROFPULL_API_CHANGES_H

#include "api/ask.h"
#include "server/routes.h"
#include "store/changes/changes.h"

extern const struct route changes_routes[];

/* The parameters of a request, also of the page. */
#define CHANGES_RANGE_DEFAULT "now-1d"
/* Names of the parameters, ended by NULL. */
extern const char *const changes_params[];

struct changes_asked {
    struct changes_question question;
    size_t limit;
    struct selector *selector; /* owned */
};

/* Reads the parameters. The type is read only if there is a service, which needs the store.
 * ERR_INPUT names the wrong parameter. changes_asked_done() must be called whatever the result. */
bool changes_asked_read(struct changes_asked *a, const struct request *r, const struct query *q,
                        struct err *err);
void changes_asked_done(struct changes_asked *a);

#endif
