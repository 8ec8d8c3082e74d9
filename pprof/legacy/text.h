/* Reads text from the left: each function removes what it has read from the view. */
#ifndef PROFPULL_PPROF_LEGACY_TEXT_H
#define PROFPULL_PPROF_LEGACY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Removes this text, or leaves the view alone and returns false. */
bool text_take(struct sv *in, struct sv text);
/* Removes all leading characters of a set. False if there are none. */
bool text_take_any(struct sv *in, const char *set);
/* Removes the leading decimal digits and returns them. */
struct sv text_take_digits(struct sv *in);
/* A number of up to 16 hexadecimal digits. False if there are none. */
bool text_take_hex(struct sv *in, bool upper_case, uint64_t *ret);
/* The next line, without its end. False after the last one, which may lack its end. */
bool text_take_line(struct sv *in, struct sv *ret_line);
/* How often a character occurs. */
size_t text_count(struct sv text, char c);

#endif
