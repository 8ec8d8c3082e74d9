/* Student's t distribution. Pure; any thread. */
#ifndef PROFPULL_STORE_CHANGES_STUDENT_H
#define PROFPULL_STORE_CHANGES_STUDENT_H

/* Returns the probability that the absolute value of Student's t with df > 0 degrees of freedom
 * (which need not be whole) is at least |t|. */
double student_p(double t, double df);
/* Returns the t that |t| exceeds with the probability p, which is between 0 and 1. */
double student_t(double p, double df);

#endif
