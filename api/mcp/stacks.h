/* The parts that the tools for stacks share: the tree that the arguments select. */
#ifndef PROFPULL_API_MCP_STACKS_H
#define PROFPULL_API_MCP_STACKS_H

#include "api/mcp/tools.h"
#include "store/query/tree.h"

#define STACKS_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
/* Bytes of the name of a function; longer ones are cut. */
#define STACKS_NAME_MAX 240

/* Builds the tree of ask. Returns NULL with err; an empty one is an error, too. */
struct tree *stacks_tree(struct tool_call *call, const struct ask *ask, struct err *err);
/* Reads the arguments service, version, selector, type and the range, and builds the tree. */
struct tree *stacks_of_args(struct tool_call *call, struct ask *ask, struct err *err);
/* Reads an argument that is one of two words; *ret is true if it is the second one. */
bool stacks_choice(const struct tool_call *call, const char *name, const char *first,
                   const char *second, bool *ret, struct err *err);
/* Appends the line about the page of the profiles of ask. */
void stacks_page(struct tool_call *call, const struct ask *ask);
/* Returns part of whole in percent; 0 if whole is 0. */
double stacks_percent(double part, double whole);

#endif
