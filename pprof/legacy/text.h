/* Reads text from the left: each function removes what it has read from the view. */
#ifndef PROFPULL_PPROF_LEGACY_TEXT_H
#define PROFPULL_PPROF_LEGACY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Removes a text from the start of the view. Returns false, and changes nothing, if the view does
 * not begin with it. */
bool text_take(struct sv *in, struct sv text);
/* Removes all leading characters of a set. Returns false if there are none. */
bool text_take_any(struct sv *in, const char *set);
/* Removes the leading decimal digits and returns them. */
struct sv text_take_digits(struct sv *in);
/* Removes and returns a number of up to 16 hexadecimal digits. Returns false if there are none. */
bool text_take_hex(struct sv *in, bool upper_case, uint64_t *ret);
/* Removes and returns the next line, without its newline. Returns false after the last line, which
 * may lack its newline. */
bool text_take_line(struct sv *in, struct sv *ret_line);
/* Returns how often a character occurs. */
size_t text_count(struct sv text, char c);

#endif
