/* Classes of ASCII characters, independent of the locale. Bytes from 0x80 on belong to no class. */
#ifndef PROFPULL_BASE_ASCII_H
#define PROFPULL_BASE_ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_lower(int c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool ascii_is_upper(int c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool ascii_is_alpha(int c)
{
    return ascii_is_lower(c) || ascii_is_upper(c);
}

static inline bool ascii_is_alnum(int c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c);
}

/* Returns true for a letter, a digit or an underscore: the characters of names of labels and
 * variables. */
static inline bool ascii_is_word(int c)
{
    return ascii_is_alnum(c) || c == '_';
}

static inline char ascii_lower(char c)
{
    return ascii_is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* Returns the value of a hexadecimal digit of either case, or -1. */
static inline int ascii_hex_value(int c)
{
    if (ascii_is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
