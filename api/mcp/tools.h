/* The tools that assistants can call: one row and one function each.
 *
 * A tool reads the profiles, targets or labels of the process, changes nothing, and writes text: a
 * few lines, bounded in bytes, that say what was left out. Names of functions and labels are data
 * from outside: control characters in them are escaped. A wrong argument is no failure of the
 * protocol but an answer, which says how to mend it.
 */
#ifndef PROFPULL_API_MCP_TOOLS_H
#define PROFPULL_API_MCP_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

#include "api/ask.h"
#include "base/arena.h"
#include "server/exchange.h"

/* The bytes of an answer by default, and the bounds of the argument max_bytes. */
#define TOOL_BYTES_DEFAULT 8192
#define TOOL_BYTES_MIN 1024
#define TOOL_BYTES_MAX 65536
/* The bounds of the argument limit. */
#define TOOL_LIMIT_MAX 500

/* One call of a tool, with the arguments that several tools share. */
struct tool_call {
    const struct exchange *exchange;
    const json_t *args; /* an object, or NULL */
    struct arena *arena;
    atomic_size_t damaged;
    struct buf *text; /* the answer */
    size_t bytes_max; /* of the answer */
    size_t limit;     /* rows */
    size_t left_out;  /* rows that found no room */
    int64_t now_ns;
};

struct tool {
    const char *name;
    const char *title;
    const char *description;
    const char *properties;   /* JSON: the members of `properties` of the input's schema */
    const char *required;     /* JSON: the inside of `required`; "" if there is none */
    const char *const *names; /* the names of the arguments, ended by NULL */
    size_t limit;             /* the default of the argument limit */
    bool (*run)(struct tool_call *call, struct err *err);
};

/* Returns the i-th tool; NULL past the last one. */
const struct tool *tool_at(size_t i);
/* Returns the tool with a name, or NULL. */
const struct tool *tool_find(const char *name);
/* Appends the description of a tool as JSON. */
void tool_describe(const struct tool *t, struct buf *out);
/* Runs a tool. Returns false with err if the arguments are wrong or the answer cannot be made; the
 * message is for the assistant. */
bool tool_run(const struct tool *t, struct tool_call *call, struct err *err);

/* ---- arguments ------------------------------------------------------------------------------- */

/* Reads a text; *ret stays as it is if there is none. */
bool tool_text(const struct tool_call *call, const char *name, const char **ret, struct err *err);
/* Reads a whole number within bounds. */
bool tool_number(const struct tool_call *call, const char *name, size_t min, size_t max,
                 size_t *ret, struct err *err);
/* Reads the arguments PREFIXfrom and PREFIXuntil: "now", "now-1h", "1h" (ago), seconds since 1970
 * or RFC 3339. Without them *ask keeps its range. */
bool tool_range(const struct tool_call *call, const char *prefix, struct ask *ask, struct err *err);
/* Reads the arguments service, PREFIXversion and PREFIXselector; all must hold. */
bool tool_selector(const struct tool_call *call, const char *prefix, struct ask *ask,
                   struct err *err);
/* Reads the argument type: the id of a profile type, or one part of it that is unique among the
 * types of the selected profiles, such as "cpu" or "inuse_space". `fallback` is used without it.
 * Reads range and selector of ask. */
bool tool_type(struct tool_call *call, const char *fallback, struct ask *ask, struct err *err);

/* ---- answers --------------------------------------------------------------------------------- */

/* Begins a query of the store. */
bool tool_query(struct tool_call *call, struct query *ret, struct err *err);
/* Appends a line if there is room, and counts it as left out otherwise. fmt has no line break at
 * its end. Returns false if there is no room. */
bool tool_row(struct tool_call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns text with control characters escaped, cut to max bytes; in the arena. */
const char *tool_name(struct tool_call *call, struct sv text, size_t max);
/* Formats a value of a unit with its unit spelled out: "1.5 seconds", "3 MiB", "12 objects". */
const char *tool_value(struct tool_call *call, double value, struct sv unit);
/* Appends the line that names the page with the same content. path: with its parameters, encoded.
 */
void tool_page(struct tool_call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns text encoded for the query of a URL; in the arena. */
const char *tool_encoded(struct tool_call *call, struct sv text);
/* Formats a time in ms as RFC 3339; in the arena. */
const char *tool_time(struct tool_call *call, int64_t ms);

/* ---- the tools ------------------------------------------------------------------------------- */

bool tool_list_services(struct tool_call *call, struct err *err);
bool tool_top_functions(struct tool_call *call, struct err *err);
bool tool_call_tree(struct tool_call *call, struct err *err);
bool tool_compare(struct tool_call *call, struct err *err);
bool tool_what_changed(struct tool_call *call, struct err *err);
bool tool_targets(struct tool_call *call, struct err *err);
bool tool_labels(struct tool_call *call, struct err *err);

#endif
