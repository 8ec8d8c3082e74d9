#include "store/archive/heartbeat.h"

#include <stdio.h>

#include "store/archive/index.h"

#define HEAD "profpull archive heartbeat "

size_t heartbeat_format(const char *id, char out[HEARTBEAT_MAX])
{
    int n = snprintf(out, HEARTBEAT_MAX, HEAD "%d\n%s\n", ARCHIVE_VERSION, id);
    return n > 0 && n < HEARTBEAT_MAX ? (size_t)n : 0;
}

bool heartbeat_parse(struct sv text, uint64_t *ret_version, struct sv *ret_id)
{
    struct sv line;
    struct sv rest;
    return sv_cut(text, '\n', &line, &rest) && sv_starts_with(line, SV(HEAD)) &&
           parse_u64(sv_skip(line, sizeof(HEAD) - 1), UINT32_MAX, ret_version) &&
           *ret_version > 0 && sv_cut(rest, '\n', ret_id, &rest) && ret_id->n > 0 &&
           ret_id->n <= HEARTBEAT_ID_MAX;
}
