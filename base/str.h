/* Small parsers and formatters that every room needs: numbers, durations, sizes, JSON strings,
 * hashes, host:port. Functions neither allocate nor lock unless they say so. Any thread may call
 * them. */
#ifndef PROFPULL_BASE_STR_H
#define PROFPULL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

/* Parses a decimal number without a sign. Returns false for any other text, and for a value above
 * max. */
bool parse_u64(struct sv v, uint64_t max, uint64_t *ret_value);

/* Parses a duration in the form of Prometheus: one or more <number><unit>, with the units y w d h m
 * s ms in this order, each at most once ("1h30m", "500ms"), or "0" alone. Fractions ("1.5s") are an
 * error. Error text: `expected a duration such as "15s", got "x"`. */
bool parse_duration_ms(struct sv v, int64_t *ret_ms, struct err *err);
/* Writes a duration in this form ("1h30m", "0s"). */
void format_duration_ms(int64_t ms, char *out, size_t size);

/* Parses a size in bytes: <number>[unit], units B, KB/MB/GB/TB (1000) and KiB/MiB/GiB/TiB
 * (1024). */
bool parse_size(struct sv v, uint64_t *ret_bytes, struct err *err);
/* Writes a size exactly, in the largest unit possible ("16MiB", "1500B"). */
void format_size(uint64_t bytes, char *out, size_t size);

/* The size of a buffer that is enough for any double, with the NUL. */
#define NUM_TEXT_MAX 32
/* Writes a decimal text that reads back as the same value, or "NaN", "+Inf" and "-Inf" as in the
 * text format of Prometheus. */
void num_format(double value, char out[NUM_TEXT_MAX]);

/* Returns the candidate closest to word by edit distance (Damerau-Levenshtein, at most 2 and less
 * than half of the length), or NULL. It is meant for "did you mean" in error messages. */
const char *suggest(struct sv word, const char *const *candidates, size_t n);

/* Appends v as the inside of a JSON string (no quotes); invalid UTF-8 becomes U+FFFD. */
bool json_escape(struct sv v, struct buf *out);
/* Appends v as a JSON string with its quotes. */
bool json_quote(struct sv v, struct buf *out);
/* Appends the key of an object's member and a colon, after a comma unless the member is the first
 * one. */
bool json_key(const char *key, struct buf *out);
/* Appends a member with its value, "key":"value", after a comma unless it is the first one. */
bool json_member(const char *key, struct sv value, struct buf *out);

/* Zeroes and frees a string that holds a secret; accepts NULL. */
void secret_free(char *s);

/* Returns a fast 64-bit hash for tables and phases, which is the same on every machine and in every
 * run. If an attacker may choose many keys, the seed must be random. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

/* Splits host:port in the form of a URL's authority: "h:1", "1.2.3.4", "[::1]:6060", "[::1]", "::1"
 * (a bare IPv6 address has no port). The host is returned without brackets; the port is 0 if there
 * is none. Fails if the text is not of this form or the port is not within 1-65535. */
bool split_host_port(struct sv v, struct sv *ret_host, uint16_t *ret_port, struct err *err);

#endif
