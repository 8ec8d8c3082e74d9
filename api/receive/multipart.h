/* multipart/form-data: the parts of a body. The body comes from outside and is not trusted. Pure;
 * any thread, no allocation.
 */
#ifndef PROFPULL_API_RECEIVE_MULTIPART_H
#define PROFPULL_API_RECEIVE_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* A form with more parts is refused, as Go's reader does. */
#define MULTIPART_PARTS_MAX 1000
/* Bytes of a boundary (RFC 2046, 5.1.1). */
#define MULTIPART_BOUNDARY_MAX 70

/* Returns true for multipart/form-data. */
bool multipart_is_type(struct sv content_type);
/* The boundary of a Content-Type, quoted or not. False if there is none, or it cannot be one. */
bool multipart_boundary(struct sv content_type, struct sv *ret_boundary);

struct multipart_part {
    struct sv name; /* of its Content-Disposition; empty if there is none */
    struct sv content;
};

/* A walk through the parts. */
struct multipart {
    struct sv rest; /* after the last delimiter */
    struct sv boundary;
    bool ended;
    size_t n;
};

/* Finds the first part. False if the boundary is not in the body. Lines may end in LF alone. */
bool multipart_start(struct multipart *m, struct sv body, struct sv boundary, struct err *err);
/* The next part; its views point into the body. False at the end, or with err set at a mistake. */
bool multipart_next(struct multipart *m, struct multipart_part *ret, struct err *err);

#endif
