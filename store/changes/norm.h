/* Private to the comparison: the factor of each instance.
 *
 * If one function of a program grows, the shares of all others fall, although they cost what they
 * did. The factor of an instance says by how much the share of its typical function differs from
 * that in the mean of all instances of the base. A share divided by the factor is a cost: it
 * changes only if the function changes compared with the typical one.
 *
 * The typical function is the weighted median of all that are large enough to be tested, by self.
 * Functions with few samples weigh less, and no function weighs more than the others because it is
 * large. With fewer than 5 functions there is no typical one, and the factors are 1. Pure; any
 * thread.
 */
#ifndef PROFPULL_STORE_CHANGES_NORM_H
#define PROFPULL_STORE_CHANGES_NORM_H

#include "store/changes/verdicts.h"

#define TYPICAL_MIN 5

/* Computes the factors, by instance, in memory of the arena. Sets *ret_shift to the change of the
 * share of the typical function from the base to the new side, relative to the share. NULL with err
 * if out of memory. */
double *norm_factors(const struct observations *o, struct arena *arena, double *ret_shift,
                     struct err *err);

#endif
