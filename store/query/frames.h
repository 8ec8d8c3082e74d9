/* The text that stands for a frame of a stack. Pure functions, any thread. */
#ifndef PROFPULL_STORE_QUERY_FRAMES_H
#define PROFPULL_STORE_QUERY_FRAMES_H

#include "base/buf.h"
#include "base/str.h"

/* Returns the name of a function without the shapes that Go's compiler adds to the names of generic
 * functions (`[go.shape.int]`). The result is a view of the name, or of room, which is emptied
 * first. If room is out of memory, the view is empty. */
struct sv frame_name(struct sv name, struct buf *room);

#define FRAME_ADDRESS_MAX 20
/* Writes the address of a location in hexadecimal digits: the name of a location without lines. */
struct sv frame_address(uint64_t address, char room[FRAME_ADDRESS_MAX]);

#endif
