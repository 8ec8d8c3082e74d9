/* The protocol by which a program names its own addresses: "symbolz" of google/pprof, served by
 * gperftools, brpc and net/http/pprof.
 *
 * The response to a GET of the service's path is "num_symbols: N"; N is 0 if the program has no
 * names. The response to a POST with addresses as body ("0x4d4b50+0x7f12ab") has a line for each
 * address that the program knows: the address, white space, and the name to the end of the line.
 * Addresses are those of the process.
 *
 * The functions are pure. They read bytes from outside and trust none of them. Any thread may call
 * them.
 */
#ifndef PROFPULL_SYMBOLS_SERVICE_H
#define PROFPULL_SYMBOLS_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* The most addresses of one request: servers refuse bodies of a megabyte. */
#define SYMBOL_SERVICE_ADDRESSES_MAX 10000
/* The largest response in bytes. */
#define SYMBOL_SERVICE_ANSWER_MAX ((size_t)4 * 1024 * 1024)
/* The longest name in bytes; longer ones are cut. */
#define SYMBOL_SERVICE_NAME_MAX 4096

/* Appends the URL of the symbol service for the URL of a profile, as google/pprof derives it: the
 * last part of the path becomes "symbol" below /debug/pprof/ and for gperftools' profiles
 * (/pprof/heap, growth, profile, pmuprofile, contention), and "symbolz" elsewhere. The query is
 * dropped. Returns false if the URL has no path to replace, or if out of memory. */
bool symbol_service_url(struct sv profile_url, struct buf *out);

/* Returns true if the body of a response to GET says that the program has names. */
bool symbol_service_has_names(struct sv body);

/* Appends the body of a POST for up to SYMBOL_SERVICE_ADDRESSES_MAX addresses. */
bool symbol_service_put_addresses(const uint64_t *addresses, size_t n, struct buf *out);

/* Reads the next name of a response. *rest is the whole body at first, and then the part that has
 * not been read. The name is a view of the body without the parameters of a C++ function, at most
 * SYMBOL_SERVICE_NAME_MAX bytes. Lines of any other form, names that only repeat the address, and
 * those of the ends of segments ("_end") are skipped. Returns false at the end. */
bool symbol_service_next(struct sv *rest, uint64_t *ret_address, struct sv *ret_name);

/* Returns a demangled name of C++ without the parameters at its end: "a::f<int>(int) const" becomes
 * "a::f<int>". Other names are returned as they are. */
struct sv symbol_without_parameters(struct sv name);

#endif
