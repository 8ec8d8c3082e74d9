/* The text of numbers in logs and metrics. Private to base. */
#ifndef PROFPULL_BASE_NUM_H
#define PROFPULL_BASE_NUM_H

/* Enough for any double. */
#define NUM_TEXT_MAX 32

/* Writes a decimal text that reads back as the same value, or "NaN", "+Inf" and "-Inf" as in the
 * text format of Prometheus. */
void num_format(double value, char out[NUM_TEXT_MAX]);

#endif
