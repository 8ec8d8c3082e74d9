/* Pyroscope's older API: GET /pyroscope/render, /pyroscope/render-diff, /pyroscope/label-values.
 */
#ifndef PROFPULL_API_RENDER_H
#define PROFPULL_API_RENDER_H

#include <stdint.h>

#include "server/routes.h"

extern const struct route render_routes[];

/* Returns the step, in seconds, of a timeline of length_ms: a round number, at least 15, that makes
 * about 1500 steps. */
int64_t render_step_s(int64_t length_ms);

#endif
