#include "symbols/frames.h"

#include <stdlib.h>

void symbol_frames_free(struct symbol_frames *f)
{
    free(f->owner);
    *f = (struct symbol_frames){.n = 0};
}
