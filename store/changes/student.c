#include "store/changes/student.h"

#include <math.h>
#include <stdbool.h>

#define STEPS_MAX 500
#define PRECISION 1e-12
#define TINY 1e-300

/* ---- the incomplete beta function ------------------------------------------------------------ */

static double not_tiny(double v)
{
    return fabs(v) < TINY ? TINY : v;
}

/* Evaluates the continued fraction of the incomplete beta function (NIST DLMF 8.17.22) by Lentz's
 * method. */
static double fraction(double a, double b, double x)
{
    double c = 1;
    double d = 1 / not_tiny(1 - (a + b) * x / (a + 1));
    double f = d;
    for (int m = 1; m <= STEPS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_tiny(1 + even * d);
        c = not_tiny(1 + even / c);
        f *= d * c;
        d = 1 / not_tiny(1 + odd * d);
        c = not_tiny(1 + odd / c);
        f *= d * c;
        if (fabs(d * c - 1) < PRECISION) {
            break;
        }
    }
    return f;
}

/* Returns the regularized incomplete beta function I_x(a, b). */
static double beta(double a, double b, double x)
{
    int sign;
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) {
        return front * fraction(a, b, x) / a;
    }
    return 1 - front * fraction(b, a, 1 - x) / b;
}

/* ---- Student's t ----------------------------------------------------------------------------- */

double student_p(double t, double df)
{
    if (!isfinite(t)) {
        return isnan(t) ? 1 : 0;
    }
    return beta(df / 2, 0.5, df / (df + t * t));
}

double student_t(double p, double df)
{
    double low = 0;
    double high = 1;
    while (student_p(high, df) > p && high < 1e12) {
        high *= 2;
    }
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        bool above = student_p(middle, df) > p;
        low = above ? middle : low;
        high = above ? high : middle;
    }
    return (low + high) / 2;
}
