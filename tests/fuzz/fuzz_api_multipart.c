/* Forms: "Content-Type\nbody". Whatever they are, each part lies in the body, after the one before
 * it, and holds no delimiter. */
#include <string.h>

#include "api/receive/multipart.h"
#include "tests/fuzz/fuzz.h"

static void walk(struct sv body, struct sv boundary)
{
    struct err err = ERR_INIT;
    struct multipart m;
    struct multipart_part part;
    const char *before = body.p;
    size_t n = 0;
    if (!multipart_start(&m, body, boundary, &err)) {
        REQUIRE(err.kind == ERR_INPUT);
        return;
    }
    while (multipart_next(&m, &part, &err)) {
        REQUIRE(part.content.p >= before);
        REQUIRE(part.content.p + part.content.n <= body.p + body.n);
        before = part.content.p + part.content.n;
        n++;
    }
    REQUIRE(n <= MULTIPART_PARTS_MAX);
}

FUZZ(in)
{
    struct sv type;
    struct sv body;
    struct sv boundary;
    if (!sv_cut(in, '\n', &type, &body)) {
        return;
    }
    (void)multipart_is_type(type);
    if (multipart_boundary(type, &boundary)) {
        REQUIRE(boundary.n > 0 && boundary.n <= MULTIPART_BOUNDARY_MAX);
        walk(body, boundary);
    }
}
