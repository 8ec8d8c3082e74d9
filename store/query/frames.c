#include "store/query/frames.h"

#include <stdio.h>
#include <string.h>

#define SHAPE "[go.shape."

/* Returns the length of the bracketed text at the start of v; 0 if its bracket is never closed. */
static size_t brackets(struct sv v)
{
    size_t depth = 0;
    for (size_t i = 0; i < v.n; i++) {
        depth += v.p[i] == '[';
        if (v.p[i] == ']' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

struct sv frame_name(struct sv name, struct buf *room)
{
    if (name.n == 0 || memmem(name.p, name.n, SHAPE, strlen(SHAPE)) == NULL) {
        return name;
    }
    buf_clear(room);
    while (name.n > 0) {
        size_t n = sv_starts_with(name, SV(SHAPE)) ? brackets(name) : 0;
        if (n == 0) {
            const char *next = memchr(name.p + 1, '[', name.n - 1);
            n = next == NULL ? name.n : (size_t)(next - name.p);
            buf_append(room, name.p, n);
        }
        name = sv_skip(name, n);
    }
    return (struct sv){room->data, room->len};
}

struct sv frame_address(uint64_t address, char room[FRAME_ADDRESS_MAX])
{
    int n = snprintf(room, FRAME_ADDRESS_MAX, "%llx", (unsigned long long)address);
    return (struct sv){room, (size_t)n};
}
