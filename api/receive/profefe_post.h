/* `POST /api/0/profiles`: profefe's API. */
#ifndef PROFPULL_API_RECEIVE_PROFEFE_POST_H
#define PROFPULL_API_RECEIVE_PROFEFE_POST_H

#include "server/exchange.h"

void profefe_post_work(struct exchange *x);

#endif
