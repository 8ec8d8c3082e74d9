/* Numbers as text for logs and metrics. Private to base. */
#ifndef PROFPULL_BASE_NUM_H
#define PROFPULL_BASE_NUM_H

/* Enough for any double. */
#define NUM_TEXT_MAX 32

/* The shortest decimal text that reads back as the same value; "NaN", "+Inf" and "-Inf" as the
 * Prometheus text format spells them. */
void num_format(double value, char out[NUM_TEXT_MAX]);

#endif
