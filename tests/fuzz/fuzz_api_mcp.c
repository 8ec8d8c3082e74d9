/* A message of an assistant, after a first line with its headers: version, method and name,
 * separated by "|". Whatever comes, there is a response of the protocol or none at all, and a
 * request of the newer generation is accepted only with the headers that repeat it. */
#include <string.h>

#include "api/mcp/message.h"
#include "tests/fuzz/fuzz.h"

static struct sv next_part(struct sv *line)
{
    struct sv part = *line;
    if (!sv_cut(*line, '|', &part, line)) {
        *line = (struct sv){"", 0};
    }
    return part.n > 0 ? part : (struct sv){NULL, 0};
}

static void check_response(const struct mcp_message *m)
{
    struct buf out;
    buf_init(&out, 4 * MCP_BODY_MAX);
    REQUIRE(m->code == MCP_OK ? mcp_put_result(m, SV("{}"), &out) : mcp_put_error(m, &out));
    json_t *root = json_loadb(out.data, out.len, 0, NULL);
    REQUIRE(json_is_object(root));
    REQUIRE((json_object_get(root, "result") != NULL) == (m->code == MCP_OK));
    REQUIRE(memchr(out.data, '\n', out.len) == NULL);
    json_decref(root);
    buf_done(&out);
}

FUZZ(body)
{
    struct sv line = SV("");
    struct mcp_message m;
    if (!sv_cut(body, '\n', &line, &body)) {
        line = SV("");
    }
    struct mcp_headers headers = {.version = next_part(&line)};
    headers.method = next_part(&line);
    headers.name = next_part(&line);
    mcp_read(body, &headers, &m);
    REQUIRE((m.code == MCP_OK) == (m.problem[0] == '\0'));
    REQUIRE(m.code == MCP_OK || mcp_status(&m) != 0);
    if (m.code == MCP_OK && m.method != NULL && m.id != NULL && m.modern) {
        REQUIRE(sv_eq_str(headers.method, m.method) && headers.version.p != NULL);
    }
    if (m.code != MCP_OK || m.id != NULL) {
        check_response(&m);
    }
    mcp_done(&m);
}
