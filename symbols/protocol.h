/* The messages between agent, launcher and child. Private to symbols/.
 *
 * The launcher is forked from the agent before its sandbox, and starts children when the agent
 * orders it. A new child's socket comes back to the agent, which asks the child directly. All ends
 * are the same program, so messages are structs.
 */
#ifndef PROFPULL_SYMBOLS_PROTOCOL_H
#define PROFPULL_SYMBOLS_PROTOCOL_H

#include <stdint.h>

#include "symbols/frames.h"

/* The longest build id in hex: 32 bytes. GNU ids have 20, some linkers make 8, 16 or 32. */
#define BUILD_ID_MAX 64
/* The most addresses of a question. */
#define QUESTION_ADDRESSES_MAX 65536

/* The exit codes of a child that ends by itself. libiberty and libdw end it with 1 when they get no
 * memory. */
enum { CHILD_DONE = 0, CHILD_NO_MEMORY = 1, CHILD_NO_LIMITS = 3 };

enum order_kind {
    ORDER_START, /* ends the child, if there is one, and starts another */
    ORDER_END,   /* ends the child */
};

/* From the agent to the launcher. */
struct order {
    uint32_t kind;
    uint32_t required; /* 1: a child that cannot restrict its system calls ends */
    uint64_t memory;   /* bytes of address space; 0: no limit */
};

/* From the launcher to the agent; the socket of a new child comes with it. */
struct order_done {
    int32_t error;       /* errno of the failure; 0: none */
    int32_t ended;       /* 1 if a child was ended, or had ended by itself */
    int32_t wait_status; /* its status, as waitpid() gives it */
};

/* From the agent to the child; the file comes with it, and the addresses follow. */
struct question {
    uint32_t magic;
    uint32_t addresses; /* at most QUESTION_ADDRESSES_MAX */
    struct symbol_mapping mapping;
    char build_id[BUILD_ID_MAX + 1]; /* "": any */
};
#define QUESTION_MAGIC UINT32_C(0x61736b31) /* "ask1" */

#endif
