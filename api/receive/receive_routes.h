/* The routes that receive pushed profiles. */
#ifndef PROFPULL_API_RECEIVE_RECEIVE_ROUTES_H
#define PROFPULL_API_RECEIVE_RECEIVE_ROUTES_H

#include "server/routes.h"

extern const struct route receive_routes[];

#endif
