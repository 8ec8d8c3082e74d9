/* Pyroscope's older API: GET /pyroscope/render, /pyroscope/render-diff, /pyroscope/label-values.
 */
#ifndef PROFPULL_API_RENDER_H
#define PROFPULL_API_RENDER_H

#include <stdint.h>

#include "server/routes.h"

extern const struct route render_routes[];

/* The step of a timeline of so many ms, in seconds: about 1500 of them, rounded, at least 15 s. */
int64_t render_step_s(int64_t length_ms);

#endif
