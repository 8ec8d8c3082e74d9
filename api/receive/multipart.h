/* Splits the body of a multipart/form-data request into its parts. The body comes from outside and
 * is not trusted. Pure; any thread, no allocation.
 */
#ifndef PROFPULL_API_RECEIVE_MULTIPART_H
#define PROFPULL_API_RECEIVE_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* A form with more parts is refused, as Go's reader does. */
#define MULTIPART_PARTS_MAX 1000
/* Limit of a boundary in bytes (RFC 2046, 5.1.1). */
#define MULTIPART_BOUNDARY_MAX 70

/* Returns true for multipart/form-data. */
bool multipart_is_type(struct sv content_type);
/* Reads the boundary of a Content-Type, quoted or not. False if there is none, or if it is not a
 * valid boundary. */
bool multipart_boundary(struct sv content_type, struct sv *ret_boundary);

struct multipart_part {
    struct sv name; /* name in its Content-Disposition; empty if there is none */
    struct sv content;
};

/* A walk through the parts. */
struct multipart {
    struct sv rest; /* the bytes after the last delimiter */
    struct sv boundary;
    bool ended;
    size_t n;
};

/* Finds the first part. False if the body does not have the boundary. Lines may end in LF alone. */
bool multipart_start(struct multipart *m, struct sv body, struct sv boundary, struct err *err);
/* Reads the next part; its views point into the body. False at the end, or with err at a mistake.
 */
bool multipart_next(struct multipart *m, struct multipart_part *ret, struct err *err);

#endif
