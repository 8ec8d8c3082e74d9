/* Converts the binary trees of old agents to pprof profiles (`format=trie` and `format=tree` of
 * `/ingest`). Both list their nodes, each before its children:
 *
 *   length of the name, the name, its value, number of its children
 *
 * with numbers as in protobuf. In a tree, each node but the first is a frame, and the value is that
 * of the stack that ends there. In a trie, a node is a piece of text: the pieces from the first
 * node to the one with a value are a stack, "main;work". The bytes come from outside and are not
 * trusted. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_PREFIX_TREES_H
#define PROFPULL_API_RECEIVE_PREFIX_TREES_H

#include "api/receive/frames.h"

/* Limits of a trie: the bytes of a stack, and those of all stacks together, which may be many times
 * the bytes of the trie. */
#define TRIE_STACK_MAX ((size_t)1024 * 1024)
#define TRIE_STACKS_MAX ((size_t)256 * 1024 * 1024)

/* Append the profile, not compressed, and set *ret_samples to its number of samples. False with an
 * error that names the place. */
bool trie_convert(struct sv in, const struct frames_options *o, struct buf *out,
                  size_t *ret_samples, struct err *err);
bool tree_convert(struct sv in, const struct frames_options *o, struct buf *out,
                  size_t *ret_samples, struct err *err);

#endif
