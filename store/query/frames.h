/* The text that stands for a frame of a stack. Pure functions, any thread. */
#ifndef PROFPULL_STORE_QUERY_FRAMES_H
#define PROFPULL_STORE_QUERY_FRAMES_H

#include "base/buf.h"
#include "base/str.h"

/* A function's name without the shapes that Go's compiler adds to those of generic functions
 * (`[go.shape.int]`). A view of the name, or of room, which is emptied; empty if room has failed.
 */
struct sv frame_name(struct sv name, struct buf *room);

#define FRAME_ADDRESS_MAX 20
/* The address of a location without lines. */
struct sv frame_address(uint64_t address, char room[FRAME_ADDRESS_MAX]);

#endif
